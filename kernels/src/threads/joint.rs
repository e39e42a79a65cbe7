//! Joint work: a closure that helpers may join as long as its owner is at it.
//!
//! A scope of a thread pool ends when all its jobs have run, also those that no thread has had time
//! to begin. The owner of joint work waits for helpers that have begun, and for no others: a helper
//! that comes late, because it serves someone else or has lost its processor, finds the work
//! closed.

use crate::sync::{
    Instant, Mutex,
    atomic::{AtomicUsize, Ordering},
    hint,
    thread::{self, Thread},
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, PoisonError},
    time::Duration,
};

/// Set in the state once no helper may join any more; bits below the flags count the helpers at work.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// Set in the state once a helper has joined.
const JOINED: usize = 1 << (usize::BITS - 2);

/// The outcome of asking for help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Help {
    /// Helpers took part and ended with their owner.
    Shared,
    /// None came before the owner had done it all, which took so long.
    Missed(Duration),
    /// The owner waited long for a helper to end.
    Late,
}

/// A helper that ends so long after its owner, and twice the time that all of the owner's work took, has
/// lost its processor.
const LATE: Duration = Duration::from_micros(300);

/// Work that its owner and helpers do together.
pub(super) struct Joint {
    state: AtomicUsize,
    work: *const (dyn Fn() + Sync),
    owner: Thread,
    /// The payload of the first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the closure behind `work` is `Sync`, and is called by no one after its owner has closed the
// work and has seen that no helper is at it.
#[expect(unsafe_code, reason = "a borrow that helpers end")]
unsafe impl Send for Joint {}
// SAFETY: as above; all other fields are `Sync`.
#[expect(unsafe_code, reason = "a borrow that helpers end")]
unsafe impl Sync for Joint {}

impl Joint {
    /// Does `work` on this thread and on those that `invite` hands it to, until it returns here. A
    /// panic of a helper goes on here. Waiting for helpers begins with `patience` of looking out.
    pub(super) fn run(
        work: &(dyn Fn() + Sync),
        patience: Duration,
        invite: impl FnOnce(&Arc<Joint>),
    ) -> Help {
        let work: *const (dyn Fn() + Sync + '_) = work;
        // SAFETY: only the lifetime changes. `Closing` below ends all use of the pointer before this
        // function returns or unwinds, and with it the borrow of `work`.
        #[expect(unsafe_code, reason = "a borrow that helpers end")]
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync)>(work)
        };
        let (state, owner) = (AtomicUsize::new(0), thread::current());
        let joint = Arc::new(Joint { state, work, owner, panic: Mutex::default() });
        let closing = Closing { joint: &joint, patience };
        let start = Instant::now();
        invite(&joint);
        joint.call();
        let end = Instant::now();
        let waits = joint.close();
        drop(closing);
        let own = end - start;
        let help = match joint.state.load(Ordering::Relaxed) & JOINED {
            0 => Help::Missed(own),
            _ if waits && end.elapsed() > LATE + 2 * own => Help::Late,
            _ => Help::Shared,
        };
        let panic = joint.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        help
    }

    /// Lets no more helpers join. Returns whether some are at work.
    fn close(&self) -> bool {
        self.state.fetch_or(CLOSED, Ordering::AcqRel) & !(CLOSED | JOINED) != 0
    }

    /// Helps, unless the work is closed.
    pub(super) fn join(&self) {
        let enter = |state: usize| (state & CLOSED == 0).then_some((state + 1) | JOINED);
        if self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, enter).is_err() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.call())) {
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
        }
        if self.state.fetch_sub(1, Ordering::Release) == (CLOSED | JOINED) + 1 {
            self.owner.unpark();
        }
    }

    fn call(&self) {
        // SAFETY: either the owner calls, whose borrow lasts, or a helper that the state counts, for
        // which the owner waits before its borrow ends.
        #[expect(unsafe_code, reason = "a borrow that helpers end")]
        let work = unsafe { &*self.work };
        work();
    }
}

/// Closes the work and waits for the helpers when it is dropped.
struct Closing<'a> {
    joint: &'a Joint,
    patience: Duration,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if !self.joint.close() {
            return;
        }
        let start = Instant::now();
        while self.joint.state.load(Ordering::Acquire) & !JOINED != CLOSED {
            if start.elapsed() < self.patience {
                hint::spin_loop();
            } else {
                thread::park();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn helpers_that_come_late_are_not_waited_for() {
        let count = AtomicUsize::new(0);
        let mut late = None;
        let work = || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let help = Joint::run(&work, Duration::ZERO, |joint| late = Some(joint.clone()));
        assert!(matches!(help, Help::Missed(_)));
        late.unwrap().join();
        assert_eq!(count.into_inner(), 1);
    }

    #[test]
    fn helpers_at_work_are_waited_for_and_their_panics_go_on() {
        for panics in [false, true] {
            let (count, both) = (AtomicUsize::new(0), Barrier::new(2));
            let owner = thread::current().id();
            let work = || {
                both.wait();
                if thread::current().id() != owner {
                    thread::yield_now();
                    assert!(!panics, "a helper fails");
                }
                count.fetch_add(1, Ordering::Relaxed);
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                Joint::run(&work, Duration::ZERO, |joint| {
                    let joint = joint.clone();
                    thread::spawn(move || joint.join());
                });
            }));
            assert_eq!(outcome.is_err(), panics);
            assert_eq!(count.into_inner(), 2 - usize::from(panics));
        }
    }
}
