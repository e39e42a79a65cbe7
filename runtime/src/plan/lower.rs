//! Emission: actions move to the planned memory, give up slots that are dead, and become groups.

use super::{
    action::{
        Action, ActionGroup, BranchAction, CopyAction, GroupProgram, KernelAction, OpAction,
        Operand, Place, Scheduled, WhileAction,
    },
    kernel_graph::Gathered,
    liveness::{Deaths, Intervals},
    memory::{Arena, Liberties},
    planner::Planner,
    scalar,
};
use crate::compile_options::CompileOptions;
use ferroflow_ir::HostTensor;
use ferroflow_kernels::frame::Region;
use std::{collections::HashMap, mem};

/// The planned memory, for emitting actions.
pub(super) struct Layout<'a, 'b> {
    pub(super) planner: &'a Planner<'b>,
    pub(super) arena: Arena,
    deaths: Deaths,
    /// The constants that are always in slots.
    constants: &'a HashMap<usize, HostTensor>,
    options: CompileOptions,
}

impl<'a, 'b> Layout<'a, 'b> {
    /// Plans the memory of actions and of what is read after them.
    pub(super) fn new(
        planner: &'a Planner<'b>,
        constants: &'a HashMap<usize, HostTensor>,
        actions: &[Scheduled],
        results: &[Operand],
    ) -> Layout<'a, 'b> {
        let options = planner.context.compile_options();
        let intervals = Intervals::of(&planner.buffers, actions, results);
        let liberties = Liberties { donate: options.donate, reuse: options.reuse };
        let arena = Arena::plan(&planner.buffers, actions, intervals, liberties);
        let is_constant = |slot: usize| planner.slots[slot].is_constant;
        let deaths = Deaths::of(actions, results, &is_constant);
        Layout { planner, arena, deaths, constants, options }
    }

    /// The bytes of the arena that the addresses of a buffer become.
    pub(super) fn region(&self, region: &Region) -> Region {
        self.arena.region(self.planner.buffers.find(region))
    }

    /// The constant that is always in a slot of the host.
    pub(super) fn constant(&self, slot: usize) -> Option<&HostTensor> {
        self.constants.get(&slot).filter(|_| !self.is_on_device(slot))
    }

    pub(super) fn relocate(&self, place: &mut Place) {
        if let Place::Arena(region) = place {
            *region = self.region(region);
        }
    }

    /// Whether an operand is in the memory of a device.
    pub(super) fn is_device_operand(&self, operand: &Operand) -> bool {
        operand.place.slot().is_some_and(|slot| self.is_on_device(slot))
    }

    pub(super) fn is_on_device(&self, slot: usize) -> bool {
        self.planner.slots[slot].device.is_some()
    }

    /// The slots of devices that are dead after the action at a position.
    pub(super) fn device_deaths(&self, position: usize) -> impl Iterator<Item = usize> {
        self.deaths.at(position).filter(|&slot| self.is_on_device(slot))
    }

    /// The slots of the host that are dead after the action at a position.
    fn host_deaths(&self, position: usize) -> impl Iterator<Item = usize> {
        self.deaths.at(position).filter(|&slot| !self.is_on_device(slot))
    }

    /// Moves the operands of the action at a position. The last of them that reads a slot of the host
    /// which is dead afterwards takes the tensor out of it.
    fn operands(&self, operands: &mut [Operand], position: usize) {
        operands.iter_mut().for_each(|operand| self.relocate(&mut operand.place));
        for dead in self.host_deaths(position).filter(|_| self.options.donate) {
            let mut readers = operands.iter_mut().rev();
            if let Some(last) = readers.find(|x| x.place.slot() == Some(dead)) {
                last.take = true;
            }
        }
    }

    pub(super) fn actions(&self, actions: Vec<Scheduled>) -> Vec<Scheduled> {
        let mut emitted = Vec::with_capacity(actions.len());
        let mut run = Vec::new();
        for gathered in self.gathered(actions) {
            let scheduled = match gathered {
                Gathered::Calls(calls) => {
                    self.scalars(mem::take(&mut run), &mut emitted);
                    self.kernel_graph(calls, &mut emitted);
                    continue;
                }
                Gathered::Early(early, dead) if !scalar::is_scalar(&early.action) => {
                    self.scalars(mem::take(&mut run), &mut emitted);
                    self.before_clearing(early, &mut emitted);
                    clear(dead, &mut emitted);
                    continue;
                }
                Gathered::Early(scheduled, _) | Gathered::One(scheduled) => scheduled,
            };
            if scalar::is_scalar(&scheduled.action) {
                run.push(scheduled);
                continue;
            }
            self.scalars(mem::take(&mut run), &mut emitted);
            self.one(scheduled, &mut emitted);
        }
        self.scalars(run, &mut emitted);
        emitted
    }

    /// Adds a run of actions on single numbers, as one where that is possible.
    fn scalars(&self, run: Vec<Scheduled>, emitted: &mut Vec<Scheduled>) {
        let program = if self.options.scalar { scalar::program(self, &run) } else { None };
        let mut actions = Vec::with_capacity(run.len());
        run.into_iter().for_each(|scheduled| self.one(scheduled, &mut actions));
        match program {
            Some(program) => emitted.push(group(actions, GroupProgram::Scalar(program))),
            None => emitted.append(&mut actions),
        }
    }

    fn one(&self, scheduled: Scheduled, emitted: &mut Vec<Scheduled>) {
        let position = scheduled.position;
        self.before_clearing(scheduled, emitted);
        clear(self.device_deaths(position), emitted);
    }

    /// Adds an action, but does not empty the slots of devices that are dead after it.
    pub(super) fn before_clearing(&self, scheduled: Scheduled, emitted: &mut Vec<Scheduled>) {
        let position = scheduled.position;
        let action = self.action(scheduled.action, position);
        let dead = self.host_deaths(position).filter(|&slot| !action.takes(slot)).collect();
        emitted.push(Scheduled { position, action, dead });
    }

    fn action(&self, mut action: Action, position: usize) -> Action {
        match &mut action {
            Action::Kernel(_) | Action::Group(_) | Action::Fail(_) => {}
            Action::Op(OpAction { inputs, .. }) => self.operands(inputs, position),
            Action::Copy(CopyAction { from, to, .. }) => {
                self.operands(std::slice::from_mut(from), position);
                self.relocate(to);
            }
            Action::While(repeat) => {
                let WhileAction { condition, test, body, variables, .. } = &mut **repeat;
                self.relocate(&mut test.place);
                variables.iter_mut().flatten().for_each(|place| self.relocate(place));
                for actions in [condition, body] {
                    *actions = self.actions(mem::take(actions));
                }
            }
            Action::Branch(branch) => {
                let BranchAction { index, branches, results, .. } = &mut **branch;
                self.relocate(&mut index.place);
                results.iter_mut().for_each(|place| self.relocate(place));
                for actions in branches {
                    *actions = self.actions(mem::take(actions));
                }
            }
        }
        match action {
            Action::Kernel(KernelAction { step, origin, .. }) => {
                let step = step.relocated(&|region| self.region(region));
                Action::Kernel(KernelAction { step, scalar: None, origin })
            }
            other => other,
        }
    }
}

/// Actions that run as one.
pub(super) fn group(actions: Vec<Scheduled>, program: GroupProgram) -> Scheduled {
    let position = actions.last().map_or(0, |last| last.position);
    let action = Action::Group(Box::new(ActionGroup { actions, program }));
    Scheduled { position, action, dead: Default::default() }
}

/// Has slots emptied after the last of some actions.
pub(super) fn clear(slots: impl IntoIterator<Item = usize>, emitted: &mut [Scheduled]) {
    if let Some(last) = emitted.last_mut() {
        last.dead.extend(slots);
    }
}
