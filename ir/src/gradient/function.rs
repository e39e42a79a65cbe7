//! Gradients of functions: a function that also returns what its gradient needs, and the gradient.
//!
//! [`differentiate`] copies a function, calls inlined, and walks the copy backwards into a second
//! graph. Whatever the second graph uses of the first becomes one more result of the first and an
//! argument of the second; arguments of the first are handed on instead, and constants are copied.
//! The first of the two is a function like others, so derivatives of any order follow.

use super::{
    back::Back,
    copy::FunctionCopy,
    extent::CopyBudget,
    sketch::type_of,
    walk::{Cotangent, InlinedCall, RecordedCall, Slices, backward_through, is_differentiable},
};
use crate::{
    dtype::DType,
    emit::ValueId,
    error::Result,
    function::{FunctionDef, FunctionLibrary},
    graph::{NodeId, Outlet},
    hash::FastMap,
    pass::infer_types::infer_types,
    passthrough::passed_argument,
};
use std::sync::Arc;

/// A function, and the function that takes gradients of its results to gradients of its arguments.
#[derive(Debug, Clone)]
pub struct Differentiated {
    /// The function with more results: those of the original first.
    pub forward: Arc<FunctionDef>,
    /// The gradient. Its arguments are the gradients of the results in [`seeds`](Self::seeds), then
    /// the values in [`kept`](Self::kept).
    pub backward: Arc<FunctionDef>,
    /// The results of the original whose gradients the gradient takes.
    pub seeds: Vec<usize>,
    /// Further arguments of the gradient.
    pub kept: Vec<Kept>,
    /// For each argument, where its gradient is among the results of the gradient.
    pub gradients: Vec<Option<GradientIndex>>,
}

/// A value that a gradient takes from the call it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// An argument of the call.
    Argument(usize),
    /// A result of the call.
    Result(usize),
}

/// Where a gradient is among the results of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GradientIndex {
    /// A tensor.
    Dense(usize),
    /// Rows, and the indices of the rows in the next result.
    Slices(usize),
}

/// Differentiates a function by the arguments that are wanted. Functions that this makes for loops
/// and branches are added to the library.
///
/// # Errors
///
/// [`Error::Unsupported`](crate::Error::Unsupported), with the node, when a gradient has to go
/// through an op without a rule; whatever else is wrong with the function.
pub fn differentiate(
    library: &FunctionLibrary,
    def: &FunctionDef,
    wanted: &[bool],
) -> Result<Differentiated> {
    differentiate_within(&CopyBudget::new(library), def, wanted)
}

/// As [`differentiate`], inside functions that are being differentiated.
pub(super) fn differentiate_within(
    extent: &CopyBudget<'_>,
    def: &FunctionDef,
    wanted: &[bool],
) -> Result<Differentiated> {
    let library = extent.library();
    let mut copy = FunctionCopy::new(extent.clone());
    let args: Vec<Outlet> = (0..def.args.len())
        .map(|index| copy.argument(def.arg_name(index), def.arg_type(index).clone()))
        .collect::<Result<_>>()?;
    let results = copy.inline(def, &args)?;
    let FunctionCopy { mut graph, calls, inlined, .. } = copy;
    infer_types(&mut graph)?;
    let arg_nodes: Vec<NodeId> = args.iter().map(|arg| arg.node).collect();
    let mut back = Back::new(&graph);
    let is_seed = |outlet: &Outlet| graph.ty(*outlet).is_some_and(|ty| has_gradient(ty.dtype));
    let seeds: Vec<usize> = (0..results.len()).filter(|&index| is_seed(&results[index])).collect();
    let mut pairs = Vec::with_capacity(seeds.len());
    for &index in &seeds {
        let ty = type_of(&graph, results[index])?;
        let dy = back.seed(&format!("dy_{index}"), ty)?;
        pairs.push((back.id(results[index]), dy));
    }
    let sources: Vec<ValueId> = args.iter().map(|&arg| back.id(arg)).collect();
    let asked: Vec<ValueId> =
        sources.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(id, _)| *id).collect();
    let calls: Vec<RecordedCall> = calls.into_iter().map(|call| call.with_ids(&mut back)).collect();
    let inlined: Vec<InlinedCall<ValueId>> =
        inlined.into_iter().map(|call| call.map(|outlet| back.id(outlet))).collect();
    let mut found = backward_through(&mut back, (&calls, &inlined), &pairs, &asked)?.into_iter();
    let mut outlets = Vec::new();
    let mut gradients = Vec::with_capacity(args.len());
    for index in 0..args.len() {
        let cotangent =
            if wanted.get(index) == Some(&true) { found.next().flatten() } else { None };
        gradients.push(match cotangent {
            None => None,
            Some(Cotangent::Dense(id)) => {
                outlets.push(back.outlet(id)?);
                Some(GradientIndex::Dense(outlets.len() - 1))
            }
            Some(Cotangent::Slices(Slices { values, indices })) => {
                outlets.push(back.outlet(values)?);
                outlets.push(back.outlet(indices)?);
                Some(GradientIndex::Slices(outlets.len() - 2))
            }
        });
    }
    let n_seeds = seeds.len();
    let (backward, needed) = back.finish(&format!("{}_backward", def.name), outlets)?;
    let mut all_results: Vec<(String, Outlet)> = results
        .iter()
        .zip(&def.results)
        .map(|(&outlet, (name, _))| (name.clone(), outlet))
        .collect();
    let mut positions: FastMap<Outlet, usize> = FastMap::default();
    for (index, (_, outlet)) in all_results.iter().enumerate() {
        positions.entry(*outlet).or_insert(index);
    }
    let mut kept = Vec::with_capacity(needed.len());
    for outlet in needed {
        if let Some(index) = passed_argument(library, &graph, &arg_nodes, outlet) {
            kept.push(Kept::Argument(index));
            continue;
        }
        kept.push(Kept::Result(*positions.entry(outlet).or_insert_with(|| {
            all_results.push((format!("kept_{}", all_results.len()), outlet));
            all_results.len() - 1
        })));
    }
    debug_assert_eq!(backward.args.len(), n_seeds + kept.len());
    let effectful: Vec<NodeId> = library.effectful_nodes(&graph).collect();
    let forward = FunctionDef {
        name: unique(&format!("{}_forward", def.name)),
        graph,
        args: arg_nodes,
        results: all_results,
        control_results: effectful,
        attrs: def.attrs.clone(),
    };
    Ok(Differentiated {
        forward: Arc::new(forward),
        backward: Arc::new(backward),
        seeds,
        kept,
        gradients,
    })
}

/// Whether gradients of results of this dtype are asked for.
pub(super) fn has_gradient(dtype: DType) -> bool {
    is_differentiable(dtype) && dtype != DType::Resource
}

/// A name that no other function has.
pub(super) fn unique(base: &str) -> Arc<str> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{base}_{}", NEXT.fetch_add(1, Ordering::Relaxed)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attr::{Attrs, NameAttrList},
        build::GraphBuilder,
        shape::Shape,
        spec::ValueType,
        verify,
    };

    fn vector(n: usize) -> ValueType {
        ValueType::new(DType::F32, Shape::new([n]).unwrap())
    }

    /// `f(a, b) = tanh(a * b)`
    fn product() -> FunctionDef {
        let mut builder = GraphBuilder::new();
        let [a, b] = ["a", "b"].map(|name| builder.arg(name, vector(3)).unwrap());
        let product = builder.call("Mul", "product", &[a, b]).unwrap()[0];
        let y = builder.call("Tanh", "y", &[product]).unwrap()[0];
        builder.finish_function("f", &[("y", y)])
    }

    #[test]
    fn what_the_gradient_needs_is_kept() {
        let library = FunctionLibrary::new();
        let parts = differentiate(&library, &product(), &[true, false]).unwrap();
        assert_eq!(parts.seeds, [0]);
        // The other factor, and the result of the function itself.
        assert_eq!(parts.kept, [Kept::Result(0), Kept::Argument(1)]);
        assert_eq!(parts.gradients, [Some(GradientIndex::Dense(0)), None]);
        assert_eq!(parts.forward.results.len(), 1);
        verify::verify_graph(&parts.forward.graph).unwrap();
        verify::verify_graph(&parts.backward.graph).unwrap();
    }

    /// `g(a, b, c) = (a + a, tanh(b), stopped c)`, called by `f`, which returns the results in
    /// `used`.
    fn part_of_a_call(used: &[usize]) -> (FunctionLibrary, FunctionDef) {
        let args = |builder: &mut GraphBuilder| {
            ["a", "b", "c"].map(|name| builder.arg(name, vector(3)).unwrap())
        };
        let mut inner = GraphBuilder::new();
        let [a, b, c] = args(&mut inner);
        let sum = inner.call("AddV2", "sum", &[a, a]).unwrap()[0];
        let tanh = inner.call("Tanh", "tanh", &[b]).unwrap()[0];
        let stop = inner.call("StopGradient", "stop", &[c]).unwrap()[0];
        let results = [("sum", sum), ("tanh", tanh), ("stop", stop)];
        let library = FunctionLibrary::new();
        library.insert(inner.finish_function("g", &results)).unwrap();
        let mut outer = GraphBuilder::new();
        let args = args(&mut outer);
        let floats = vec![DType::F32; 3];
        let attrs = Attrs::new()
            .with("Tin", floats.clone())
            .with("Tout", floats)
            .with("f", NameAttrList::new("g"));
        let called = outer.call_with("PartitionedCall", "call", attrs, &args).unwrap();
        let results: Vec<(&str, Outlet)> = used.iter().map(|&index| ("y", called[index])).collect();
        (library, outer.finish_function("f", &results))
    }

    #[test]
    fn results_of_a_call_have_gradients_together() {
        // What only another result depends on has a gradient of zero; what none depends on, none.
        let (library, def) = part_of_a_call(&[0]);
        let parts = differentiate(&library, &def, &[true; 3]).unwrap();
        let zero_or_more = [Some(GradientIndex::Dense(0)), Some(GradientIndex::Dense(1)), None];
        assert_eq!(parts.gradients, zero_or_more);
        let graph = &parts.backward.graph;
        let is_computed = graph.ids().any(|id| graph[id].op.name() == "TanhGrad");
        assert!(!is_computed, "a gradient of zero is not computed with");
        // A call that nothing depends on has no gradient at all.
        let (library, def) = part_of_a_call(&[]);
        let parts = differentiate(&library, &def, &[true; 3]).unwrap();
        assert_eq!(parts.gradients, [None; 3]);
    }

    #[test]
    fn results_of_a_call_depend_on_all_its_arguments() {
        // g(a, b) = (stopped a, b), and f(a, b) the stopped result of g(b, stopped result of g(a, b)). That
        // of the inner call is returned by the outer one too, so that it has a gradient, so that b has.
        let call = |builder: &mut GraphBuilder, name: &str, args: &[Outlet]| {
            let attrs = Attrs::new()
                .with("Tin", vec![DType::F32; 2])
                .with("Tout", vec![DType::F32; 2])
                .with("f", NameAttrList::new("g"));
            builder.call_with("PartitionedCall", name, attrs, args).unwrap()
        };
        let library = FunctionLibrary::new();
        let mut inner = GraphBuilder::new();
        let [a, b] = ["a", "b"].map(|name| inner.arg(name, vector(3)).unwrap());
        let stop = inner.call("StopGradient", "stop", &[a]).unwrap()[0];
        library.insert(inner.finish_function("g", &[("stop", stop), ("b", b)])).unwrap();
        let mut outer = GraphBuilder::new();
        let args = ["a", "b"].map(|name| outer.arg(name, vector(3)).unwrap());
        let first = call(&mut outer, "first", &args);
        let second = call(&mut outer, "second", &[args[1], first[0]]);
        let def = outer.finish_function("f", &[("y", second[0])]);
        let parts = differentiate(&library, &def, &[true; 2]).unwrap();
        assert_eq!(parts.gradients, [None, Some(GradientIndex::Dense(0))]);
    }

    #[test]
    fn ops_without_a_gradient_are_named_with_their_node() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", vector(3)).unwrap();
        let y = builder.call("PreventGradient", "wall", &[x]).unwrap()[0];
        let def = builder.finish_function("f", &[("y", y)]);
        let error = differentiate(&FunctionLibrary::new(), &def, &[true]).unwrap_err();
        let expected = "PreventGradient is not supported: it has no gradient (node `wall`, op \
                        PreventGradient)";
        assert_eq!(error.to_string(), expected);
        assert!(differentiate(&FunctionLibrary::new(), &def, &[false]).is_ok());
    }

    #[test]
    fn gradients_that_were_not_saved_are_not_made_up() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", vector(3)).unwrap();
        let y = builder.call("Identity", "y", &[x]).unwrap()[0];
        let mut def = builder.finish_function("f", &[("y", y)]);
        let kept =
            Attrs::clone(&def.graph[y.node].attrs).with("_gradient_op_type", "CustomGradient-7");
        *def.graph.node_mut(y.node).attrs = kept.into();
        let error = differentiate(&FunctionLibrary::new(), &def, &[true]).unwrap_err();
        assert!(error.to_string().contains("`CustomGradient-7`"), "{error}");
    }
}
