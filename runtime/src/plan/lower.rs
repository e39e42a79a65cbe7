//! Emission: actions move to the planned memory, stop slots that are dead, and become groups.

use super::{
    action::{
        Action, ActionGroup, BranchAction, CopyAction, GroupProgram, KernelAction, KernelGraph,
        OpAction, Scheduled, TensorOperand, ValueLocation, WhileAction,
    },
    kernel_graph::{Calls, Gathered, Wanted, gathered},
    layout::{MemoryLayout, clear},
    scalar,
};
use smallvec::SmallVec;
use std::{collections::HashSet, mem};

impl MemoryLayout<'_> {
    /// Moves the operands of the action at a position. The last of them that reads a slot of the
    /// host which is dead afterwards takes the tensor out of it.
    fn operands(&self, operands: &mut [TensorOperand], position: usize) {
        operands.iter_mut().for_each(|operand| self.relocate(&mut operand.place));
        for dead in self.host_deaths(position).filter(|_| self.options.donate) {
            let mut readers = operands.iter_mut().rev();
            if let Some(last) = readers.find(|x| x.place.slot() == Some(dead)) {
                last.take = true;
            }
        }
    }

    /// The actions as they run.
    pub(super) fn emit(&self, actions: Vec<Scheduled>) -> Vec<Scheduled> {
        let mut emitted = Vec::with_capacity(actions.len());
        let mut run = Vec::new();
        for gathered in gathered(self, actions) {
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

    /// Adds calls of a device.
    fn kernel_graph(&self, calls: Calls, emitted: &mut Vec<Scheduled>) {
        let Some(device) = calls.device().cloned() else { return };
        let read_later: HashSet<usize> =
            calls.read_later().filter_map(|operand| operand.place.slot()).collect();
        let Calls { calls, kept: overtaken, later } = calls;
        let dead = calls.iter().flat_map(|(position, _)| self.device_deaths(*position));
        let (kept, cleared): (HashSet<usize>, HashSet<usize>) =
            dead.partition(|slot| read_later.contains(slot));
        let wanted = Wanted::of(&calls, &cleared);
        let kernel_graph = device.kernel_graph(wanted.plan);
        let origins = calls.iter().map(|(_, call)| call.origin.clone()).collect();
        let mut actions = Vec::with_capacity(calls.len());
        for (position, call) in calls {
            let (action, dead) = (Action::Kernel(call), SmallVec::new());
            self.before_clearing(Scheduled { position, action, dead }, &mut actions);
            let dead = self.device_deaths(position).filter(|slot| cleared.contains(slot));
            clear(dead, &mut actions);
        }
        match kernel_graph {
            None => emitted.append(&mut actions),
            Some(recorded) => {
                let (inputs, outputs) = (wanted.inputs, wanted.outputs);
                let graph = KernelGraph { device, recorded, inputs, outputs, origins };
                emitted.push(group(actions, GroupProgram::KernelGraph(graph)));
                clear(cleared.difference(&wanted.inner).copied(), emitted);
            }
        }
        let after: Vec<usize> = later.iter().map(|later| later.position).collect();
        later.into_iter().for_each(|later| self.before_clearing(later, emitted));
        clear(kept.into_iter().chain(overtaken), emitted);
        after.into_iter().for_each(|position| clear(self.device_deaths(position), emitted));
    }

    fn one(&self, scheduled: Scheduled, emitted: &mut Vec<Scheduled>) {
        let position = scheduled.position;
        if !self.is_nothing(&scheduled.action) {
            self.before_clearing(scheduled, emitted);
        }
        clear(self.device_deaths(position), emitted);
    }

    /// Whether an action copies a value to where it is.
    fn is_nothing(&self, action: &Action) -> bool {
        let Action::Copy(CopyAction { from, to, .. }) = action else { return false };
        match (&from.place, to) {
            (ValueLocation::Arena(from), ValueLocation::Arena(to)) => {
                self.region(from) == self.region(to)
            }
            _ => false,
        }
    }

    /// Adds an action, but does not empty the slots of devices that are dead after it.
    fn before_clearing(&self, scheduled: Scheduled, emitted: &mut Vec<Scheduled>) {
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
                    *actions = self.emit(mem::take(actions));
                }
            }
            Action::Branch(branch) => {
                let BranchAction { index, branches, results, .. } = &mut **branch;
                self.relocate(&mut index.place);
                results.iter_mut().for_each(|place| self.relocate(place));
                for actions in branches {
                    *actions = self.emit(mem::take(actions));
                }
            }
        }
        match action {
            Action::Kernel(KernelAction { cost, step, origin, .. }) => {
                let step = step.relocated(&|region| self.region(region));
                Action::Kernel(KernelAction { cost, step, scalar: None, origin })
            }
            other => other,
        }
    }
}

/// Actions that run as one.
fn group(actions: Vec<Scheduled>, program: GroupProgram) -> Scheduled {
    let position = actions.last().map_or(0, |last| last.position);
    let action = Action::Group(Box::new(ActionGroup { actions, program }));
    Scheduled { position, action, dead: Default::default() }
}
