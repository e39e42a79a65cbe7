//! Time sources: the clock of hooks that act every so many seconds, and of waits.

use crate::error::Result;
use ferroflow_ir::{Code, budget, clock::Instant};
use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The time that a thread waits without a look at its budget.
const NAP: Duration = Duration::from_millis(20);

/// Source of the time that hooks and waits of a monitored session go by.
pub trait TimeSource: Debug + Send + Sync {
    /// Time since a moment that stays the same.
    fn now(&self) -> Duration;

    /// Waits.
    ///
    /// # Errors
    ///
    /// When the budget of the thread is over before.
    fn sleep(&self, duration: Duration) -> Result<()>;
}

/// The clock of the system.
#[derive(Debug)]
pub struct SystemTimeSource(Instant);

impl SystemTimeSource {
    /// A clock that begins now.
    pub fn new() -> SystemTimeSource {
        SystemTimeSource(Instant::now())
    }
}

impl Default for SystemTimeSource {
    fn default() -> SystemTimeSource {
        SystemTimeSource::new()
    }
}

impl TimeSource for SystemTimeSource {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Result<()> {
        let end = self.now().saturating_add(duration);
        loop {
            budget::check().map_err(ferroflow_runtime::Error::from)?;
            let left = end.saturating_sub(self.now());
            if left.is_zero() {
                return Ok(());
            }
            nap(left)?;
        }
    }
}

/// Waits for a part of a time.
fn nap(left: Duration) -> Result<()> {
    // Where there are no threads, waiting changes nothing.
    if cfg!(target_family = "wasm") {
        let message = "this waits for another thread, and there is none".into();
        let code = Code::FailedPrecondition;
        return Err(ferroflow_runtime::Error::Status { code, message }.into());
    }
    std::thread::sleep(left.min(NAP));
    Ok(())
}

/// Clock that is set by hand, for tests of hooks: waiting sets it forward and takes no time.
#[derive(Debug, Default)]
pub struct ManualTimeSource(Mutex<Duration>);

impl ManualTimeSource {
    /// Sets the clock forward.
    pub fn advance(&self, duration: Duration) {
        let mut now = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(duration);
    }
}

impl TimeSource for ManualTimeSource {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, duration: Duration) -> Result<()> {
        self.advance(duration);
        Ok(())
    }
}
