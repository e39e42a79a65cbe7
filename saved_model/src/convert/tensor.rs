//! Tensors.

use super::{known_shape, value_dtype};
use crate::{
    bundle::{check_limit, take_varint},
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
    let dtype = value_dtype(proto.dtype)?;
    let shape = known_shape(proto.tensor_shape.as_ref())?;
    tensor_elements(proto, dtype, shape, limits)
}

/// The elements of a tensor whose dtype and shape are known from elsewhere.
pub(crate) fn tensor_elements(
    proto: &TensorProto,
    dtype: DType,
    shape: Shape,
    limits: &Limits,
) -> Result<HostTensor> {
    let size = dtype.size().unwrap_or(size_of::<Bytes>());
    check_limit(shape.num_elements().saturating_mul(size), limits)?;
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
