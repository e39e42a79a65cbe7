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
    draft::{Draft, DraftAction, DraftSink, Positioned},
    faults::{Fault, is_planted},
};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// What an action does to a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Access {
    Read,
    Write,
}

impl DraftAction {
    /// Visits the values that this action itself accesses, reads first; those of nested bodies are
    /// accessed by the actions there.
    pub(super) fn for_each_access(&self, visit: &mut impl FnMut(Access, &Draft)) {
        match self {
            DraftAction::Kernel { sources, sinks, .. } => {
                sources.iter().for_each(|source| visit(Access::Read, source));
                sinks.iter().for_each(|sink| visit(Access::Write, &sink.value()));
            }
            DraftAction::Op { inputs, outputs, .. } => {
                inputs.iter().for_each(|input| visit(Access::Read, &input.place));
                outputs.iter().for_each(|&slot| visit(Access::Write, &Draft::Slot(slot, None)));
            }
            DraftAction::Copy { from, to, .. } => {
                visit(Access::Read, &from.place);
                visit(Access::Write, to);
            }
            DraftAction::Device(call) => {
                let sources = call.sources.iter().flatten();
                sources.for_each(|&slot| visit(Access::Read, &Draft::Device(slot)));
                let sinks = call.sinks.iter();
                sinks.for_each(|&(slot, ..)| visit(Access::Write, &Draft::Device(slot)));
            }
            DraftAction::DeviceOp { inputs, outputs, .. } => {
                inputs.iter().for_each(|input| visit(Access::Read, &input.place));
                outputs.iter().for_each(|output| visit(Access::Write, output));
            }
            DraftAction::While { test, .. } => visit(Access::Read, &test.place),
            DraftAction::Branch { chooser, .. } => visit(Access::Read, &chooser.place),
            DraftAction::Fail(_) => {}
        }
    }
}

impl DraftSink {
    pub(super) fn value(&self) -> Draft {
        match self {
            DraftSink::Buffer(buffer, bytes) => Draft::Buffer(*buffer, 0..*bytes),
            DraftSink::Slot(slot, ..) | DraftSink::Unknown(slot) => Draft::Slot(*slot, None),
        }
    }
}

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
    /// The intervals of `n_buffers` buffers. `results` are read after all actions.
    pub(super) fn of(
        n_buffers: usize,
        actions: &[Positioned],
        results: impl Iterator<Item = Draft>,
    ) -> Intervals {
        let mut intervals = Intervals(vec![None; n_buffers]);
        let mut loops = Vec::new();
        intervals.walk(actions, &mut loops);
        for result in results {
            intervals.note(&result, usize::MAX);
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

    fn walk(&mut self, actions: &[Positioned], loops: &mut Vec<(usize, usize)>) {
        for Positioned { position, action, .. } in actions {
            action.for_each_access(&mut |_, value| self.note(value, *position));
            match action {
                DraftAction::While { condition, body, .. } => {
                    let start = first_position(condition).min(first_position(body)).min(*position);
                    self.walk(condition, loops);
                    self.walk(body, loops);
                    loops.push((start, *position));
                }
                DraftAction::Branch { branches, .. } => {
                    branches.iter().for_each(|branch| self.walk(branch, loops));
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, value: &Draft, position: usize) {
        let Draft::Buffer(buffer, _) = value else { return };
        let interval = self.0[*buffer].get_or_insert(Interval { first: position, last: position });
        interval.first = interval.first.min(position);
        interval.last = interval.last.max(position);
    }
}

/// The first position in a list of actions, nested bodies included.
pub(super) fn first_position(actions: &[Positioned]) -> usize {
    let Some(Positioned { position, action, .. }) = actions.first() else { return usize::MAX };
    let nested = match action {
        DraftAction::While { condition, body, .. } => {
            first_position(condition).min(first_position(body))
        }
        DraftAction::Branch { branches, .. } => {
            branches.iter().map(|branch| first_position(branch)).min().unwrap_or(usize::MAX)
        }
        _ => usize::MAX,
    };
    nested.min(*position)
}

/// A slot of the host or of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AnySlot {
    Host(usize),
    Device(usize),
}

impl AnySlot {
    fn of(value: &Draft) -> Option<AnySlot> {
        match value {
            Draft::Slot(slot, _) => Some(AnySlot::Host(*slot)),
            Draft::Device(slot) => Some(AnySlot::Device(*slot)),
            Draft::Buffer(..) => None,
        }
    }
}

/// The slots that are dead after each position, and were not before.
#[derive(Debug, Default)]
pub(super) struct Deaths(HashMap<usize, SmallVec<[AnySlot; 4]>>);

impl Deaths {
    /// The deaths of all slots but those `kept` says to keep, such as slots of constants. `results`
    /// are read after all actions.
    pub(super) fn of(
        actions: &[Positioned],
        results: impl Iterator<Item = Draft>,
        kept: &dyn Fn(AnySlot) -> bool,
    ) -> Deaths {
        let mut walk = Backward { deaths: Deaths::default(), kept, loops: 0 };
        let mut live: Live = results.filter_map(|result| AnySlot::of(&result)).collect();
        walk.actions(actions, &mut live);
        walk.deaths
    }

    /// The slots of the host that die at a position.
    pub(super) fn host(&self, position: usize) -> impl Iterator<Item = usize> {
        self.at(position).filter_map(|slot| match slot {
            AnySlot::Host(slot) => Some(slot),
            AnySlot::Device(_) => None,
        })
    }

    /// The slots of devices that die at a position.
    pub(super) fn device(&self, position: usize) -> impl Iterator<Item = usize> {
        self.at(position).filter_map(|slot| match slot {
            AnySlot::Device(slot) => Some(slot),
            AnySlot::Host(_) => None,
        })
    }

    fn at(&self, position: usize) -> impl Iterator<Item = AnySlot> {
        self.0.get(&position).into_iter().flatten().copied()
    }
}

type Live = BTreeSet<AnySlot>;

/// The walk from the last action to the first.
struct Backward<'a> {
    deaths: Deaths,
    kept: &'a dyn Fn(AnySlot) -> bool,
    /// The number of loops around the action at hand.
    loops: usize,
}

impl Backward<'_> {
    /// Turns what is live after some actions into what is live before them.
    fn actions(&mut self, actions: &[Positioned], live: &mut Live) {
        actions.iter().rev().for_each(|action| self.action(action, live));
    }

    fn action(&mut self, positioned: &Positioned, live: &mut Live) {
        let Positioned { position, action, .. } = positioned;
        match action {
            DraftAction::While { condition, test, body, .. } => {
                let after = live.clone();
                let summary = Summary::of_loop(condition, test_slot(action), body);
                let head = summary.before(&after);
                let mut before_body = head.clone();
                self.loops += 1;
                self.actions(body, &mut before_body);
                self.loops -= 1;
                *live = &after | &before_body;
                live.extend(AnySlot::of(&test.place));
                self.actions(condition, live);
                // The summary is the fixed point: one more round adds nothing.
                debug_assert!(live.is_subset(&head), "a slot is live that the summary missed");
                self.die(*position, summary.touched.difference(&after).copied());
                *live = head;
            }
            DraftAction::Branch { chooser, branches, .. } => {
                let after = std::mem::take(live);
                for branch in branches {
                    let mut before = after.clone();
                    self.actions(branch, &mut before);
                    live.append(&mut before);
                }
                live.extend(AnySlot::of(&chooser.place));
                let summary = Summary::of(std::iter::once(positioned));
                self.die(*position, summary.touched.difference(&after).copied());
            }
            _ => {
                let mut touched: SmallVec<[(Access, AnySlot); 8]> = SmallVec::new();
                action.for_each_access(&mut |access, value| {
                    touched.extend(AnySlot::of(value).map(|slot| (access, slot)));
                });
                let is_faulty = self.loops > 0 && is_planted(Fault::TakeInvariant);
                let is_dead = |(access, slot): &&(Access, AnySlot)| {
                    !live.contains(slot) || is_faulty && *access == Access::Read
                };
                let dead: Live = touched.iter().filter(is_dead).map(|(_, slot)| *slot).collect();
                self.die(*position, dead.into_iter());
                for (access, slot) in touched.iter().rev() {
                    match access {
                        Access::Write => live.remove(slot),
                        Access::Read => live.insert(*slot),
                    };
                }
            }
        }
    }

    fn die(&mut self, position: usize, slots: impl Iterator<Item = AnySlot>) {
        for slot in slots.filter(|slot| !(self.kept)(*slot)) {
            let dead = self.deaths.0.entry(position).or_default();
            if !dead.contains(&slot) {
                dead.push(slot);
            }
        }
    }
}

fn test_slot(action: &DraftAction) -> Option<AnySlot> {
    match action {
        DraftAction::While { test, .. } => AnySlot::of(&test.place),
        _ => None,
    }
}

/// What some actions do to slots, whatever is live after them.
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
    fn of<'p>(actions: impl Iterator<Item = &'p Positioned>) -> Summary {
        let mut summary = Summary::default();
        for Positioned { action, .. } in actions {
            match action {
                DraftAction::While { condition, body, .. } => {
                    summary.then(Summary::of_loop(condition, test_slot(action), body));
                }
                DraftAction::Branch { chooser, branches, .. } => {
                    summary.read(AnySlot::of(&chooser.place));
                    let mut all = branches.iter().map(|branch| Summary::of(branch.iter()));
                    let mut joined = all.next().unwrap_or_default();
                    for mut other in all {
                        joined.exposed.append(&mut other.exposed);
                        joined.touched.append(&mut other.touched);
                        joined.killed = &joined.killed & &other.killed;
                    }
                    summary.then(joined);
                }
                _ => action.for_each_access(&mut |access, value| match access {
                    Access::Read => summary.read(AnySlot::of(value)),
                    Access::Write => summary.write(AnySlot::of(value)),
                }),
            }
        }
        summary
    }

    /// A loop runs its condition at least once, its body perhaps never.
    fn of_loop(condition: &[Positioned], test: Option<AnySlot>, body: &[Positioned]) -> Summary {
        let mut summary = Summary::of(condition.iter());
        summary.read(test);
        let killed = summary.killed.clone();
        summary.then(Summary::of(body.iter()));
        summary.killed = killed;
        summary
    }

    fn read(&mut self, slot: Option<AnySlot>) {
        let Some(slot) = slot else { return };
        self.touched.insert(slot);
        if !self.killed.contains(&slot) {
            self.exposed.insert(slot);
        }
    }

    fn write(&mut self, slot: Option<AnySlot>) {
        self.touched.extend(slot);
        self.killed.extend(slot);
    }

    /// Appends what comes after.
    fn then(&mut self, mut next: Summary) {
        self.exposed.extend(next.exposed.difference(&self.killed).copied());
        self.killed.append(&mut next.killed);
        self.touched.append(&mut next.touched);
    }

    /// What is live before, given what is live after.
    fn before(&self, after: &Live) -> Live {
        let mut live: Live = after.difference(&self.killed).copied().collect();
        live.extend(self.exposed.iter().copied());
        live
    }
}
