//! Models of joint work, run by `cargo xtask interleavings`.

use super::{
    Threads,
    joint::{Help, Joint},
};
use crate::sync::{
    atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};
use ferroflow_ir::sync::explore;
use std::{
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::Duration,
};

/// The payload of a panic on purpose. It unwinds without the hook, which would print each of them.
#[derive(Debug, PartialEq)]
struct Failed(usize);

fn fail(piece: usize) -> ! {
    resume_unwind(Box::new(Failed(piece)))
}

fn failure<R>(body: impl FnOnce() -> R) -> Option<usize> {
    let payload = catch_unwind(AssertUnwindSafe(body)).err()?;
    Some(payload.downcast::<Failed>().expect("the payload of the piece").0)
}

fn pool(count: usize) -> Threads {
    Threads::new(NonZeroUsize::new(count).expect("not zero"))
}

fn n_callers(threads: &Threads) -> usize {
    threads.helpers.as_ref().map_or(0, |team| team.calls.load(Ordering::SeqCst))
}

/// Joint work with two helpers, in which `step` is called; none of them is at it once its owner goes on.
fn joint_work(patience: Duration, step: impl Fn() + Send + Sync) -> Option<Help> {
    let is_over = AtomicBool::new(false);
    let work = || {
        assert!(!is_over.load(Ordering::SeqCst), "a helper begins after its owner has gone on");
        step();
        assert!(!is_over.load(Ordering::SeqCst), "the owner goes on while a helper is at work");
    };
    thread::scope(|scope| {
        let mut help = None;
        let run = || {
            help = Some(Joint::run(&work, patience, |joint| {
                for _ in 0..2 {
                    let joint = Arc::clone(joint);
                    scope.spawn(move || joint.join());
                }
            }));
        };
        let failure = failure(run);
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(failure.is_some(), help.is_none());
        help
    })
}

#[test]
fn the_owner_of_joint_work_waits_for_helpers_at_work() {
    for patience in [Duration::ZERO, Duration::from_micros(100)] {
        explore(1500, move || {
            let n_calls = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&n_calls);
            let help = joint_work(patience, move || {
                thread::yield_now();
                count.fetch_add(1, Ordering::SeqCst);
            });
            let n_calls = n_calls.load(Ordering::SeqCst);
            match help.expect("no step fails") {
                Help::Missed(_) => assert_eq!(n_calls, 1),
                Help::Shared | Help::Late => assert!((2..=3).contains(&n_calls)),
            }
        });
    }
}

#[test]
fn a_panic_in_joint_work_reaches_the_owner_after_all_have_ended() {
    explore(3000, || {
        let n_calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&n_calls);
        // The second call fails, whether it is the owner's or a helper's.
        let help = joint_work(Duration::ZERO, move || {
            let call = count.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            if call == 1 {
                fail(call);
            }
        });
        assert_eq!(help.is_none(), n_calls.load(Ordering::SeqCst) > 1);
    });
}

#[test]
fn callers_of_one_pool_do_each_piece_once() {
    for count in [2, 3, 4] {
        explore(300, move || {
            let threads = pool(count);
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let _active = threads.active_call();
                        let _inner = threads.active_call();
                        for _ in 0..2 {
                            let visits = [const { AtomicUsize::new(0) }; 4];
                            threads.for_each_range(8, 2, |range| {
                                visits[range.start / 2].fetch_add(range.len(), Ordering::SeqCst);
                            });
                            let visits = visits.map(AtomicUsize::into_inner);
                            assert_eq!(visits, [2; 4]);
                        }
                    });
                }
            });
            assert_eq!(n_callers(&threads), 0);
        });
    }
}

#[test]
fn a_piece_that_panics_fails_its_caller_and_no_other() {
    explore(700, || {
        let threads = pool(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                let call = || {
                    let _active = threads.active_call();
                    threads.for_each_range(3, 1, |range| match range.start {
                        1 => fail(1),
                        _ => thread::yield_now(),
                    });
                };
                assert_eq!(failure(call), Some(1));
            });
            let mut data = [0; 3];
            threads.for_each_piece(&mut data, 1, |index, piece| piece[0] = index + 1);
            assert_eq!(data, [1, 2, 3]);
        });
        assert_eq!(n_callers(&threads), 0);
        let mut data = [0; 3];
        threads.for_each_piece(&mut data, 1, |index, piece| piece[0] = index + 1);
        assert_eq!(data, [1, 2, 3]);
    });
}

#[test]
fn the_first_error_is_that_of_the_first_piece() {
    explore(700, || {
        let mut data = [0; 4];
        let outcome = pool(3).try_for_each_piece(&mut data, 1, |index, _| {
            thread::yield_now();
            if index % 2 == 1 { Err(index) } else { Ok(()) }
        });
        assert_eq!(outcome, Err(1));
    });
}
