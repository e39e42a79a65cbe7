//! Memory of a device, and elements as words.

use super::gpu::Gpu;
use crate::{buffer::DeviceMemory, error::Result};
use ferroflow_ir::{DType, HostTensor, Shape};
use half::{bf16, f16};
use std::{any::Any, borrow::Cow, fmt, sync::Arc};

/// Memory that goes back to the pool when nobody uses it.
pub(super) struct Memory {
    gpu: Arc<Gpu>,
    buffer: Option<wgpu::Buffer>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("device", &self.gpu.name).finish_non_exhaustive()
    }
}

impl Memory {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Memory> {
        Ok(Memory { buffer: Some(gpu.allocate(bytes)?), gpu: gpu.clone() })
    }

    pub(super) fn buffer(&self) -> &wgpu::Buffer {
        self.buffer.as_ref().expect("it is given back only when the memory is dropped")
    }

    pub(super) fn is_of(&self, gpu: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.gpu, gpu)
    }

    pub(super) fn write(&self, words: &[u8]) -> Result<()> {
        if words.is_empty() { Ok(()) } else { self.gpu.write(self.buffer(), words) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.gpu.free(buffer);
        }
    }
}

impl DeviceMemory for Memory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor> {
        let n = shape.num_elements();
        let width = if dtype.size() == Some(8) { 8 } else { 4 };
        let words = if n == 0 { Vec::new() } else { self.gpu.read(self.buffer(), n * width)? };
        Ok(of_words(dtype, shape, &words)?)
    }
}

/// The elements of a tensor as words.
pub(super) fn to_words(tensor: &HostTensor) -> Cow<'_, [u8]> {
    fn widen<T: bytemuck::Pod, W: bytemuck::Pod>(
        bytes: &[u8],
        widen: impl Fn(T) -> W,
    ) -> Cow<'static, [u8]> {
        let words = bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(widen);
        Cow::Owned(words.flat_map(|word| bytemuck::bytes_of(&word).to_vec()).collect())
    }
    let bytes = tensor.bytes();
    match tensor.dtype() {
        DType::Bool | DType::U8 => widen(bytes, u32::from as fn(u8) -> u32),
        DType::U16 => widen(bytes, u32::from as fn(u16) -> u32),
        DType::I8 => widen(bytes, i32::from as fn(i8) -> i32),
        DType::I16 => widen(bytes, i32::from as fn(i16) -> i32),
        DType::F16 => widen(bytes, f16::to_f32),
        DType::BF16 => widen(bytes, bf16::to_f32),
        _ => Cow::Borrowed(bytes),
    }
}

/// A tensor of elements that lie as words.
fn of_words(dtype: DType, shape: &Shape, words: &[u8]) -> ferroflow_ir::Result<HostTensor> {
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
        DType::F16 => narrow(words, f16::from_f32),
        DType::BF16 => narrow(words, bf16::from_f32),
        _ => return HostTensor::from_bytes(dtype, shape.clone(), words),
    };
    HostTensor::from_bytes(dtype, shape.clone(), &narrowed)
}
