//! Writing checkpoints of the first format: a table that holds the tensors themselves.
//!
//! Source: `tensor_slice_writer.cc` of TensorFlow.

use super::{
    ordered_code::encode_slice_key,
    slice::{SliceSpec, TensorSlice},
    table_writer::TableWriter,
};
use crate::{
    convert,
    error::{Error, Result},
    output_file::OutputFile,
    proto::{self, VersionDef},
};
use ferroflow_ir::{DType, HostTensor, Shape};
use prost::Message;
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

/// The version of this format.
const VERSION: i32 = 1;

/// A checkpoint of the first format that is being written. Tensors are kept until
/// [`finish`](SliceTableWriter::finish), as the file has them in the order of their keys.
///
/// ```
/// # use ferroflow_format::bundle::{Reader, SliceTableWriter};
/// # use ferroflow_ir::{HostTensor, Limits};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.ckpt");
/// let mut writer = SliceTableWriter::new(&path);
/// writer.add("w", None, &HostTensor::vector(&[1.0f32, 2.0])?)?;
/// writer.finish()?;
/// let w = Reader::open(&path, &Limits::default())?.read("w")?;
/// assert_eq!(w.as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SliceTableWriter {
    path: PathBuf,
    tensors: Vec<proto::SavedSliceMeta>,
    indices: HashMap<String, usize>,
    data: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl SliceTableWriter {
    /// Begins a checkpoint in this file.
    pub fn new(path: impl Into<PathBuf>) -> SliceTableWriter {
        let (tensors, indices, data) = (Vec::new(), HashMap::new(), BTreeMap::new());
        SliceTableWriter { path: path.into(), tensors, indices, data }
    }

    /// Adds a tensor, or the part of one that a specification tells.
    ///
    /// # Errors
    ///
    /// When the part does not fit the tensor or its other parts, is there already, or is of a dtype
    /// that the format does not have.
    pub fn add(&mut self, name: &str, spec: Option<&SliceSpec>, part: &HostTensor) -> Result<()> {
        let (shape, slice) = match spec {
            Some(SliceSpec { shape, slice }) => (shape.clone(), slice.clone()),
            None => (part.shape().clone(), TensorSlice::full(part.shape().rank())),
        };
        self.add_part(name, &shape, &slice, part).map_err(|error| error.at_tensor(name))
    }

    fn add_part(
        &mut self,
        name: &str,
        shape: &Shape,
        slice: &TensorSlice,
        part: &HostTensor,
    ) -> Result<()> {
        let wrong = |rule| Error::Slice { slice: slice.to_string(), shape: shape.clone(), rule };
        if slice.region(shape)?.shape != *part.shape() {
            return Err(wrong("has another shape than the part"));
        }
        let key = encode_slice_key(name, slice);
        if name.is_empty() || self.data.contains_key(&key) {
            return Err(wrong("is there already, or has no name"));
        }
        let value = proto::SavedTensorSlices {
            data: Some(proto::SavedSlice {
                name: name.into(),
                slice: Some(slice.to_proto()),
                data: Some(elements(part)?),
            }),
            ..proto::SavedTensorSlices::default()
        };
        let (dtype, listed) = (part.dtype().number(), convert::shape_message(shape));
        let index = *self.indices.entry(name.into()).or_insert_with(|| {
            self.tensors.push(proto::SavedSliceMeta {
                name: name.into(),
                shape: Some(listed.clone()),
                r#type: dtype,
                slice: Vec::new(),
            });
            self.tensors.len() - 1
        });
        let tensor = &mut self.tensors[index];
        if tensor.r#type != dtype || tensor.shape.as_ref() != Some(&listed) {
            return Err(wrong("does not go with what is there already"));
        }
        tensor.slice.push(slice.to_proto());
        self.data.insert(key, value.encode_to_vec());
        Ok(())
    }

    /// Writes the file, which appears under its name when it is complete.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn finish(self) -> Result<()> {
        let SliceTableWriter { path, tensors, data, .. } = self;
        let versions = Some(VersionDef { producer: VERSION, ..VersionDef::default() });
        let listing = proto::SavedTensorSlices {
            meta: Some(proto::SavedTensorSliceMeta { tensor: tensors, versions }),
            ..proto::SavedTensorSlices::default()
        };
        let failed = |source| Error::Io { path: path.clone(), source };
        let mut table = TableWriter::new(OutputFile::create(&path)?);
        table.add(b"", &listing.encode_to_vec()).map_err(failed)?;
        for (key, value) in &data {
            table.add(key, value).map_err(failed)?;
        }
        table.finish().map_err(failed)?.commit()
    }
}

/// The elements of a tensor in the list of its dtype; dtype and shape are in the listing of the
/// table.
fn elements(tensor: &HostTensor) -> Result<proto::TensorProto> {
    let mut message = proto::TensorProto::default();
    let ints = || tensor.to_i64s().map(|all| all.into_iter().map(|x| x as i32).collect());
    match tensor.dtype() {
        DType::F32 => message.float_val = tensor.as_slice()?.to_vec(),
        DType::F64 => message.double_val = tensor.as_slice()?.to_vec(),
        DType::I32 | DType::I16 | DType::I8 | DType::U16 | DType::U8 => message.int_val = ints()?,
        DType::QI8 => message.int_val = numbers::<i8, _>(tensor, i32::from),
        DType::QU8 => message.int_val = numbers::<u8, _>(tensor, i32::from),
        DType::QI32 => message.int_val = numbers::<i32, _>(tensor, |x| x),
        DType::I64 => message.int64_val = tensor.as_slice()?.to_vec(),
        DType::Bool => message.bool_val = tensor.bytes().iter().map(|&byte| byte != 0).collect(),
        DType::F16 => message.half_val = numbers::<u16, _>(tensor, i32::from),
        DType::C64 => message.scomplex_val = numbers::<f32, _>(tensor, |x| x),
        DType::C128 => message.dcomplex_val = numbers::<f64, _>(tensor, |x| x),
        DType::String => message.string_val = tensor.strings()?.to_vec(),
        dtype => {
            let (kind, name) = ("checkpoint of the first format", dtype.name());
            let expected = "of a dtype that it has";
            return Err(ferroflow_ir::Error::argument(kind, "tensor", expected, name).into());
        }
    }
    Ok(message)
}

/// The numbers that the bytes of a tensor are.
fn numbers<T: bytemuck::Pod, N>(tensor: &HostTensor, number: fn(T) -> N) -> Vec<N> {
    let read = |bytes: &[u8]| number(bytemuck::pod_read_unaligned(bytes));
    tensor.bytes().chunks_exact(size_of::<T>()).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{Extent, Reader};
    use ferroflow_ir::Limits;

    #[test]
    fn parts_are_read_as_one_tensor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old");
        let shape = Shape::new([3, 2]).unwrap();
        let spec = |start, length| SliceSpec {
            shape: shape.clone(),
            slice: TensorSlice::new([Extent::Range { start, length }, Extent::Full]),
        };
        let part = |rows: usize, first: i32| {
            let all: Vec<i32> = (first..first + 2 * rows as i32).collect();
            HostTensor::from_slice(Shape::new([rows, 2]).unwrap(), &all).unwrap()
        };
        let mut writer = SliceTableWriter::new(&path);
        writer.add("x", Some(&spec(0, 1)), &part(1, 0)).unwrap();
        writer.add("x", Some(&spec(1, 2)), &part(2, 2)).unwrap();
        assert!(writer.add("x", Some(&spec(1, 2)), &part(2, 2)).is_err());
        assert!(writer.add("x", Some(&spec(0, 2)), &part(1, 2)).is_err());
        assert!(writer.add("y", None, &HostTensor::scalar(1u64)).is_err());
        writer.add("y", None, &HostTensor::scalar_bool(true)).unwrap();
        writer.finish().unwrap();
        let reader = Reader::open(&path, &Limits::default()).unwrap();
        assert_eq!(reader.read("x").unwrap(), part(3, 0));
        assert!(reader.read("y").unwrap().as_bool().unwrap());
    }
}
