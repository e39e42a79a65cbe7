//! Devices that wgpu reaches: Vulkan, and with it Metal and DirectX 12 where they are compiled in; in browsers
//! WebGPU.
//!
//! Programs come from `kernels/src/shader` as WGSL. Each text is compiled once per device and kept.
//! Calls are recorded one after the other into a command buffer, which is sent when a value is
//! read, when data is written, or when it has grown long; nothing waits for the device but reading
//! and [`Device::synchronize`]. Memory is kept in a pool by sizes.
//!
//! What a device cannot hold or run it says by giving no kernel: then the call is placed on the
//! CPU, where the placement report shows it with the copies that it costs. It holds floats of up to
//! 32 bits, integers of up to 32 bits and truth values, each in a word of 32 bits, and 64-bit
//! integers if the adapter has them. `float64` and complex numbers it does not hold.
//!
//! Failures are errors of [`Error`]: no adapter means no device; a device that is lost stays lost,
//! and the others go on.

#[cfg(target_arch = "wasm32")]
mod browser;
mod elements;
mod gpu;
mod memory;
#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(test)]
mod tests;

use crate::{
    buffer::{Buffer, DeviceBuffer},
    device::{Device, OpCall, Storage, Support},
    error::{Error, Result},
    kernel::{Io, Kernel},
    shader::{self, Caps, Grid, ScalarType, Shader, ShaderDialect},
};
use ferroflow_ir::{DType, Shape};
use gpu::Gpu;
use memory::WgpuMemory;
use smallvec::SmallVec;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

#[cfg(target_arch = "wasm32")]
use browser::{
    BrowserBuffer as RawBuffer, BrowserConnection as Connection, BrowserPipeline as Pipeline,
};
#[cfg(not(target_arch = "wasm32"))]
use {
    native::{NativeConnection as Connection, NativePipeline as Pipeline},
    wgpu::Buffer as RawBuffer,
};

/// Name and abilities of an adapter.
pub(crate) struct AdapterFacts {
    name: String,
    caps: Caps,
    /// Buffers that a program may have.
    most_bindings: usize,
    /// Bytes that a buffer may have.
    most_bytes: u64,
}

/// A device that wgpu reaches.
pub struct WgpuDevice {
    gpu: Arc<Gpu>,
}

impl fmt::Debug for WgpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WgpuDevice").field(&self.gpu.name).finish()
    }
}

static DEVICES: OnceLock<Vec<Arc<WgpuDevice>>> = OnceLock::new();

/// Those of [`devices`], if anybody has looked for them.
pub(crate) fn connected() -> &'static [Arc<WgpuDevice>] {
    DEVICES.get().map_or(&[], Vec::as_slice)
}

/// The devices of this process, real ones before software. They are looked for once.
pub fn devices() -> &'static [Arc<WgpuDevice>] {
    DEVICES.get_or_init(|| {
        let device = |gpu| Arc::new(WgpuDevice { gpu: Arc::new(gpu) });
        gpu::connect().into_iter().map(device).collect()
    })
}

impl WgpuDevice {
    fn scalar_type(&self, dtype: DType) -> Result<ScalarType> {
        ScalarType::of(dtype, self.gpu.caps)
            .ok_or_else(|| Error::UnsupportedDType { device: self.gpu.name.to_string(), dtype })
    }

    fn wrap(&self, dtype: DType, shape: &Shape, memory: WgpuMemory) -> Buffer {
        let (device, memory) = (self.gpu.name.clone(), Arc::new(memory));
        Buffer::Device(DeviceBuffer::new(dtype, shape.clone(), device, memory))
    }

    /// Whether a program binds no more buffers than the adapter allows.
    fn binds(&self, shader: &Shader) -> bool {
        let n = shader.inputs.len() + shader.tables.len() + shader.outputs.len();
        n <= self.gpu.most_bindings
    }

    /// The kernel of a program; `None` where it binds too many buffers.
    fn launch(&self, op: &'static str, shader: Option<Shader>) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(shader) = shader.filter(|shader| self.binds(shader)) else { return Ok(None) };
        let n_read = shader.inputs.len() + shader.tables.len();
        let pipeline = match shader.count {
            0 => None,
            _ => {
                let bindings = (n_read, shader.outputs.len());
                let text = ShaderDialect::Wgsl.print(&shader);
                Some(self.gpu.pipeline(op, &text, bindings)?)
            }
        };
        let inputs = shader.inputs.iter().map(|(position, _)| *position).collect();
        let grid = ShaderDialect::Wgsl.grid(&shader);
        let mut tables = SmallVec::new();
        for table in &shader.tables {
            let memory = WgpuMemory::new(&self.gpu, size_of_val(&**table))?;
            memory.write(bytemuck::cast_slice(table))?;
            tables.push(memory);
        }
        let (gpu, n_outputs) = (self.gpu.clone(), shader.outputs.len());
        Ok(Some(Arc::new(Launch { gpu, pipeline, inputs, tables, n_outputs, grid })))
    }
}

impl Device for WgpuDevice {
    fn name(&self) -> &str {
        &self.gpu.name
    }

    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer> {
        self.scalar_type(dtype)?;
        let bytes =
            shape.num_elements().saturating_mul(elements::width(dtype, self.gpu.caps.halves));
        Ok(self.wrap(dtype, shape, WgpuMemory::new(&self.gpu, bytes)?))
    }

    fn upload(&self, tensor: &Buffer) -> Result<Buffer> {
        if let Buffer::Device(buffer) = tensor
            && *buffer.device == *self.gpu.name
        {
            return Ok(tensor.clone());
        }
        self.scalar_type(tensor.dtype())?;
        let storage = elements::to_storage(tensor.host()?, self.gpu.caps.halves);
        let memory = WgpuMemory::new(&self.gpu, storage.len())?;
        memory.write(&storage)?;
        Ok(self.wrap(tensor.dtype(), tensor.shape(), memory))
    }

    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        self.launch(call.op.name, shader::shader(call, self.gpu.caps)?)
    }

    fn support(&self, call: &OpCall<'_>) -> Result<Support> {
        let shader = shader::shader(call, self.gpu.caps)?;
        Ok(Support::of(shader.is_some_and(|shader| self.binds(&shader))))
    }

    fn synchronize(&self) -> Result<()> {
        self.gpu.synchronize()
    }

    fn model(&self) -> Option<&str> {
        Some(&self.gpu.adapter)
    }

    fn storage(&self, dtype: DType) -> Option<Storage> {
        self.scalar_type(dtype).ok()?;
        let size = dtype.size().filter(|_| elements::is_storage(dtype));
        Some(size.map_or(Storage::Own(dtype), Storage::Plain))
    }
}

/// A compiled call.
struct Launch {
    gpu: Arc<Gpu>,
    /// None where there is nothing to compute.
    pipeline: Option<Pipeline>,
    /// Bound inputs of the call.
    inputs: SmallVec<[usize; 4]>,
    /// Tables that are bound after them.
    tables: SmallVec<[WgpuMemory; 2]>,
    n_outputs: usize,
    grid: Grid,
}

impl Kernel for Launch {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let Some(pipeline) = &self.pipeline else { return Ok(()) };
        let mut buffers: SmallVec<[&RawBuffer; 8]> = SmallVec::new();
        for &input in &self.inputs {
            buffers.push(self.memory(io.device_input(input))?.buffer());
        }
        buffers.extend(self.tables.iter().map(WgpuMemory::buffer));
        for output in 0..self.n_outputs {
            buffers.push(self.memory(io.device_output(output))?.buffer());
        }
        self.gpu.dispatch(pipeline, &buffers, self.grid)
    }
}

impl Launch {
    fn memory<'a>(&self, buffer: Option<&'a DeviceBuffer>) -> Result<&'a WgpuMemory> {
        let found = buffer.map_or("the host", |buffer| &*buffer.device);
        buffer
            .and_then(|buffer| buffer.memory.as_any().downcast_ref::<WgpuMemory>())
            .filter(|memory| memory.is_of(&self.gpu))
            .ok_or_else(|| Error::WrongDevice {
                expected: self.gpu.name.to_string(),
                found: found.to_string(),
            })
    }
}
