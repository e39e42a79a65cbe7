//! Time sources: the clock of hooks that act every so many seconds, and of waits.

use ferroflow_ir::clock::Instant;
use std::{
    fmt::Debug,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Source of the time that hooks and waits of a monitored session go by.
pub trait TimeSource: Debug + Send + Sync {
    /// Time since a moment that stays the same.
    fn now(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration);
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

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
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

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}
