//! The planned memory of a program: addresses of buffers, and slots that die.

use super::{
    action::{Scheduled, TensorOperand, ValueLocation},
    body::PlannedSlot,
    buffers::Buffers,
    liveness::{Deaths, Intervals},
    memory::{Arena, Liberties},
};
use crate::compile_options::CompileOptions;
use ferroflow_ir::HostTensor;
use ferroflow_kernels::frame::ArenaRange;
use std::collections::HashMap;

/// The planned memory, for emitting actions.
pub(super) struct MemoryLayout<'a> {
    pub(super) buffers: &'a Buffers,
    slots: &'a [PlannedSlot],
    pub(super) arena: Arena,
    deaths: Deaths,
    /// The constants that are always in slots.
    constants: &'a HashMap<usize, HostTensor>,
    pub(super) options: CompileOptions,
}

impl<'a> MemoryLayout<'a> {
    /// Plans the memory of actions and of what is read after them.
    pub(super) fn new(
        buffers: &'a Buffers,
        slots: &'a [PlannedSlot],
        constants: &'a HashMap<usize, HostTensor>,
        actions: &[Scheduled],
        results: &[TensorOperand],
        options: CompileOptions,
    ) -> MemoryLayout<'a> {
        let intervals = Intervals::of(buffers, actions, results);
        let liberties = Liberties { donate: options.donate, reuse: options.reuse };
        let arena = Arena::plan(buffers, actions, intervals, liberties);
        let is_constant = |slot: usize| slots[slot].is_constant;
        let deaths = Deaths::of(actions, results, &is_constant);
        MemoryLayout { buffers, slots, arena, deaths, constants, options }
    }

    /// The bytes of the arena that the addresses of a buffer become.
    pub(super) fn region(&self, region: &ArenaRange) -> ArenaRange {
        self.arena.region(self.buffers.find(region))
    }

    /// The constant that is always in a slot of the host.
    pub(super) fn constant(&self, slot: usize) -> Option<&HostTensor> {
        self.constants.get(&slot).filter(|_| !self.is_on_device(slot))
    }

    pub(super) fn relocate(&self, place: &mut ValueLocation) {
        if let ValueLocation::Arena(region) = place {
            *region = self.region(region);
        }
    }

    /// Whether an operand is in the memory of a device.
    pub(super) fn is_device_operand(&self, operand: &TensorOperand) -> bool {
        operand.place.slot().is_some_and(|slot| self.is_on_device(slot))
    }

    pub(super) fn is_on_device(&self, slot: usize) -> bool {
        self.slots[slot].device.is_some()
    }

    /// The slots of devices that are dead after the action at a position.
    pub(super) fn device_deaths(&self, position: usize) -> impl Iterator<Item = usize> {
        self.deaths.at(position).filter(|&slot| self.is_on_device(slot))
    }

    /// The slots of the host that are dead after the action at a position.
    pub(super) fn host_deaths(&self, position: usize) -> impl Iterator<Item = usize> {
        self.deaths.at(position).filter(|&slot| !self.is_on_device(slot))
    }
}

/// Has slots emptied after the last of some actions.
pub(super) fn clear(slots: impl IntoIterator<Item = usize>, emitted: &mut [Scheduled]) {
    if let Some(last) = emitted.last_mut() {
        last.dead.extend(slots);
    }
}
