//! Reductions over the same axes, with what is computed before, between and after them.

use super::{Inputs, MAX_INPUTS, MAX_OPERATIONS, Region, Search, formula, is_safe_elementwise};
use crate::{
    attr::Attrs,
    dtype::DType,
    expr::{Expr, Replacement},
    graph::{NodeId, OpRef, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    infer::reduced_axes,
    op::{AliasKind, Lowering, ReduceKind},
    ops::names,
    registry,
    shape::Shape,
};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Nodes that are looked at for a reduction, and those of a region.
const MOST_LOOKED_AT: usize = 64;

/// The elements of a region, and the axes along which it reduces.
#[derive(Clone, PartialEq)]
struct Space {
    shape: Shape,
    reduced: SmallVec<[bool; 6]>,
}

impl Space {
    /// The shape of a reduction that keeps its dimensions.
    fn rows(&self) -> Option<Shape> {
        let dims = self.shape.iter().zip(&self.reduced);
        Shape::new(dims.map(|(&size, &reduced)| if reduced { 1 } else { size })).ok()
    }
}

/// A node that reduces.
enum Reduction {
    Op { kind: ReduceKind, keep_dims: bool },
    Softmax { is_log: bool },
}

/// The region of reductions that ends with a node.
pub(super) fn around(search: &Search<'_>, root: NodeId) -> Option<Region> {
    let node = &search.graph[root];
    if !node.controls().is_empty() || node.outputs().len() != 1 {
        return None;
    }
    let space = find_space(search, root)?;
    let members = absorb(search, root, &space);
    let computed = members.iter().filter(|&&id| kept(search, id).is_none());
    if computed.count() < 2 || !members.iter().any(|&id| reduction(search, id).is_some()) {
        return None;
    }
    let mut build =
        Build { search, members: &members, inputs: Inputs::default(), known: FastMap::default() };
    let expr = build.value(root.into())?;
    let inputs = build.inputs.all;
    if inputs.is_empty() || inputs.len() > MAX_INPUTS || expr.nodes().len() > MAX_OPERATIONS {
        return None;
    }
    // The inputs alone have to tell the shape.
    let shapes: Option<Vec<Shape>> = inputs.iter().map(|&input| search.shape(input)).collect();
    let all = shapes?.into_iter().try_fold(Shape::scalar(), |all, shape| all.broadcast(&shape));
    if all.ok()? != space.shape {
        return None;
    }
    let keeps =
        !matches!(reduction(search, root), Some((Reduction::Op { keep_dims: false, .. }, _)));
    let axes: Vec<i64> = (0..space.shape.rank())
        .filter(|&axis| space.reduced[axis])
        .map(|axis| axis as i64)
        .collect();
    let attrs = Attrs::new()
        .with("axes", axes)
        .with("reduces", search.shape(root.into())? != space.shape)
        .with("keep_dims", keeps);
    Some(Region { attrs, expr, inputs, members })
}

/// The space of the nearest reduction that a node is computed from, if the node's shape is that of
/// its elements or of its rows.
fn find_space(search: &Search<'_>, root: NodeId) -> Option<Space> {
    let own = search.shape(root.into())?;
    let (mut queue, mut seen) = (VecDeque::from([root]), FastSet::from_iter([root]));
    while let Some(id) = queue.pop_front() {
        let of_kept = kept(search, id);
        if let Some((kind, space)) = reduction(search, of_kept.unwrap_or(id)) {
            let rows = space.rows()?;
            let drops = of_kept.is_none() && matches!(kind, Reduction::Op { keep_dims: false, .. });
            let fits = own == space.shape || own == rows;
            if space.shape != rows && space.shape.num_elements() > 0 && (fits || id == root) {
                return (id == root || !drops).then_some(space);
            }
        } else if !is_elementwise(search, id) {
            continue;
        }
        for input in search.graph[id].inputs() {
            if seen.len() < MOST_LOOKED_AT && seen.insert(input.node) {
                queue.push_back(input.node);
            }
        }
    }
    None
}

fn is_elementwise(search: &Search<'_>, id: NodeId) -> bool {
    let op = search.graph[id].op.def();
    op.is_some_and(|op| matches!(op.lowering, Lowering::Elementwise(_) | Lowering::Fused))
}

/// The nodes of the region: all that only it reads, and that its space allows, those near its end
/// first. A node that has readers outside is looked at again when one of them joins.
fn absorb(search: &Search<'_>, root: NodeId, space: &Space) -> FastSet<NodeId> {
    let (mut members, rows) = (FastSet::from_iter([root]), space.rows());
    let fits = |id: NodeId| match reduction(search, id) {
        Some((Reduction::Op { keep_dims: false, .. }, _)) => false,
        Some((_, own)) => own == *space,
        None => {
            let shape = search.shape(id.into());
            let fits = shape.as_ref() == Some(&space.shape) || shape == rows;
            fits && is_safe_elementwise(search.graph, id)
        }
    };
    let sources = |id: NodeId| search.graph[id].inputs().iter().map(|input| input.node);
    let mut queue: VecDeque<NodeId> = sources(root).collect();
    while let Some(id) = queue.pop_front() {
        if members.len() >= MOST_LOOKED_AT || members.contains(&id) {
            continue;
        }
        let is_in = |reader: NodeId| members.contains(&reader);
        let joins = |id: NodeId| search.may_join(id, root, is_in);
        let joins_with = |id: NodeId, other: NodeId| {
            search.may_join(id, root, |reader| reader == other || is_in(reader))
        };
        if let Some(reduced) = kept(search, id) {
            let is_own = reduction(search, reduced).is_some_and(|(_, own)| own == *space);
            if is_own && joins(id) && joins_with(reduced, id) {
                members.extend([id, reduced]);
                queue.extend(sources(reduced));
            }
        } else if joins(id) && fits(id) {
            members.insert(id);
            queue.extend(sources(id));
        }
    }
    members
}

/// The reduction whose dimensions a node brings back, with size 1: a reshape or the like, as the
/// result of some programs has in place of `keep_dims`.
fn kept(search: &Search<'_>, id: NodeId) -> Option<NodeId> {
    let node = &search.graph[id];
    if !matches!(node.op.def()?.lowering, Lowering::Alias(AliasKind::Reinterpret)) {
        return None;
    }
    let reduced = node.inputs().first()?.node;
    let (kind, space) = reduction(search, reduced)?;
    let drops = matches!(kind, Reduction::Op { keep_dims: false, .. });
    (drops && search.shape(id.into()) == space.rows()).then_some(reduced)
}

/// The reduction that a node is, and where it is computed.
fn reduction(search: &Search<'_>, id: NodeId) -> Option<(Reduction, Space)> {
    let node = &search.graph[id];
    let op = node.op.def()?;
    let shape = search.shape(*node.inputs().first()?)?;
    if let Lowering::Reduce(kind) = op.lowering {
        let known = [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min];
        let axes = constant(search, *node.inputs().get(1)?)?.to_i64s().ok()?;
        let reduced = reduced_axes(&axes, shape.rank()).ok()?;
        let keep_dims = node.attrs.bool("keep_dims").ok()?;
        let kind = Reduction::Op { kind, keep_dims };
        return known
            .contains(match &kind {
                Reduction::Op { kind, .. } => kind,
                Reduction::Softmax { .. } => return None,
            })
            .then_some((kind, Space { shape, reduced }));
    }
    let is = |name: &str| registry::find(name).is_some_and(|op| node.op == OpRef::Known(op));
    let is_log = is(names::LOG_SOFTMAX);
    if !is_log && !is(names::SOFTMAX) {
        return None;
    }
    let rank = shape.rank();
    let reduced = (0..rank).map(|axis| axis + 1 == rank).collect();
    Some((Reduction::Softmax { is_log }, Space { shape, reduced }))
}

fn constant<'a>(search: &Search<'a>, outlet: Outlet) -> Option<&'a HostTensor> {
    search.graph[outlet.node].constant()
}

/// Makes the expression of a region.
struct Build<'a> {
    search: &'a Search<'a>,
    members: &'a FastSet<NodeId>,
    inputs: Inputs,
    known: FastMap<NodeId, Expr>,
}

impl Build<'_> {
    fn value(&mut self, outlet: Outlet) -> Option<Expr> {
        let dtype = self.search.graph.ty(outlet)?.dtype;
        if !self.members.contains(&outlet.node) {
            return Some(Expr::input(self.inputs.position(outlet), dtype));
        }
        if let Some(known) = self.known.get(&outlet.node) {
            return Some(known.clone());
        }
        let expr = self.member(outlet.node)?;
        // Chains of many readers would double it again and again.
        if expr.nodes().len() > MAX_OPERATIONS {
            return None;
        }
        self.known.insert(outlet.node, expr.clone());
        Some(expr)
    }

    fn member(&mut self, id: NodeId) -> Option<Expr> {
        let search = self.search;
        if let Some(reduced) = kept(search, id) {
            return self.value(reduced.into());
        }
        if let Some((reduction, _)) = reduction(search, id) {
            let input = self.value(search.graph[id].inputs()[0])?;
            return match reduction {
                Reduction::Op { kind, .. } => Some(input.reduced(kind)),
                Reduction::Softmax { is_log } => softmax(&input, is_log),
            };
        }
        let (expr, inputs) = formula(search.graph, id)?;
        let values: Option<Vec<Expr>> = inputs.into_iter().map(|input| self.value(input)).collect();
        let values = values?;
        let replacements: Vec<Replacement<'_>> = values.iter().map(Replacement::Expr).collect();
        Some(expr.substitute(&replacements))
    }
}

/// The softmax of an expression over its row, or the logarithm of that, in the type of sums.
pub fn softmax(x: &Expr, is_log: bool) -> Option<Expr> {
    let (own, wide) = (x.dtype(), x.dtype().compute_type());
    let none = Attrs::new();
    let x = Expr::build(&none, &[own], wide, |s| s.x(0)).ok()?.substitute(&[Replacement::Expr(x)]);
    let largest = x.reduced(ReduceKind::Max);
    let exponential = Expr::build(&none, &[wide; 2], wide, |s| (s.x(0) - s.x(1)).exp()).ok()?;
    let exponential = exponential.substitute(&[Replacement::Expr(&x), Replacement::Expr(&largest)]);
    let sum = exponential.reduced(ReduceKind::Sum);
    let types: [DType; 3] = [wide; 3];
    let result = match is_log {
        true => Expr::build(&none, &types, own, |s| s.x(0) - s.x(1) - s.x(2).log()),
        false => Expr::build(&none, &types, own, |s| s.x(0) * (s.value(1.0, wide) / s.x(2))),
    };
    let first = if is_log { &x } else { &exponential };
    Some(result.ok()?.substitute(&[
        Replacement::Expr(first),
        Replacement::Expr(&largest),
        Replacement::Expr(&sum),
    ]))
}
