//! Calls of a device that follow each other become one action, if the device can start them together.
//!
//! A device's calls have no effects but their results. What lies between them in the order of the
//! graph but does not read what they give (work of the host, reads of variables, copies to the
//! device) is done before them. A variable that is given such a result is given it after them;
//! what follows may overtake that as long as it has to do with other variables. What such late work
//! reads is given up after it.

use super::{
    Action, SequenceAction,
    device::DeviceDraft,
    draft::{Draft, DraftAction, DraftOperand, Positioned},
    liveness::AnySlot,
    lower::{Layout, clear},
};
use ferroflow_ir::{DType, Shape};
use ferroflow_kernels::sequence::{Call, Plan, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// An action, or calls of one device that follow each other.
pub(super) enum Gathered {
    One(Positioned),
    /// One that is done before calls which come before it, and the device slots that these do not read
    /// and nobody reads after it.
    Early(Positioned, SmallVec<[AnySlot; 4]>),
    Calls(Calls),
}

/// Calls of one device.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<(usize, DeviceDraft)>,
    /// Device slots that are dead after actions which are done before them, but that they read.
    kept: SmallVec<[AnySlot; 4]>,
    /// What is done after them, though calls come after it.
    later: Vec<Positioned>,
}

/// What becomes of an action between calls.
#[derive(PartialEq)]
enum Way {
    Before,
    After,
    /// It ends them.
    Between,
}

impl Calls {
    fn gives(&self, slot: usize) -> bool {
        self.calls.iter().any(|(_, call)| call.sinks.iter().any(|(sink, ..)| *sink == slot))
    }

    /// What the actions that are done after these calls read, but for the variables they are about.
    fn read_later(&self) -> impl Iterator<Item = &Draft> {
        let inputs = self.later.iter().map(|later| match &later.action {
            DraftAction::DeviceOp { inputs, .. } => &inputs[..],
            _ => &[],
        });
        inputs.flat_map(|inputs| inputs.iter().skip(1)).map(|input| &input.place)
    }

    /// Whether what is still to be done reads a slot.
    fn reads(&self, slot: usize) -> bool {
        self.calls.iter().any(|(_, call)| call.sources.contains(&Some(slot)))
            || self.read_later().any(|place| *place == Draft::Device(slot))
    }

    /// When an action is done that comes after these calls, but before others.
    fn way(&self, action: &DraftAction) -> Way {
        let free = |operand: &DraftOperand| match operand.place {
            Draft::Device(slot) => !self.gives(slot),
            Draft::Buffer(..) | Draft::Slot(..) => true,
        };
        // Actions of the host give up, and write over, what nobody reads after their own place.
        let is_settled = self.read_later().all(|place| matches!(place, Draft::Device(_)));
        let before = |is_free| if is_free && is_settled { Way::Before } else { Way::Between };
        match action {
            DraftAction::Kernel { .. } => before(true),
            DraftAction::DeviceOp { inputs, outputs, variable: Some(own), .. } => {
                let touches = |later: &Positioned| match &later.action {
                    DraftAction::DeviceOp { variable, .. } => *variable == Some(*own),
                    _ => true,
                };
                let (is_free, is_assignment) = (inputs.iter().all(free), outputs.is_empty());
                match self.later.iter().any(touches) {
                    false if is_free && is_settled => Way::Before,
                    _ if is_assignment => Way::After,
                    _ => Way::Between,
                }
            }
            DraftAction::Op { inputs, .. } | DraftAction::DeviceOp { inputs, .. } => {
                before(self.later.is_empty() && inputs.iter().all(free))
            }
            // What is carried to the next round of a loop takes the place of what calls may read.
            DraftAction::Copy { from, to, .. } => before(match to {
                Draft::Device(slot) => free(from) && !self.reads(*slot),
                Draft::Buffer(..) | Draft::Slot(..) => free(from),
            }),
            DraftAction::Device(_)
            | DraftAction::While { .. }
            | DraftAction::Branch { .. }
            | DraftAction::Fail(_) => Way::Between,
        }
    }
}

impl Layout<'_, '_> {
    /// Actions in an order in which calls of a device follow each other where they can.
    pub(super) fn gathered(&self, drafts: Vec<Positioned>) -> Vec<Gathered> {
        let mut gathered = Vec::with_capacity(drafts.len());
        let mut open: Option<Calls> = None;
        for Positioned { position, action } in drafts {
            let action = match action {
                DraftAction::Device(call) => {
                    let is_other = |calls: &mut Calls| calls.calls[0].1.device != call.device;
                    gathered.extend(open.take_if(is_other).map(Gathered::Calls));
                    open.get_or_insert_default().calls.push((position, call));
                    continue;
                }
                other => other,
            };
            let way = open.as_ref().map_or(Way::Between, |calls| calls.way(&action));
            let draft = Positioned { position, action };
            match (way, &mut open) {
                (Way::Before, Some(calls)) => {
                    let dead = self.deaths.device(position);
                    let (kept, dead): (Vec<usize>, Vec<usize>) =
                        dead.partition(|&slot| calls.reads(slot));
                    calls.kept.extend(kept.into_iter().map(AnySlot::Device));
                    let dead = dead.into_iter().map(AnySlot::Device).collect();
                    gathered.push(Gathered::Early(draft, dead));
                }
                (Way::After, Some(calls)) => calls.later.push(draft),
                _ => {
                    gathered.extend(open.take().map(Gathered::Calls));
                    gathered.push(Gathered::One(draft));
                }
            }
        }
        gathered.extend(open.map(Gathered::Calls));
        gathered
    }

    /// Adds calls of a device.
    pub(super) fn sequence(&self, calls: Calls, actions: &mut Vec<Action>) {
        let read_later: HashSet<usize> = calls
            .read_later()
            .filter_map(|place| match place {
                Draft::Device(slot) => Some(*slot),
                Draft::Buffer(..) | Draft::Slot(..) => None,
            })
            .collect();
        let Calls { calls, kept: overtaken, later } = calls;
        let positions: Vec<usize> = calls.iter().map(|(position, _)| *position).collect();
        let dead = positions.iter().flat_map(|&at| self.deaths.device(at));
        let (kept, cleared): (HashSet<usize>, HashSet<usize>) =
            dead.partition(|slot| read_later.contains(slot));
        let device = self.device(calls[0].1.device);
        let wanted = Wanted::of(&calls, &cleared);
        let sequence = device.sequence(wanted.plan);
        let origins = calls.iter().map(|(_, call)| call.origin.clone()).collect();
        let mut plain = Vec::with_capacity(calls.len());
        for (position, call) in calls {
            let action = DraftAction::Device(call);
            self.before_clearing(Positioned { position, action }, &mut plain);
            let dead = self.deaths.device(position);
            let dead = dead.filter(|slot| cleared.contains(slot));
            clear(dead.map(AnySlot::Device).collect(), &mut plain);
        }
        match sequence {
            None => actions.extend(plain),
            Some(sequence) => {
                let (inputs, outputs) = (wanted.inputs, wanted.outputs);
                let action = SequenceAction { device, sequence, inputs, outputs, origins, plain };
                actions.push(Action::Sequence(Box::new(action)));
                let dead = cleared.difference(&wanted.given).copied();
                clear(dead.map(AnySlot::Device).collect(), actions);
            }
        }
        let after: Vec<usize> = later.iter().map(|draft| draft.position).collect();
        later.into_iter().for_each(|draft| self.before_clearing(draft, actions));
        clear(kept.into_iter().map(AnySlot::Device).collect(), actions);
        clear(overtaken, actions);
        after.into_iter().for_each(|position| self.clear_devices(position, actions));
    }
}

/// What a device is asked to make ready.
#[derive(Default)]
struct Wanted {
    plan: Plan,
    inputs: Vec<usize>,
    outputs: Vec<(usize, DType, Shape)>,
    /// The slots of results that nobody else reads.
    given: HashSet<usize>,
}

impl Wanted {
    /// `cleared` are the slots that nobody reads after these calls.
    fn of(calls: &[(usize, DeviceDraft)], cleared: &HashSet<usize>) -> Wanted {
        let mut values: HashMap<usize, usize> = HashMap::new();
        let mut wanted = Wanted::default();
        for (_, call) in calls {
            let mut sources = SmallVec::new();
            for source in &call.sources {
                sources.push(source.map(|slot| {
                    *values.entry(slot).or_insert_with(|| {
                        wanted.plan.values.push(Value::Input(wanted.inputs.len()));
                        wanted.inputs.push(slot);
                        wanted.plan.values.len() - 1
                    })
                }));
            }
            let mut sinks = SmallVec::new();
            for (slot, dtype, shape) in &call.sinks {
                let value = if cleared.contains(slot) {
                    wanted.given.insert(*slot);
                    Value::Inner(*dtype, shape.clone())
                } else {
                    wanted.outputs.push((*slot, *dtype, shape.clone()));
                    Value::Output(wanted.outputs.len() - 1)
                };
                let number = wanted.plan.values.len();
                wanted.plan.values.push(value);
                values.insert(*slot, number);
                sinks.push(number);
            }
            wanted.plan.calls.push(Call { kernel: call.kernel.clone(), sources, sinks });
        }
        wanted
    }
}
