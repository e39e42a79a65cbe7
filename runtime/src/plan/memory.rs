//! Memory planning: donation, and the offsets of buffers in the arena.
//!
//! A kernel may write its output over an operand ("donation") where the operand's root is dead after
//! the step, the output has the whole root's size, and no other operand of the step is a view of the
//! same root. Both buffers are one root from then on.

use super::{
    draft::{Draft, DraftAction, DraftSink, Positioned},
    faults::{Fault, is_planted},
    liveness::{Interval, Intervals},
};
use ferroflow_ir::memory::ALIGNMENT;

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
    /// Plans the memory of buffers of these sizes, for actions in which they are in use as
    /// `intervals` say.
    pub(super) fn plan(
        sizes: &[usize],
        actions: &[Positioned],
        mut intervals: Intervals,
        liberties: Liberties,
    ) -> Arena {
        let own = (0..intervals.len()).map(|buffer| intervals.get(buffer)).collect();
        let mut roots: Vec<usize> = (0..sizes.len()).collect();
        if liberties.donate {
            Donation { sizes, intervals: &mut intervals, roots: &mut roots }.actions(actions);
        }
        let (offsets, bytes) = place(sizes, &roots, &intervals, liberties.reuse);
        Arena { roots, offsets, own, bytes }
    }

    pub(super) fn offset(&self, buffer: usize) -> usize {
        self.offsets[self.roots[buffer]]
    }

    /// When a buffer is in use; `None` if no action accesses it.
    pub(super) fn interval(&self, buffer: usize) -> Option<Interval> {
        self.own[buffer]
    }
}

/// The search for operands whose memory a step's output may take.
struct Donation<'a> {
    sizes: &'a [usize],
    intervals: &'a mut Intervals,
    roots: &'a mut [usize],
}

impl Donation<'_> {
    fn actions(&mut self, actions: &[Positioned]) {
        for Positioned { position, action, .. } in actions {
            match action {
                DraftAction::Kernel { kernel, sources, sinks, .. } => {
                    let Some(DraftSink::Buffer(output, bytes)) = sinks.first() else { continue };
                    let mut operands = 0..sources.len();
                    let donor = operands.find_map(|index| {
                        let root = self.donor(sources, index, *bytes, *position)?;
                        kernel.in_place(index).then_some(root)
                    });
                    if let Some(root) = donor {
                        self.roots[*output] = root;
                        self.intervals.merge(root, *output);
                    }
                }
                DraftAction::While { condition, body, .. } => {
                    self.actions(condition);
                    self.actions(body);
                }
                DraftAction::Branch { branches, .. } => {
                    branches.iter().for_each(|branch| self.actions(branch));
                }
                _ => {}
            }
        }
    }

    /// The root behind operand `index`, if a step at this position may write over it.
    fn donor(
        &self,
        sources: &[Draft],
        index: usize,
        bytes: usize,
        position: usize,
    ) -> Option<usize> {
        let Draft::Buffer(buffer, range) = &sources[index] else { return None };
        let root = self.roots[*buffer];
        let is_whole = *range == (0..bytes) && self.sizes[root] == bytes && bytes > 0;
        let is_dead = self.intervals.get(root)?.last == position || is_planted(Fault::DonateLive);
        let is_alone = sources.iter().enumerate().all(|(other, source)| match source {
            Draft::Buffer(buffer, _) => other == index || self.roots[*buffer] != root,
            Draft::Slot(..) | Draft::Device(_) => true,
        });
        (is_whole && is_dead && is_alone).then_some(root)
    }
}

/// Gives each root an offset so that roots in use at the same time lie apart.
fn place(
    sizes: &[usize],
    roots: &[usize],
    intervals: &Intervals,
    reuse: bool,
) -> (Vec<usize>, usize) {
    let is_root = |&id: &usize| roots[id] == id;
    let used = (0..sizes.len()).filter(is_root).filter_map(|id| Some((id, intervals.get(id)?)));
    let mut order: Vec<(usize, Interval)> = used.collect();
    order.sort_by_key(|(_, interval)| interval.first);
    let mut offsets = vec![0; sizes.len()];
    let mut total = 0;
    // What is in use, by offset.
    let mut live: Vec<(usize, usize)> = Vec::new();
    for (id, interval) in order {
        if reuse {
            live.retain(|&(_, last)| last >= interval.first);
        }
        let size = sizes[id].next_multiple_of(ALIGNMENT);
        let (mut offset, mut at) = (0, live.len());
        for (index, &(other, _)) in live.iter().enumerate() {
            if offsets[other] >= offset + size {
                at = index;
                break;
            }
            offset = offset.max(offsets[other] + sizes[other].next_multiple_of(ALIGNMENT));
        }
        offsets[id] = offset;
        live.insert(at, (id, interval.last));
        total = total.max(offset + size);
    }
    (offsets, total)
}
