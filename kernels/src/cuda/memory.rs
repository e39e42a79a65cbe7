//! Memory of a device, in the order of its work.
//!
//! Memory is taken and given back in the order of the main queue, so that nothing waits: calls that
//! were made before still find it. What is given back is kept for what is taken next
//! ([`FreeList`](super::free_list::FreeList)), and comes from the driver's pool before. Large values
//! come from the host on a queue of their own and are there when the call returns: copies do not
//! wait for work. Small ones come in the order of the main queue
//! ([`StagingRing`](super::staging::StagingRing)).

#![expect(unsafe_code, reason = "memory of devices is reached through pointers")]

use super::{driver::Driver, free_list, staging};
use crate::{
    buffer::{DeviceBuffer, DeviceMemory},
    error::{Error, Result},
};
use cudarc::driver::{CudaStream, result, sys};
use ferroflow_ir::{DType, HostTensor, Shape, host_tensor::byte_len};
use std::{any::Any, sync::Arc};

/// Memory, or a part of some.
#[derive(Debug)]
pub(super) struct CudaMemory {
    pub(super) driver: Arc<Driver>,
    at: sys::CUdeviceptr,
    len: usize,
    /// Bytes that were allocated.
    size: usize,
    /// Allocation that it is a part of, which is freed instead of it.
    whole: Option<Arc<CudaMemory>>,
}

impl CudaMemory {
    /// Memory of so many bytes, at least one; what it holds is unspecified.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::DeviceLost`].
    pub(super) fn new(driver: &Arc<Driver>, bytes: usize) -> Result<CudaMemory> {
        driver.ready()?;
        let (len, size) = (bytes.max(1), free_list::size_of(bytes));
        match driver.free.take(size) {
            Some(at) => Ok(CudaMemory { driver: driver.clone(), at, len, size, whole: None }),
            None => CudaMemory::on(driver, &driver.main, bytes),
        }
    }

    /// Memory that the driver allocates on a queue. Where there is none, all that is kept is released
    /// first.
    fn on(driver: &Arc<Driver>, stream: &CudaStream, bytes: usize) -> Result<CudaMemory> {
        driver.ready()?;
        match CudaMemory::allocated(driver, stream, bytes) {
            Err(Error::OutOfMemory { .. }) if driver.release() > 0 => {
                CudaMemory::allocated(driver, stream, bytes)
            }
            outcome => outcome,
        }
    }

    fn allocated(driver: &Arc<Driver>, stream: &CudaStream, bytes: usize) -> Result<CudaMemory> {
        let (len, size) = (bytes.max(1), free_list::size_of(bytes));
        // SAFETY: the context is current, and programs and copies write memory before anything
        // reads it.
        let at = unsafe {
            match driver.has_pool {
                true => result::malloc_async(stream.cu_stream(), size),
                false => result::malloc_sync(size),
            }
        };
        let at = at.map_err(|error| match error.0 {
            // No other value than the size could be wrong.
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY | sys::CUresult::CUDA_ERROR_INVALID_VALUE => {
                Error::OutOfMemory { device: driver.name.to_string(), bytes }
            }
            _ => driver.failed(error),
        })?;
        Ok(CudaMemory { driver: driver.clone(), at, len, size, whole: None })
    }

    /// A copy of host memory, which has been read when this returns.
    pub(super) fn upload(driver: &Arc<Driver>, bytes: &[u8]) -> Result<CudaMemory> {
        if bytes.len() <= staging::MOST {
            // Memory of the queue of copies is not for small values: nothing that came before waits
            // for it, so that it could not be what the main queue used just now.
            let memory = CudaMemory::new(driver, bytes.len())?;
            if !bytes.is_empty() {
                let copied = driver.staging.lock().copy(bytes, memory.at, &driver.main);
                copied.map_err(|error| driver.failed(error))?;
            }
            return Ok(memory);
        }
        let memory = CudaMemory::on(driver, &driver.copies, bytes.len())?;
        let stream = driver.copies.cu_stream();
        // SAFETY: the memory has as many bytes; the host's are there until the copy is made, which
        // is waited for.
        unsafe { result::memcpy_htod_async(memory.at, bytes, stream) }
            .and_then(|()| driver.copies.synchronize())
            .map_err(|error| driver.failed(error))?;
        Ok(memory)
    }

    /// A copy of memory of another device, made when all that is to be done there until now is.
    pub(super) fn receive(driver: &Arc<Driver>, from: &CudaMemory) -> Result<CudaMemory> {
        let (sender, len) = (&from.driver, from.len);
        let memory = CudaMemory::new(driver, len)?;
        let (here, there) = (&driver.main, &sender.main);
        sender.ready()?;
        let written = there.record_event(None).map_err(|error| sender.failed(error))?;
        driver.ready()?;
        // SAFETY: both are memory of so many bytes of these contexts. What is copied is written
        // before, and given back after: each stream waits for the other.
        let copied = here.wait(&written).and_then(|()| unsafe {
            let (to, of) = (driver.context.cu_ctx(), sender.context.cu_ctx());
            result::memcpy_peer_async(to, memory.at, of, from.at, len, here.cu_stream())
        });
        let copied = copied.and_then(|()| here.record_event(None));
        let copied = copied.map_err(|error| driver.failed(error))?;
        there.wait(&copied).map_err(|error| sender.failed(error))?;
        Ok(memory)
    }

    /// A part of memory.
    pub(super) fn part(whole: &Arc<CudaMemory>, start: usize, len: usize) -> Result<CudaMemory> {
        whole.at_least(start.saturating_add(len))?;
        let (driver, at) = (whole.driver.clone(), whole.at + start as u64);
        Ok(CudaMemory { driver, at, len, size: len, whole: Some(whole.clone()) })
    }

    /// The memory of a buffer, which must be of this device and hold `size` bytes: programs do not
    /// look where it ends.
    ///
    /// # Errors
    ///
    /// When it is elsewhere, or smaller.
    pub(super) fn of<'a>(
        driver: &Arc<Driver>,
        buffer: Option<&'a DeviceBuffer>,
        size: usize,
    ) -> Result<&'a CudaMemory> {
        let found = buffer.map_or("the host", |buffer| &*buffer.device);
        let memory = buffer
            .and_then(|buffer| buffer.memory.as_any().downcast_ref::<CudaMemory>())
            .filter(|memory| Arc::ptr_eq(&memory.driver, driver))
            .ok_or_else(|| Error::WrongDevice {
                expected: driver.name.to_string(),
                found: found.to_string(),
            })?;
        memory.at_least(size)?;
        Ok(memory)
    }

    /// Where it begins, for as long as it lives.
    pub(super) fn address(&self) -> &sys::CUdeviceptr {
        &self.at
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first bytes, after all that was to be done until now.
    fn copy(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut copy = vec![0; bytes];
        self.at_least(bytes)?;
        self.driver.ready()?;
        if bytes > 0 {
            let main = &self.driver.main;
            // SAFETY: the memory has at least as many bytes, and the host's are there until the copy
            // is made, which is waited for.
            unsafe { result::memcpy_dtoh_async(&mut copy, self.at, main.cu_stream()) }
                .and_then(|()| main.synchronize())
                .map_err(|error| self.driver.failed(error))?;
        }
        Ok(copy)
    }

    /// Fails if there are less than so many bytes.
    pub(super) fn at_least(&self, bytes: usize) -> Result<()> {
        if self.len >= bytes {
            return Ok(());
        }
        let reason = "memory is smaller than its tensor".into();
        Err(Error::Device { device: self.driver.name.to_string(), reason })
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // Where the device is lost the memory is too; that is reported by whoever uses it next.
        if self.whole.is_some() || self.driver.ready().is_err() {
            return;
        }
        self.driver.free(self.driver.free.put(self.at, self.size));
    }
}

impl DeviceMemory for CudaMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor> {
        let bytes = self.copy(byte_len(dtype, shape)?)?;
        Ok(HostTensor::from_bytes(dtype, shape.clone(), &bytes)?)
    }
}
