//! Dependences of a function's results on its arguments that gradients can go along.
//!
//! A loop has a gradient for all its variables together. A variable on which no result with a
//! gradient depends has a gradient of zero, which is not to be multiplied with whatever came before
//! the loop: zero times infinity is not zero.

use super::{Gradient, walk::is_differentiable};
use crate::{
    error::Result,
    function::FunctionDef,
    graph::{NodeId, Outlet},
    hash::FastMap,
};
use fixedbitset::FixedBitSet;

/// For each argument, the results that depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reach(Vec<FixedBitSet>);

impl Reach {
    /// Of one call of a function. Calls in it are taken to depend on all they are passed.
    ///
    /// # Errors
    ///
    /// When the graph has a cycle.
    pub(super) fn of(function: &FunctionDef) -> Result<Reach> {
        let graph = &function.graph;
        let (n_arguments, n_results) = (function.args.len(), function.results.len());
        let arguments: FastMap<NodeId, usize> =
            function.args.iter().enumerate().map(|(index, &arg)| (arg, index)).collect();
        let mut sources: FastMap<Outlet, FixedBitSet> = FastMap::default();
        for id in graph.topological_order()? {
            let node = &graph[id];
            let mut on = FixedBitSet::with_capacity(n_arguments);
            match arguments.get(&id) {
                Some(&index) => on.insert(index),
                None if node.op.def().is_some_and(|op| matches!(op.gradient, Gradient::Zero)) => {}
                None => {
                    let inputs = node.inputs().iter().filter_map(|input| sources.get(input));
                    inputs.for_each(|input| on.union_with(input));
                }
            }
            for (index, ty) in node.outputs().iter().enumerate() {
                if !on.is_clear() && is_differentiable(ty.dtype) {
                    sources.insert(Outlet::new(id, index), on.clone());
                }
            }
        }
        let mut reach = vec![FixedBitSet::with_capacity(n_results); n_arguments];
        for (result, (_, outlet)) in function.results.iter().enumerate() {
            for argument in sources.get(outlet).into_iter().flat_map(FixedBitSet::ones) {
                reach[argument].insert(result);
            }
        }
        Ok(Reach(reach))
    }

    /// Of any number of iterations, where this is the reach of one (Warshall's algorithm).
    pub(super) fn of_iterations(mut self) -> Reach {
        let n = self.0.len();
        for (argument, results) in self.0.iter_mut().enumerate() {
            results.grow(n);
            results.insert(argument);
        }
        for through in 0..n {
            let farther = self.0[through].clone();
            for results in &mut self.0 {
                if results.contains(through) {
                    results.union_with(&farther);
                }
            }
        }
        self
    }

    /// Of a choice between functions of these reaches.
    pub(super) fn of_choice(branches: impl IntoIterator<Item = Reach>) -> Reach {
        let mut all: Vec<FixedBitSet> = Vec::new();
        for Reach(branch) in branches {
            all.resize(all.len().max(branch.len()), FixedBitSet::new());
            all.iter_mut().zip(&branch).for_each(|(all, results)| all.union_with(results));
        }
        Reach(all)
    }

    /// Whether one of the results with a cotangent depends on an argument.
    pub(super) fn has_any(&self, argument: usize, given: impl Fn(usize) -> bool) -> bool {
        self.0.get(argument).is_none_or(|results| results.ones().any(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::GraphBuilder, dtype::DType, shape::PartialShape, spec::ValueType};

    fn set(results: &[usize]) -> FixedBitSet {
        let mut set = FixedBitSet::with_capacity(3);
        results.iter().for_each(|&result| set.insert(result));
        set
    }

    #[test]
    fn what_iterations_depend_on() {
        // (a, b, c) -> (a + b, shape of a, c); b reaches a's result, and its own not.
        let mut builder = GraphBuilder::new();
        let vector = ValueType::new(DType::F32, PartialShape::ranked([None]));
        let [a, b, c] = ["a", "b", "c"].map(|name| builder.arg(name, vector.clone()).unwrap());
        let sum = builder.call("AddV2", "sum", &[a, b]).unwrap()[0];
        let shape = builder.call("Shape", "shape", &[a]).unwrap()[0];
        let body = builder.finish_function("f", &[("a", sum), ("b", shape), ("c", c)]);
        let once = Reach::of(&body).unwrap();
        let expected = [[0], [0], [2]].map(|results| set(&results));
        assert_eq!(once, Reach(expected.to_vec()));
        let any = once.clone().of_iterations();
        let expected = [&[0][..], &[0, 1], &[2]].map(set);
        assert_eq!(any, Reach(expected.to_vec()));
        assert!(any.has_any(1, |result| result == 0) && !any.has_any(2, |result| result < 2));
        assert_eq!(Reach::of_choice([once.clone(), once.clone()]), once);
    }
}
