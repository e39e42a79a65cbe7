//! NVIDIA's devices, `/device:GPU:0` and on.
//!
//! Nothing of NVIDIA's is needed to build this: driver and compiler are looked for at run time
//! ([`probe`] tells what was found), and without them there are no such devices. Programs come from
//! `kernels/src/shader` as CUDA C++. NVRTC compiles each text once for the device's generation; the
//! code is kept in memory, and on disk between processes. Everything runs on one queue, in order;
//! nothing waits for the device but copies to the host and [`Device::synchronize`]. Calls that
//! follow each other in a function are started together, as a graph (`sequence`), in which the
//! device runs side by side what it can. Memory comes from the driver's pool in the order of the
//! queue (`memory`).
//!
//! It holds what devices of wgpu hold, and 64-bit integers; elements lie as on the host. `float64`
//! and complex numbers it does not hold: the formulas are those of 32 bits. What it cannot run it
//! says by giving no kernel.
//!
//! Every program is compiled in tests for two generations, and all of this runs with a simulated
//! driver (`kernels/simulator`); what it does on a device is in `docs/benchmarks.md`.

mod compile;
mod driver;
mod free_list;
mod graph;
mod kernel_graph;
mod matmul;
mod memory;
mod probe;
mod programs;
mod staging;
#[cfg(test)]
mod tests;

pub use probe::{Unavailable, probe};

use crate::{
    buffer::{Buffer, DeviceBuffer},
    device::{Device, OpCall, Storage, Support},
    error::{Error, Result},
    kernel::{Io, Kernel},
    kernel_graph::{KernelGraphPlan, RecordedKernelGraph},
    plan::attention::Attention,
    shader::{self, Caps, Grid, ScalarType, Shader, ShaderDialect},
};
use cudarc::driver::CudaFunction;
use driver::Driver;
use ferroflow_ir::{DType, Shape};
use kernel_graph::CudaKernelGraph;
use matmul::MatmulLibrary;
use memory::CudaMemory;
use programs::Programs;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Capabilities of NVIDIA's devices; the matrices came with generation 8.
const CAPS: Caps =
    Caps { int64: true, tiles: true, subgroups: true, warps: true, matrices: true, halves: false };

/// A device of NVIDIA's.
#[derive(Debug)]
pub struct CudaDevice {
    driver: Arc<Driver>,
    programs: Programs,
    products: MatmulLibrary,
}

static DEVICES: OnceLock<Vec<Arc<CudaDevice>>> = OnceLock::new();

/// Those of [`devices`], if anybody has looked for them.
pub(crate) fn connected() -> &'static [Arc<CudaDevice>] {
    DEVICES.get().map_or(&[], Vec::as_slice)
}

/// The devices of this process, in the driver's order. They are looked for once; those that cannot
/// be connected to are left out.
pub fn devices() -> &'static [Arc<CudaDevice>] {
    DEVICES.get_or_init(|| {
        let connect = |index| {
            let driver = Arc::new(Driver::connect(index).ok()?);
            let (programs, products) = Default::default();
            Some(Arc::new(CudaDevice { driver, programs, products }))
        };
        let devices: Vec<Arc<CudaDevice>> = (0..probe().unwrap_or(0)).filter_map(connect).collect();
        let pairs = devices.iter().flat_map(|one| devices.iter().map(move |other| (one, other)));
        for (one, other) in pairs.filter(|(one, other)| !Arc::ptr_eq(one, other)) {
            // Where this is refused, copies take the way through the host's memory by themselves.
            let _ = one.driver.open_to(&other.driver);
        }
        devices
    })
}

impl CudaDevice {
    /// Whether matmuls are those of NVIDIA's library, cuBLASLt, which is looked for when this
    /// or the first large product is asked for.
    ///
    /// # Errors
    ///
    /// Why the programs of this crate are used instead.
    pub fn has_library(&self) -> Result<(), String> {
        self.products.open(&self.driver).map(|_| ()).map_err(String::from)
    }

    fn caps(&self) -> Caps {
        Caps { matrices: self.driver.architecture.major >= 8, ..CAPS }
    }

    /// Bytes of an element, if the device holds such.
    fn size(&self, dtype: DType) -> Result<usize> {
        dtype
            .size()
            .filter(|_| ScalarType::of(dtype, CAPS).is_some())
            .ok_or_else(|| Error::UnsupportedDType { device: self.driver.name.to_string(), dtype })
    }

    fn wrap(&self, dtype: DType, shape: &Shape, memory: CudaMemory) -> Buffer {
        let device = self.driver.name.clone();
        Buffer::Device(DeviceBuffer::new(dtype, shape.clone(), device, Arc::new(memory)))
    }

    /// The library's kernel of a matmul, with its epilogue if it has one.
    fn of_library(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        let fused = call
            .with_anchor(|anchor, then| self.products.with_epilogue(&self.driver, anchor, then))?;
        if fused.is_some() { Ok(fused) } else { self.products.kernel(&self.driver, call) }
    }

    /// The kernel of a call's program.
    fn launch(&self, call: &OpCall<'_>, shader: Option<Shader>) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(shader) = shader else { return Ok(None) };
        let program = match shader.count {
            0 => None,
            _ => {
                let text = ShaderDialect::Cuda.print(&shader);
                Some(self.programs.get(&self.driver, call.op.name, &text)?)
            }
        };
        let mut inputs = SmallVec::new();
        for &(position, _) in &shader.inputs {
            let input = &call.inputs[position];
            inputs.push((position, input.shape.num_elements() * self.size(input.dtype)?));
        }
        let mut outputs = SmallVec::new();
        for (index, &dtype) in shader.outputs.iter().enumerate() {
            outputs.push(call.output_shape(index)?.num_elements() * self.size(dtype)?);
        }
        let grid = (ShaderDialect::Cuda.grid(&shader), ShaderDialect::Cuda.group(&shader) as u32);
        let mut tables = SmallVec::new();
        for table in &shader.tables {
            tables.push(CudaMemory::upload(&self.driver, bytemuck::cast_slice(table))?);
        }
        let driver = self.driver.clone();
        Ok(Some(Arc::new(Launch { driver, program, inputs, tables, outputs, grid })))
    }
}

impl Device for CudaDevice {
    fn name(&self) -> &str {
        &self.driver.name
    }

    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer> {
        let bytes = shape.num_elements().saturating_mul(self.size(dtype)?);
        Ok(self.wrap(dtype, shape, CudaMemory::new(&self.driver, bytes)?))
    }

    fn upload(&self, tensor: &Buffer) -> Result<Buffer> {
        self.size(tensor.dtype())?;
        let memory = match tensor {
            Buffer::Device(buffer) if *buffer.device == *self.driver.name => {
                return Ok(tensor.clone());
            }
            Buffer::Device(buffer) => match buffer.memory.as_any().downcast_ref::<CudaMemory>() {
                Some(from) => CudaMemory::receive(&self.driver, from)?,
                None => CudaMemory::upload(&self.driver, buffer.host()?.bytes())?,
            },
            Buffer::Host(tensor) => CudaMemory::upload(&self.driver, tensor.bytes())?,
        };
        Ok(self.wrap(tensor.dtype(), tensor.shape(), memory))
    }

    /// The library's matmuls are faster than the kernels here, with and without an epilogue.
    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        if let Some(kernel) = self.of_library(call)? {
            return Ok(Some(kernel));
        }
        if call.with_anchor(|anchor, _| self.products.kernel(&self.driver, anchor))?.is_some() {
            return Ok(None);
        }
        self.launch(call, shader::shader(call, self.caps())?)
    }

    /// The library multiplies with parts of the processor that programs here use for attention of
    /// 16-bit floats alone. Where it is found, only memory is to be gained by other attention in one
    /// call.
    fn support(&self, call: &OpCall<'_>) -> Result<Support> {
        if self.of_library(call)?.is_some() {
            return Ok(Support::Pays);
        }
        let anchor = call.with_anchor(|anchor, _| self.products.kernel(&self.driver, anchor))?;
        if anchor.is_some() || shader::shader(call, self.caps())?.is_none() {
            return Ok(Support::Missing);
        }
        let pays = call.op.name != "_FusedAttention"
            || shader::attends_by_matrices(call, self.caps())?
            || Attention::new(call)?.scores() >= MANY_SCORES
            || self.has_library().is_err();
        Ok(if pays { Support::Pays } else { Support::Runs })
    }

    fn synchronize(&self) -> Result<()> {
        self.driver.synchronize()
    }

    fn model(&self) -> Option<&str> {
        Some(&self.driver.model)
    }

    fn kernel_graph(&self, plan: KernelGraphPlan) -> Option<Arc<dyn RecordedKernelGraph>> {
        // One call alone is started as fast as a graph.
        if plan.calls.len() < 2 {
            return None;
        }
        let size = |dtype: DType, shape: &Shape| {
            self.size(dtype).map_or(0, |size| shape.num_elements() * size)
        };
        Some(Arc::new(CudaKernelGraph::new(&self.driver, plan, size)))
    }

    fn storage(&self, dtype: DType) -> Option<Storage> {
        self.size(dtype).ok().map(Storage::Plain)
    }
}

/// Scores of an attention that take a gigabyte, and those made of them as much again.
const MANY_SCORES: usize = 1 << 28;

/// A compiled call.
struct Launch {
    driver: Arc<Driver>,
    /// None where there is nothing to compute.
    program: Option<CudaFunction>,
    /// Bound inputs of the call, and their bytes.
    inputs: SmallVec<[(usize, usize); 4]>,
    /// Tables that are bound after them.
    tables: SmallVec<[CudaMemory; 2]>,
    /// The bytes of each output.
    outputs: SmallVec<[usize; 2]>,
    /// Groups, and the invocations of each.
    grid: (Grid, u32),
}

impl Kernel for Launch {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        let mut memory: SmallVec<[&CudaMemory; 8]> = SmallVec::new();
        for &(input, size) in &self.inputs {
            memory.push(CudaMemory::of(&self.driver, io.device_input(input), size)?);
        }
        memory.extend(&self.tables);
        for (output, &size) in self.outputs.iter().enumerate() {
            memory.push(CudaMemory::of(&self.driver, io.device_output(output), size)?);
        }
        self.driver.launch(io.queue(), program, &memory, self.grid)
    }
}
