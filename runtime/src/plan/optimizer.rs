//! Steps of optimizers on variables of a device: reads, calls of the device, and assignments.
//!
//! So they take part in what the device starts together, and are compiled with the function.

use super::{
    Covers,
    device::DeviceDraft,
    draft::{Body, Draft, DraftAction, DraftOperand, VariableId, origin},
    planner::Planner,
};
use crate::{
    error::Result,
    ops::training_on_device::{formulas, kernel},
};
use ferroflow_ir::{Attrs, DType, NodeDef, NodeId, OpDef, Outlet, Shape, registry};
use ferroflow_kernels::{Kernel, OperandSpec};
use smallvec::SmallVec;
use std::sync::Arc;

impl Planner<'_> {
    /// The variable behind a handle that the function captures.
    pub(super) fn variable(&self, body: &Body<'_>, handle: Outlet) -> Option<VariableId> {
        let (_, variable) = self.home(body, handle)?;
        Some(Arc::as_ptr(variable) as VariableId)
    }

    /// Plans a step of an optimizer; `false` if it has no formulas, or if something about its
    /// variables is not known.
    pub(super) fn optimizer(
        &mut self,
        body: &mut Body<'_>,
        id: NodeId,
        node: &NodeDef,
        op: &'static OpDef,
        device: usize,
    ) -> Result<bool> {
        let Some(specs) = self.values(body, node, device) else { return Ok(false) };
        let dtypes: Vec<DType> = specs.iter().map(|spec| spec.dtype).collect();
        let (Some(changes), Some(placing)) = (formulas(op, &node.attrs, &dtypes)?, &self.placing)
        else {
            return Ok(false);
        };
        let target = placing.devices[device].clone();
        let mut kernels: SmallVec<[(usize, Arc<dyn Kernel>); 4]> = SmallVec::new();
        for change in &changes {
            let Some(kernel) = kernel(&target, &specs, change)? else { return Ok(false) };
            kernels.push((change.position, kernel));
        }
        let mut slots: SmallVec<[usize; 12]> = SmallVec::new();
        for (&input, spec) in node.inputs().iter().zip(&specs) {
            slots.push(match self.variable(body, input) {
                None => self.send(body, input, device)?,
                Some(_) => self.read_variable(body, (id, node), input, spec.dtype, device),
            });
        }
        let origin = origin(Covers::Part(id), node);
        for (position, kernel) in kernels.iter() {
            let sources: SmallVec<[Option<usize>; 4]> = slots.iter().copied().map(Some).collect();
            let (slot, spec) = (self.device_slot(device), &specs[*position]);
            let sinks = [(slot, spec.dtype, spec.shape.clone())].into_iter().collect();
            let (kernel, origin) = (kernel.clone(), origin.clone());
            let draft = DeviceDraft { device, kernel, sources, sinks, origin };
            self.push(body, DraftAction::Device(draft));
            slots[*position] = slot;
        }
        for (position, _) in kernels {
            self.assign_variable(
                body,
                (id, node),
                position,
                slots[position],
                &specs[position],
                device,
            );
        }
        self.note(&origin, device);
        Ok(true)
    }

    /// What a step's inputs are, where variables stand for their values; `None` unless all are
    /// known, and all variables live on the device.
    fn values(&self, body: &Body<'_>, node: &NodeDef, device: usize) -> Option<Vec<OperandSpec>> {
        let placing = self.placing.as_ref()?;
        let mut specs = Vec::with_capacity(node.inputs().len());
        for &input in node.inputs() {
            let ty = body.function.graph.ty(input)?;
            let (dtype, shape) = match ty.dtype {
                DType::Resource => {
                    let (home, variable) = self.home(body, input)?;
                    if *home != device {
                        return None;
                    }
                    let (dtype, shape) = variable.spec();
                    (dtype, shape.known()?)
                }
                dtype => (dtype, ty.shape.known()?),
            };
            if !placing.devices[device].holds(dtype) {
                return None;
            }
            specs.push(OperandSpec::new(dtype, shape));
        }
        Some(specs)
    }

    /// The device slot of a variable's value.
    fn read_variable(
        &mut self,
        body: &mut Body<'_>,
        (id, node): (NodeId, &NodeDef),
        handle: Outlet,
        dtype: DType,
        device: usize,
    ) -> usize {
        let operand = body.operand(handle);
        let slot = self.device_slot(device);
        let action = DraftAction::DeviceOp {
            op: registry::find("ReadVariableOp").expect("a built-in record"),
            attrs: Arc::new(Attrs::new().with("dtype", dtype)),
            inputs: [operand].into_iter().collect(),
            outputs: [Draft::Device(slot)].into_iter().collect(),
            device,
            variable: self.variable(body, handle),
            origin: origin(Covers::Part(id), node),
        };
        self.push(body, action);
        slot
    }

    fn assign_variable(
        &mut self,
        body: &mut Body<'_>,
        (id, node): (NodeId, &NodeDef),
        position: usize,
        slot: usize,
        spec: &OperandSpec,
        device: usize,
    ) {
        let handle = node.inputs()[position];
        let place = Draft::Device(slot);
        let shape: &Shape = &spec.shape;
        let value = DraftOperand { place, ty: ferroflow_ir::ValueType::new(spec.dtype, shape) };
        let inputs: SmallVec<[DraftOperand; 4]> =
            [body.operand(handle), value].into_iter().collect();
        let action = DraftAction::DeviceOp {
            op: registry::find("AssignVariableOp").expect("a built-in record"),
            attrs: Arc::new(Attrs::new().with("dtype", spec.dtype).with("validate_shape", false)),
            inputs,
            outputs: SmallVec::new(),
            device,
            variable: self.variable(body, handle),
            origin: origin(Covers::Part(id), node),
        };
        self.push(body, action);
    }
}
