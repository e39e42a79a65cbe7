//! Nodes that are on devices: kernels, ops of the runtime, copies.

use super::{
    Origin,
    draft::{Body, Draft, DraftAction, DraftOperand, VariableId, origin},
    planner::Planner,
};
use crate::{error::Result, ops};
use ferroflow_ir::{
    Code, DType, NodeDef, NodeId, Outlet, Shape,
    pass::{execution::constant, place::location},
};
use ferroflow_kernels::{Buffer, Kernel, OpCall, check_size};
use smallvec::SmallVec;
use std::sync::Arc;

/// A call of a kernel on a device.
pub(super) struct DeviceDraft {
    pub(super) device: usize,
    pub(super) kernel: Arc<dyn Kernel>,
    /// The slots of its inputs; `None` for constants that the kernel was compiled with.
    pub(super) sources: SmallVec<[Option<usize>; 4]>,
    pub(super) sinks: SmallVec<[(usize, DType, Shape); 1]>,
    pub(super) origin: Arc<Origin>,
}

impl Planner<'_> {
    /// The number of the device of this name; `None` for the host.
    pub(super) fn device(&self, name: &str) -> Option<usize> {
        self.devices.iter().position(|device| device.name() == name)
    }

    /// A slot of its own in the memory of a device.
    pub(super) fn device_slot(&mut self, device: usize) -> usize {
        self.slot_devices.push(device);
        self.slot_devices.len() - 1
    }

    /// A slot of its own for a result, on its device.
    pub(super) fn slot_at(&mut self, body: &Body<'_>, outlet: Outlet) -> Draft {
        match self.device(location(&body.function.graph, outlet)) {
            Some(device) => Draft::Device(self.device_slot(device)),
            None => Draft::Slot(self.host_slot(), None),
        }
    }

    /// Uploads a constant to a slot of its own.
    pub(super) fn device_constant(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        device: usize,
    ) -> Result<()> {
        let Some(value) = constant(&body.function.graph, id.into()).cloned() else { return Ok(()) };
        let slot = self.device_slot(device);
        if let Buffer::Device(buffer) = self.devices[device].upload(&value)? {
            self.device_constants.push((slot, buffer));
            self.constant_values.push((slot, value));
        }
        body.places.insert(id.into(), Draft::Device(slot));
        Ok(())
    }

    /// Plans a copy between the host and a device, or from device to device.
    pub(super) fn copy_node(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) {
        let from = body.operand(node.inputs()[0]);
        let to = self.slot_at(body, id.into());
        body.places.insert(id.into(), to.clone());
        let device = self.device_of_slot(&to).or_else(|| self.device_of_slot(&from.place));
        self.push(body, DraftAction::Copy { from, to, device });
    }

    /// Plans a call of a device's kernel.
    pub(super) fn device_kernel(
        &mut self,
        body: &mut Body<'_>,
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
        let mut sources: SmallVec<[Option<usize>; 4]> = SmallVec::new();
        for &input in node.inputs() {
            sources.push(match &body.places[&input] {
                Draft::Device(slot) => Some(*slot),
                _ if constant(&body.function.graph, input).is_some() => None,
                _ => return Err(misplaced("an operand is not on its device")),
            });
        }
        let mut sinks = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let slot = self.device_slot(device);
            sinks.push((slot, ty.dtype, call.output_shape(index)?));
            body.places.insert(Outlet::new(id, index), Draft::Device(slot));
        }
        let draft = DeviceDraft { device, kernel, sources, sinks, origin: origin(id, node) };
        self.push(body, DraftAction::Device(draft));
        Ok(())
    }

    /// Plans an op of the runtime that takes and gives tensors wherever they are.
    pub(super) fn device_op(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        device: usize,
    ) {
        let Some(op) = node.op.def() else { return };
        let inputs: SmallVec<[DraftOperand; 4]> =
            node.inputs().iter().map(|&input| body.operand(input)).collect();
        let mut outputs: SmallVec<[Draft; 2]> = SmallVec::new();
        for index in 0..node.outputs().len() {
            let outlet = Outlet::new(id, index);
            let place = self.slot_at(body, outlet);
            body.places.insert(outlet, place.clone());
            outputs.push(place);
        }
        let variable = match node.inputs() {
            [handle, ..] if ops::touches_one_variable(op.name) => self.variable(body, *handle),
            _ => None,
        };
        let (attrs, origin) = (node.attrs.clone(), origin(id, node));
        let action = DraftAction::DeviceOp { op, attrs, inputs, outputs, device, variable, origin };
        self.push(body, action);
    }

    /// The variable behind a handle that the function captures.
    fn variable(&self, body: &Body<'_>, handle: Outlet) -> Option<VariableId> {
        match body.places.get(&handle)? {
            Draft::Slot(slot, _) => self.variables.get(slot).copied(),
            Draft::Buffer(..) | Draft::Device(_) => None,
        }
    }

    /// The device of a place, if that is a slot of one.
    pub(super) fn device_of_slot(&self, place: &Draft) -> Option<usize> {
        match place {
            Draft::Device(slot) => self.slot_devices.get(*slot).copied(),
            Draft::Buffer(..) | Draft::Slot(..) => None,
        }
    }
}

/// The error of a node that placement should not have put on its device.
#[cold]
fn misplaced(what: &str) -> crate::Error {
    let message = format!("the node is on the wrong device: {what}");
    crate::Error::Status { code: Code::Internal, message }
}
