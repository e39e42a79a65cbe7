//! Common parts of the exported functions of the driver.

#![expect(unsafe_code, reason = "callers give pointers to write results to")]

use crate::world::CudaResult;
use cudarc::driver::sys::CUresult;
use std::cell::Cell;

thread_local! {
    /// The context that is current: a device's number and one, 0 for none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn set_current(context: usize) {
    CURRENT.set(context);
}

/// The context that is current, as a handle.
pub(crate) fn current() -> usize {
    CURRENT.get()
}

/// The device whose context is current.
pub(crate) fn current_device() -> CudaResult<usize> {
    current().checked_sub(1).ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
}

/// Status of a call.
pub(crate) fn answer(outcome: CudaResult) -> CUresult {
    match outcome {
        Ok(()) => CUresult::CUDA_SUCCESS,
        Err(error) => error,
    }
}

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// `to` is null or may be written to.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> CudaResult {
    if to.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller says so.
    unsafe { to.write(value) };
    Ok(())
}
