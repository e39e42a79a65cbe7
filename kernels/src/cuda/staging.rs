//! Memory of the host that the device reads by itself, for small values on their way there.
//!
//! A copy from other memory of the host is to be waited for before that memory may change. A small
//! value is copied here first, so that nobody waits: the next part of a ring is for each, and only
//! when the ring begins again the device must have read what is there.

#![expect(unsafe_code, reason = "memory that the driver locks is reached through pointers")]

use cudarc::driver::{CudaStream, DriverError, result, sys::CUdeviceptr};
use std::{ffi::c_void, slice};

/// Bytes of the ring.
const RING: usize = 1 << 20;

/// Bytes of the largest value that goes this way.
pub(super) const MOST: usize = 1 << 16;

/// Values begin at multiples of this.
const ALIGNMENT: usize = 256;

/// The ring, made when the first value goes this way.
#[derive(Debug, Default)]
pub(super) struct StagingRing {
    memory: Option<Locked>,
    next: usize,
}

/// Memory that the driver has locked.
#[derive(Debug)]
struct Locked(*mut c_void);

// SAFETY: it is plain memory, which only the holder of the ring reaches.
unsafe impl Send for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: it was allocated so, and nobody names it any more. What the driver says to that
        // changes nothing.
        let _ = unsafe { result::free_host(self.0) };
    }
}

impl StagingRing {
    /// Has at most [`MOST`] bytes copied to memory of the device in the order of a queue, which is
    /// the same in all calls. The context is current, and the memory has as many bytes.
    pub(super) fn copy(
        &mut self,
        bytes: &[u8],
        to: CUdeviceptr,
        queue: &CudaStream,
    ) -> Result<(), DriverError> {
        let memory = match &self.memory {
            Some(memory) => memory,
            // SAFETY: no flags are asked for.
            None => self.memory.insert(Locked(unsafe { result::malloc_host(RING, 0) }?)),
        };
        if self.next + bytes.len() > RING {
            queue.synchronize()?;
            self.next = 0;
        }
        // SAFETY: the ring has so many bytes from here on, and the device has read what was there:
        // the queue was waited for since.
        let part = unsafe {
            let part = memory.0.cast::<u8>().add(self.next);
            slice::from_raw_parts_mut(part, bytes.len())
        };
        part.copy_from_slice(bytes);
        self.next += bytes.len().next_multiple_of(ALIGNMENT);
        // SAFETY: the caller says that there are so many bytes; these stay as they are until the
        // queue has come by.
        unsafe { result::memcpy_htod_async(to, part, queue.cu_stream()) }
    }
}
