//! Elements in storage of 32 bits, and back: WGSL has no smaller storage, but for 16-bit floats
//! where the device has such (`halves`).

use ferroflow_ir::{DType, HostTensor, Shape};
use half::{bf16, f16};
use std::borrow::Cow;

/// The elements of a tensor as `u32` storage.
pub(super) fn to_storage(tensor: &HostTensor, halves: bool) -> Cow<'_, [u8]> {
    fn widen<T: bytemuck::Pod, W: bytemuck::Pod>(
        bytes: &[u8],
        widen: impl Fn(T) -> W,
    ) -> Cow<'static, [u8]> {
        let widened = bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(widen);
        Cow::Owned(widened.flat_map(|word| bytemuck::bytes_of(&word).to_vec()).collect())
    }
    let bytes = tensor.bytes();
    match tensor.dtype() {
        DType::Bool | DType::U8 => widen(bytes, u32::from as fn(u8) -> u32),
        DType::U16 => widen(bytes, u32::from as fn(u16) -> u32),
        DType::I8 => widen(bytes, i32::from as fn(i8) -> i32),
        DType::I16 => widen(bytes, i32::from as fn(i16) -> i32),
        DType::F16 if !halves => widen(bytes, f16::to_f32),
        DType::BF16 => widen(bytes, bf16::to_f32),
        _ => Cow::Borrowed(bytes),
    }
}

/// Bytes of an element in storage.
pub(super) fn width(dtype: DType, halves: bool) -> usize {
    match dtype {
        DType::F16 if halves => 2,
        _ if dtype.size() == Some(8) => 8,
        _ => 4,
    }
}

/// Whether elements of a dtype are stored as they are.
pub(super) fn is_storage(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::I32 | DType::U32 | DType::I64 | DType::U64)
}

/// A tensor of elements in `u32` storage.
pub(super) fn from_storage(
    dtype: DType,
    shape: &Shape,
    words: &[u8],
    halves: bool,
) -> ferroflow_ir::Result<HostTensor> {
    fn narrow<W: bytemuck::Pod, T: bytemuck::Pod>(
        words: &[u8],
        narrow: impl Fn(W) -> T,
    ) -> Vec<u8> {
        let values = bytemuck::pod_collect_to_vec::<u8, W>(words).into_iter().map(narrow);
        values.flat_map(|value| bytemuck::bytes_of(&value).to_vec()).collect()
    }
    let narrowed = match dtype {
        DType::Bool | DType::U8 => narrow(words, |word: u32| word as u8),
        DType::U16 => narrow(words, |word: u32| word as u16),
        DType::I8 => narrow(words, |word: i32| word as i8),
        DType::I16 => narrow(words, |word: i32| word as i16),
        DType::F16 if !halves => narrow(words, f16::from_f32),
        DType::BF16 => narrow(words, bf16::from_f32),
        _ => return HostTensor::from_bytes(dtype, shape.clone(), words),
    };
    HostTensor::from_bytes(dtype, shape.clone(), &narrowed)
}
