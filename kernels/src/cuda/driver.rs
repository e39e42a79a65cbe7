//! The connection to one device: its context, its queues, and what went wrong.

#![expect(unsafe_code, reason = "the driver is called through pointers")]

use super::{compile::Architecture, free_list::FreeList, memory::CudaMemory, staging::StagingRing};
use crate::{
    error::{Error, Result},
    schedule::MOST_LANES,
    shader::{Grid, ShaderDialect},
};
use cudarc::{
    driver::{
        CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, result,
        sys,
    },
    nvrtc::Ptx,
};
use ferroflow_ir::device_name::DeviceName;
use parking_lot::Mutex;
use std::sync::Arc;

/// Free memory is kept up to this part of all.
const KEPT: usize = 4;

/// A device.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) name: Arc<str>,
    /// Name that the device reports.
    pub(super) model: String,
    pub(super) architecture: Architecture,
    pub(super) context: Arc<CudaContext>,
    /// Where everything runs in order.
    pub(super) main: Arc<CudaStream>,
    /// Where copies from the host are made.
    pub(super) copies: Arc<CudaStream>,
    /// Where calls are captured, by the holder of `capturing`; nothing runs there.
    pub(super) lanes: [Arc<CudaStream>; MOST_LANES],
    pub(super) capturing: Mutex<()>,
    /// Whether memory can be taken and freed in the order of a queue.
    pub(super) has_pool: bool,
    /// Free memory, in the order of the main queue.
    pub(super) free: FreeList,
    /// Where small values wait for the main queue.
    pub(super) staging: Mutex<StagingRing>,
    /// Why the device is lost, once it is.
    loss: Mutex<Option<String>>,
}

impl Driver {
    /// Connects to the device of this number, which [`super::probe`] has counted.
    pub(super) fn connect(index: u32) -> Result<Driver, DriverError> {
        let context = CudaContext::new(index as usize)?;
        // SAFETY: what must wait for what is told by events of ours.
        unsafe { context.disable_event_tracking() };
        let has_pool = context.has_async_alloc();
        if has_pool {
            keep_freed_memory(&context)?;
        }
        let (major, minor) = context.compute_capability()?;
        let architecture =
            Architecture { major: major.unsigned_abs(), minor: minor.unsigned_abs() };
        let (_, total) = result::mem_get_info()?;
        let stream = || context.new_stream();
        Ok(Driver {
            name: DeviceName::local("GPU", index).to_string().into(),
            model: context.name()?,
            architecture,
            main: stream()?,
            copies: stream()?,
            lanes: [stream()?, stream()?, stream()?, stream()?],
            capturing: Mutex::default(),
            has_pool,
            free: FreeList::new(total / KEPT),
            staging: Mutex::default(),
            context,
            loss: Mutex::default(),
        })
    }

    /// Lets memory of this device be read by another where the machine has a way.
    pub(super) fn open_to(&self, other: &Driver) -> Result<(), DriverError> {
        let (own, peer) = (self.context.cu_device(), other.context.cu_device());
        let mut can = 0;
        // SAFETY: both are devices of this process, and `can` may be written to.
        unsafe { sys::cuDeviceCanAccessPeer(&mut can, peer, own) }.result()?;
        if can == 0 || !self.has_pool {
            return Ok(());
        }
        let access = sys::CUmemAccessDesc {
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: peer,
            },
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the pool is this device's, and there is one description.
        unsafe {
            let pool = result::device::get_default_mem_pool(own)?;
            sys::cuMemPoolSetAccess(pool, &access, 1).result()
        }
    }

    /// Returns memory to the driver, after the work of the main queue so far. The next user of the
    /// device reports what goes wrong.
    pub(super) fn free(&self, memory: Vec<sys::CUdeviceptr>) {
        for at in memory {
            // SAFETY: nobody names this memory any more, and it is given back in the order of what
            // was to be done with it.
            let freed = unsafe {
                match self.has_pool {
                    true => result::free_async(at, self.main.cu_stream()),
                    false => self.main.synchronize().and_then(|()| result::free_sync(at)),
                }
            };
            if let Err(error) = freed {
                let _ = self.failed(error);
            }
        }
    }

    /// Returns all free memory to the driver, and the number of allocations that were free.
    pub(super) fn release(&self) -> usize {
        let free = self.free.drain();
        let n = free.len();
        self.free(free);
        // The driver's pool may give others only what the device is done with.
        let _ = self.main.synchronize();
        n
    }

    /// Waits for all that was started.
    pub(super) fn synchronize(&self) -> Result<()> {
        self.ready()?;
        // Copies from the host have been waited for by who made them.
        self.main.synchronize().map_err(|error| self.failed(error))
    }

    /// The program in machine code of this device.
    pub(super) fn load(&self, code: Vec<u8>) -> Result<CudaFunction, String> {
        let module = self.context.load_module(Ptx::from_binary(code));
        let module = module.map_err(|error| format!("{:?}", error.0))?;
        module.load_function(ShaderDialect::Cuda.entry()).map_err(|error| format!("{:?}", error.0))
    }

    /// A queue by number: 0 is the main one, the others are lanes.
    pub(super) fn queue(&self, number: usize) -> &CudaStream {
        match number {
            0 => &self.main,
            lane => &self.lanes[lane - 1],
        }
    }

    /// Starts a program on these, inputs before outputs.
    pub(super) fn launch(
        &self,
        queue: usize,
        program: &CudaFunction,
        memory: &[&CudaMemory],
        ((width, height), block): (Grid, u32),
    ) -> Result<()> {
        self.ready()?;
        let mut call = self.queue(queue).launch_builder(program);
        for memory in memory {
            call.arg(memory.address());
        }
        let grid = LaunchConfig {
            grid_dim: (width, height, 1),
            block_dim: (block, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the program takes these pointers and no more, as its text was printed for as many
        // inputs and outputs; it stays inside tensors of the call's shapes, and the caller has
        // seen that the memory holds them. Who runs a kernel gives outputs that nothing else uses.
        // Memory is given back in the order of the main queue, where this call is or will be.
        let started = unsafe { call.launch(grid) };
        started.map(|_| ()).map_err(|error| self.failed(error))
    }

    /// Makes the context current for calls of this thread; fails if the device is lost.
    pub(super) fn ready(&self) -> Result<()> {
        if let Some(reason) = self.loss.lock().clone() {
            return Err(Error::DeviceLost { device: self.name.to_string(), reason });
        }
        self.context.bind_to_thread().map_err(|error| self.failed(error))
    }

    /// Error that the driver reported. After most errors of programs a context answers nothing any
    /// more.
    pub(super) fn failed(&self, error: DriverError) -> Error {
        use sys::CUresult::*;
        let (device, reason) = (self.name.to_string(), format!("{:?}", error.0));
        let goes_on = matches!(
            error.0,
            CUDA_ERROR_INVALID_VALUE
                | CUDA_ERROR_OUT_OF_MEMORY
                | CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                | CUDA_ERROR_NOT_SUPPORTED
                | CUDA_ERROR_NOT_PERMITTED
                | CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                | CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                | CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                | CUDA_ERROR_STREAM_CAPTURE_ISOLATION
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
