//! Budgets of calls in the runtime: waits that end with a budget, and values that resources keep.

use crate::{
    error::{Error, Result},
    sync::{Condvar, MutexGuard},
};
use ferroflow_ir::{
    Code, HostTensor,
    budget::{self, Charge},
    clock::Instant,
};
use std::time::Duration;

/// The time that a thread waits for others without a look at its budget.
const NAP: Duration = Duration::from_millis(5);

/// Waits for a change that another thread makes, no longer than the budget of this one lasts.
///
/// # Errors
///
/// [`Error::Interrupted`] when it is over; [`Error::Status`] where there are no other threads.
pub(crate) fn wait<T>(changed: &Condvar, state: &mut MutexGuard<'_, T>) -> Result<()> {
    budget::check()?;
    // Where there are no threads, nobody makes the change.
    if cfg!(target_family = "wasm") {
        let message = "this waits for another thread, and there is none".into();
        return Err(Error::Status { code: Code::FailedPrecondition, message });
    }
    if budget::is_bounded() {
        changed.wait_for(state, NAP);
    } else {
        changed.wait(state);
    }
    Ok(())
}

/// As [`wait`], no longer than until a moment; whether that is still to come.
///
/// # Errors
///
/// [`Error::Interrupted`] when the budget is over before.
pub(crate) fn wait_until<T>(
    changed: &Condvar,
    state: &mut MutexGuard<'_, T>,
    end: Instant,
) -> Result<bool> {
    budget::check()?;
    let left = end.saturating_duration_since(Instant::now());
    // Where there are no threads, nobody makes the change.
    if left.is_zero() || cfg!(target_family = "wasm") {
        return Ok(false);
    }
    let nap = if budget::is_bounded() { left.min(NAP) } else { left };
    changed.wait_for(state, nap);
    Ok(true)
}

/// Tensors that a resource keeps. What is around their elements counts in the budget of the call that
/// put them there, as the elements do.
#[derive(Debug)]
pub(crate) struct KeptTensors<T> {
    pub(crate) value: T,
    _charge: Option<Charge>,
}

/// Bytes around the elements of a tensor that is kept: the tensor, its entry, and the header of its
/// block.
const ENTRY: usize = size_of::<HostTensor>() + 64;

impl<T> KeptTensors<T> {
    /// A value of so many tensors.
    ///
    /// # Errors
    ///
    /// [`Limit`](ferroflow_ir::Error::Limit) when the budget has no room for it.
    pub(crate) fn new(value: T, n_tensors: usize) -> Result<KeptTensors<T>> {
        let bytes = n_tensors.saturating_add(1).saturating_mul(ENTRY);
        Ok(KeptTensors { value, _charge: budget::charge(bytes)? })
    }
}
