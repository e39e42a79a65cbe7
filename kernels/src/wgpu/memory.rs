//! Memory of a device.

use super::{RawBuffer, elements, gpu::Gpu};
use crate::{buffer::DeviceMemory, error::Result};
use ferroflow_ir::{DType, HostTensor, Shape};
use std::{any::Any, fmt, sync::Arc};

/// Memory that goes back to the pool when no tensor uses it.
pub(super) struct WgpuMemory {
    gpu: Arc<Gpu>,
    buffer: Option<RawBuffer>,
}

impl fmt::Debug for WgpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("device", &self.gpu.name).finish_non_exhaustive()
    }
}

impl WgpuMemory {
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<WgpuMemory> {
        Ok(WgpuMemory { buffer: Some(gpu.allocate(bytes)?), gpu: gpu.clone() })
    }

    pub(super) fn buffer(&self) -> &RawBuffer {
        self.buffer.as_ref().expect("it is given back only when the memory is dropped")
    }

    pub(super) fn is_of(&self, gpu: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.gpu, gpu)
    }

    pub(super) fn write(&self, words: &[u8]) -> Result<()> {
        if words.is_empty() { Ok(()) } else { self.gpu.write(self.buffer(), words) }
    }
}

impl Drop for WgpuMemory {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.gpu.free(buffer);
        }
    }
}

impl DeviceMemory for WgpuMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor> {
        let (n, halves) = (shape.num_elements(), self.gpu.caps.halves);
        let n_bytes = if n == 0 {
            Vec::new()
        } else {
            self.gpu.read(self.buffer(), n * elements::width(dtype, halves))?
        };
        Ok(elements::from_storage(dtype, shape, &n_bytes, halves)?)
    }
}
