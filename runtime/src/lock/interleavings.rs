//! Models of the locks of critical sections.

use super::*;
use crate::sync::atomic::{AtomicUsize, Ordering};
use ferroflow_ir::{
    budget::{CallBudget, CallOptions, Cancellation},
    sync::explore,
};
use shuttle::thread;

/// Critical sections of one lock.
#[derive(Default)]
struct Sections {
    lock: SharedLock,
    n_inside: AtomicUsize,
    n_done: AtomicUsize,
}

impl Sections {
    fn enter(&self) -> Result<()> {
        let held = self.lock.take()?;
        assert_eq!(self.n_inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
        self.n_inside.fetch_sub(1, Ordering::SeqCst);
        self.n_done.fetch_add(1, Ordering::SeqCst);
        // Half of the holders let go by dropping it, and all of them no more than once.
        if self.n_done.load(Ordering::SeqCst) % 2 == 0 {
            held.release();
        }
        Ok(())
    }
}

#[test]
fn sections_do_not_overlap_and_all_come_to_an_end() {
    explore(2000, || {
        let sections = Sections::default();
        let enter_twice = || (0..2).try_for_each(|_| sections.enter()).expect("nothing ends it");
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(enter_twice);
            }
        });
        assert_eq!(sections.n_done.into_inner(), 6);
    });
}

#[test]
fn a_wait_that_is_cancelled_takes_no_turn_of_others() {
    explore(2000, || {
        let (sections, cancellation) = (Sections::default(), Cancellation::new());
        let options =
            CallOptions { cancellation: Some(cancellation.clone()), ..Default::default() };
        thread::scope(|scope| {
            scope.spawn(|| {
                let _entered = CallBudget::new(options.clone(), None).enter();
                // Cancelled or not, others go on.
                let _ = sections.enter();
            });
            scope.spawn(|| sections.enter().expect("nothing ends it"));
            scope.spawn(|| sections.enter().expect("nothing ends it"));
            cancellation.cancel();
        });
        assert!((2..=3).contains(&sections.n_done.into_inner()));
    });
}
