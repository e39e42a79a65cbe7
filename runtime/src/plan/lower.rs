//! Drafts become actions once it is known where everything lies.

use super::{
    Action, BranchAction, DeviceOpAction, DeviceStep, OpAction, Operand, Place, ScalarAction,
    WhileAction,
    device::DeviceDraft,
    draft::{Draft, DraftAction, DraftOperand, DraftSink, Positioned, SlotKind},
    planner::Planner,
    scalar,
    sequence::Gathered,
};
use crate::ops;
use ferroflow_ir::{HostTensor, Lowering, OpDef, op::Call};
use ferroflow_kernels::{
    Device,
    frame::{Region, Sink, Source, Step},
};
use smallvec::SmallVec;
use std::{collections::HashMap, mem, ops::Range, sync::Arc};

/// What is known once all lifetimes are.
pub(super) struct Layout<'a, 'b> {
    pub(super) planner: &'a Planner<'b>,
    pub(super) offsets: Vec<usize>,
    pub(super) cleared: HashMap<usize, SmallVec<[usize; 4]>>,
    pub(super) devices_cleared: HashMap<usize, SmallVec<[usize; 4]>>,
    pub(super) constants: &'a HashMap<usize, HostTensor>,
}

impl Layout<'_, '_> {
    pub(super) fn region(&self, buffer: usize, bytes: &Range<usize>) -> Region {
        self.offsets[buffer] + bytes.start..self.offsets[buffer] + bytes.end
    }

    /// The bytes of a buffer.
    pub(super) fn buffer_bytes(&self, buffer: usize) -> usize {
        self.planner.buffer_bytes[buffer]
    }

    /// The constant that is always in a slot.
    pub(super) fn constant(&self, slot: usize) -> Option<&HostTensor> {
        self.constants.get(&slot)
    }

    /// Whether a buffer is one of a loop or branch in `scope`, and of nobody outside.
    pub(super) fn is_inside(&self, buffer: usize, scope: usize) -> bool {
        let own = self.planner.buffers.scope(buffer);
        own != scope && self.planner.timeline.is_inside(own, scope)
    }

    fn place(&self, place: &Draft) -> Place {
        match place {
            Draft::Buffer(buffer, bytes) => Place::Arena(self.region(*buffer, bytes)),
            Draft::Slot(slot, bytes) => Place::Slot(*slot, bytes.clone()),
            Draft::Device(slot) => Place::Device(*slot),
        }
    }

    pub(super) fn operand(&self, operand: DraftOperand, position: usize, scope: usize) -> Operand {
        let slots = &self.planner.slots;
        let take = match operand.place {
            Draft::Slot(slot, _) => match self.planner.slot_kinds[slot] {
                SlotKind::Plain => slots.scope(slot) == scope && slots.last(slot) == position,
                SlotKind::Constant => false,
                SlotKind::LoopVariable { scope: inside, body } => {
                    let last = slots.last_read_in(slot, inside, &self.planner.timeline);
                    scope == inside && position >= body && last == Some(position)
                }
            },
            Draft::Buffer(..) | Draft::Device(_) => false,
        };
        Operand {
            place: self.place(&operand.place),
            dtype: operand.ty.dtype,
            shape: operand.ty.shape.known(),
            take,
        }
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
                Gathered::Early(draft) if !scalar::is_scalar(&draft.action) => {
                    self.scalars(mem::take(&mut run), &mut actions);
                    self.before_clearing(draft, &mut actions);
                    continue;
                }
                Gathered::Early(draft) | Gathered::One(draft) => draft,
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
        let program = scalar::program(self, &run);
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
        let Positioned { position, scope, action } = draft;
        actions.push(self.action(action, position, scope));
        if let Some(slots) = self.cleared.get(&position) {
            actions.push(Action::Clear(slots.clone()));
        }
    }

    pub(super) fn clear_devices(&self, position: usize, actions: &mut Vec<Action>) {
        if let Some(slots) = self.devices_cleared.get(&position) {
            actions.push(Action::ClearDevice(slots.clone()));
        }
    }

    fn action(&self, action: DraftAction, position: usize, scope: usize) -> Action {
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
            DraftAction::Op { op, attrs, inputs, outputs, origin } => {
                let mut inputs: SmallVec<[Operand; 4]> =
                    inputs.into_iter().map(|input| self.operand(input, position, scope)).collect();
                keep_repeated(&mut inputs);
                // Where devices take part, variables may live there: the op finds out.
                let on_host = self.planner.placing.is_none();
                let optimizer = on_host.then(|| ops::training::optimizer(op.name)).flatten();
                let body = self.body(op);
                Action::Op(OpAction { op, body, optimizer, attrs, inputs, outputs, origin })
            }
            DraftAction::Copy(from, to) => {
                Action::Copy(self.operand(from, position, scope), self.place(&to))
            }
            DraftAction::While { condition, test, body, origin } => {
                Action::While(Box::new(WhileAction {
                    condition: self.actions(condition),
                    test: Operand { take: false, ..self.operand(test, position, scope) },
                    body: self.actions(body),
                    origin,
                }))
            }
            DraftAction::Branch { call, chooser, branches, origin } => {
                Action::Branch(Box::new(BranchAction {
                    call,
                    chooser: Operand { take: false, ..self.operand(chooser, position, scope) },
                    branches: branches.into_iter().map(|branch| self.actions(branch)).collect(),
                    origin,
                }))
            }
            DraftAction::Fail(error) => Action::Fail(error),
            DraftAction::Device(draft) => Action::Device(Box::new(self.device_step(draft))),
            DraftAction::DeviceOp { op, attrs, inputs, outputs, device, origin, .. } => {
                let inputs =
                    inputs.into_iter().map(|input| self.operand(input, position, scope)).collect();
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
            DraftAction::Transfer { from, to, device } => Action::Transfer(
                Box::new(self.operand(from, position, scope)),
                self.place(&to),
                self.device(device),
            ),
        }
    }

    pub(super) fn device(&self, number: usize) -> Arc<dyn Device> {
        let placing = self.planner.placing.as_ref().expect("only what is placed has devices");
        placing.devices[number].clone()
    }

    fn device_step(&self, draft: DeviceDraft) -> DeviceStep {
        let DeviceDraft { device, kernel, sources, sinks, origin } = draft;
        DeviceStep { device: self.device(device), kernel, sources, sinks, origin }
    }
}

/// A slot that is read twice by one action is given up by the last read only.
fn keep_repeated(inputs: &mut [Operand]) {
    for index in 0..inputs.len() {
        let Place::Slot(slot, _) = inputs[index].place else { continue };
        let again = inputs[index + 1..]
            .iter()
            .any(|later| matches!(later.place, Place::Slot(other, _) if other == slot));
        if again {
            inputs[index].take = false;
        }
    }
}
