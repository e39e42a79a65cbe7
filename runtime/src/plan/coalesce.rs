//! Coalescing: values that are copied whole are computed where they are copied to.
//!
//! Both buffers of a copy become one root, and the copy goes away, in two cases:
//! - The source is in use up to the copy alone, and the target from the copy on: initial values of loop
//!   variables, results of branches.
//! - At the end of a loop's body, the source is in use in this body alone, and the value that the variable had is
//!   read for the last time before the source is written, or by the very step that writes it, where that step may
//!   write over its operand. So rounds that update a window of an array write to the window alone.
//!
//! **Invariants:** inner loops come first, so that a buffer that stands for others has the interval of all
//! of them. The root of several buffers is the target of a copy, which no kernel writes by itself.

use super::{
    action::{Action, ActionAccess, CopyAction, Scheduled, ValueLocation},
    buffers::Buffers,
    faults::{PlanFault, is_planted},
    liveness::{Interval, Intervals, first_position},
    memory::operand_to_replace,
};
use ferroflow_ir::hash::FastMap;
use ferroflow_kernels::frame::{StepSink, StepSource};

pub(super) struct Coalescing<'a> {
    pub(super) buffers: &'a Buffers,
    pub(super) intervals: &'a mut Intervals,
    /// The buffer that stands for each; its own number where none does.
    pub(super) roots: &'a mut [usize],
}

impl Coalescing<'_> {
    /// Coalesces the copies in these actions, of which there is nothing around.
    pub(super) fn run(mut self, actions: &[Scheduled]) {
        self.actions(actions);
        for buffer in 0..self.roots.len() {
            self.roots[buffer] = self.root(buffer);
        }
    }

    fn actions(&mut self, actions: &[Scheduled]) {
        for Scheduled { position, action, .. } in actions {
            action.nested().into_iter().for_each(|actions| self.actions(actions));
            match action {
                Action::While(repeat) => self.body(&repeat.body),
                Action::Copy(copy) => self.copy(copy, *position),
                _ => {}
            }
        }
    }

    /// Coalesces a copy that nothing comes before or after.
    fn copy(&mut self, copy: &CopyAction, position: usize) {
        let Some((from, to)) = self.whole(copy) else { return };
        let intervals = (self.intervals.get(from), self.intervals.get(to));
        if let (Some(source), Some(target)) = intervals
            && source.last == position
            && target.first == position
        {
            self.merge(from, to);
        }
    }

    /// Coalesces the copies that assign the variables of a loop.
    fn body(&mut self, body: &[Scheduled]) {
        let Some(end) = body.last().map(|last| last.position) else { return };
        let copies = body.iter().rev().map_while(copy_of);
        let n_copies = copies.clone().count();
        if !copies.clone().any(|(copy, _)| self.whole(copy).is_some()) {
            return;
        }
        let mut accesses = BodyAccesses::default();
        accesses.note(self, &body[..body.len() - n_copies], None);
        for (CopyAction { from, .. }, position) in copies.clone() {
            accesses.note_access(self, &from.place, position);
        }
        let start = first_position(body);
        for (copy, _) in copies {
            let Some((from, to)) = self.whole(copy) else { continue };
            let Some(source) = self.intervals.get(from) else { continue };
            let is_inside = source.first >= start && source.last <= end;
            if is_inside && self.is_free(from, to, source, &accesses) {
                self.merge(from, to);
            }
        }
    }

    /// Whether nothing reads the old value of a variable once `from`, in use as `source` says, is written.
    fn is_free(
        &self,
        from: usize,
        to: usize,
        source: Interval,
        accesses: &BodyAccesses<'_>,
    ) -> bool {
        let Some(&last) = accesses.last.get(&to) else { return true };
        if is_planted(PlanFault::CoalesceLive) {
            return true;
        }
        match accesses.actions.get(&last) {
            _ if last < source.first => true,
            Some(action) if last == source.first => self.replaces(action, from, to),
            _ => false,
        }
    }

    /// Whether an action that writes `from` and reads `to` may have both in one buffer.
    fn replaces(&self, action: &Action, from: usize, to: usize) -> bool {
        match action {
            Action::Copy(copy) => self.whole(copy) == Some((to, from)),
            Action::Kernel(kernel) => {
                let step = &kernel.step;
                let Some(StepSink::Arena(sink)) = step.sinks().first() else { return false };
                let root_of = |source: &StepSource| match source {
                    StepSource::Arena(region) => {
                        let (buffer, range) = self.buffers.find(region);
                        Some((self.root(buffer), range))
                    }
                    _ => None,
                };
                self.root(self.buffers.find(sink).0) == from
                    && operand_to_replace(step, self.buffers.size(to), &root_of, |root| root == to)
                        .is_some()
            }
            _ => false,
        }
    }

    /// The roots of both buffers of a copy, if it is one of all of a buffer to all of another.
    fn whole(&self, CopyAction { from, to, .. }: &CopyAction) -> Option<(usize, usize)> {
        let (ValueLocation::Arena(from), ValueLocation::Arena(to)) = (&from.place, to) else {
            return None;
        };
        let (source, range) = self.buffers.find(from);
        let (target, _) = self.buffers.find(to);
        let bytes = self.buffers.size(target);
        let is_whole = bytes > 0 && range == (0..bytes) && self.buffers.size(source) == bytes;
        let (source, target) = (self.root(source), self.root(target));
        (is_whole && source != target).then_some((source, target))
    }

    fn root(&self, mut buffer: usize) -> usize {
        while self.roots[buffer] != buffer {
            buffer = self.roots[buffer];
        }
        buffer
    }

    fn merge(&mut self, from: usize, to: usize) {
        self.roots[from] = to;
        self.intervals.merge(to, from);
    }
}

fn copy_of(scheduled: &Scheduled) -> Option<(&CopyAction, usize)> {
    match &scheduled.action {
        Action::Copy(copy) => Some((copy, scheduled.position)),
        _ => None,
    }
}

/// The accesses to buffers in one round of a loop.
#[derive(Default)]
struct BodyAccesses<'p> {
    /// The last access, by root. A loop inside accesses what it does until it ends.
    last: FastMap<usize, usize>,
    /// The actions of the round, by position, but for those of loops inside.
    actions: FastMap<usize, &'p Action>,
}

impl<'p> BodyAccesses<'p> {
    /// Notes all accesses of these actions, which are a part of an inner loop that ends at `end`.
    fn note(&mut self, roots: &Coalescing<'_>, actions: &'p [Scheduled], end: Option<usize>) {
        for Scheduled { position, action, .. } in actions {
            let at = end.unwrap_or(*position);
            if end.is_none() {
                self.actions.insert(at, action);
            }
            action
                .for_each_access(&mut |_: ActionAccess, place| self.note_access(roots, place, at));
            let end = end.or(matches!(action, Action::While(_)).then_some(at));
            let nested = action.nested();
            nested.into_iter().for_each(|actions| self.note(roots, actions, end));
        }
    }

    fn note_access(&mut self, roots: &Coalescing<'_>, place: &ValueLocation, at: usize) {
        let ValueLocation::Arena(region) = place else { return };
        let last = self.last.entry(roots.root(roots.buffers.find(region).0)).or_default();
        *last = at.max(*last);
    }
}
