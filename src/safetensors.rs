//! Tensors in the safetensors format.
//!
//! ```
//! use ferroflow::{ir::HostTensor, safetensors};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("weights.safetensors");
//! let w = HostTensor::vector(&[1.0f32, 2.0])?;
//! safetensors::write(&path, &[("dense/w".to_string(), w.clone())])?;
//! assert_eq!(safetensors::read(&path)?, [("dense/w".to_string(), w)]);
//! # Ok(())
//! # }
//! ```
//!
//! The format has numbers only: no strings, no complex numbers, nothing quantised.

use ::safetensors::{Dtype, SafeTensorError, SafeTensors, View, serialize_to_file};
use ferroflow_ir::{DType, HostTensor, Shape};
use ferroflow_saved_model::output_file::OutputFile;
use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The file.
    pub path: PathBuf,
    /// Fault.
    pub problem: SafeTensorsError,
}

/// Fault of tensors in this format.
#[derive(Debug, thiserror::Error)]
pub enum SafeTensorsError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are not of this format.
    #[error(transparent)]
    Format(#[from] SafeTensorError),
    /// Shape and elements do not make a tensor.
    #[error(transparent)]
    Tensor(#[from] ferroflow_ir::Error),
    /// Elements of a type that the other side does not have.
    #[error("tensor `{name}`: elements of type {dtype} are not supported")]
    Dtype {
        /// The tensor.
        name: String,
        /// The type.
        dtype: String,
    },
}

const DTYPES: &[(DType, Dtype)] = &[
    (DType::Bool, Dtype::BOOL),
    (DType::U8, Dtype::U8),
    (DType::I8, Dtype::I8),
    (DType::F8E5M2, Dtype::F8_E5M2),
    (DType::F8E4M3FN, Dtype::F8_E4M3),
    (DType::I16, Dtype::I16),
    (DType::U16, Dtype::U16),
    (DType::F16, Dtype::F16),
    (DType::BF16, Dtype::BF16),
    (DType::I32, Dtype::I32),
    (DType::U32, Dtype::U32),
    (DType::F32, Dtype::F32),
    (DType::F64, Dtype::F64),
    (DType::I64, Dtype::I64),
    (DType::U64, Dtype::U64),
];

/// Whether the format has elements of this type.
pub fn supports(dtype: DType) -> bool {
    DTYPES.iter().any(|(ours, _)| *ours == dtype)
}

/// Reads all tensors of a file, by name.
///
/// # Errors
///
/// When the file is damaged, or has elements of a type that tensors here do not have.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<(String, HostTensor)>, Error> {
    let path = path.as_ref();
    read_all(path).map_err(|problem| Error { path: path.into(), problem })
}

fn read_all(path: &Path) -> Result<Vec<(String, HostTensor)>, SafeTensorsError> {
    let bytes = fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let mut tensors = Vec::with_capacity(file.len());
    for (name, view) in file.iter() {
        let dtype = DTYPES.iter().find(|(_, theirs)| *theirs == view.dtype());
        let (dtype, _) = dtype.ok_or_else(|| SafeTensorsError::Dtype {
            name: name.into(),
            dtype: format!("{:?}", view.dtype()),
        })?;
        let shape = Shape::new(view.shape().iter().copied())?;
        tensors.push((name.to_string(), HostTensor::from_bytes(*dtype, shape, view.data())?));
    }
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(tensors)
}

/// Writes tensors by name. The file appears when all of it is on the disk.
///
/// # Errors
///
/// When the format does not have a dtype, or the file cannot be written.
pub fn write(path: impl AsRef<Path>, tensors: &[(String, HostTensor)]) -> Result<(), Error> {
    let path = path.as_ref();
    write_all(path, tensors).map_err(|problem| Error { path: path.into(), problem })
}

fn write_all(path: &Path, tensors: &[(String, HostTensor)]) -> Result<(), SafeTensorsError> {
    let views: Result<Vec<(&str, Elements<'_>)>, SafeTensorsError> = tensors
        .iter()
        .map(|(name, tensor)| {
            let dtype = DTYPES.iter().find(|(ours, _)| *ours == tensor.dtype());
            let (_, dtype) = dtype.ok_or_else(|| SafeTensorsError::Dtype {
                name: name.clone(),
                dtype: tensor.dtype().to_string(),
            })?;
            Ok((name.as_str(), Elements { tensor, dtype: *dtype }))
        })
        .collect();
    let views = views?;
    let file = OutputFile::create(path).map_err(unwritable)?;
    serialize_to_file(views, None, file.temporary())?;
    file.commit().map_err(unwritable)
}

/// The failure to write a file that its path is told of elsewhere.
fn unwritable(error: ferroflow_format::Error) -> SafeTensorsError {
    match error {
        ferroflow_format::Error::Io { source, .. } => source.into(),
        other => std::io::Error::other(other).into(),
    }
}

struct Elements<'a> {
    tensor: &'a HostTensor,
    dtype: Dtype,
}

impl View for Elements<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        self.tensor.shape().dims()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.tensor.bytes().into()
    }

    fn data_len(&self) -> usize {
        self.tensor.bytes().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.safetensors");
        let shape = Shape::new([2, 3]).unwrap();
        let tensors: Vec<(String, HostTensor)> = DTYPES
            .iter()
            .map(|(dtype, _)| {
                let bytes = vec![1u8; 6 * dtype.size().unwrap()];
                let tensor = HostTensor::from_bytes(*dtype, shape.clone(), &bytes).unwrap();
                (format!("{:02}", dtype.number()), tensor)
            })
            .collect();
        write(&path, &tensors).unwrap();
        let mut expected = tensors;
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(read(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_the_format_lacks_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let text = [("t".to_string(), HostTensor::scalar_string("text"))];
        let error = write(&path, &text).unwrap_err().to_string();
        assert!(
            error.ends_with("tensor `t`: elements of type string are not supported"),
            "{error}"
        );
        fs::write(&path, [9, 0, 0, 0, 0, 0, 0, 0, b'{']).unwrap();
        assert!(read(&path).is_err());
    }
}
