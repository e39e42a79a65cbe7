//! Liveness: when buffers and slots hold a value that a later action reads.
//!
//! Everything is derived from the finished list of unscheduled actions, by what each of them reads
//! and writes; planning keeps no counts of its own. A view is a range of a root (a buffer or a
//! slot), and liveness is that of roots, so a value lives as long as any view of it is read.
//!
//! - [`Intervals`] are the positions between which a buffer is in use. **Invariant:** a buffer used
//!   both inside and outside a loop is in use during the whole loop.
//! - [`Deaths`] are the slots that no action reads again, by the action after which that holds. A
//!   slot dies inside the body of a loop when the body writes it before the next round reads it.

use super::{
    action::{Action, ActionAccess, Scheduled, TensorOperand, ValueLocation, WhileAction},
    buffers::Buffers,
    faults::{PlanFault, is_planted},
};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// The first and the last position at which a buffer is in use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// When each buffer is in use; `None` for a buffer that no action accesses.
#[derive(Debug, Default)]
pub(super) struct Intervals(Vec<Option<Interval>>);

impl Intervals {
    /// The intervals of all buffers. `results` are read after all actions.
    pub(super) fn of(
        buffers: &Buffers,
        actions: &[Scheduled],
        results: &[TensorOperand],
    ) -> Intervals {
        let mut intervals = Intervals(vec![None; buffers.len()]);
        let mut loops = Vec::new();
        intervals.walk(buffers, actions, &mut loops);
        for result in results {
            intervals.note(buffers, &result.place, usize::MAX);
        }
        // Inner loops come first, so that what reaches out of one is seen by the next around it.
        for &(start, end) in &loops {
            for interval in intervals.0.iter_mut().flatten() {
                let (inside, outside) = (
                    interval.first <= end && interval.last >= start,
                    interval.first < start || interval.last > end,
                );
                if inside && outside {
                    interval.first = interval.first.min(start);
                    interval.last = interval.last.max(end);
                }
            }
        }
        intervals
    }

    pub(super) fn get(&self, buffer: usize) -> Option<Interval> {
        self.0[buffer]
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes the interval of `root` cover that of `other` too.
    pub(super) fn merge(&mut self, root: usize, other: usize) {
        let Some(added) = self.0[other] else { return };
        let own = self.0[root].get_or_insert(added);
        *own = Interval { first: own.first.min(added.first), last: own.last.max(added.last) };
    }

    fn walk(&mut self, buffers: &Buffers, actions: &[Scheduled], loops: &mut Vec<(usize, usize)>) {
        for Scheduled { position, action, .. } in actions {
            action.for_each_access(&mut |_, place| self.note(buffers, place, *position));
            let nested = action.nested();
            nested.iter().for_each(|actions| self.walk(buffers, actions, loops));
            if matches!(action, Action::While(_)) {
                let start = nested.iter().map(|actions| first_position(actions)).min();
                loops.push((start.map_or(*position, |start| start.min(*position)), *position));
            }
        }
    }

    fn note(&mut self, buffers: &Buffers, place: &ValueLocation, position: usize) {
        let ValueLocation::Arena(region) = place else { return };
        let (buffer, _) = buffers.find(region);
        let interval = self.0[buffer].get_or_insert(Interval { first: position, last: position });
        interval.first = interval.first.min(position);
        interval.last = interval.last.max(position);
    }
}

/// The first position in a list of actions, nested bodies included.
pub(super) fn first_position(actions: &[Scheduled]) -> usize {
    let Some(Scheduled { position, action, .. }) = actions.first() else { return usize::MAX };
    let nested = action.nested().into_iter().map(first_position).min();
    nested.unwrap_or(usize::MAX).min(*position)
}

/// The slots that are dead after each position, and were not before.
#[derive(Debug, Default)]
pub(super) struct Deaths(HashMap<usize, SmallVec<[usize; 4]>>);

impl Deaths {
    /// The deaths of all slots but those `kept` says to keep, such as slots of constants, which may be
    /// many: nothing is noted of them. `results` are read after all actions.
    pub(super) fn of(
        actions: &[Scheduled],
        results: &[TensorOperand],
        kept: &dyn Fn(usize) -> bool,
    ) -> Deaths {
        let mortal = Mortal { kept };
        let mut walk = Backward { deaths: Deaths::default(), mortal, loops: 0 };
        let mut live: Live =
            results.iter().filter_map(|result| mortal.slot(&result.place)).collect();
        walk.actions(actions, &mut live);
        walk.deaths
    }

    /// The slots that die at a position.
    pub(super) fn at(&self, position: usize) -> impl Iterator<Item = usize> {
        self.0.get(&position).into_iter().flatten().copied()
    }
}

type Live = BTreeSet<usize>;

/// The slots that may die.
#[derive(Clone, Copy)]
struct Mortal<'a> {
    kept: &'a dyn Fn(usize) -> bool,
}

impl Mortal<'_> {
    /// The slot of a location, if it is one that may die.
    fn slot(&self, place: &ValueLocation) -> Option<usize> {
        place.slot().filter(|&slot| !(self.kept)(slot))
    }
}

/// The walk from the last action to the first.
struct Backward<'a> {
    deaths: Deaths,
    mortal: Mortal<'a>,
    /// The number of loops around the action at hand.
    loops: usize,
}

impl Backward<'_> {
    /// Turns what is live after some actions into what is live before them.
    fn actions(&mut self, actions: &[Scheduled], live: &mut Live) {
        actions.iter().rev().for_each(|action| self.action(action, live));
    }

    fn action(&mut self, scheduled: &Scheduled, live: &mut Live) {
        let Scheduled { position, action, .. } = scheduled;
        match action {
            Action::While(repeat) => {
                let WhileAction { condition, test, body, .. } = &**repeat;
                let after = live.clone();
                let summary = Summary::of_loop(repeat, self.mortal);
                let head = summary.before(&after);
                let mut before_body = head.clone();
                self.loops += 1;
                self.actions(body, &mut before_body);
                self.loops -= 1;
                *live = &after | &before_body;
                live.extend(self.mortal.slot(&test.place));
                self.actions(condition, live);
                // The summary is the fixed point: one more round adds nothing.
                debug_assert!(live.is_subset(&head), "a slot is live that the summary missed");
                self.die(*position, summary.touched.difference(&after).copied());
                *live = head;
            }
            Action::Branch(branch) => {
                let after = std::mem::take(live);
                for branch in &branch.branches {
                    let mut before = after.clone();
                    self.actions(branch, &mut before);
                    // Of many branches each adds little to what lives.
                    live.extend(before);
                }
                live.extend(self.mortal.slot(&branch.index.place));
                let summary = Summary::of(std::iter::once(scheduled), self.mortal);
                self.die(*position, summary.touched.difference(&after).copied());
            }
            _ => {
                let mut touched: SmallVec<[(ActionAccess, usize); 8]> = SmallVec::new();
                action.for_each_access(&mut |access, place| {
                    touched.extend(self.mortal.slot(place).map(|slot| (access, slot)));
                });
                let is_faulty = self.loops > 0 && is_planted(PlanFault::TakeInvariant);
                let is_dead = |(access, slot): &&(ActionAccess, usize)| {
                    !live.contains(slot) || is_faulty && *access == ActionAccess::Read
                };
                let dead: Live = touched.iter().filter(is_dead).map(|(_, slot)| *slot).collect();
                self.die(*position, dead.into_iter());
                for (access, slot) in touched.iter().rev() {
                    match access {
                        ActionAccess::Write => live.remove(slot),
                        ActionAccess::Read => live.insert(*slot),
                    };
                }
            }
        }
    }

    fn die(&mut self, position: usize, slots: impl Iterator<Item = usize>) {
        for slot in slots {
            let dead = self.deaths.0.entry(position).or_default();
            if !dead.contains(&slot) {
                dead.push(slot);
            }
        }
    }
}

/// Effect of some actions on slots, whatever is live after them.
#[derive(Debug, Default)]
struct Summary {
    /// Slots that may be read before they are written.
    exposed: Live,
    /// Slots that are written on every way through.
    killed: Live,
    /// Slots that are accessed at all.
    touched: Live,
}

impl Summary {
    fn of<'p>(actions: impl Iterator<Item = &'p Scheduled>, mortal: Mortal<'_>) -> Summary {
        let mut summary = Summary::default();
        for Scheduled { action, .. } in actions {
            match action {
                Action::While(repeat) => summary.then(Summary::of_loop(repeat, mortal)),
                Action::Branch(branch) => {
                    summary.read(mortal.slot(&branch.index.place));
                    let branches = branch.branches.iter();
                    let mut all = branches.map(|branch| Summary::of(branch.iter(), mortal));
                    let mut joined = all.next().unwrap_or_default();
                    for other in all {
                        joined.exposed.extend(other.exposed);
                        joined.touched.extend(other.touched);
                        joined.killed.retain(|slot| other.killed.contains(slot));
                    }
                    summary.then(joined);
                }
                _ => action.for_each_access(&mut |access, value| match access {
                    ActionAccess::Read => summary.read(mortal.slot(value)),
                    ActionAccess::Write => summary.write(mortal.slot(value)),
                }),
            }
        }
        summary
    }

    /// A loop runs its condition at least once, its body perhaps never.
    fn of_loop(repeat: &WhileAction, mortal: Mortal<'_>) -> Summary {
        let mut summary = Summary::of(repeat.condition.iter(), mortal);
        summary.read(mortal.slot(&repeat.test.place));
        let killed = summary.killed.clone();
        summary.then(Summary::of(repeat.body.iter(), mortal));
        summary.killed = killed;
        summary
    }

    fn read(&mut self, slot: Option<usize>) {
        let Some(slot) = slot else { return };
        self.touched.insert(slot);
        if !self.killed.contains(&slot) {
            self.exposed.insert(slot);
        }
    }

    fn write(&mut self, slot: Option<usize>) {
        self.touched.extend(slot);
        self.killed.extend(slot);
    }

    /// Appends what comes after.
    fn then(&mut self, next: Summary) {
        self.exposed.extend(next.exposed.difference(&self.killed).copied());
        self.killed.extend(next.killed);
        self.touched.extend(next.touched);
    }

    /// Live slots before the actions, from those after them.
    fn before(&self, after: &Live) -> Live {
        let mut live: Live = after.difference(&self.killed).copied().collect();
        live.extend(self.exposed.iter().copied());
        live
    }
}
