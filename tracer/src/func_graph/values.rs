//! What is known of values while tracing: they follow from constants.

use super::{FuncGraph, State};
use crate::tensor::{Repr, Tensor};
use ferroflow_ir::{
    DType, Effect, HostTensor, Outlet, ValueType, infer::Input, pass::specialize::Evaluate,
};
use ferroflow_runtime::Asset;

impl FuncGraph {
    /// The value of an outlet, where it follows from constants.
    pub(super) fn constant_value(&self, state: &mut State, outlet: Outlet) -> Option<HostTensor> {
        if let Some(known) = state.known.get(&outlet) {
            return known.clone();
        }
        let value = self.evaluate(state, outlet);
        state.known.insert(outlet, value.clone());
        value
    }

    fn evaluate(&self, state: &mut State, outlet: Outlet) -> Option<HostTensor> {
        let node = &state.graph[outlet.node];
        let op = node.op.def()?;
        if op.name == "Const" {
            return node.attrs.tensor("value").ok().cloned();
        }
        if node.op.name() == "_Arg" {
            return self.value_around(state, outlet);
        }
        if op.effect != Effect::Pure {
            return None;
        }
        let (attrs, inputs) = (node.attrs.clone(), node.inputs().to_vec());
        let types: Vec<ValueType> = inputs.iter().map(|&input| state.ty(input).clone()).collect();
        if !op.shape_only && types.iter().any(|ty| !is_small(ty)) {
            return None;
        }
        let values: Vec<Option<HostTensor>> = inputs
            .iter()
            .map(|&input| if op.shape_only { None } else { self.constant_value(state, input) })
            .collect();
        if !op.shape_only && values.iter().any(Option::is_none) {
            return None;
        }
        let facts: Vec<Input<'_>> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| Input { ty, value: value.as_ref() })
            .collect();
        let results = self.context.evaluate(op, &attrs, &facts)?;
        results.into_iter().nth(outlet.index as usize)
    }

    /// The value of an argument that stands for a tensor of the graph around.
    fn value_around(&self, state: &State, argument: Outlet) -> Option<HostTensor> {
        let parent = self.parent.as_ref()?;
        let Repr::Symbolic(symbolic) = &state.captures.tensor_of(argument)?.0 else {
            return None;
        };
        parent.constant_value(&mut parent.state.lock(), symbolic.outlet)
    }
}

/// Eager tensors up to this many elements become constants of the graph; larger ones are captured,
/// so that traces share their memory. The number is TensorFlow's.
const CONSTANT_ELEMENTS: usize = 128;

pub(super) fn small_constant(tensor: &Tensor) -> Option<HostTensor> {
    let Repr::Eager(eager) = &tensor.0 else { return None };
    let host = eager.host().ok()?;
    let has_value = !matches!(host.dtype(), DType::Resource | DType::Variant);
    // Where a file is depends on where the model is loaded.
    let has_value = has_value && !Asset::is_any_path(eager);
    (has_value && host.len() <= CONSTANT_ELEMENTS).then(|| host.clone())
}

fn is_small(ty: &ValueType) -> bool {
    ty.shape.known().is_some_and(|shape| shape.num_elements() <= CONSTANT_ELEMENTS)
}
