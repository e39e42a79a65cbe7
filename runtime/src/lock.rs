//! Locks of critical sections: state that one holder at a time has, until it lets go.

#[cfg(all(test, shuttle))]
mod interleavings;

use crate::{
    budget::wait,
    error::Result,
    resource::Resource,
    sync::{Condvar, Mutex},
};
use ferroflow_ir::Handle;
use std::{any::Any, sync::Arc};

/// A lock.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedLock(Arc<LockState>);

#[derive(Debug, Default)]
struct LockState {
    is_held: Mutex<bool>,
    changed: Condvar,
}

impl SharedLock {
    /// Takes the lock, once no other holder has it.
    ///
    /// # Errors
    ///
    /// When the budget of the call is over before.
    pub(crate) fn take(&self) -> Result<HeldLock> {
        let mut is_held = self.0.is_held.lock();
        while *is_held {
            wait(&self.0.changed, &mut is_held)?;
        }
        *is_held = true;
        Ok(HeldLock { lock: self.0.clone(), is_over: Mutex::new(false) })
    }
}

impl Resource for SharedLock {
    fn kind(&self) -> &'static str {
        "a mutex"
    }
}

/// A lock that is held. It is let go at the latest when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldLock {
    lock: Arc<LockState>,
    is_over: Mutex<bool>,
}

impl HeldLock {
    /// Lets go of the lock.
    pub(crate) fn release(&self) {
        let mut is_over = self.is_over.lock();
        if !std::mem::replace(&mut *is_over, true) {
            *self.lock.is_held.lock() = false;
            self.lock.changed.notify_one();
        }
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.release();
    }
}

impl Handle for HeldLock {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    #[test]
    fn sections_do_not_overlap() {
        let (lock, inside, most) =
            (SharedLock::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let held = lock.take().unwrap();
                        let n = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(n, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        held.release();
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }
}
