//! Steps of optimizers on variables of a device: reads, formulas and assignments.

use super::{DeviceId, Reason, body::Placer};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    graph::{NodeDef, NodeId, Outlet},
    op::OpDef,
    ops::names,
    registry,
    spec::ValueType,
};
use std::sync::Arc;

impl Placer<'_> {
    /// Adds a step as reads, fused nodes and assignments; `false` if it has no formulas, if
    /// something about its variables is not known, or if they are not all on this device.
    pub(super) fn optimizer(
        &mut self,
        id: NodeId,
        node: &NodeDef,
        op: &'static OpDef,
        device: DeviceId,
    ) -> Result<bool> {
        let Some(types) = self.operand_values(node, device) else { return Ok(false) };
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let Some(assignments) = self.targets.optimizer(op, &node.attrs, &dtypes)? else {
            return Ok(false);
        };
        let mut step = OptimizerStep { placer: self, node, device, after: Vec::new() };
        let mut values: Vec<Outlet> = Vec::with_capacity(types.len());
        for (&input, ty) in node.inputs().iter().zip(&types) {
            values.push(match step.placer.variable(input) {
                Some(_) => step.read(input, ty)?,
                None => step.placer.copied(input, Some(device))?,
            });
        }
        for assignment in &assignments {
            let attrs = Attrs::new().with("T", assignment.expr.dtype()).with("Tin", &*dtypes);
            let fused = step.call(names::FUSED_ELEMENTWISE, attrs);
            let mut fused = fused
                .with_inputs(values.iter().copied())
                .with_outputs([types[assignment.position].clone()]);
            fused.expr = Some(Arc::new(assignment.expr.clone()));
            values[assignment.position] = step.add(fused)?.into();
        }
        let mut assigned = Vec::with_capacity(assignments.len());
        for assignment in &assignments {
            let position = assignment.position;
            assigned.push(step.assign(node.inputs()[position], values[position])?);
        }
        self.stand_for(id, assigned);
        Ok(true)
    }

    /// The types of a step's operands, where variables stand for their values; `None` unless all
    /// are known and on the device.
    fn operand_values(&self, node: &NodeDef, device: DeviceId) -> Option<Vec<ValueType>> {
        let ty = |&input: &Outlet| {
            let ty = match self.variable(input) {
                Some((home, ty)) => (*home == device).then(|| ty.clone())?,
                None => self.source.graph.ty(input)?.clone(),
            };
            let is_plain = ty.dtype.size().is_some() && ty.shape.is_known();
            (is_plain && self.targets.supports_dtype(device, ty.dtype)).then_some(ty)
        };
        node.inputs().iter().map(ty).collect()
    }
}

/// A step of an optimizer being added.
struct OptimizerStep<'p, 'a> {
    placer: &'p mut Placer<'a>,
    node: &'p NodeDef,
    device: DeviceId,
    /// The reads, after which assignments come.
    after: Vec<NodeId>,
}

impl OptimizerStep<'_, '_> {
    /// A node of the step.
    fn call(&mut self, op: &str, attrs: Attrs) -> NodeDef {
        let record = registry::find(op).expect("a built-in record");
        let name = self.placer.graph.unique_name(&self.node.name);
        let mut call = NodeDef::new(name, record, attrs);
        (call.function, call.location) = (self.node.function.clone(), self.node.location);
        call.device = self.placer.device_name(Some(self.device));
        call
    }

    fn add(&mut self, node: NodeDef) -> Result<NodeId> {
        let new = self.placer.graph.add(node)?;
        self.placer.locate(new.into(), Some(self.device));
        self.placer.reasons.insert(new, Reason::Asked);
        Ok(new)
    }

    fn read(&mut self, handle: Outlet, ty: &ValueType) -> Result<Outlet> {
        let (handle, controls) = (self.placer.value(handle), self.placer.waited_for(self.node));
        let read = self.call(names::READ_VARIABLE_OP, Attrs::new().with("dtype", ty.dtype));
        let read = read.with_inputs([handle]).with_controls(controls).with_outputs([ty.clone()]);
        let new = self.add(read)?;
        self.after.push(new);
        Ok(new.into())
    }

    fn assign(&mut self, handle: Outlet, value: Outlet) -> Result<NodeId> {
        let dtype = self.placer.graph.ty(value).map_or(DType::F32, |ty| ty.dtype);
        let attrs = Attrs::new().with("dtype", dtype).with("validate_shape", false);
        let mut controls = self.placer.waited_for(self.node);
        controls.extend(self.after.iter().copied());
        let inputs = [self.placer.value(handle), value];
        let assign = self.call(names::ASSIGN_VARIABLE_OP, attrs);
        self.add(assign.with_inputs(inputs).with_controls(controls))
    }
}
