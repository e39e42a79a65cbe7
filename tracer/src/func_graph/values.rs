//! Values that are known while tracing: they follow from constants.

use super::{FuncGraph, GraphState};
use crate::tensor::{Repr, Tensor};
use ferroflow_ir::{
    Attrs, DType, Effect, HostTensor, OpDef, Outlet, ValueType, infer::InputFacts, ops::names,
    pass::specialize::Evaluate,
};
use ferroflow_runtime::Asset;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a value comes from.
#[expect(clippy::large_enum_variant, reason = "it lives for a look at one node")]
enum Origin {
    Constant(HostTensor),
    /// A tensor of the graph around.
    Captured(Tensor),
    Call {
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: SmallVec<[Outlet; 4]>,
        types: SmallVec<[ValueType; 4]>,
    },
}

impl FuncGraph {
    /// The value of an outlet, where it follows from constants.
    pub(super) fn constant_value(&self, outlet: Outlet) -> Option<HostTensor> {
        if let Some(known) = self.state.with(|state| state.known.get(&outlet).cloned()) {
            return known;
        }
        let value = self.evaluate(outlet);
        self.state.with(|state| state.known.insert(outlet, value.clone()));
        value
    }

    fn evaluate(&self, outlet: Outlet) -> Option<HostTensor> {
        let (op, attrs, inputs, types) = match self.state.with(|state| state.origin(outlet))? {
            Origin::Constant(value) => return Some(value),
            Origin::Captured(tensor) => return self.value_around(&tensor),
            Origin::Call { op, attrs, inputs, types } => (op, attrs, inputs, types),
        };
        let values: Vec<Option<HostTensor>> = inputs
            .iter()
            .map(|&input| if op.shape_only { None } else { self.constant_value(input) })
            .collect();
        if !op.shape_only && values.iter().any(Option::is_none) {
            return None;
        }
        let facts: Vec<InputFacts<'_>> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| InputFacts { ty, value: value.as_ref() })
            .collect();
        let results = self.context.evaluate(op, &attrs, &facts)?;
        results.into_iter().nth(outlet.index as usize)
    }

    /// The value of a tensor of the graph around.
    fn value_around(&self, tensor: &Tensor) -> Option<HostTensor> {
        let Repr::Symbolic(symbolic) = &tensor.0 else { return None };
        self.parent.as_ref()?.constant_value(symbolic.outlet)
    }
}

impl GraphState {
    /// Where a value comes from, if it may follow from constants.
    fn origin(&self, outlet: Outlet) -> Option<Origin> {
        let node = self.graph.contains(outlet.node).then(|| &self.graph[outlet.node])?;
        let op = node.op.def()?;
        if op.name == names::CONST {
            return node.attrs.tensor("value").ok().cloned().map(Origin::Constant);
        }
        if op.name == names::ARG {
            return self.captures.tensor_of(outlet).cloned().map(Origin::Captured);
        }
        if op.effect != Effect::Pure {
            return None;
        }
        let inputs: SmallVec<[Outlet; 4]> = node.inputs().into();
        let types: SmallVec<[ValueType; 4]> =
            inputs.iter().map(|&input| self.ty(input).clone()).collect();
        let is_known = op.shape_only || types.iter().all(is_small);
        is_known.then(|| Origin::Call { op, attrs: node.attrs.clone(), inputs, types })
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
