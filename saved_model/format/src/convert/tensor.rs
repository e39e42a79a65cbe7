//! Tensors.

use super::{budget::Budget, known_shape, value_dtype};
use crate::{
    bundle::take_varint,
    proto::{self, TensorProto},
};
use bytemuck::Pod;
use bytes::Bytes;
use ferroflow_ir::{DType, Error, Handle, HostTensor, Limits, Result, Shape};
use std::{any::Any, borrow::Cow, sync::Arc};

/// A handle as a file holds it: it names or describes its value instead of being one.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredHandle {
    /// An element of dtype resource.
    Resource(proto::ResourceHandleProto),
    /// An element of dtype variant.
    Variant(proto::VariantTensorDataProto),
}

impl Handle for StoredHandle {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A tensor.
///
/// Elements come from `tensor_content`, or from the list of the dtype: a list that is too short
/// goes on with its last value, an empty one means zeros.
///
/// # Errors
///
/// [`Error::Argument`] for an unknown dtype, [`Error::Size`] for an impossible shape,
/// [`Error::ElementCount`] for content of another length, and [`Error::Limit`] for a tensor that
/// is too large.
pub fn tensor(proto: &TensorProto, limits: &Limits) -> Result<HostTensor> {
    tensor_within(proto, &Budget::new(limits))
}

pub(super) fn tensor_within(proto: &TensorProto, budget: &Budget) -> Result<HostTensor> {
    let dtype = value_dtype(proto.dtype)?;
    let shape = known_shape(proto.tensor_shape.as_ref())?;
    elements(proto, dtype, shape, budget)
}

/// The elements of a tensor whose dtype and shape are known from elsewhere.
///
/// # Errors
///
/// As [`tensor`](fn@tensor).
pub fn tensor_elements(
    proto: &TensorProto,
    dtype: DType,
    shape: Shape,
    limits: &Limits,
) -> Result<HostTensor> {
    elements(proto, dtype, shape, &Budget::new(limits))
}

fn elements(
    proto: &TensorProto,
    dtype: DType,
    shape: Shape,
    budget: &Budget,
) -> Result<HostTensor> {
    let size = dtype.size().unwrap_or(size_of::<Bytes>());
    budget.take_bytes(shape.num_elements().saturating_mul(size))?;
    match dtype {
        DType::String => strings(proto, shape),
        DType::Resource => {
            handles(dtype, shape, &proto.resource_handle_val, StoredHandle::Resource)
        }
        DType::Variant => handles(dtype, shape, &proto.variant_val, StoredHandle::Variant),
        _ if !proto.tensor_content.is_empty() => {
            HostTensor::from_bytes(dtype, shape, &proto.tensor_content)
        }
        _ => match listed_bytes(proto, dtype) {
            Some(listed) => repeat_last(dtype, shape, &listed),
            None => {
                let op = "tensor";
                Err(Error::argument(op, "elements", "pairs of real and imaginary parts", dtype))
            }
        },
    }
}

/// The bytes of the elements in the list of the dtype; `None` when it holds half an element.
fn listed_bytes(proto: &TensorProto, dtype: DType) -> Option<Cow<'_, [u8]>> {
    fn cast<T: Pod>(list: &[T]) -> Cow<'_, [u8]> {
        Cow::Borrowed(bytemuck::cast_slice(list))
    }
    fn narrow<T: Pod>(list: &[i32], narrow: impl Fn(i32) -> T) -> Cow<'static, [u8]> {
        let narrowed: Vec<T> = list.iter().map(|&value| narrow(value)).collect();
        Cow::Owned(bytemuck::cast_slice(&narrowed).to_vec())
    }
    Some(match dtype {
        DType::F32 => cast(&proto.float_val),
        DType::F64 => cast(&proto.double_val),
        DType::I32 | DType::QI32 => cast(&proto.int_val),
        DType::I16 | DType::QI16 | DType::U16 | DType::QU16 => {
            narrow(&proto.int_val, |value| value as u16)
        }
        DType::I8 | DType::QI8 | DType::U8 | DType::QU8 => {
            narrow(&proto.int_val, |value| value as u8)
        }
        DType::I4 | DType::U4 | DType::I2 | DType::U2 => {
            narrow(&proto.int_val, |value| value as u8)
        }
        DType::I64 => cast(&proto.int64_val),
        DType::U32 => cast(&proto.uint32_val),
        DType::U64 => cast(&proto.uint64_val),
        DType::F16 | DType::BF16 => narrow(&proto.half_val, |bits| bits as u16),
        DType::Bool => Cow::Owned(proto.bool_val.iter().map(|&value| u8::from(value)).collect()),
        DType::C64 if proto.scomplex_val.len().is_multiple_of(2) => cast(&proto.scomplex_val),
        DType::C128 if proto.dcomplex_val.len().is_multiple_of(2) => cast(&proto.dcomplex_val),
        DType::C64 | DType::C128 => return None,
        DType::F8E5M2
        | DType::F8E4M3FN
        | DType::F8E4M3FNUZ
        | DType::F8E4M3B11FNUZ
        | DType::F8E5M2FNUZ
        | DType::F4E2M1FN => cast(&proto.float8_val),
        DType::String | DType::Resource | DType::Variant => cast::<u8>(&[]),
    })
}

fn repeat_last(dtype: DType, shape: Shape, listed: &[u8]) -> Result<HostTensor> {
    let size = dtype.size().unwrap_or(1);
    let Some(last) = listed.len().checked_sub(size).map(|start| &listed[start..]) else {
        return HostTensor::zeros(dtype, shape);
    };
    let mut tensor = HostTensor::recycled(dtype, shape)?;
    let bytes = tensor.bytes_mut();
    let n_listed = listed.len().min(bytes.len());
    let (head, tail) = bytes.split_at_mut(n_listed);
    head.copy_from_slice(&listed[..n_listed]);
    tail.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(last));
    dtype.normalize(bytes);
    Ok(tensor)
}

fn strings(proto: &TensorProto, shape: Shape) -> Result<HostTensor> {
    let mut strings = match proto.tensor_content.is_empty() {
        true => proto.string_val.clone(),
        false => packed_strings(&proto.tensor_content, shape.num_elements())
            .ok_or(Error::ElementCount { dtype: DType::String, shape: shape.clone(), found: 0 })?,
    };
    let last = strings.last().cloned().unwrap_or_default();
    strings.resize(shape.num_elements(), last);
    HostTensor::from_strings(shape, strings)
}

/// Strings in raw content: the lengths of all as varints, then their bytes.
fn packed_strings(content: &Bytes, n_strings: usize) -> Option<Vec<Bytes>> {
    let mut rest = &content[..];
    let mut lengths = Vec::with_capacity(n_strings.min(content.len()));
    for _ in 0..n_strings {
        lengths.push(usize::try_from(take_varint(&mut rest)?).ok()?);
    }
    let mut start = content.len() - rest.len();
    let mut strings = Vec::with_capacity(lengths.len());
    for length in lengths {
        let end = start.checked_add(length).filter(|&end| end <= content.len())?;
        strings.push(content.slice(start..end));
        start = end;
    }
    (start == content.len()).then_some(strings)
}

fn handles<T: Clone + Default>(
    dtype: DType,
    shape: Shape,
    listed: &[T],
    store: impl Fn(T) -> StoredHandle,
) -> Result<HostTensor> {
    let missing = std::iter::repeat_with(T::default);
    let elements = listed.iter().cloned().chain(missing).take(shape.num_elements());
    let handles = elements.map(|value| Arc::new(store(value)) as Arc<dyn Handle>).collect();
    HostTensor::from_handles(dtype, shape, handles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{TensorShapeProto, tensor_shape_proto::Dim};
    use half::{bf16, f16};
    use num_complex::Complex;

    fn proto(dtype: DType, sizes: &[i64]) -> TensorProto {
        let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
        TensorProto {
            dtype: dtype.number(),
            tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
            ..TensorProto::default()
        }
    }

    fn convert(proto: &TensorProto) -> HostTensor {
        tensor(proto, &Limits::default()).unwrap()
    }

    fn check_error(proto: &TensorProto, expected: &str) {
        assert_eq!(tensor(proto, &Limits::default()).unwrap_err().to_string(), expected);
    }

    #[test]
    fn the_last_value_repeats_and_nothing_means_zeros() {
        let list = |float_val| TensorProto { float_val, ..proto(DType::F32, &[2, 2]) };
        let elements = |list| convert(&list).as_slice::<f32>().unwrap().to_vec();
        assert_eq!(elements(list(vec![])), [0.0; 4]);
        assert_eq!(elements(list(vec![1.0])), [1.0; 4]);
        assert_eq!(elements(list(vec![1.0, 2.0, 3.0])), [1.0, 2.0, 3.0, 3.0]);
        assert_eq!(elements(list(vec![1.0, 2.0, 3.0, 4.0, 5.0])), [1.0, 2.0, 3.0, 4.0]);
        let empty = TensorProto { float_val: vec![1.0], ..proto(DType::F32, &[0, 3]) };
        assert!(convert(&empty).is_empty());
    }

    #[test]
    fn each_dtype_has_its_list() {
        let int_val = vec![-1, 300];
        let ints = |dtype| convert(&TensorProto { int_val: int_val.clone(), ..proto(dtype, &[2]) });
        assert_eq!(ints(DType::I32).as_slice::<i32>().unwrap(), [-1, 300]);
        assert_eq!(ints(DType::I16).as_slice::<i16>().unwrap(), [-1, 300]);
        assert_eq!(ints(DType::U16).as_slice::<u16>().unwrap(), [65535, 300]);
        assert_eq!(ints(DType::I8).as_slice::<i8>().unwrap(), [-1, 44]);
        assert_eq!(ints(DType::QU8).bytes(), [255, 44]);
        let half_val = vec![0x3c00];
        let halves =
            |dtype| convert(&TensorProto { half_val: half_val.clone(), ..proto(dtype, &[]) });
        assert_eq!(halves(DType::F16).as_scalar::<f16>().unwrap(), f16::ONE);
        assert_eq!(halves(DType::BF16).as_scalar::<bf16>().unwrap(), bf16::from_bits(0x3c00));
        let complex = TensorProto { scomplex_val: vec![1.0, -2.0], ..proto(DType::C64, &[]) };
        assert_eq!(convert(&complex).as_scalar::<Complex<f32>>().unwrap(), Complex::new(1.0, -2.0));
        let bools = TensorProto { bool_val: vec![true, false], ..proto(DType::Bool, &[3]) };
        assert_eq!(convert(&bools).bytes(), [1, 0, 0]);
        let float8 = TensorProto { float8_val: vec![7, 8].into(), ..proto(DType::F8E5M2, &[2]) };
        assert_eq!(convert(&float8).bytes(), [7, 8]);
    }

    #[test]
    fn strings_are_listed_or_packed() {
        let listed = TensorProto { string_val: vec!["a".into()], ..proto(DType::String, &[2]) };
        assert_eq!(convert(&listed).strings().unwrap(), ["a", "a"]);
        let packed = |content: &'static [u8]| TensorProto {
            tensor_content: Bytes::from_static(content),
            ..proto(DType::String, &[2])
        };
        assert_eq!(convert(&packed(b"\x01\x02abc")).strings().unwrap(), ["a", "bc"]);
        for bad in
            [&b"\x01\x02ab"[..], b"\x01\x02abcd", b"\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7fa"]
        {
            assert!(tensor(&packed(bad), &Limits::default()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn handles_stay_as_they_are_stored() {
        let handle = proto::ResourceHandleProto { name: "table".into(), ..Default::default() };
        let stored = TensorProto {
            resource_handle_val: vec![handle.clone()],
            ..proto(DType::Resource, &[])
        };
        let tensor = convert(&stored);
        let found = tensor.handles().unwrap()[0].as_any().downcast_ref::<StoredHandle>();
        assert_eq!(found, Some(&StoredHandle::Resource(handle)));
    }

    #[test]
    fn mistakes() {
        let dtype = TensorProto { dtype: 99, ..TensorProto::default() };
        check_error(&dtype, "dtype: number must be that of a known dtype, found 99");
        check_error(&proto(DType::F32, &[2, -3]), "dimension -3 is not a valid tensor size");
        let short = TensorProto { tensor_content: vec![0; 8].into(), ..proto(DType::F32, &[3]) };
        check_error(&short, "2 elements cannot fill a float32 tensor of shape [3]");
        check_error(
            &proto(DType::F32, &[1 << 36]),
            "tensor needs 274877906944 bytes, the limit is 8589934592",
        );
        check_error(
            &proto(DType::String, &[1 << 32]),
            "tensor needs 137438953472 bytes, the limit is 8589934592",
        );
        let half_a_number = TensorProto { dcomplex_val: vec![1.0], ..proto(DType::C128, &[]) };
        check_error(
            &half_a_number,
            "tensor: elements must be pairs of real and imaginary parts, found complex128",
        );
    }
}
