//! Memory planning: coalescing, donation, and the offsets of buffers in the arena.
//!
//! Buffers that are copied whole become one where they can (`coalesce`).
//!
//! A kernel may write its output over an operand ("donation") where the operand's root is dead
//! after the step, the output has the whole root's size, and no other operand of the step is a view
//! of the same root. Both buffers are one root from then on.

use super::{
    action::{Action, KernelAction, Scheduled},
    buffers::Buffers,
    coalesce::Coalescing,
    faults::{PlanFault, is_planted},
    liveness::{Interval, Intervals},
};
use ferroflow_ir::memory::ALIGNMENT;
use ferroflow_kernels::frame::{ArenaRange, LaunchStep, StepSink, StepSource};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

/// The offset of every buffer, and the bytes of all.
#[derive(Debug)]
pub(super) struct Arena {
    roots: Vec<usize>,
    /// By root.
    offsets: Vec<usize>,
    /// When each buffer itself is in use, without those that were donated.
    own: Vec<Option<Interval>>,
    pub(super) bytes: usize,
}

/// The liberties that memory planning may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Liberties {
    /// Kernels write over operands that are dead after them.
    pub(super) donate: bool,
    /// Buffers that are never in use at the same time share memory.
    pub(super) reuse: bool,
}

impl Arena {
    /// Plans the memory of buffers, for actions in which they are in use as `intervals` say.
    pub(super) fn plan(
        buffers: &Buffers,
        actions: &[Scheduled],
        mut intervals: Intervals,
        liberties: Liberties,
    ) -> Arena {
        let own = (0..intervals.len()).map(|buffer| intervals.get(buffer)).collect();
        let mut roots: Vec<usize> = (0..buffers.len()).collect();
        if liberties.donate {
            let (intervals, roots) = (&mut intervals, &mut roots[..]);
            Coalescing { buffers, intervals, roots }.run(actions);
        }
        if liberties.donate {
            Donation { buffers, intervals: &mut intervals, roots: &mut roots }.actions(actions);
        }
        let (offsets, bytes) = assigned(buffers, &roots, &intervals, liberties.reuse);
        Arena { roots, offsets, own, bytes }
    }

    /// The bytes of the arena that a range of a buffer has.
    pub(super) fn region(&self, (buffer, bytes): (usize, ArenaRange)) -> ArenaRange {
        let offset = self.offsets[self.roots[buffer]];
        offset + bytes.start..offset + bytes.end
    }

    /// When a buffer is in use; `None` if no action accesses it.
    pub(super) fn interval(&self, buffer: usize) -> Option<Interval> {
        self.own[buffer]
    }
}

/// The search for operands whose memory a step's output may take.
struct Donation<'a> {
    buffers: &'a Buffers,
    intervals: &'a mut Intervals,
    roots: &'a mut [usize],
}

impl Donation<'_> {
    fn actions(&mut self, actions: &[Scheduled]) {
        for Scheduled { position, action, .. } in actions {
            if let Action::Kernel(KernelAction { step, .. }) = action {
                self.step(step, *position);
            }
            action.nested().into_iter().for_each(|actions| self.actions(actions));
        }
    }

    fn step(&mut self, step: &LaunchStep, position: usize) {
        let Some(StepSink::Arena(region)) = step.sinks().first() else { return };
        let (output, _) = self.buffers.find(region);
        if self.roots[output] != output {
            return; // It is computed where it is copied to.
        }
        let root_of = |source: &StepSource| match source {
            StepSource::Arena(region) => {
                let (buffer, range) = self.buffers.find(region);
                Some((self.roots[buffer], range))
            }
            StepSource::Slot(_) | StepSource::SlotBytes(..) | StepSource::Compiled => None,
        };
        let is_free = |root: usize| {
            let last = self.intervals.get(root).map(|interval| interval.last);
            let is_dead = last == Some(position) || is_planted(PlanFault::DonateLive);
            is_dead && self.buffers.size(root) == region.len()
        };
        if let Some(root) = operand_to_replace(step, region.len(), &root_of, is_free) {
            self.roots[output] = root;
            self.intervals.merge(root, output);
        }
    }
}

/// The root behind the operand that a step may write its first output of so many bytes over: all of a root that
/// `is_free`, of which it reads nothing else.
pub(super) fn operand_to_replace(
    step: &LaunchStep,
    bytes: usize,
    root_of: &dyn Fn(&StepSource) -> Option<(usize, ArenaRange)>,
    is_free: impl Fn(usize) -> bool,
) -> Option<usize> {
    let sources = step.sources();
    (0..sources.len()).find_map(|index| {
        let (root, range) = root_of(&sources[index])?;
        let is_whole = range == (0..bytes) && bytes > 0;
        let mut others = sources.iter().enumerate().filter(|(other, _)| *other != index);
        let fits = is_whole
            && is_free(root)
            && others.all(|(_, source)| root_of(source).is_none_or(|(other, _)| other != root));
        (fits && step.kernel().in_place(index)).then_some(root)
    })
}

/// Assigns each root an offset so that roots in use at the same time do not overlap.
fn assigned(
    buffers: &Buffers,
    roots: &[usize],
    intervals: &Intervals,
    reuse: bool,
) -> (Vec<usize>, usize) {
    let is_root = |&id: &usize| roots[id] == id;
    let used = (0..buffers.len()).filter(is_root).filter_map(|id| Some((id, intervals.get(id)?)));
    let mut order: Vec<(usize, Interval)> = used.collect();
    order.sort_by_key(|(_, interval)| interval.first);
    let mut offsets = vec![0; buffers.len()];
    let mut space = ArenaSpace::default();
    // What is in use, by the last position, earliest first.
    let mut live: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for (id, interval) in order {
        while let Some(Reverse((last, other))) = live.peek().copied().filter(|_| reuse)
            && last < interval.first
        {
            live.pop();
            space.free(offsets[other], buffers.size(other).next_multiple_of(ALIGNMENT));
        }
        offsets[id] = space.take(buffers.size(id).next_multiple_of(ALIGNMENT));
        live.push(Reverse((interval.last, id)));
    }
    (offsets, space.total)
}

/// The bytes of an arena that are free.
#[derive(Debug, Default)]
struct ArenaSpace {
    /// Where free ranges below `top` end, by where they begin. They do not touch each other.
    gaps: BTreeMap<usize, usize>,
    /// From here on all is free.
    top: usize,
    /// The largest `top` there was.
    total: usize,
}

impl ArenaSpace {
    /// Takes the first range of so many bytes that is free.
    fn take(&mut self, size: usize) -> usize {
        if size == 0 {
            return 0;
        }
        let fits = |(&start, &end): (&usize, &usize)| (end - start >= size).then_some((start, end));
        let Some((start, end)) = self.gaps.iter().find_map(fits) else {
            self.top += size;
            self.total = self.total.max(self.top);
            return self.top - size;
        };
        self.gaps.remove(&start);
        if start + size < end {
            self.gaps.insert(start + size, end);
        }
        start
    }

    fn free(&mut self, offset: usize, size: usize) {
        if size == 0 {
            return;
        }
        let (mut start, mut end) = (offset, offset + size);
        if let Some((&before, _)) =
            self.gaps.range(..start).next_back().filter(|gap| *gap.1 == start)
        {
            self.gaps.remove(&before);
            start = before;
        }
        if let Some(after) = self.gaps.remove(&end) {
            end = after;
        }
        if end == self.top {
            self.top = start;
        } else {
            self.gaps.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_taken_where_it_is_free_first() {
        let mut space = ArenaSpace::default();
        let starts = [64, 128, 64, 0, 64].map(|size| space.take(size));
        assert_eq!(starts, [0, 64, 192, 0, 256]);
        space.free(64, 128);
        space.free(192, 64);
        assert_eq!((space.take(128), space.take(128), space.take(64)), (64, 320, 192));
        for (offset, size) in [(0, 64), (320, 128), (64, 128), (256, 64), (192, 64)] {
            space.free(offset, size);
        }
        assert_eq!((space.top, space.total, space.gaps.len()), (0, 448, 0));
    }
}
