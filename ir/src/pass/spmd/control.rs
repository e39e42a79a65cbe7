//! Loops and branches: their functions are partitioned too, and take the coordinates and group keys of the
//! device as further arguments.
//!
//! Variables of a loop keep the layouts that they have before it. Results of a branch have the layouts that the
//! first function computes them in. Predicates are whole, so that all devices go the same way.

use super::{
    sharding::Sharding,
    walk::{LocalValue, Walk},
};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    error::{Error, Result},
    function::FunctionDef,
    graph::{NodeDef, NodeId, Outlet},
    op::{ArgKind, CallKind, OpDef},
    pass::specialize::Specialized,
    spec::ValueType,
};

/// A function inside a function, of one device.
struct Nested {
    name: String,
    /// The shardings of the results that the source has.
    results: Vec<Sharding>,
}

impl<'a> Walk<'a> {
    /// Adds a loop or a branch.
    pub(super) fn control(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        match op.call {
            CallKind::While => self.repeat(id, op),
            CallKind::If | CallKind::Case => self.branch(id, op),
            CallKind::None | CallKind::Inline | CallKind::Module => {
                let what = "a call that is not inlined, on a mesh".into();
                Err(Error::Unsupported { op: node.op.name().to_string().into(), what })
            }
        }?;
        self.note(id, false);
        Ok(())
    }

    fn bodies(&self, id: NodeId) -> &'a [Specialized] {
        let body: &'a Specialized = self.body;
        body.nested.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    fn repeat(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let [condition, body] = self.bodies(id) else {
            let found = self.bodies(id).len();
            return Err(Error::argument(op.name, "functions", "a condition and a body", found));
        };
        let shardings = self.operand_shardings(node.inputs(), body)?;
        let mut inputs = self.operands(node, node.inputs(), &shardings)?;
        let whole = [Some(Sharding::replicated(Some(0)))];
        let condition = self.nested(condition, &shardings, node, &whole, false)?;
        let same: Vec<Option<Sharding>> = shardings.iter().cloned().map(Some).collect();
        let body = self.nested(body, &shardings, node, &same, true)?;
        inputs.extend(self.local.mesh_args());
        let types: Vec<ValueType> =
            inputs.iter().map(|&input| self.local.ty(input).cloned()).collect::<Result<_>>()?;
        let mut outputs = self.pieces(node, &shardings);
        outputs.extend(types[outputs.len()..].iter().cloned());
        let names = [condition.name, body.name];
        self.add_call(id, op, &inputs, outputs, &names, shardings)?;
        self.keep_resources(id);
        Ok(())
    }

    fn branch(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let (predicate, args) = (node.inputs()[0], &node.inputs()[1..]);
        let bodies = self.bodies(id);
        let Some(first) = bodies.first() else {
            return Err(Error::argument(op.name, "functions", "one or more", "none"));
        };
        let shardings = self.operand_shardings(args, first)?;
        let predicate = self.whole(predicate, &node.name)?;
        let mut inputs = vec![predicate];
        inputs.extend(self.operands(node, args, &shardings)?);
        inputs.extend(self.local.mesh_args());
        // A result whose shape is not known in all of them is whole.
        let is_known = |index: usize| node.outputs()[index].shape.is_known();
        let wanted = |index| match is_known(index) {
            true => None,
            false => Some(Sharding::replicated(node.outputs()[index].shape.rank())),
        };
        let wanted: Vec<Option<Sharding>> = (0..node.outputs().len()).map(wanted).collect();
        let first = self.nested(first, &shardings, node, &wanted, false)?;
        let same: Vec<Option<Sharding>> = first.results.iter().cloned().map(Some).collect();
        let mut names = vec![first.name];
        for body in &bodies[1..] {
            names.push(self.nested(body, &shardings, node, &same, false)?.name);
        }
        let outputs = self.pieces(node, &first.results);
        self.add_call(id, op, &inputs, outputs, &names, first.results)
    }

    /// The types of the results of a device.
    fn pieces(&self, node: &NodeDef, shardings: &[Sharding]) -> Vec<ValueType> {
        let piece = |(ty, sharding): (&ValueType, &Sharding)| {
            let shape = sharding.piece_shape(&self.mesh, &ty.shape);
            ValueType { shape, ..ty.clone() }
        };
        node.outputs().iter().zip(shardings).map(piece).collect()
    }

    /// Notes that handles which a loop returns unchanged refer to what they did before.
    fn keep_resources(&mut self, id: NodeId) {
        let node = &self.source()[id];
        let Some(body) = self.bodies(id).last() else { return };
        for (index, &input) in node.inputs().iter().enumerate() {
            if body.results.get(index) != body.args.get(index) {
                continue;
            }
            let result = Outlet::new(id, index);
            if let Some(variable) = self.variables.get(&input).cloned() {
                self.variables.insert(result, variable);
            }
            if self.shared.contains(&input) {
                self.shared.insert(result);
            }
        }
    }

    /// The shardings of operands that a function is passed: what they have, where their shapes are known
    /// inside it.
    fn operand_shardings(&self, args: &[Outlet], body: &Specialized) -> Result<Vec<Sharding>> {
        let sharding = |(index, &arg): (usize, &Outlet)| {
            let LocalValue { sharding, .. } = self.value(arg)?;
            let inner = body.args.get(index).and_then(|&own| body.graph.ty(own));
            let is_known = inner.is_some_and(|ty| ty.shape.is_known());
            Ok(match is_known {
                true => Sharding { partial: None, ..sharding },
                false => Sharding::replicated(Some(sharding.dims.len())),
            })
        };
        args.iter().enumerate().map(sharding).collect()
    }

    fn operands(
        &mut self,
        node: &NodeDef,
        args: &[Outlet],
        shardings: &[Sharding],
    ) -> Result<Vec<Outlet>> {
        let args = args.iter().zip(shardings);
        args.map(|(&arg, want)| self.in_sharding(arg, want, &node.name)).collect()
    }

    /// Partitions a function inside this one. `results` are the shardings that are asked of its results;
    /// `hands_on` says whether it returns the arguments that tell about the device, as bodies of loops do.
    fn nested(
        &mut self,
        body: &'a Specialized,
        args: &[Sharding],
        node: &NodeDef,
        results: &[Option<Sharding>],
        hands_on: bool,
    ) -> Result<Nested> {
        if let Some(error) = &body.failure {
            return Err(error.clone());
        }
        let mut inner = Walk::new(body, &self.mesh, self.is_leader)?;
        inner.program = std::mem::take(&mut self.program);
        inner.local.go_on_from(&self.local);
        let first = node.inputs().len() - args.len();
        let mut locals = Vec::with_capacity(args.len());
        for ((&outlet, sharding), &passed) in
            body.args.iter().zip(args).zip(&node.inputs()[first..])
        {
            if let Some(variable) = self.variables.get(&passed) {
                inner.variables.insert(outlet, variable.clone());
            }
            if self.shared.contains(&passed) {
                inner.shared.insert(outlet);
            }
            locals.push(inner.argument(outlet, sharding)?);
        }
        inner.nodes()?;
        let (mut outlets, mut shardings) = (Vec::new(), Vec::new());
        for (index, &outlet) in body.results.iter().enumerate() {
            let own = Sharding { partial: None, ..inner.value(outlet)?.sharding };
            let sharding = results.get(index).cloned().flatten().unwrap_or(own);
            outlets.push(inner.in_sharding(outlet, &sharding, &node.name)?);
            shardings.push(sharding);
        }
        let mesh_args: Vec<Outlet> = inner.local.mesh_args().collect();
        if hands_on {
            outlets.extend(&mesh_args);
        }
        self.local.go_on_from(&inner.local);
        self.program = std::mem::take(&mut inner.program);
        let name = self.program.next_name();
        let args = locals.into_iter().chain(mesh_args).map(|outlet| outlet.node).collect();
        self.program.functions.push(FunctionDef {
            name: name.clone().into(),
            graph: inner.local.graph,
            args,
            results: super::named(outlets),
            control_results: Vec::new(),
            attrs: Attrs::new(),
        });
        Ok(Nested { name, results: shardings })
    }

    /// Adds a call of functions of this device.
    fn add_call(
        &mut self,
        id: NodeId,
        op: &'static OpDef,
        inputs: &[Outlet],
        outputs: Vec<ValueType>,
        functions: &[String],
        shardings: Vec<Sharding>,
    ) -> Result<()> {
        let node = &self.source()[id];
        let mut source = node.clone();
        source.attrs = self.call_attrs(node, op, inputs, &outputs, functions)?.into();
        let new = self.local.node(&node.name, &source, inputs, outputs)?;
        self.results(id, new, shardings);
        Ok(())
    }

    /// The attributes of a call of functions of this device: their names, and the dtypes of what they are
    /// passed.
    fn call_attrs(
        &self,
        node: &NodeDef,
        op: &'static OpDef,
        inputs: &[Outlet],
        outputs: &[ValueType],
        functions: &[String],
    ) -> Result<Attrs> {
        let mut attrs = Attrs::new();
        let mut names = functions.iter().map(|name| NameAttrList::new(name.as_str()));
        for attr in op.attrs {
            let Some(value) = node.attrs.get(attr.name) else { continue };
            let value = match value {
                AttrValue::Func(_) => names.next().map(AttrValue::Func),
                AttrValue::Funcs(list) => {
                    Some(AttrValue::Funcs(names.by_ref().take(list.len()).collect()))
                }
                AttrValue::Shapes(_) => Some(AttrValue::Shapes(Vec::new())),
                other => Some(other.clone()),
            };
            attrs.set(attr.name, value.ok_or_else(|| missing_function(op))?);
        }
        if let Some(ArgKind::Types(name)) = op.outputs.last().map(|arg| arg.kind) {
            attrs.set(name, outputs.iter().map(|ty| ty.dtype).collect::<Vec<DType>>());
        }
        if let Some(ArgKind::Types(name)) = op.inputs.last().map(|arg| arg.kind) {
            let passed = &inputs[op.inputs.len() - 1..];
            let dtypes: Result<Vec<DType>> =
                passed.iter().map(|&input| Ok(self.local.ty(input)?.dtype)).collect();
            attrs.set(name, dtypes?);
        }
        Ok(attrs)
    }
}

fn missing_function(op: &OpDef) -> Error {
    Error::argument(op.name, "functions", "as many as its attributes name", "fewer")
}
