//! Calls, captures and constants join the graph.

use super::{Call, FuncGraph, Outputs, Semantics, out_of_scope, values::small_constant};
use crate::{
    backprop,
    capture::{Ambient, Capture},
    context,
    error::Result,
    library_call::caller_of,
    recording,
    tensor::{Repr, Tensor},
};
use ferroflow_ir::{
    DType, HostTensor, NodeDef, NodeId, Outlet, ValueType, build::infer_attrs, emit::check_call,
    infer::InputFacts,
};
use smallvec::SmallVec;
use std::sync::Arc;

impl FuncGraph {
    /// Adds a call of an op.
    pub(crate) fn call(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        self.call_typed(call, None)
    }

    /// Adds a call of an op that runs after the call added last.
    pub(crate) fn call_after_last(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        let last = self.state.with(|state| state.last);
        let outputs = self.call(call)?;
        self.state.with(|state| state.delay_last(last))?;
        Ok(outputs)
    }

    /// Adds a call of an op that runs after all calls so far that change the state it is passed.
    pub(crate) fn call_after_changes(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        let outputs = self.call(call)?;
        if self.semantics == Semantics::Graph {
            self.state.with(|state| state.delay_last_after_changes(&self.library))?;
        }
        Ok(outputs)
    }

    /// Adds a call of an op whose results are known to be of these types.
    pub(crate) fn call_typed(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        match context::is_taped() {
            true => backprop::staged(self, call, results),
            false => self.add_call(call, results),
        }
    }

    /// The tensor outside that an argument was captured from; none for what surrounds a call.
    pub(crate) fn captured_as(&self, outlet: Outlet) -> Option<Tensor> {
        self.state.with(|state| state.captures.captured_as(outlet))
    }

    /// The value of an outlet, where it follows from constants.
    pub(crate) fn known_value(&self, outlet: Outlet) -> Option<HostTensor> {
        self.constant_value(outlet)
    }

    /// Adds a call that no tape sees.
    pub(crate) fn add_call(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        let Call { op, attrs, inputs, name, location } = call;
        let location = location.map(caller_of);
        let controls = self.requested_controls()?;
        let base = if name.is_empty() { op.name } else { name };
        let name = self.state.with(|state| state.graph.unique_name(base));
        let mut outlets: SmallVec<[Outlet; 4]> = SmallVec::new();
        for (index, input) in inputs.iter().enumerate() {
            let argument =
                op.inputs.get(index).or(op.inputs.last()).map_or("input", |arg| arg.name);
            outlets.push(self.outlet(input, || format!("{name}/{argument}"))?);
        }
        let types: SmallVec<[ValueType; 4]> = self
            .state
            .with(|state| outlets.iter().map(|&outlet| state.ty(outlet).clone()).collect());
        let dtypes: SmallVec<[DType; 4]> = types.iter().map(|ty| ty.dtype).collect();
        let attrs = infer_attrs(op, attrs, &dtypes);
        let is_host = op.host_inputs(&attrs)?;
        let mut values: SmallVec<[Option<HostTensor>; 4]> = SmallVec::new();
        for (index, &outlet) in outlets.iter().enumerate() {
            let needed = is_host.get(index) == Some(&true);
            values.push(if needed { self.constant_value(outlet) } else { None });
        }
        let facts: SmallVec<[InputFacts<'_>; 4]> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| InputFacts { ty, value: value.as_ref() })
            .collect();
        let checked = check_call(op, attrs, &facts);
        let (attrs, outputs) = checked
            .map_err(|error| error.at_node(&name, op.name, &self.name).written_at(location))?;
        let outputs = results.map_or(outputs, SmallVec::from);
        let effect = self.library.effect_of(&op.into(), &attrs);
        let mut node = NodeDef::new(name, op, attrs)
            .with_inputs(outlets.iter().copied())
            .with_outputs(outputs.iter().cloned());
        node.device = (&*context::current_device()).into();
        node.location = location;
        let order = match self.semantics {
            Semantics::Program => Some(effect),
            Semantics::Graph => None,
        };
        let id = self.state.with(|state| state.add_call(node, &types, controls, order))?;
        let tensors = outputs.into_iter().enumerate();
        Ok(tensors.map(|(index, ty)| self.tensor(Outlet::new(id, index), ty, location)).collect())
    }

    /// The nodes that scopes around the call ask to run before it.
    fn requested_controls(self: &Arc<FuncGraph>) -> Result<SmallVec<[NodeId; 1]>> {
        let mut nodes = SmallVec::new();
        for tensor in context::current_controls() {
            if let Repr::Symbolic(symbolic) = &tensor.0
                && Arc::ptr_eq(&symbolic.graph, self)
            {
                nodes.push(symbolic.outlet.node);
            }
        }
        nodes.sort();
        nodes.dedup();
        Ok(nodes)
    }

    /// Where a tensor is in this graph: captured if it comes from outside.
    pub(super) fn outlet(
        self: &Arc<FuncGraph>,
        tensor: &Tensor,
        name: impl Fn() -> String,
    ) -> Result<Outlet> {
        if let Repr::Symbolic(symbolic) = &tensor.0 {
            if Arc::ptr_eq(&symbolic.graph, self) {
                return Ok(symbolic.outlet);
            }
            if !context::is_open(&symbolic.graph) {
                let used_in = format!("in the trace of function `{}`", self.name);
                return Err(out_of_scope(tensor, symbolic, used_in));
            }
        }
        tensor.check()?;
        if let Some(constant) = small_constant(tensor).filter(|_| !recording::is_watched(tensor)) {
            let name = name();
            return self.state.with(|state| state.constant(&name, constant));
        }
        let around = match &self.parent {
            Some(parent) => Some(parent.own(tensor, &name)?),
            None => None,
        };
        let tensor = around.as_ref().unwrap_or(tensor);
        self.capture(Capture::new(tensor)?, tensor.value_type(), name)
    }

    /// Where a capture is in this graph: an argument of its own, added when it is first used.
    fn capture(
        &self,
        capture: Capture,
        ty: ValueType,
        name: impl Fn() -> String,
    ) -> Result<Outlet> {
        if let Some(outlet) = self.state.with(|state| state.captures.find(&capture)) {
            return Ok(outlet);
        }
        let name = name();
        self.state.with(|state| state.add_capture(capture, &name, ty))
    }

    /// Environment of each call of the function: an argument that no caller passes.
    pub(crate) fn ambient(self: &Arc<FuncGraph>, ambient: Ambient) -> Result<Tensor> {
        if let Some(parent) = &self.parent {
            return parent.ambient(ambient);
        }
        let ty = ambient.ty();
        let name = || ambient.name().to_string();
        let outlet = self.capture(Capture::Ambient(ambient), ty.clone(), name)?;
        Ok(self.tensor(outlet, ty, None))
    }

    /// The tensor as one of this graph, captured if it comes from outside; of handles that passed
    /// through other nodes, the first.
    pub(crate) fn own(
        self: &Arc<FuncGraph>,
        tensor: &Tensor,
        name: &dyn Fn() -> String,
    ) -> Result<Tensor> {
        let outlet = self.outlet(tensor, name)?;
        let (outlet, ty) = self.state.with(|state| {
            let outlet = state.order.origin(outlet);
            (outlet, state.ty(outlet).clone())
        });
        Ok(self.tensor(outlet, ty, None))
    }
}
