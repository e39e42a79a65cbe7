//! Attention: the softmax of a matmul, times a matrix, becomes one call that keeps no scores.
//!
//! It comes after [`fuse`](super::fuse), which has made one call of all that happens to the scores
//! between the first product and the softmax: scales, masks, biases. That call's expression goes
//! along. Transpositions of what is multiplied, and of the result, become orders in which the call
//! sees its operands.
//!
//! Scores and weights that anyone else needs (gradients do) stay, and with them all that makes
//! them.

mod matmuls;
#[cfg(test)]
mod tests;

use super::fuse::formula;
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    expr::{Constant, Expr, ExprKind, Prim, Replacement},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
};
use matmuls::{MatmulOperands, Ops, Search, Seen, swap_last};
use std::sync::Arc;

/// Makes one call of each attention in a graph for which `is_profitable` tells that it is
/// profitable for that. `results` are the outlets others will ask for. Calls that nobody needs
/// should have gone, as they count as users; those that nobody needs any more remain.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn attention(
    graph: &mut Graph,
    results: &[Outlet],
    mut gains: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let ops = Ops::find();
    let kept: FastSet<NodeId> = results.iter().map(|outlet| outlet.node).collect();
    let softmaxes: Vec<NodeId> = graph.ids().filter(|&id| ops.is(graph, id, ops.softmax)).collect();
    for id in softmaxes {
        let Some((root, node)) = (Search { graph, kept: &kept, ops: &ops }).around(id) else {
            continue;
        };
        if gains(graph, &node) {
            let inputs = node.inputs().to_vec();
            let old = graph.node_mut(root);
            (*old.op, *old.attrs, *old.expr) = (node.op, node.attrs, node.expr);
            graph.connect(root, inputs, [])?;
        }
    }
    Ok(())
}

/// Scores on their way to the softmax.
struct Scores {
    /// The matmul.
    product: NodeId,
    query: Seen,
    key: Seen,
    /// Of the score, input 0, and of `others`.
    expr: Option<Expr>,
    others: Vec<Outlet>,
}

/// Values that attention weights are multiplied by.
struct Averages {
    /// The matmul.
    product: NodeId,
    value: Seen,
    /// Whether the weights come second, so that the matmul is that of the columns.
    is_swapped: bool,
    /// Where weights that count are true.
    keep: Option<Outlet>,
}

impl Search<'_> {
    /// The attention around a softmax: the call that replaces its last node, and that node.
    fn around(&self, softmax: NodeId) -> Option<(NodeId, NodeDef)> {
        let logits = self.graph[softmax].inputs()[0];
        let scores = self.scores(logits)?;
        let averages = self.averages(softmax)?;
        let rank = scores.query.order.len();
        if [&scores.key, &averages.value].iter().any(|seen| seen.order.len() != rank) {
            return None;
        }
        let (root, order) = self.root(averages.product, rank, averages.is_swapped)?;
        let mut others = scores.others;
        let keep = averages.keep.map(|keep| {
            others.iter().position(|&other| other == keep).unwrap_or_else(|| {
                others.push(keep);
                others.len() - 1
            })
        });
        let dtype = self.ty(averages.value.outlet)?.dtype;
        let operands = [scores.query, scores.key, averages.value];
        let fits = |seen: &Seen| self.ty(seen.outlet).is_some_and(|ty| ty.dtype == dtype);
        let precise = [dtype, DType::F32].contains(&self.ty(logits)?.dtype);
        let nodes = [scores.product, softmax, averages.product];
        let same_device = nodes.iter().all(|&id| self.device(id) == self.device(root));
        if !operands.iter().all(fits) || !dtype.is_float() || !precise || !same_device {
            return None;
        }
        let types: Option<Vec<DType>> =
            others.iter().map(|&other| Some(self.ty(other)?.dtype)).collect();
        let ints = |order: &[usize]| -> Vec<i64> {
            let as_it_is = order.iter().copied().eq(0..rank);
            if as_it_is { Vec::new() } else { order.iter().map(|&axis| axis as i64).collect() }
        };
        let attrs = Attrs::new()
            .with("T", dtype)
            .with("Tothers", types?)
            .with("query_order", ints(&operands[0].order))
            .with("key_order", ints(&operands[1].order))
            .with("value_order", ints(&operands[2].order))
            .with("output_order", ints(&order))
            .with("keep", keep.map_or(-1, |keep| keep as i64));
        let old = &self.graph[root];
        let inputs = operands.iter().map(|seen| seen.outlet).chain(others);
        let mut node = NodeDef::new(old.name.clone(), self.ops.fused, attrs)
            .with_inputs(inputs)
            .with_outputs(old.outputs().iter().cloned());
        node.device = old.device.clone();
        node.expr = scores.expr.map(Arc::new);
        Some((root, node))
    }

    fn device(&self, id: NodeId) -> &str {
        &self.graph[id].device
    }

    /// Logits of a softmax that are made of matmuls, if they are.
    fn scores(&self, logits: Outlet) -> Option<Scores> {
        self.only_user(logits)?;
        if let Some(MatmulOperands { node, a, b }) = self.scores_matmul(logits) {
            let (query, key, others) = (a, b.swapped(), Vec::new());
            return Some(Scores { product: node, query, key, expr: None, others });
        }
        let (expr, inputs) = formula(self.graph, logits.node)?;
        let shape = &self.ty(logits)?.shape;
        let (at, product) = inputs.iter().enumerate().find_map(|(at, &input)| {
            self.only_user(input)?;
            let matmul = self.scores_matmul(input)?;
            (self.ty(input)?.shape == *shape).then_some((at, matmul))
        })?;
        let dtype = |outlet: Outlet| self.ty(outlet).map(|ty| ty.dtype);
        let mut others = inputs.clone();
        others.remove(at);
        let position = |index: usize| match index {
            index if index == at => 0,
            index if index < at => index + 1,
            index => index,
        };
        let moved: Option<Vec<Replacement<'_>>> = inputs
            .iter()
            .enumerate()
            .map(|(index, &input)| Some(Replacement::Input(position(index), dtype(input)?)))
            .collect();
        let expr = Some(expr.substitute(&moved?));
        let MatmulOperands { node, a, b } = product;
        Some(Scores { product: node, query: a, key: b.swapped(), expr, others })
    }

    /// The matmul that scores are, perhaps written by columns.
    fn scores_matmul(&self, scores: Outlet) -> Option<MatmulOperands> {
        if let Some(product) = self.matmul(scores.node) {
            return Some(product);
        }
        let mut order = self.permutation(scores.node)?;
        swap_last(&mut order);
        let source = self.graph[scores.node].inputs()[0];
        self.only_user(source).filter(|_| order.iter().copied().eq(0..order.len()))?;
        let MatmulOperands { node, a, b } = self.matmul(source.node)?;
        Some(MatmulOperands { node, a: b.swapped(), b: a.swapped() })
    }

    /// Matmul that the weights from a softmax go into.
    fn averages(&self, softmax: NodeId) -> Option<Averages> {
        let mut weights = Outlet::from(softmax);
        let mut user = self.only_user(weights)?;
        let mut keep = None;
        if let Some((expr, inputs)) = formula(self.graph, user) {
            let own = inputs.iter().position(|&input| input == weights)?;
            keep = selection(&expr, own)?.map(|mask| inputs[mask]);
            if self.ty(user.into())?.shape != self.ty(weights)?.shape {
                return None;
            }
            weights = user.into();
            user = self.only_user(weights)?;
        }
        let node = &self.graph[user];
        let first = node.inputs().first() == Some(&weights);
        // Transpositions of the weights are left alone: each is seen as it is given.
        let MatmulOperands { a, b, .. } = self.matmul(user)?;
        let (own, value) = if first { (a, b) } else { (b.swapped(), a.swapped()) };
        let as_they_are = own.outlet == weights && own.order.iter().copied().eq(0..own.order.len());
        as_they_are.then_some(Averages { product: user, value, is_swapped: !first, keep })
    }

    /// The last of a matmul and the transpositions after it whose rows are contiguous, and the
    /// order in which it sees the product.
    fn root(&self, product: NodeId, rank: usize, is_swapped: bool) -> Option<(NodeId, Vec<usize>)> {
        let mut order: Vec<usize> = (0..rank).collect();
        if is_swapped {
            swap_last(&mut order);
        }
        if self.elements(product.into())? != rank {
            return None;
        }
        let (mut at, mut found) = (product, None);
        loop {
            if order[rank - 1] == rank - 1 {
                found = Some((at, order.clone()));
            }
            let Some(user) = self.only_user(at.into()) else { return found };
            let Some(next) = self.permutation(user) else { return found };
            if self.graph[user].inputs()[0] != at.into() || self.device(user) != self.device(at) {
                return found;
            }
            order = next.into_iter().map(|axis| order[axis]).collect();
            at = user;
        }
    }
}

/// Whether an expression of weights, input `weights`, rounds them at most and makes some of them
/// zero; if so, the input that is true where it does not.
fn selection(expr: &Expr, weights: usize) -> Option<Option<usize>> {
    let nodes = expr.nodes();
    let (mut at, mut keep) = (expr.root().index(), None);
    loop {
        let node = &nodes[at];
        if !node.dtype.is_float() {
            return None;
        }
        match &node.kind {
            ExprKind::Input(input) => return (*input == weights).then_some(keep),
            ExprKind::Apply(Prim::Cast | Prim::Flush, args) => at = args[0].index(),
            ExprKind::Apply(Prim::Select, args) if keep.is_none() => {
                let ExprKind::Input(mask) = nodes[args[0].index()].kind else { return None };
                if !is_zero(expr, args[2].index()) {
                    return None;
                }
                (keep, at) = (Some(mask), args[1].index());
            }
            ExprKind::Apply(..) | ExprKind::Const(_) | ExprKind::Reduce(..) => return None,
        }
    }
}

fn is_zero(expr: &Expr, at: usize) -> bool {
    match &expr.nodes()[at].kind {
        ExprKind::Const(Constant::Float(value)) => *value == 0.0,
        ExprKind::Const(Constant::Int(value)) => *value == 0,
        ExprKind::Apply(Prim::Cast | Prim::Flush, args) => is_zero(expr, args[0].index()),
        ExprKind::Input(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => false,
    }
}
