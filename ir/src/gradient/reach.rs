//! Which results of a function depend on which of its arguments, in a way that gradients can follow.
//!
//! A loop has a gradient for all its variables together. A variable on which no result with a
//! gradient depends has a gradient of zero, which is not to be multiplied with whatever came before
//! the loop: zero times infinity is not zero.

use super::{Gradient, walk::is_differentiable};
use crate::{
    error::Result,
    function::FunctionDef,
    graph::{NodeId, Outlet},
};
use std::collections::{BTreeSet, HashMap};

/// For each argument, the results that depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reach(Vec<BTreeSet<usize>>);

impl Reach {
    /// Of one call of a function. Calls in it are taken to depend on all they are given.
    ///
    /// # Errors
    ///
    /// When the graph has a cycle.
    pub(super) fn of(function: &FunctionDef) -> Result<Reach> {
        let graph = &function.graph;
        let arguments: HashMap<NodeId, usize> =
            function.args.iter().enumerate().map(|(index, &arg)| (arg, index)).collect();
        let mut sources: HashMap<Outlet, BTreeSet<usize>> = HashMap::new();
        for id in graph.topological_order()? {
            let node = &graph[id];
            let on: BTreeSet<usize> = match arguments.get(&id) {
                Some(&index) => BTreeSet::from([index]),
                None if node.op.def().is_some_and(|op| matches!(op.gradient, Gradient::Zero)) => {
                    continue;
                }
                None => node
                    .inputs()
                    .iter()
                    .filter_map(|input| sources.get(input))
                    .flatten()
                    .copied()
                    .collect(),
            };
            for (index, ty) in node.outputs().iter().enumerate() {
                if !on.is_empty() && is_differentiable(ty.dtype) {
                    sources.insert(Outlet::new(id, index), on.clone());
                }
            }
        }
        let mut reach = vec![BTreeSet::new(); function.args.len()];
        for (result, (_, outlet)) in function.results.iter().enumerate() {
            for &argument in sources.get(outlet).into_iter().flatten() {
                reach[argument].insert(result);
            }
        }
        Ok(Reach(reach))
    }

    /// Of any number of iterations, where this is the reach of one.
    pub(super) fn of_iterations(mut self) -> Reach {
        for (argument, results) in self.0.iter_mut().enumerate() {
            results.insert(argument);
        }
        loop {
            let farther = |results: &BTreeSet<usize>| -> BTreeSet<usize> {
                results.iter().filter_map(|&result| self.0.get(result)).flatten().copied().collect()
            };
            let next: Vec<BTreeSet<usize>> = self.0.iter().map(farther).collect();
            if next == self.0 {
                return self;
            }
            self.0 = next;
        }
    }

    /// Of a choice between functions of these reaches.
    pub(super) fn of_choice(branches: impl IntoIterator<Item = Reach>) -> Reach {
        let mut all: Vec<BTreeSet<usize>> = Vec::new();
        for Reach(branch) in branches {
            all.resize(all.len().max(branch.len()), BTreeSet::new());
            all.iter_mut().zip(branch).for_each(|(all, results)| all.extend(results));
        }
        Reach(all)
    }

    /// Whether one of the results that are `given` depends on an argument.
    pub(super) fn has_any(&self, argument: usize, given: impl Fn(usize) -> bool) -> bool {
        self.0.get(argument).is_none_or(|results| results.iter().any(|&result| given(result)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::GraphBuilder, dtype::DType, shape::PartialShape, spec::ValueType};

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
        let expected = [vec![0], vec![0], vec![2]].map(BTreeSet::from_iter);
        assert_eq!(once, Reach(expected.to_vec()));
        let any = once.clone().of_iterations();
        let expected = [vec![0], vec![0, 1], vec![2]].map(BTreeSet::from_iter);
        assert_eq!(any, Reach(expected.to_vec()));
        assert!(any.has_any(1, |result| result == 0) && !any.has_any(2, |result| result < 2));
        assert_eq!(Reach::of_choice([once.clone(), once.clone()]), once);
    }
}
