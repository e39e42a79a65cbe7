//! Emission: unscheduled actions with planned memory become the actions that run.

use super::{
    Action, BranchAction, DeviceOpAction, DeviceStep, OpAction, Operand, Place, ScalarAction,
    WhileAction,
    device::DeviceDraft,
    draft::{Draft, DraftAction, DraftOperand, DraftSink, Positioned},
    liveness::{AnySlot, Deaths},
    memory::Arena,
    planner::Planner,
    scalar,
    sequence::Gathered,
};
use crate::{compile_options::CompileOptions, ops};
use ferroflow_ir::{HostTensor, Lowering, OpDef, op::Call};
use ferroflow_kernels::{
    Device,
    frame::{Region, Sink, Source, Step},
};
use smallvec::{Array, SmallVec};
use std::{collections::HashMap, mem, ops::Range, sync::Arc};

/// The planned memory, for emitting actions.
pub(super) struct Layout<'a, 'b> {
    pub(super) planner: &'a Planner<'b>,
    pub(super) arena: Arena,
    pub(super) deaths: Deaths,
    pub(super) constants: &'a HashMap<usize, HostTensor>,
    pub(super) options: CompileOptions,
}

impl Layout<'_, '_> {
    pub(super) fn region(&self, buffer: usize, bytes: &Range<usize>) -> Region {
        let offset = self.arena.offset(buffer);
        offset + bytes.start..offset + bytes.end
    }

    /// The bytes of a buffer.
    pub(super) fn buffer_bytes(&self, buffer: usize) -> usize {
        self.planner.buffer_bytes[buffer]
    }

    /// The constant that is always in a slot.
    pub(super) fn constant(&self, slot: usize) -> Option<&HostTensor> {
        self.constants.get(&slot)
    }

    fn place(&self, place: &Draft) -> Place {
        match place {
            Draft::Buffer(buffer, bytes) => Place::Arena(self.region(*buffer, bytes)),
            Draft::Slot(slot, bytes) => Place::Slot(*slot, bytes.clone()),
            Draft::Device(slot) => Place::Device(*slot),
        }
    }

    /// An operand that leaves its slot as it is.
    pub(super) fn kept_operand(&self, operand: DraftOperand) -> Operand {
        Operand {
            place: self.place(&operand.place),
            dtype: operand.ty.dtype,
            shape: operand.ty.shape.known(),
            take: false,
        }
    }

    /// The operands of the action at a position. The last of them that reads a slot which is dead
    /// afterwards takes the tensor out of it.
    fn operands<N: Array<Item = Operand>>(
        &self,
        operands: impl IntoIterator<Item = DraftOperand>,
        position: usize,
    ) -> SmallVec<N> {
        let operands = operands.into_iter().map(|operand| self.kept_operand(operand));
        let mut operands: SmallVec<N> = operands.collect();
        for dead in self.deaths.host(position).filter(|_| self.options.donate) {
            let mut readers = operands.iter_mut().rev();
            let last = readers.find(|x| matches!(x.place, Place::Slot(slot, _) if slot == dead));
            if let Some(last) = last {
                last.take = true;
            }
        }
        operands
    }

    fn operand(&self, operand: DraftOperand, position: usize) -> Operand {
        let mut operands: SmallVec<[Operand; 1]> = self.operands([operand], position);
        operands.remove(0)
    }

    /// The body that runs an op whatever its inputs turn out to be.
    fn body(&self, op: &'static OpDef) -> Option<ops::Body> {
        let always = matches!(op.lowering, Lowering::Runtime)
            && op.call == Call::None
            && op.on_variants.is_none()
            && !op.inputs.is_empty();
        if always { self.planner.context.body(op) } else { None }
    }

    pub(super) fn actions(&self, drafts: Vec<Positioned>) -> Vec<Action> {
        let mut actions = Vec::with_capacity(drafts.len());
        let mut run = Vec::new();
        for draft in self.gathered(drafts) {
            let draft = match draft {
                Gathered::Calls(calls) => {
                    self.scalars(mem::take(&mut run), &mut actions);
                    self.sequence(calls, &mut actions);
                    continue;
                }
                Gathered::Early(draft, dead) if !scalar::is_scalar(&draft.action) => {
                    self.scalars(mem::take(&mut run), &mut actions);
                    self.before_clearing(draft, &mut actions);
                    clear(dead, &mut actions);
                    continue;
                }
                Gathered::Early(draft, _) | Gathered::One(draft) => draft,
            };
            if scalar::is_scalar(&draft.action) {
                run.push(draft);
                continue;
            }
            self.scalars(mem::take(&mut run), &mut actions);
            self.plain(draft, &mut actions);
        }
        self.scalars(run, &mut actions);
        actions
    }

    /// Adds a run of actions on single numbers, as one where that is possible.
    fn scalars(&self, run: Vec<Positioned>, actions: &mut Vec<Action>) {
        let program = if self.options.scalar { scalar::program(self, &run) } else { None };
        let mut plain = Vec::with_capacity(run.len());
        run.into_iter().for_each(|draft| self.plain(draft, &mut plain));
        match program {
            Some(program) => {
                actions.push(Action::Scalar(Box::new(ScalarAction { plain, ..program })))
            }
            None => actions.extend(plain),
        }
    }

    pub(super) fn plain(&self, draft: Positioned, actions: &mut Vec<Action>) {
        let position = draft.position;
        self.before_clearing(draft, actions);
        self.clear_devices(position, actions);
    }

    /// Adds an action, but does not empty the device slots that nobody reads after it.
    pub(super) fn before_clearing(&self, draft: Positioned, actions: &mut Vec<Action>) {
        let Positioned { position, action } = draft;
        let action = self.action(action, position);
        let is_taken = |slot: &usize| action.takes(*slot);
        let dead = self.deaths.host(position).filter(|slot| !is_taken(slot));
        let dead: SmallVec<[AnySlot; 4]> = dead.map(AnySlot::Host).collect();
        actions.push(action);
        clear(dead, actions);
    }

    pub(super) fn clear_devices(&self, position: usize, actions: &mut Vec<Action>) {
        clear(self.deaths.device(position).map(AnySlot::Device).collect(), actions);
    }

    fn action(&self, action: DraftAction, position: usize) -> Action {
        match action {
            DraftAction::Kernel { kernel, sources, sinks, origin, .. } => {
                let sources = sources.iter().map(|source| match source {
                    Draft::Buffer(buffer, bytes) => Source::Arena(self.region(*buffer, bytes)),
                    Draft::Slot(slot, None) => Source::Slot(*slot),
                    Draft::Slot(slot, Some(bytes)) => Source::SlotBytes(*slot, bytes.clone()),
                    Draft::Device(_) => unreachable!("kernels of the host read host memory"),
                });
                let sinks = sinks.into_iter().map(|sink| match sink {
                    DraftSink::Buffer(buffer, bytes) => {
                        Sink::Arena(self.region(buffer, &(0..bytes)))
                    }
                    DraftSink::Slot(slot, ty, shape) => Sink::Slot(slot, ty.dtype, shape),
                    DraftSink::Unknown(slot) => Sink::Unknown(slot),
                });
                Action::Kernel(Step::new(kernel, sources, sinks), origin)
            }
            DraftAction::Op { op, attrs, inputs, outputs, types, origin } => {
                let inputs = self.operands(inputs, position);
                // Where devices take part, variables may live there: the op finds out.
                let on_host = self.planner.devices.is_empty();
                let optimizer = on_host.then(|| ops::training::optimizer(op.name)).flatten();
                let body = self.body(op);
                Action::Op(OpAction { op, body, optimizer, attrs, inputs, outputs, types, origin })
            }
            DraftAction::Copy { from, to, device } => {
                let device = device.map(|device| self.device(device));
                Action::Copy(self.operand(from, position), self.place(&to), device)
            }
            DraftAction::While { condition, test, body, variables, origin } => {
                Action::While(Box::new(WhileAction {
                    condition: self.actions(condition),
                    test: self.kept_operand(test),
                    body: self.actions(body),
                    variables: variables.iter().map(|x| Some(self.place(x.as_ref()?))).collect(),
                    origin,
                }))
            }
            DraftAction::Branch { call, chooser, branches, results, origin } => {
                Action::Branch(Box::new(BranchAction {
                    call,
                    chooser: self.kept_operand(chooser),
                    branches: branches.into_iter().map(|branch| self.actions(branch)).collect(),
                    results: results.iter().map(|result| self.place(result)).collect(),
                    origin,
                }))
            }
            DraftAction::Fail(error) => Action::Fail(error),
            DraftAction::Device(draft) => Action::Device(Box::new(self.device_step(draft))),
            DraftAction::DeviceOp { op, attrs, inputs, outputs, device, origin, .. } => {
                let inputs = self.operands(inputs, position);
                let outputs = outputs.iter().map(|output| self.place(output)).collect();
                let device = self.device(device);
                Action::DeviceOp(Box::new(DeviceOpAction {
                    op,
                    body: self.planner.context.body(op),
                    attrs,
                    inputs,
                    outputs,
                    device,
                    origin,
                }))
            }
        }
    }

    pub(super) fn device(&self, number: usize) -> Arc<dyn Device> {
        self.planner.devices[number].clone()
    }

    fn device_step(&self, draft: DeviceDraft) -> DeviceStep {
        let DeviceDraft { device, kernel, sources, sinks, origin } = draft;
        DeviceStep { device: self.device(device), kernel, sources, sinks, origin }
    }
}

/// Adds an action that empties slots, if there are any.
pub(super) fn clear(slots: SmallVec<[AnySlot; 4]>, actions: &mut Vec<Action>) {
    if !slots.is_empty() {
        actions.push(Action::Clear(slots));
    }
}
