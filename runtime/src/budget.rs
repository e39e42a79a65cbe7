//! Budgets of calls: until when a call may run, who may end it, and how often its loops may go round.
//!
//! A budget is checked between the actions of a program, at every round of a loop, and by ops that wait
//! for other threads. A kernel that has begun ends by itself. A call that is ended so is an error like
//! any other: what it has assigned by then stays assigned, whole.

use crate::error::{Error, Result};
use parking_lot::{Condvar, MutexGuard};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How one call of a function may be ended before its end.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// When the call ends with an error if it has no results by then.
    pub deadline: Option<Instant>,
    /// Ends the call from another thread.
    pub cancellation: Option<Cancellation>,
    /// How many rounds all its loops may go, taken together.
    pub loop_rounds: Option<u64>,
}

/// A switch that ends calls. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A switch that was not used yet.
    pub fn new() -> Cancellation {
        Cancellation::default()
    }

    /// Ends all calls that were given this switch, now and later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was used.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What ends a call before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The time is over.
    Deadline,
    /// Another thread has cancelled it.
    Cancelled,
    /// Its loops have gone as many rounds as they may.
    LoopRounds,
}

/// What a call has left.
#[derive(Debug)]
pub(crate) struct CallBudget<'a> {
    options: &'a CallOptions,
    rounds: AtomicU64,
}

/// How long a thread that waits for others goes without looking at its budget.
const NAP: Duration = Duration::from_millis(5);

impl<'a> CallBudget<'a> {
    pub(crate) fn new(options: &'a CallOptions) -> CallBudget<'a> {
        CallBudget { options, rounds: AtomicU64::new(0) }
    }

    /// Checks time and cancellation.
    pub(crate) fn check(&self) -> Result<()> {
        if self.options.cancellation.as_ref().is_some_and(Cancellation::is_cancelled) {
            return Err(Error::Interrupted(Interruption::Cancelled));
        }
        if self.options.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::Interrupted(Interruption::Deadline));
        }
        Ok(())
    }

    /// Takes note of a round of a loop.
    pub(crate) fn take_round(&self) -> Result<()> {
        let before = self.rounds.fetch_add(1, Ordering::Relaxed);
        match self.options.loop_rounds.is_some_and(|most| before >= most) {
            true => Err(Error::Interrupted(Interruption::LoopRounds)),
            false => self.check(),
        }
    }
}

/// Waits for a change that another thread makes, no longer than a budget lasts.
///
/// # Errors
///
/// [`Error::Interrupted`] when it is over.
pub(crate) fn wait<T>(
    changed: &Condvar,
    state: &mut MutexGuard<'_, T>,
    budget: Option<&CallBudget<'_>>,
) -> Result<()> {
    let Some(budget) = budget else {
        changed.wait(state);
        return Ok(());
    };
    budget.check()?;
    changed.wait_for(state, NAP);
    Ok(())
}
