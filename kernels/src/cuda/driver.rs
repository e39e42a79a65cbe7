//! The connection to one device: its context, one stream that everything runs on in order, and what
//! went wrong.

#![expect(unsafe_code, reason = "memory of devices is reached through pointers")]

use super::compile::Architecture;
use crate::{
    error::{Error, Result},
    shader::{Dialect, Grid},
};
use cudarc::{
    driver::{
        CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
        result, sys,
    },
    nvrtc::Ptx,
};
use ferroflow_ir::device_name::DeviceName;
use parking_lot::Mutex;
use std::sync::Arc;

/// One device.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) name: Arc<str>,
    /// What it calls itself.
    pub(super) model: String,
    pub(super) architecture: Architecture,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// Why the device is lost, once it is.
    loss: Mutex<Option<String>>,
}

/// Memory of a device. It is given back in the order of the stream: calls made before still use it.
pub(super) type Bytes = CudaSlice<u8>;

impl Driver {
    /// Connects to the device of this number, which [`super::probe`] has counted.
    pub(super) fn connect(index: u32) -> Result<Driver, DriverError> {
        let context = CudaContext::new(index as usize)?;
        // SAFETY: everything runs on one stream, so nothing has to wait for another.
        unsafe { context.disable_event_tracking() };
        if context.has_async_alloc() {
            keep_freed_memory(&context)?;
        }
        let (major, minor) = context.compute_capability()?;
        let architecture =
            Architecture { major: major.unsigned_abs(), minor: minor.unsigned_abs() };
        Ok(Driver {
            name: DeviceName::local("GPU", index).to_string().into(),
            model: context.name()?,
            architecture,
            stream: context.new_stream()?,
            context,
            loss: Mutex::default(),
        })
    }

    /// Memory of so many bytes, at least one; what it holds is unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub(super) fn allocate(&self, bytes: usize) -> Result<Bytes> {
        self.alive()?;
        // SAFETY: programs and copies write memory before anything reads it.
        unsafe { self.stream.alloc::<u8>(bytes.max(1)) }.map_err(|error| match error.0 {
            // No other value than the size could be wrong.
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY | sys::CUresult::CUDA_ERROR_INVALID_VALUE => {
                Error::OutOfMemory { device: self.name.to_string(), bytes }
            }
            _ => self.failed(error),
        })
    }

    /// A copy of host memory, which has been read when this returns.
    pub(super) fn upload(&self, bytes: &[u8]) -> Result<Bytes> {
        let mut memory = self.allocate(bytes.len())?;
        if !bytes.is_empty() {
            self.stream.memcpy_htod(bytes, &mut memory).map_err(|error| self.failed(error))?;
            self.wait()?;
        }
        Ok(memory)
    }

    /// The first bytes of memory, after all that was to be done until now.
    pub(super) fn read(&self, memory: &Bytes, bytes: usize) -> Result<Vec<u8>> {
        self.alive()?;
        let mut copy = vec![0; bytes];
        self.at_least(memory, bytes)?;
        if bytes > 0 {
            let part = memory.slice(..bytes);
            self.stream.memcpy_dtoh(&part, &mut copy).map_err(|error| self.failed(error))?;
            self.wait()?;
        }
        Ok(copy)
    }

    /// Fails if memory has less than so many bytes.
    pub(super) fn at_least(&self, memory: &Bytes, bytes: usize) -> Result<()> {
        if memory.len() >= bytes {
            return Ok(());
        }
        let reason = "memory is smaller than its tensor".into();
        Err(Error::Device { device: self.name.to_string(), reason })
    }

    fn wait(&self) -> Result<()> {
        self.stream.synchronize().map_err(|error| self.failed(error))
    }

    /// The program in machine code of this device.
    pub(super) fn load(&self, code: Vec<u8>) -> Result<CudaFunction, String> {
        let module = self.context.load_module(Ptx::from_binary(code));
        let module = module.map_err(|error| format!("{:?}", error.0))?;
        module.load_function(Dialect::Cuda.entry()).map_err(|error| format!("{:?}", error.0))
    }

    /// Starts a program on these buffers, inputs before outputs.
    pub(super) fn launch(
        &self,
        program: &CudaFunction,
        buffers: &[&Bytes],
        ((width, height), block): (Grid, u32),
    ) -> Result<()> {
        self.alive()?;
        let mut call = self.stream.launch_builder(program);
        for &buffer in buffers {
            call.arg(buffer);
        }
        let grid = LaunchConfig {
            grid_dim: (width, height, 1),
            block_dim: (block, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the program takes these pointers and no more, as its text was printed for as many
        // inputs and outputs; it stays inside tensors of the call's shapes, and the caller has
        // seen that the memory holds them. Who runs a kernel gives outputs that nothing else uses. Memory is freed in
        // the order of the stream, after the call.
        let started = unsafe { call.launch(grid) };
        started.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// Gives memory back.
    pub(super) fn free(&self, memory: Bytes) {
        // Where the device is lost the memory is too; that is reported by whoever uses it next.
        if self.context.bind_to_thread().is_ok() {
            drop(memory);
        } else {
            memory.leak();
        }
    }

    fn alive(&self) -> Result<()> {
        match self.loss.lock().clone() {
            None => Ok(()),
            Some(reason) => Err(Error::DeviceLost { device: self.name.to_string(), reason }),
        }
    }

    /// What the driver reported. After most errors of programs a context answers nothing any more.
    fn failed(&self, error: DriverError) -> Error {
        use sys::CUresult::*;
        let (device, reason) = (self.name.to_string(), format!("{:?}", error.0));
        let goes_on = matches!(
            error.0,
            CUDA_ERROR_INVALID_VALUE
                | CUDA_ERROR_OUT_OF_MEMORY
                | CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                | CUDA_ERROR_NOT_SUPPORTED
                | CUDA_ERROR_NOT_PERMITTED
        );
        if goes_on {
            return Error::Device { device, reason: reason.into() };
        }
        self.loss.lock().get_or_insert(reason.clone());
        Error::DeviceLost { device, reason }
    }
}

/// Lets the driver's pool keep what is freed, for what is allocated next.
fn keep_freed_memory(context: &CudaContext) -> Result<(), DriverError> {
    let mut threshold = u64::MAX;
    // SAFETY: the context is that of a device, which has a pool; the attribute is such a number.
    unsafe {
        let pool = result::device::get_default_mem_pool(context.cu_device())?;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast())
    }
}
