//! How calls run on devices, and what is copied for them.
//!
//! A value has a place in host memory, or in the memory of a device, or both: a copy is made when
//! the first call needs it on the other side, and serves all that follow. Constants are copied when
//! the function is planned.

use super::{
    Covers, Origin,
    draft::{Body, Draft, DraftAction, DraftOperand, Mode, origin},
    placing::DevicePlace,
    planner::Planner,
};
use crate::{error::Result, ops, placement::Reason};
use ferroflow_ir::{DType, Lowering, NodeDef, NodeId, OpDef, Outlet, Shape, ValueType};
use ferroflow_kernels::{Kernel, OpCall, host_only};
use smallvec::SmallVec;
use std::sync::Arc;

/// A call of a kernel on a device.
pub(super) struct DeviceDraft {
    pub(super) device: usize,
    pub(super) kernel: Arc<dyn Kernel>,
    /// The slots of its inputs; `None` for what the kernel was compiled with.
    pub(super) sources: SmallVec<[Option<usize>; 4]>,
    pub(super) sinks: SmallVec<[(usize, DType, Shape); 1]>,
    pub(super) origin: Arc<Origin>,
}

impl Planner<'_> {
    /// Plans a call on a device, if it runs on one; otherwise sees to it that its inputs are in
    /// host memory.
    pub(super) fn place(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
    ) -> Result<bool> {
        let Some(placing) = &self.placing else { return Ok(false) };
        let mode = body.modes[&id];
        let reason = match mode {
            Mode::Source => return Ok(false),
            Mode::Alias => {
                if self.alias_on_device(body, id, node) {
                    return Ok(true);
                }
                self.fetch(body, node)?;
                return Ok(false);
            }
            Mode::Call => {
                self.note_on_host(id, node, Reason::Control);
                return Ok(false);
            }
            Mode::Kernel => match self.wanted(body, node) {
                None => Reason::Default,
                Some(_) if placing.loops > 0 && steers(body, node) => Reason::Steering,
                Some(device) if self.follow(body, id, node, device)? => return Ok(true),
                Some(device) => match self.device_kernel(body, id, node, device)? {
                    true => return Ok(true),
                    false if !self.is_held(body, node, device) => Reason::Unheld,
                    false if node.op.def().is_some_and(|op| host_only(op).is_some()) => {
                        Reason::HostOnly
                    }
                    false => Reason::NoKernel,
                },
            },
            Mode::Op => match (node.op.def(), self.wanted(body, node)) {
                (Some(op), Some(device)) if ops::takes_any_device(op.name) => {
                    if self.optimizer(body, id, node, op, device)? {
                        return Ok(true);
                    }
                    return self.device_op(body, id, node, op, device).map(|()| true);
                }
                (Some(op), Some(_)) if matches!(op.lowering, Lowering::Runtime) => Reason::State,
                (_, Some(_)) => Reason::UnknownShape,
                (_, None) => Reason::Default,
            },
        };
        self.fetch(body, node)?;
        self.note_on_host(id, node, reason);
        Ok(false)
    }

    /// Whether a device can hold what a call takes and gives.
    fn is_held(&self, body: &Body<'_>, node: &NodeDef, device: usize) -> bool {
        let Some(placing) = &self.placing else { return true };
        let inputs = node.inputs().iter().filter_map(|&input| body.function.graph.ty(input));
        inputs.chain(node.outputs()).all(|ty| placing.devices[device].holds(ty.dtype))
    }

    fn note_on_host(&mut self, id: NodeId, node: &NodeDef, reason: Reason) {
        let cpu = self.host_name();
        if let Some(placing) = &mut self.placing {
            placing.notes.call(&origin(Covers::Node(id), node), &cpu, reason);
        }
    }

    /// The device that a call should run on, if not the CPU.
    fn wanted(&self, body: &Body<'_>, node: &NodeDef) -> Option<usize> {
        let placing = self.placing.as_ref()?;
        if !node.device.is_empty() {
            let asked = self.context.device_of(&node.device)?;
            return placing.devices.iter().position(|device| device.name() == asked.name());
        }
        let of_inputs =
            || node.inputs().iter().find_map(|input| Some(body.device_places.get(input)?.device));
        let home = node.inputs().iter().find_map(|&input| Some(self.home(body, input)?.0));
        home.or(placing.default).or_else(of_inputs)
    }

    /// A result that is its input under another shape lies where that lies.
    fn alias_on_device(&mut self, body: &mut Body<'_>, id: NodeId, node: &NodeDef) -> bool {
        let input = node.inputs()[0];
        let Some(&place) = body.device_places.get(&input) else { return false };
        let (Some(from), Some(placing)) = (body.function.graph.ty(input), &self.placing) else {
            return false;
        };
        let device = &placing.devices[place.device];
        if !device.lie_alike(from.dtype, node.outputs()[0].dtype) {
            return false;
        }
        body.device_places.insert(id.into(), place);
        if let Some(host) = body.places.get(&input).cloned() {
            body.places.insert(id.into(), host);
        }
        true
    }

    /// Plans a call of a device's kernel; `false` if it has none.
    fn device_kernel(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        device: usize,
    ) -> Result<bool> {
        let (Some(op), Some(placing)) = (node.op.def(), &self.placing) else { return Ok(false) };
        let specs = body.specs(node)?;
        let call = OpCall::new(op, &node.attrs, &specs, node.expr.as_deref())?
            .with_precision(self.context.precision());
        for ty in &call.outputs {
            if let Some(shape) = ty.shape.known() {
                ferroflow_kernels::check_size(
                    ty.dtype,
                    &shape,
                    self.context.limits().tensor_bytes,
                )?;
            }
        }
        let Some(kernel) = placing.devices[device].kernel(&call)? else { return Ok(false) };
        let host = op.host_inputs(&node.attrs)?;
        let mut sources: SmallVec<[Option<usize>; 4]> = SmallVec::new();
        for (index, &input) in node.inputs().iter().enumerate() {
            let fixed = host.get(index) == Some(&true);
            sources.push(if fixed { None } else { Some(self.send(body, input, device)?) });
        }
        let mut sinks = SmallVec::new();
        for (index, ty) in call.outputs.iter().enumerate() {
            let slot = self.device_slot(device);
            sinks.push((slot, ty.dtype, call.output_shape(index)?));
            body.device_places.insert(Outlet::new(id, index), DevicePlace { device, slot });
        }
        let origin = origin(Covers::Node(id), node);
        self.note(&origin, device);
        let draft = DeviceDraft { device, kernel, sources, sinks, origin };
        self.push(body, DraftAction::Device(draft));
        Ok(true)
    }

    /// Plans an op of the runtime that takes and gives tensors wherever they are.
    fn device_op(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        op: &'static OpDef,
        device: usize,
    ) -> Result<()> {
        let mut inputs: SmallVec<[DraftOperand; 4]> = SmallVec::new();
        for &input in node.inputs() {
            let operand = match body.device_places.get(&input) {
                Some(place) => body.device_operand(input, place.slot),
                None => body.operand(input),
            };
            inputs.push(operand);
        }
        let holds = |ty: &ValueType| {
            let placing = self.placing.as_ref()?;
            (ty.shape.known().is_some() && placing.devices[device].holds(ty.dtype)).then_some(())
        };
        let on_device: Vec<bool> = node.outputs().iter().map(|ty| holds(ty).is_some()).collect();
        let mut outputs: SmallVec<[Draft; 2]> = SmallVec::new();
        for (index, on_device) in on_device.into_iter().enumerate() {
            let outlet = Outlet::new(id, index);
            if on_device {
                let slot = self.device_slot(device);
                body.device_places.insert(outlet, DevicePlace { device, slot });
                outputs.push(Draft::Device(slot));
            } else {
                let place = Draft::Slot(self.host_slot(), None);
                body.places.insert(outlet, place.clone());
                outputs.push(place);
            }
        }
        let (attrs, origin) = (node.attrs.clone(), origin(Covers::Node(id), node));
        self.note(&origin, device);
        let variable = match node.inputs() {
            [handle, ..] if ops::touches_one_variable(op.name) => self.variable(body, *handle),
            _ => None,
        };
        let action = DraftAction::DeviceOp { op, attrs, inputs, outputs, device, variable, origin };
        self.push(body, action);
        Ok(())
    }

    pub(super) fn note(&mut self, origin: &Origin, device: usize) {
        if let Some(placing) = &mut self.placing {
            let name = placing.devices[device].name().to_string();
            placing.notes.call(origin, &name, Reason::Asked);
        }
    }
}

impl Body<'_> {
    pub(super) fn device_operand(&self, outlet: Outlet, slot: usize) -> DraftOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results").clone();
        DraftOperand { place: Draft::Device(slot), ty }
    }
}

/// Whether a call computes single whole numbers or truth values.
fn steers(body: &Body<'_>, node: &NodeDef) -> bool {
    let is_single = |ty: &ValueType| {
        let shape = ty.shape.known();
        !ty.dtype.is_float() && shape.is_some_and(|shape| shape.num_elements() == 1)
    };
    let inputs = node.inputs().iter();
    let on_host = inputs.clone().all(|input| body.places.contains_key(input));
    let types = inputs.map(|&input| body.function.graph.ty(input));
    on_host && types.flatten().chain(node.outputs()).all(is_single)
}
