//! Nodes that are on devices: constants, copies, kernels.

use super::{
    action::{Action, CopyAction, KernelAction, ValueLocation},
    body::{PlannedBody, origin},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{Code, NodeDef, NodeId, Outlet, pass::execution};
use ferroflow_kernels::{
    OpCall, check_size,
    cost::OpCost,
    frame::{LaunchStep, StepSink, StepSource},
};
use smallvec::SmallVec;

/// Uploads a constant to a slot of its own.
pub(super) fn constant(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    device: usize,
) -> Result<()> {
    let Some(value) = execution::constant(&body.function.graph, id.into()).cloned() else {
        return Ok(());
    };
    let buffer = planner.devices[device].upload(&value.clone().into())?;
    let slot = planner.constant(buffer, value, Some(device));
    body.places.insert(id.into(), ValueLocation::Slot(slot, None));
    Ok(())
}

/// Plans a copy between the host and a device, or from device to device.
pub(super) fn copy(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
) {
    let from = body.operand(node.inputs()[0]);
    let device = planner.location(body, id.into());
    let to = ValueLocation::Slot(planner.slot(device), None);
    body.places.insert(id.into(), to.clone());
    let device = device.map(|device| planner.devices[device].clone());
    planner.push(body, Action::Copy(CopyAction { from, to, device }));
}

/// Plans a call of a device's kernel.
pub(super) fn kernel(
    planner: &mut Planner<'_>,
    body: &mut PlannedBody<'_>,
    id: NodeId,
    node: &NodeDef,
    call: OpCall<'_>,
    device: usize,
) -> Result<()> {
    let limit = planner.context.limits().tensor_bytes;
    for (index, ty) in call.outputs.iter().enumerate() {
        check_size(ty.dtype, &call.output_shape(index)?, limit)?;
    }
    let target = planner.devices[device].clone();
    let Some(kernel) = target.kernel(&call)? else {
        return Err(misplaced(&format!("{} has no kernel for it", target.name())));
    };
    let mut sources: SmallVec<[StepSource; 4]> = SmallVec::new();
    for &input in node.inputs() {
        let location = &body.places[&input];
        sources.push(match location {
            ValueLocation::Slot(slot, None) if planner.device_of(location).is_some() => {
                StepSource::Slot(*slot)
            }
            _ if execution::constant(&body.function.graph, input).is_some() => StepSource::Compiled,
            _ => return Err(misplaced("an operand is not on its device")),
        });
    }
    let mut sinks: SmallVec<[StepSink; 1]> = SmallVec::new();
    for (index, ty) in call.outputs.iter().enumerate() {
        let slot = planner.slot(Some(device));
        sinks.push(StepSink::Slot(slot, ty.dtype, call.output_shape(index)?));
        body.places.insert(Outlet::new(id, index), ValueLocation::Slot(slot, None));
    }
    let step = LaunchStep::new(kernel, sources, sinks).on(target);
    let cost = OpCost::of(&call);
    let action = KernelAction { cost, step, scalar: None, origin: origin(id, node) };
    planner.push(body, Action::Kernel(action));
    Ok(())
}

/// The error of a node that placement should not have put on its device.
#[cold]
fn misplaced(what: &str) -> crate::Error {
    let message = format!("the node is on the wrong device: {what}");
    crate::Error::Status { code: Code::Internal, message }
}
