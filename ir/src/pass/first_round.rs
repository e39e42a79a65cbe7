//! Loops that run at least once: their condition is true for initial values that are known.

use super::{
    execution::constant,
    specialize::{Evaluate, Specialized, truthiness},
};
use crate::{
    graph::{Graph, NodeDef, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    infer::InputFacts,
    op::{Effect, Lowering},
    spec::ValueType,
};
use smallvec::SmallVec;

/// Whether a condition is true for these values of the graph `outer`, as far as they are constants there.
pub(super) fn has_first_round(
    condition: &Specialized,
    inputs: &[Outlet],
    outer: &Graph,
    evaluate: &dyn Evaluate,
) -> bool {
    let mut known: FastMap<Outlet, HostTensor> = FastMap::default();
    for (&arg, &input) in condition.args.iter().zip(inputs) {
        known.extend(constant(outer, input).map(|value| (arg, value.clone())));
    }
    for (id, node) in condition.graph.iter() {
        if let Some(value) = constant(&condition.graph, id.into()) {
            known.insert(id.into(), value.clone());
            continue;
        }
        let results = evaluated(&condition.graph, node, &known, evaluate);
        let outlets = (0..).map(|index| Outlet::new(id, index));
        known.extend(outlets.zip(results.into_iter().flatten()));
    }
    let first = condition.results.first().and_then(|result| known.get(result));
    first.is_some_and(|first| truthiness(first).unwrap_or(false))
}

/// The most elements of what is computed to know a condition.
const MAX_ELEMENTS: usize = 64;

/// The results of a small call without effects on operands that are all known.
fn evaluated(
    graph: &Graph,
    node: &NodeDef,
    known: &FastMap<Outlet, HostTensor>,
    evaluate: &dyn Evaluate,
) -> Option<Vec<HostTensor>> {
    let op = node.op.def().filter(|op| op.effect == Effect::Pure && !op.inputs.is_empty())?;
    let computes = matches!(
        op.lowering,
        Lowering::Elementwise(_) | Lowering::Reduce(_) | Lowering::Alias(_) | Lowering::View(_)
    );
    let is_small =
        |ty: &ValueType| ty.shape.known().is_some_and(|it| it.num_elements() <= MAX_ELEMENTS);
    if !computes || !node.outputs().iter().all(is_small) {
        return None;
    }
    let facts = |&input: &Outlet| {
        let ty = graph.ty(input)?;
        Some(InputFacts { ty, value: Some(known.get(&input)?) })
    };
    let inputs: Option<SmallVec<[InputFacts<'_>; 4]>> = node.inputs().iter().map(facts).collect();
    evaluate.evaluate(op, &node.attrs, &inputs?)
}
