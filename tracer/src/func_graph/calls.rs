//! Calls, captures and constants join the graph.

use super::{Call, FuncGraph, Outputs, Semantics, State, out_of_scope, values::small_constant};
use crate::{
    capture::Capture,
    context,
    error::Result,
    recording,
    summary::Ambient,
    tensor::{Repr, Tensor},
};
use ferroflow_ir::{
    DType, Effect, HostTensor, NodeDef, NodeId, Outlet, ValueType, build::infer_attrs,
    emit::check_call, infer::Input,
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
        let last = self.state.lock().last;
        let outputs = self.call(call)?;
        self.state.lock().delay_last(last)?;
        Ok(outputs)
    }

    /// Adds a call of an op that runs after all calls so far that change the state it is given.
    pub(crate) fn call_after_changes(self: &Arc<FuncGraph>, call: Call<'_>) -> Result<Outputs> {
        let outputs = self.call(call)?;
        if self.semantics == Semantics::Program {
            return Ok(outputs);
        }
        let mut state = self.state.lock();
        let given = state.last.map_or(&[][..], |id| state.graph[id].inputs());
        let changes = state.graph.iter().filter(|(_, node)| {
            let effect = self.library.effect_of(&node.op, &node.attrs);
            let shares_state = node.inputs().iter().any(|input| given.contains(input));
            shares_state && matches!(effect, Effect::Writes | Effect::Stateful)
        });
        let changes: Vec<NodeId> = changes.map(|(id, _)| id).collect();
        state.delay_last(changes)?;
        Ok(outputs)
    }

    /// Adds a call of an op whose results are known to be of these types.
    pub(crate) fn call_typed(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        match context::is_taped() {
            true => recording::staged(self, call, results),
            false => self.add_call(call, results),
        }
    }

    /// What an argument that came in as a capture is outside.
    pub(crate) fn captured_as(&self, outlet: Outlet) -> Option<Tensor> {
        self.state.lock().captures.captured_as(outlet)
    }

    /// The value of an outlet, where it follows from constants.
    pub(crate) fn known_value(&self, outlet: Outlet) -> Option<HostTensor> {
        self.constant_value(&mut self.state.lock(), outlet)
    }

    /// Adds a call that no tape sees.
    pub(crate) fn add_call(
        self: &Arc<FuncGraph>,
        call: Call<'_>,
        results: Option<&[ValueType]>,
    ) -> Result<Outputs> {
        let Call { op, attrs, inputs, name, location } = call;
        let controls = self.requested_controls()?;
        let base = if name.is_empty() { op.name } else { name };
        let mut state = self.state.lock();
        let name = state.graph.unique_name(base);
        let mut outlets: SmallVec<[Outlet; 4]> = SmallVec::new();
        for (index, input) in inputs.iter().enumerate() {
            let argument =
                op.inputs.get(index).or(op.inputs.last()).map_or("input", |arg| arg.name);
            outlets.push(self.outlet(&mut state, input, || format!("{name}/{argument}"))?);
        }
        let types: SmallVec<[ValueType; 4]> =
            outlets.iter().map(|&outlet| state.ty(outlet).clone()).collect();
        let dtypes: SmallVec<[DType; 4]> = types.iter().map(|ty| ty.dtype).collect();
        let attrs = infer_attrs(op, attrs, &dtypes);
        let is_host = op.host_inputs(&attrs)?;
        let mut values: SmallVec<[Option<HostTensor>; 4]> = SmallVec::new();
        for (index, &outlet) in outlets.iter().enumerate() {
            let needed = is_host.get(index) == Some(&true);
            values.push(if needed { self.constant_value(&mut state, outlet) } else { None });
        }
        let facts: SmallVec<[Input<'_>; 4]> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| Input { ty, value: value.as_ref() })
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
        let before = match self.semantics {
            Semantics::Program => state.order.before(effect, &outlets, &types),
            Semantics::Graph => SmallVec::new(),
        };
        let node = node.with_controls(before.iter().copied().chain(controls));
        let id = state.graph.add(node)?;
        state.last = Some(id);
        state.calls.push(id);
        if self.semantics == Semantics::Program {
            state.order.ran(id, effect, &outlets, &types, &outputs);
        }
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
        state: &mut State,
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
        if let Some(constant) = small_constant(tensor).filter(|_| !recording::is_watched(tensor)) {
            return state.constant(&name(), constant);
        }
        let around = match &self.parent {
            Some(parent) => Some(parent.own(tensor, &name)?),
            None => None,
        };
        let tensor = around.as_ref().unwrap_or(tensor);
        let capture = Capture::new(tensor)?;
        if let Some(outlet) = state.captures.find(&capture) {
            return Ok(outlet);
        }
        let outlet = state.add_argument(&name(), tensor.value_type())?;
        state.captures.add(capture, outlet);
        Ok(outlet)
    }

    /// What surrounds each call of the function: an argument that nobody gives.
    pub(crate) fn ambient(self: &Arc<FuncGraph>, ambient: Ambient) -> Result<Tensor> {
        if let Some(parent) = &self.parent {
            return parent.ambient(ambient);
        }
        let (mut state, capture, ty) = (self.state.lock(), Capture::Ambient(ambient), ambient.ty());
        let outlet = match state.captures.find(&capture) {
            Some(outlet) => outlet,
            None => {
                let outlet = state.add_argument(ambient.name(), ty.clone())?;
                state.captures.add(capture, outlet);
                outlet
            }
        };
        drop(state);
        Ok(self.tensor(outlet, ty, None))
    }

    /// The tensor as one of this graph, captured if it comes from outside; of handles that passed
    /// through other nodes, the first.
    pub(crate) fn own(
        self: &Arc<FuncGraph>,
        tensor: &Tensor,
        name: &dyn Fn() -> String,
    ) -> Result<Tensor> {
        let mut state = self.state.lock();
        let outlet = self.outlet(&mut state, tensor, name)?;
        let outlet = state.order.origin(outlet);
        let ty = state.ty(outlet).clone();
        drop(state);
        Ok(self.tensor(outlet, ty, None))
    }
}
