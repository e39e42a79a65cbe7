//! Memory planning: donation, and the offsets of buffers in the arena.
//!
//! A kernel may write its output over an operand ("donation") where the operand's root is dead after
//! the step, the output has the whole root's size, and no other operand of the step is a view of the
//! same root. Both buffers are one root from then on.

use super::{
    action::{Action, KernelAction, Scheduled},
    buffers::Buffers,
    faults::{PlanFault, is_planted},
    liveness::{Interval, Intervals},
};
use ferroflow_ir::memory::ALIGNMENT;
use ferroflow_kernels::frame::{ArenaRange, LaunchStep, StepSink, StepSource};

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
        let mut operands = 0..step.sources().len();
        let donor = operands.find_map(|index| {
            let root = self.donor(step.sources(), index, region.len(), position)?;
            step.kernel().in_place(index).then_some(root)
        });
        if let Some(root) = donor {
            self.roots[output] = root;
            self.intervals.merge(root, output);
        }
    }

    /// The root behind operand `index`, if a step at this position may write over it.
    fn donor(
        &self,
        sources: &[StepSource],
        index: usize,
        bytes: usize,
        position: usize,
    ) -> Option<usize> {
        let root_of = |source: &StepSource| match source {
            StepSource::Arena(region) => {
                let (buffer, range) = self.buffers.find(region);
                Some((self.roots[buffer], range))
            }
            StepSource::Slot(_) | StepSource::SlotBytes(..) | StepSource::Compiled => None,
        };
        let (root, range) = root_of(&sources[index])?;
        let is_whole = range == (0..bytes) && self.buffers.size(root) == bytes && bytes > 0;
        let is_dead =
            self.intervals.get(root)?.last == position || is_planted(PlanFault::DonateLive);
        let mut others = sources.iter().enumerate().filter(|(other, _)| *other != index);
        let is_alone = others.all(|(_, source)| root_of(source).is_none_or(|(x, _)| x != root));
        (is_whole && is_dead && is_alone).then_some(root)
    }
}

/// Gives each root an offset so that roots in use at the same time lie apart.
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
    let mut total = 0;
    // What is in use, by offset.
    let mut live: Vec<(usize, usize)> = Vec::new();
    for (id, interval) in order {
        if reuse {
            live.retain(|&(_, last)| last >= interval.first);
        }
        let size = buffers.size(id).next_multiple_of(ALIGNMENT);
        let (mut offset, mut at) = (0, live.len());
        for (index, &(other, _)) in live.iter().enumerate() {
            if offsets[other] >= offset + size {
                at = index;
                break;
            }
            offset = offset.max(offsets[other] + buffers.size(other).next_multiple_of(ALIGNMENT));
        }
        offsets[id] = offset;
        live.insert(at, (id, interval.last));
        total = total.max(offset + size);
    }
    (offsets, total)
}
