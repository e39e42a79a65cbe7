//! Times without helpers, on processors that others use.
//!
//! A helper that loses its processor in the middle of a piece of work keeps its caller waiting for a
//! time slice of the system, which is longer than most ops. One that looks out for work and does not
//! come has none either, and takes time from its caller when it gets one. After that the caller works
//! alone for a while: for longer each time if it happens again soon, as on a machine that is busy.

use super::joint::Help;
use crate::sync::{
    Instant,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
use std::time::Duration;

/// The first recess, about the time slice of a scheduler.
const SHORTEST: Duration = Duration::from_millis(5);
/// The longest recess: what a machine that is quiet again loses.
const LONGEST: Duration = Duration::from_millis(320);
/// A helper is late again soon if it is late within so many times the last recess.
const SOON: u32 = 8;

/// Work of this length is enough for a spinning helper to come.
const ENOUGH: Duration = Duration::from_micros(10);
/// So many pieces of joint work, one after the other, to which no helper comes show that there is none.
const MISSES: u32 = 6;

/// The state of the helpers of one pool: how long there is no use in them.
#[derive(Debug)]
pub(super) struct Recess {
    epoch: Instant,
    /// End of the last recess, in nanoseconds from `epoch` on; 0 before the first.
    end: AtomicU64,
    /// The length of the last recess, in nanoseconds.
    length: AtomicU64,
    /// Pieces of joint work without helpers since the last one with some.
    misses: AtomicU32,
}

impl Recess {
    pub(super) fn new() -> Recess {
        Recess {
            epoch: Instant::now(),
            end: AtomicU64::new(0),
            length: AtomicU64::new(0),
            misses: AtomicU32::new(0),
        }
    }

    /// Whether callers work alone now.
    pub(super) fn is_on(&self) -> bool {
        let end = self.end.load(Ordering::Relaxed);
        end != 0 && self.epoch.elapsed() < Duration::from_nanos(end)
    }

    /// Notes the outcome of asking spinning helpers, and begins a recess where they have no
    /// processor.
    pub(super) fn note(&self, help: Help) {
        let is_over = match help {
            Help::Shared => {
                self.misses.store(0, Ordering::Relaxed);
                false
            }
            Help::Missed(own) if own < ENOUGH => false,
            Help::Missed(_) => self.misses.fetch_add(1, Ordering::Relaxed) + 1 >= MISSES,
            Help::Late => true,
        };
        if is_over {
            self.misses.store(0, Ordering::Relaxed);
            self.begin_at(self.epoch.elapsed());
        }
    }

    fn begin_at(&self, now: Duration) {
        let last_end = Duration::from_nanos(self.end.load(Ordering::Relaxed));
        let last = Duration::from_nanos(self.length.load(Ordering::Relaxed));
        let length = next_length(last, now.saturating_sub(last_end));
        self.length.store(length.as_nanos() as u64, Ordering::Relaxed);
        self.end.store((now + length).as_nanos() as u64, Ordering::Relaxed);
    }
}

/// The length of a recess after one of length `last` that ended `since` ago.
fn next_length(last: Duration, since: Duration) -> Duration {
    if since < SOON * last { (2 * last).min(LONGEST) } else { SHORTEST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recess_is_longer_the_sooner_it_is_needed_again() {
        assert_eq!(next_length(Duration::ZERO, Duration::ZERO), SHORTEST);
        assert_eq!(next_length(SHORTEST, SHORTEST), 2 * SHORTEST);
        assert_eq!(next_length(SHORTEST, SOON * SHORTEST), SHORTEST);
        assert_eq!(next_length(LONGEST, SHORTEST), LONGEST);
    }

    #[test]
    fn helpers_that_do_not_come_or_end_late_have_no_processor() {
        let recess = Recess::new();
        let missed = Help::Missed(Duration::from_millis(1));
        (1..MISSES).for_each(|_| recess.note(missed));
        recess.note(Help::Shared);
        (0..2 * MISSES).for_each(|_| recess.note(Help::Missed(Duration::ZERO)));
        (1..MISSES).for_each(|_| recess.note(missed));
        assert_eq!(recess.end.load(Ordering::Relaxed), 0);
        recess.note(missed);
        let end = recess.end.load(Ordering::Relaxed);
        assert_ne!(end, 0);
        recess.note(Help::Late);
        assert!(recess.end.load(Ordering::Relaxed) > end);
    }

    #[test]
    fn a_recess_ends() {
        let recess = Recess::new();
        assert!(!recess.is_on());
        recess.begin_at(Duration::from_secs(3600));
        assert!(recess.is_on());
        let past = Recess { epoch: Instant::now() - Duration::from_secs(1), ..Recess::new() };
        past.begin_at(Duration::from_millis(1));
        assert!(!past.is_on());
    }
}

/// Models of recesses.
#[cfg(all(test, shuttle))]
mod interleavings {
    use super::*;

    #[test]
    fn a_recess_that_several_callers_begin_is_of_a_length_that_one_would_choose() {
        ferroflow_ir::sync::explore(1000, || {
            let recess = Recess::new();
            crate::sync::thread::scope(|scope| {
                for help in [Help::Late, Help::Missed(SHORTEST), Help::Shared] {
                    let recess = &recess;
                    scope.spawn(move || (0..MISSES).for_each(|_| recess.note(help)));
                }
            });
            let length = Duration::from_nanos(recess.length.load(Ordering::Relaxed));
            assert!((0..7).any(|doublings| length == SHORTEST * (1 << doublings)), "{length:?}");
            let end = Duration::from_nanos(recess.end.load(Ordering::Relaxed));
            assert!(end > Duration::ZERO && end <= recess.epoch.elapsed() + LONGEST, "{end:?}");
        });
    }
}
