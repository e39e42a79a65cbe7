//! Calls of a device that come one after the other become one action, if the device can start them
//! together.
//!
//! A device's calls have no effects but their results. Actions between them in the order of the
//! graph that do not read these results (work of the host, reads of variables, copies to the
//! device) are done before them. Assignments of such results to variables are done after them;
//! actions that come later may overtake an assignment as long as they touch other variables and have no
//! other effects. The slots that late actions read are emptied after those.

use super::{
    action::{Action, CopyAction, KernelAction, OpAction, Scheduled, TensorOperand},
    layout::MemoryLayout,
};
use ferroflow_ir::{DType, Effect, Shape, registry};
use ferroflow_kernels::{
    Device,
    frame::{LaunchStep, StepSink, StepSource},
    kernel_graph::{KernelGraphPlan, KernelLaunch, PlanValue},
};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// An action, or calls of one device.
pub(super) enum Gathered {
    One(Scheduled),
    /// A launch that is done before calls which come before it, and the slots of devices that are
    /// dead after it and that these calls do not read.
    Early(Scheduled, Vec<usize>),
    Calls(Calls),
}

/// Calls of one device.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) calls: Vec<(usize, KernelAction)>,
    /// Slots of devices that are dead after actions which are done before them, but that they read.
    pub(super) kept: Vec<usize>,
    /// The actions that are done after them, though calls come after these.
    pub(super) later: Vec<Scheduled>,
}

/// The time of an action that comes after some calls, but before others.
#[derive(PartialEq)]
enum Turn {
    Before,
    After,
    /// It separates the calls.
    Between,
}

/// The slots that a call reads; `None` for values that its kernel was compiled with.
fn read_by(step: &LaunchStep) -> impl Iterator<Item = Option<usize>> {
    step.sources().iter().map(|source| match source {
        StepSource::Slot(slot) => Some(*slot),
        StepSource::Arena(_) | StepSource::SlotBytes(..) | StepSource::Compiled => None,
    })
}

/// The slots that a call fills.
fn written_by(step: &LaunchStep) -> impl Iterator<Item = (usize, DType, &Shape)> {
    step.sinks().iter().filter_map(|sink| match sink {
        StepSink::Slot(slot, dtype, shape) => Some((*slot, *dtype, shape)),
        StepSink::Arena(_) | StepSink::Unknown(_) | StepSink::Unread => None,
    })
}

impl Calls {
    pub(super) fn device(&self) -> Option<&Arc<dyn Device>> {
        self.calls.first().and_then(|(_, call)| call.step.device())
    }

    fn writes(&self, slot: usize) -> bool {
        self.calls.iter().any(|(_, call)| written_by(&call.step).any(|(sink, ..)| sink == slot))
    }

    /// The operands of the actions that are done after these calls, but for the handles of the
    /// variables that they touch.
    pub(super) fn read_later(&self) -> impl Iterator<Item = &TensorOperand> {
        let inputs = self.later.iter().map(|later| match &later.action {
            Action::Op(op) => &op.inputs[..],
            _ => &[],
        });
        inputs.flat_map(|inputs| inputs.iter().skip(1))
    }

    /// Whether a call, or an action after them, reads a slot.
    fn reads(&self, slot: usize) -> bool {
        self.calls.iter().any(|(_, call)| read_by(&call.step).any(|read| read == Some(slot)))
            || self.read_later().any(|operand| operand.place.slot() == Some(slot))
    }

    /// The time of an action that comes after these calls, but before others.
    fn turn(&self, layout: &MemoryLayout<'_>, action: &Action) -> Turn {
        let free =
            |operand: &TensorOperand| operand.place.slot().is_none_or(|slot| !self.writes(slot));
        // Actions of the host take, and write over, values that are dead at their own position.
        let is_settled = self.read_later().all(|operand| layout.is_device_operand(operand));
        let before = |is_free| if is_free && is_settled { Turn::Before } else { Turn::Between };
        match action {
            Action::Kernel(call) => before(self.later.is_empty() || !has_effects(call)),
            Action::Op(OpAction { inputs, outputs, variable: Some(own), .. }) => {
                let touches = |later: &Scheduled| match &later.action {
                    Action::Op(op) => op.variable == Some(*own),
                    _ => true,
                };
                let (is_free, is_assignment) = (inputs.iter().all(free), outputs.is_empty());
                match self.later.iter().any(touches) {
                    false if is_free && is_settled => Turn::Before,
                    _ if is_assignment => Turn::After,
                    _ => Turn::Between,
                }
            }
            Action::Op(op) => before(self.later.is_empty() && op.inputs.iter().all(free)),
            // A variable of a loop is assigned over a value that calls may read.
            Action::Copy(CopyAction { from, to, .. }) => {
                before(free(from) && to.slot().is_none_or(|slot| !self.reads(slot)))
            }
            Action::While(_) | Action::Branch(_) | Action::Group(_) | Action::Fail(_) => {
                Turn::Between
            }
        }
    }
}

/// Whether a call does more than return results, as `Assert` does.
fn has_effects(call: &KernelAction) -> bool {
    registry::find(&call.origin.op).is_none_or(|op| op.effect != Effect::Pure)
}

/// Actions in an order in which calls of a device come one after the other where they can.
pub(super) fn gathered(layout: &MemoryLayout<'_>, actions: Vec<Scheduled>) -> Vec<Gathered> {
    let mut gathered = Vec::with_capacity(actions.len());
    let mut open: Option<Calls> = None;
    for Scheduled { position, action, dead } in actions {
        let action = match action {
            Action::Kernel(call) if call.step.device().is_some() => {
                let name = |device: Option<&Arc<dyn Device>>| device.map(|x| x.name().to_string());
                let own = name(call.step.device());
                let is_other = |calls: &mut Calls| name(calls.device()) != own;
                gathered.extend(open.take_if(is_other).map(Gathered::Calls));
                open.get_or_insert_default().calls.push((position, call));
                continue;
            }
            other => other,
        };
        let turn = open.as_ref().map_or(Turn::Between, |calls| calls.turn(layout, &action));
        let scheduled = Scheduled { position, action, dead };
        match (turn, &mut open) {
            (Turn::Before, Some(calls)) => {
                let dead = layout.device_deaths(position);
                let (kept, dead): (Vec<usize>, Vec<usize>) =
                    dead.partition(|&slot| calls.reads(slot));
                calls.kept.extend(kept);
                gathered.push(Gathered::Early(scheduled, dead));
            }
            (Turn::After, Some(calls)) => calls.later.push(scheduled),
            _ => {
                gathered.extend(open.take().map(Gathered::Calls));
                gathered.push(Gathered::One(scheduled));
            }
        }
    }
    gathered.extend(open.map(Gathered::Calls));
    gathered
}

/// The request to a device to make calls ready.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) plan: KernelGraphPlan,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<(usize, DType, Shape)>,
    /// The slots of results that only these calls read.
    pub(super) inner: HashSet<usize>,
}

impl Wanted {
    /// `cleared` are the slots that are dead after these calls.
    pub(super) fn of(calls: &[(usize, KernelAction)], cleared: &HashSet<usize>) -> Wanted {
        let mut values: HashMap<usize, usize> = HashMap::new();
        let mut wanted = Wanted::default();
        for (_, call) in calls {
            let mut sources = SmallVec::new();
            for source in read_by(&call.step) {
                sources.push(source.map(|slot| {
                    *values.entry(slot).or_insert_with(|| {
                        wanted.plan.values.push(PlanValue::Input(wanted.inputs.len()));
                        wanted.inputs.push(slot);
                        wanted.plan.values.len() - 1
                    })
                }));
            }
            let mut sinks = SmallVec::new();
            for (slot, dtype, shape) in written_by(&call.step) {
                let value = if cleared.contains(&slot) {
                    wanted.inner.insert(slot);
                    PlanValue::Inner(dtype, shape.clone())
                } else {
                    wanted.outputs.push((slot, dtype, shape.clone()));
                    PlanValue::Output(wanted.outputs.len() - 1)
                };
                let number = wanted.plan.values.len();
                wanted.plan.values.push(value);
                values.insert(slot, number);
                sinks.push(number);
            }
            wanted.plan.calls.push(KernelLaunch {
                kernel: call.step.kernel().clone(),
                sources,
                sinks,
            });
        }
        wanted
    }
}
