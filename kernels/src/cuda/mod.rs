//! NVIDIA's devices, `/device:GPU:0` and on.
//!
//! Nothing of NVIDIA's is needed to build this: driver and compiler are looked for at run time
//! ([`probe`] tells what was found), and without them there are no such devices. Programs come from
//! `kernels/src/shader` as CUDA C++. NVRTC compiles each text once for the device's generation; the
//! code is kept in memory, and on disk between processes. Everything runs on one stream, in order;
//! nothing waits for the device but copies. Memory comes from the driver's pool in the order of the
//! stream.
//!
//! It holds what devices of wgpu hold, and 64-bit integers. `float64` and complex numbers it does not
//! hold: the formulas are those of 32 bits. What it cannot run it says by giving no kernel.
//!
//! Every program is compiled in tests for two generations; none of this has run on a device yet.

mod compile;
mod driver;
mod probe;
mod programs;
#[cfg(test)]
mod tests;

pub use probe::{Unavailable, probe};

use crate::{
    buffer::{Buffer, DeviceBuffer, DeviceMemory},
    device::{Device, OpCall},
    error::{Error, Result},
    kernel::{Io, Kernel},
    shader::{self, Caps, Dialect, Grid, Word, elements},
};
use cudarc::driver::CudaFunction;
use driver::{Bytes, Driver};
use ferroflow_ir::{DType, HostTensor, Shape};
use programs::Programs;
use smallvec::SmallVec;
use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

/// What every device of NVIDIA's can do.
const CAPS: Caps = Caps { int64: true, tiles: true, subgroups: true };

/// A device of NVIDIA's.
#[derive(Debug)]
pub struct CudaDevice {
    driver: Arc<Driver>,
    programs: Programs,
}

/// The devices of this process, in the driver's order. They are looked for once; those that cannot
/// be connected to are left out.
pub fn devices() -> &'static [Arc<CudaDevice>] {
    static DEVICES: OnceLock<Vec<Arc<CudaDevice>>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let connect = |index| {
            let driver = Arc::new(Driver::connect(index).ok()?);
            Some(Arc::new(CudaDevice { driver, programs: Programs::default() }))
        };
        (0..probe().unwrap_or(0)).filter_map(connect).collect()
    })
}

impl CudaDevice {
    /// What the device calls itself.
    pub fn model(&self) -> &str {
        &self.driver.model
    }

    fn word(&self, dtype: DType) -> Result<Word> {
        Word::of(dtype, CAPS)
            .ok_or_else(|| Error::UnsupportedDType { device: self.driver.name.to_string(), dtype })
    }

    fn wrap(&self, dtype: DType, shape: &Shape, bytes: Bytes) -> Buffer {
        let memory = Memory { bytes: Some(bytes), driver: self.driver.clone() };
        let device = self.driver.name.clone();
        Buffer::Device(DeviceBuffer::new(dtype, shape.clone(), device, Arc::new(memory)))
    }
}

impl Device for CudaDevice {
    fn name(&self) -> &str {
        &self.driver.name
    }

    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer> {
        let bytes = shape.num_elements().saturating_mul(self.word(dtype)?.size());
        Ok(self.wrap(dtype, shape, self.driver.allocate(bytes)?))
    }

    fn upload(&self, tensor: &HostTensor) -> Result<Buffer> {
        self.word(tensor.dtype())?;
        let bytes = self.driver.upload(&elements::to_words(tensor))?;
        Ok(self.wrap(tensor.dtype(), tensor.shape(), bytes))
    }

    fn download(&self, buffer: &Buffer) -> Result<HostTensor> {
        match buffer {
            Buffer::Host(tensor) => Ok(tensor.clone()),
            Buffer::Device(buffer) => Ok(buffer.host()?.clone()),
        }
    }

    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(shader) = shader::shader(call, CAPS)? else { return Ok(None) };
        let program = match shader.count {
            0 => None,
            _ => {
                let text = Dialect::Cuda.print(&shader);
                Some(self.programs.get(&self.driver, call.op.name, &text)?)
            }
        };
        let input = |&(position, word): &(usize, Word)| {
            (position, call.shape(position).num_elements() * word.size())
        };
        let inputs = shader.inputs.iter().map(input).collect();
        let mut outputs = SmallVec::new();
        for (index, word) in shader.outputs.iter().enumerate() {
            outputs.push(call.output_shape(index)?.num_elements() * word.size());
        }
        let grid = (Dialect::Cuda.grid(&shader), Dialect::Cuda.group(&shader) as u32);
        let mut tables = SmallVec::new();
        for table in &shader.tables {
            let bytes = self.driver.upload(bytemuck::cast_slice(table))?;
            tables.push(Memory { driver: self.driver.clone(), bytes: Some(bytes) });
        }
        let driver = self.driver.clone();
        Ok(Some(Arc::new(Launch { driver, program, inputs, tables, outputs, grid })))
    }

    fn holds(&self, dtype: DType) -> bool {
        self.word(dtype).is_ok()
    }
}

/// Memory that goes back to the driver's pool when nobody uses it.
#[derive(Debug)]
struct Memory {
    driver: Arc<Driver>,
    /// None only while it is dropped.
    bytes: Option<Bytes>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.driver.free(bytes);
        }
    }
}

impl Memory {
    fn bytes(&self) -> &Bytes {
        self.bytes.as_ref().expect("it is given back only when the memory is dropped")
    }
}

impl DeviceMemory for Memory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor> {
        let width = if dtype.size() == Some(8) { 8 } else { 4 };
        let words = self.driver.read(self.bytes(), shape.num_elements() * width)?;
        Ok(elements::of_words(dtype, shape, &words)?)
    }
}

/// A compiled call.
struct Launch {
    driver: Arc<Driver>,
    /// None where there is nothing to compute.
    program: Option<CudaFunction>,
    /// Which inputs of the call are bound, and their bytes.
    inputs: SmallVec<[(usize, usize); 4]>,
    /// What is bound after them.
    tables: SmallVec<[Memory; 2]>,
    /// The bytes of each output.
    outputs: SmallVec<[usize; 2]>,
    /// Groups, and the invocations of each.
    grid: (Grid, u32),
}

impl Kernel for Launch {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        let mut buffers: SmallVec<[&Bytes; 8]> = SmallVec::new();
        for &(input, size) in &self.inputs {
            buffers.push(self.memory(io.device_input(input), size)?);
        }
        buffers.extend(self.tables.iter().map(Memory::bytes));
        for (output, &size) in self.outputs.iter().enumerate() {
            buffers.push(self.memory(io.device_output(output), size)?);
        }
        self.driver.launch(program, &buffers, self.grid)
    }
}

impl Launch {
    /// The memory of a buffer, which must be this device's and hold `size` bytes: programs do not
    /// look where it ends.
    fn memory<'a>(&self, buffer: Option<&'a DeviceBuffer>, size: usize) -> Result<&'a Bytes> {
        let found = buffer.map_or("the host", |buffer| &*buffer.device);
        let memory = buffer
            .and_then(|buffer| buffer.memory.as_any().downcast_ref::<Memory>())
            .filter(|memory| Arc::ptr_eq(&memory.driver, &self.driver))
            .ok_or_else(|| Error::WrongDevice {
                expected: self.driver.name.to_string(),
                found: found.to_string(),
            })?;
        self.driver.at_least(memory.bytes(), size)?;
        Ok(memory.bytes())
    }
}
