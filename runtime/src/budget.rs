//! Budgets of calls in the runtime: waits that end with a budget, and values that resources keep.

use crate::error::Result;
use ferroflow_ir::{
    HostTensor,
    budget::{self, Charge},
};
use parking_lot::{Condvar, MutexGuard};
use std::time::Duration;

/// The time that a thread waits for others without a look at its budget.
const NAP: Duration = Duration::from_millis(5);

/// Waits for a change that another thread makes, no longer than the budget of this one lasts.
///
/// # Errors
///
/// [`Error::Interrupted`](crate::Error::Interrupted) when it is over.
pub(crate) fn wait<T>(changed: &Condvar, state: &mut MutexGuard<'_, T>) -> Result<()> {
    if !budget::is_bounded() {
        changed.wait(state);
        return Ok(());
    }
    budget::check()?;
    changed.wait_for(state, NAP);
    Ok(())
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
