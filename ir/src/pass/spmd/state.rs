//! Nodes with effects: variables, of which each device has its piece, and what devices share, on which the
//! first device alone works.

use super::{
    local::is_op,
    lookup::{lookup_in_variable, scatter},
    sharding::Sharding,
    walk::Walk,
};
use crate::{
    dtype::DType,
    error::{Error, Result},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    op::{Effect, OpDef},
    ops::names,
    pass::specialize::Specialized,
    shape::PartialShape,
    spec::ValueType,
};

/// Whether a value of this type refers to a variable.
pub(super) fn is_variable(ty: &ValueType) -> bool {
    ty.dtype == DType::Resource && ty.pointee.is_some()
}

/// Whether an op is a step of an optimizer that changes each element of its variables by itself: it takes
/// a dense gradient.
fn is_dense_step(op: &OpDef) -> bool {
    let has = |name: &str| op.inputs.iter().any(|arg| arg.name == name);
    let takes_gradient = has("grad") || has("delta");
    op.effect == Effect::Writes && has("var") && takes_gradient && !has("indices")
}

/// Infers the shardings of variables that have none: that of a variable of their shape with which a step of
/// an optimizer changes them, as slots have those of their weights.
pub(super) fn infer_slots(body: &Specialized, known: &mut FastMap<Outlet, Sharding>) {
    for (id, node) in body.graph.iter() {
        if node.op.def().is_some_and(is_dense_step) {
            infer_slots_of(&body.graph, node, known);
        }
        for inner in body.nested.get(&id).into_iter().flatten() {
            let first = node.inputs().len() - inner.args.len().min(node.inputs().len());
            let passed = || inner.args.iter().zip(&node.inputs()[first..]);
            let mut own: FastMap<Outlet, Sharding> = passed()
                .filter_map(|(arg, input)| Some((*arg, known.get(input)?.clone())))
                .collect();
            infer_slots(inner, &mut own);
            for (arg, input) in passed() {
                if let Some(sharding) = own.get(arg) {
                    known.entry(*input).or_insert_with(|| sharding.clone());
                }
            }
        }
    }
}

/// Infers the shardings of the variables of a step from those of their shape.
fn infer_slots_of(graph: &Graph, node: &NodeDef, known: &mut FastMap<Outlet, Sharding>) {
    let shape = |input: &Outlet| Some(graph.ty(*input)?.pointee.as_ref()?.shape.clone());
    let variables = || node.inputs().iter().filter_map(|input| Some((*input, shape(input)?)));
    let found: Vec<(PartialShape, Sharding)> = variables()
        .filter_map(|(input, shape)| Some((shape, known.get(&input)?.clone())))
        .collect();
    for (input, own) in variables() {
        if let Some((_, sharding)) = found.iter().find(|(shape, _)| *shape == own) {
            known.entry(input).or_insert_with(|| sharding.clone());
        }
    }
}

impl Walk<'_> {
    /// Adds a node that has effects or reads state.
    pub(super) fn with_effects(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let resources: Vec<&Outlet> =
            node.inputs().iter().filter(|input| self.is_resource(input)).collect();
        if resources.iter().all(|input| self.shared.contains(input)) {
            return self.by_leader(id, op);
        }
        if let Some(other) = resources.iter().find(|input| !self.is_variable(input)) {
            let name = &self.source()[other.node].name;
            let what = format!("the resource of `{name}`, on a mesh").into();
            return Err(Error::Unsupported { op: op.name.into(), what });
        }
        match node.inputs() {
            [variable] if is_op(node, names::READ_VARIABLE_OP) => {
                let sharding = self.variable(*variable)?;
                let handle = self.value(*variable)?.outlet;
                self.add(id, op, &[handle], vec![sharding])?;
            }
            [variable] if is_op(node, names::VARIABLE_SHAPE) => {
                self.variable_shape(id, *variable)?
            }
            [variable, value] if is_assignment(node) => {
                let sharding = self.variable(*variable)?;
                let handle = self.value(*variable)?.outlet;
                let value = self.in_sharding(*value, &sharding, &node.name)?;
                self.add(id, op, &[handle, value], Vec::new())?;
            }
            _ if is_dense_step(op) => self.step(id, op)?,
            _ => self.on_whole_variables(id, op)?,
        }
        self.note(id, false);
        Ok(())
    }

    fn is_resource(&self, input: &Outlet) -> bool {
        self.source().ty(*input).is_some_and(|ty| ty.dtype == DType::Resource)
    }

    fn is_variable(&self, input: &Outlet) -> bool {
        self.variables.contains_key(input)
    }

    /// The sharding of a variable.
    fn variable(&self, handle: Outlet) -> Result<Sharding> {
        let name = || self.source()[handle.node].name.to_string();
        let found = self.variables.get(&handle).cloned();
        found.ok_or_else(|| Error::NotFound { kind: "variable", name: name() })
    }

    /// The shape of the whole of a variable.
    fn variable_shape(&mut self, id: NodeId, handle: Outlet) -> Result<()> {
        let node = &self.source()[id];
        let shape = self.ty(handle)?.pointee.as_ref().and_then(|spec| spec.shape.known());
        let Some(shape) = shape else {
            let what =
                format!("variable `{}`, whose shape is not known", self.source()[handle.node].name);
            return Err(Error::Unsupported {
                op: node.op.name().to_string().into(),
                what: what.into(),
            });
        };
        let dtype = node.outputs().first().map_or(DType::I32, |ty| ty.dtype);
        let constant = self.local.sizes(&node.name, &shape.to_i64(), dtype)?;
        self.set(id.into(), constant, Sharding::replicated(Some(1)));
        Ok(())
    }

    /// Adds a step of an optimizer: tensors of the shape of its variables are split as those.
    fn step(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let variable = node.inputs()[0];
        let sharding = self.variable(variable)?;
        let shape = self.ty(variable)?.pointee.as_ref().map(|spec| spec.shape.clone());
        let mut inputs = Vec::with_capacity(node.inputs().len());
        for &input in node.inputs() {
            let ty = self.ty(input)?;
            if self.is_variable(&input) {
                let own = self.variable(input)?;
                let is_alike = ty.pointee.as_ref().map(|spec| &spec.shape) == shape.as_ref();
                if (is_alike && own != sharding) || (!is_alike && own.is_split()) {
                    return Err(self.conflict(input, &own, variable, &sharding));
                }
                inputs.push(self.value(input)?.outlet);
            } else if Some(&ty.shape) == shape.as_ref() {
                inputs.push(self.in_sharding(input, &sharding, &node.name)?);
            } else {
                inputs.push(self.whole(input, &node.name)?);
            }
        }
        self.add(id, op, &inputs, Vec::new())
    }

    fn conflict(&self, one: Outlet, own: &Sharding, other: Outlet, sharding: &Sharding) -> Error {
        let name = |outlet: Outlet| self.source()[outlet.node].name.to_string();
        let other = format!("`{}` has {}", name(other), sharding.text(&self.mesh));
        Error::Layout {
            what: format!("variable `{}`", name(one)).into(),
            layout: own.text(&self.mesh),
            problem: format!("it is changed in one step with another variable, and {other}"),
        }
    }

    /// Adds a node that works on variables in a way that knows whole ones only: each device changes its
    /// own copy alike.
    fn on_whole_variables(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let variable = node.inputs().first().filter(|input| self.is_variable(input));
        let sharding =
            variable.map_or_else(|| Ok(Sharding::replicated(None)), |&v| self.variable(v))?;
        if sharding.is_split()
            && (lookup_in_variable(self, id, op, &sharding)? || scatter(self, id, op, &sharding)?)
        {
            return Ok(());
        }
        self.check_whole_variables(node)?;
        self.on_whole(id, op)
    }

    fn check_whole_variables(&self, node: &NodeDef) -> Result<()> {
        for input in node.inputs().iter().filter(|input| self.is_variable(input)) {
            let sharding = self.variable(*input)?;
            if sharding.is_split() {
                let name = &self.source()[input.node].name;
                let layout = sharding.text(&self.mesh);
                let what = format!("variable `{name}` with layout {layout}; it must be replicated");
                let op = node.op.name().to_string().into();
                return Err(Error::Unsupported { op, what: what.into() });
            }
        }
        Ok(())
    }

    /// Adds a node of the first device alone, which sends its results to the others.
    fn by_leader(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        self.program.has_leader = true;
        let gathered = self.has_split_operand(node);
        let inputs = self.whole_operands(node)?;
        let mut values: Vec<Option<Outlet>> = vec![None; node.outputs().len()];
        if self.is_leader {
            let results = node.outputs().iter().map(|ty| Sharding::replicated(ty.shape.rank()));
            self.add(id, op, &inputs, results.collect())?;
            for (index, value) in values.iter_mut().enumerate() {
                *value = Some(self.value(Outlet::new(id, index))?.outlet);
            }
        }
        for (index, value) in values.into_iter().enumerate() {
            let (source, ty) = (Outlet::new(id, index), &node.outputs()[index]);
            if !self.uses.contains_key(&source) {
                continue;
            }
            let sent = self.local.broadcast(&node.name, ty, value)?;
            self.set(source, sent, Sharding::replicated(ty.shape.rank()));
            self.note_broadcast(source, sent);
        }
        self.note(id, gathered);
        Ok(())
    }

    /// Adds a constant.
    pub(super) fn constant(&mut self, id: NodeId, value: &HostTensor) -> Result<()> {
        let constant = self.local.constant(&self.source()[id].name, value.clone())?;
        self.set(id.into(), constant, Sharding::replicated(Some(value.shape().rank())));
        Ok(())
    }
}

/// Whether a node sets a variable to what it is passed, or adds that to it.
fn is_assignment(node: &NodeDef) -> bool {
    [names::ASSIGN_VARIABLE_OP, names::ASSIGN_ADD_VARIABLE_OP, names::ASSIGN_SUB_VARIABLE_OP]
        .iter()
        .any(|name| is_op(node, name))
}
