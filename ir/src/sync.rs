//! Synchronisation: the standard library's, or the model checker's in a build with `--cfg shuttle`.
//!
//! `cargo xtask interleavings` runs the code that uses this module, and those of the crates above, under
//! schedules that shuttle chooses. Any other build gets the items that it had without it. A model assumes:
//!
//! - Atomics are sequentially consistent, whatever their orderings say.
//! - A wait with a timeout may end by it at any time, so it does at once.
//! - Thread-local state that a thread has across operations on locks and atomics is declared by
//!   [`thread_local`](crate::sync::thread_local) of this module: a model's threads share one of the system.
//! - Locks of other modules, such as the one of the pool of host memory, are held across no such operation.
//!   The same goes for `OnceLock`, of which only the first value counts: it stays the standard library's.

#[cfg(shuttle)]
mod explore;
#[cfg(shuttle)]
mod model;

#[cfg(not(shuttle))]
pub(crate) use std::{sync::atomic, thread_local};
#[cfg(shuttle)]
pub use {
    explore::explore,
    model::{Condvar, Mutex, MutexGuard, ReentrantMutex, RwLock},
    shuttle::{sync::atomic, thread_local},
};
