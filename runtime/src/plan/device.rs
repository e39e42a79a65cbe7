//! Nodes that are on devices: constants, copies, kernels.

use super::{
    action::{Action, CopyAction, KernelAction, ValueLocation},
    body::{PlannedBody, origin},
    planner::Planner,
};
use crate::error::Result;
use ferroflow_ir::{
    Code, NodeDef, NodeId, Outlet,
    pass::{execution::constant, place::location},
};
use ferroflow_kernels::{
    OpCall, check_size,
    frame::{LaunchStep, StepSink, StepSource},
};
use smallvec::SmallVec;

impl Planner<'_> {
    /// The number of the device of this name; `None` for the host.
    pub(super) fn device(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name() == name)
    }

    /// The device whose memory a value is in; the host's if `None`.
    pub(super) fn location(&self, body: &PlannedBody<'_>, outlet: Outlet) -> Option<usize> {
        self.device(location(&body.function.graph, outlet))
    }

    /// The device of a place; the host if `None`.
    pub(super) fn device_of(&self, place: &ValueLocation) -> Option<usize> {
        self.slots[place.slot()?].device
    }

    /// Uploads a constant to a slot of its own.
    pub(super) fn device_constant(
        &mut self,
        body: &mut PlannedBody<'_>,
        id: NodeId,
        device: usize,
    ) -> Result<()> {
        let Some(value) = constant(&body.function.graph, id.into()).cloned() else { return Ok(()) };
        let buffer = self.devices[device].upload(&value.clone().into())?;
        let slot = self.constant(buffer, value, Some(device));
        body.places.insert(id.into(), ValueLocation::Slot(slot, None));
        Ok(())
    }

    /// Plans a copy between the host and a device, or from device to device.
    pub(super) fn copy_node(&mut self, body: &mut PlannedBody<'_>, id: NodeId, node: &NodeDef) {
        let from = body.operand(node.inputs()[0]);
        let device = self.location(body, id.into());
        let to = ValueLocation::Slot(self.slot(device), None);
        body.places.insert(id.into(), to.clone());
        let device = device.map(|device| self.devices[device].clone());
        self.push(body, Action::Copy(CopyAction { from, to, device }));
    }

    /// Plans a call of a device's kernel.
    pub(super) fn device_kernel(
        &mut self,
        body: &mut PlannedBody<'_>,
        id: NodeId,
        node: &NodeDef,
        call: OpCall<'_>,
        device: usize,
    ) -> Result<()> {
        let call = call.with_precision(self.context.precision());
        let limit = self.context.limits().tensor_bytes;
        for (index, ty) in call.outputs.iter().enumerate() {
            check_size(ty.dtype, &call.output_shape(index)?, limit)?;
        }
        let target = self.devices[device].clone();
        let Some(kernel) = target.kernel(&call)? else {
            return Err(misplaced(&format!("{} has no kernel for it", target.name())));
        };
        let mut sources: SmallVec<[StepSource; 4]> = SmallVec::new();
        for &input in node.inputs() {
            let place = &body.places[&input];
            sources.push(match place {
                ValueLocation::Slot(slot, None) if self.device_of(place).is_some() => {
                    StepSource::Slot(*slot)
                }
                _ if constant(&body.function.graph, input).is_some() => StepSource::Compiled,
                _ => return Err(misplaced("an operand is not on its device")),
            });
        }
        let mut sinks: SmallVec<[StepSink; 1]> = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let slot = self.slot(Some(device));
            sinks.push(StepSink::Slot(slot, ty.dtype, call.output_shape(index)?));
            body.places.insert(Outlet::new(id, index), ValueLocation::Slot(slot, None));
        }
        let step = LaunchStep::new(kernel, sources, sinks).on(target);
        let action = KernelAction { step, scalar: None, origin: origin(id, node) };
        self.push(body, Action::Kernel(action));
        Ok(())
    }
}

/// The error of a node that placement should not have put on its device.
#[cold]
fn misplaced(what: &str) -> crate::Error {
    let message = format!("the node is on the wrong device: {what}");
    crate::Error::Status { code: Code::Internal, message }
}
