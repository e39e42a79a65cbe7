//! Matmuls, and the transpositions around them.

use crate::{
    graph::{Graph, NodeId, OpRef, Outlet},
    hash::FastSet,
    op::OpDef,
    ops::names,
    pass::call::call_views,
    registry,
    spec::ValueType,
};

/// The ops that attention is made of.
pub(super) struct Ops {
    pub(super) softmax: &'static OpDef,
    pub(super) fused: &'static OpDef,
}

impl Ops {
    pub(super) fn find() -> Ops {
        let op = |name| registry::find(name).expect("a built-in record");
        Ops { softmax: op(names::SOFTMAX), fused: op(names::FUSED_ATTENTION) }
    }

    pub(super) fn is(&self, graph: &Graph, id: NodeId, op: &'static OpDef) -> bool {
        graph[id].op == OpRef::Known(op)
    }
}

/// A tensor, seen with its dimensions in another order: dimension `i` is its dimension `order[i]`.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) outlet: Outlet,
    pub(super) order: Vec<usize>,
}

impl Seen {
    /// The last two dimensions exchanged.
    pub(super) fn swapped(mut self) -> Seen {
        swap_last(&mut self.order);
        self
    }
}

pub(super) fn swap_last(order: &mut [usize]) {
    let rank = order.len();
    order.swap(rank - 2, rank - 1);
}

/// Factors of a matmul, each as it is used: `[batch…, m, k]` and `[batch…, k, n]`.
pub(super) struct MatmulOperands {
    pub(super) node: NodeId,
    pub(super) a: Seen,
    pub(super) b: Seen,
}

/// A graph in which something is looked for.
pub(super) struct Search<'a> {
    pub(super) graph: &'a Graph,
    /// Nodes whose results are asked for from outside.
    pub(super) kept: &'a FastSet<NodeId>,
    pub(super) ops: &'a Ops,
}

impl Search<'_> {
    pub(super) fn ty(&self, outlet: Outlet) -> Option<&ValueType> {
        self.graph.ty(outlet)
    }

    /// The node that alone uses a value, once, if others do not ask for it.
    pub(super) fn only_user(&self, outlet: Outlet) -> Option<NodeId> {
        let mut users = self.graph.consumers(outlet.node);
        let user = users.next().filter(|_| users.next().is_none())?;
        let uses = self.graph[user].inputs().iter().filter(|input| input.node == outlet.node);
        (uses.count() == 1 && !self.kept.contains(&outlet.node)).then_some(user)
    }

    /// The matmul that a node is, of operands whose sizes are known and not 0.
    pub(super) fn matmul(&self, id: NodeId) -> Option<MatmulOperands> {
        let node = &self.graph[id];
        let flags = node.op.def()?.matmul?;
        let operand = |index: usize| {
            let outlet = node.inputs()[index];
            let rank = self.elements(outlet)?;
            let mut order: Vec<usize> = (0..rank).collect();
            if node.attrs.bool(flags[index]).ok()? {
                swap_last(&mut order);
            }
            Some(self.untransposed(Seen { outlet, order }))
        };
        Some(MatmulOperands { node: id, a: operand(0)?, b: operand(1)? })
    }

    /// The rank of a value of known shape that is not empty.
    pub(super) fn elements(&self, outlet: Outlet) -> Option<usize> {
        let shape = self.ty(outlet)?.shape.known()?;
        (shape.num_elements() > 0).then_some(shape.rank())
    }

    /// The tensor behind transpositions that no other node needs, as long as its rows or columns
    /// are contiguous.
    fn untransposed(&self, mut seen: Seen) -> Seen {
        while let Some(order) = self.permutation(seen.outlet.node)
            && self.only_user(seen.outlet).is_some()
        {
            let inner: Vec<usize> = seen.order.iter().map(|&axis| order[axis]).collect();
            let rank = inner.len();
            if !inner[rank - 2..].contains(&(rank - 1)) {
                break;
            }
            seen = Seen { outlet: self.graph[seen.outlet.node].inputs()[0], order: inner };
        }
        seen
    }

    /// The order in which a node puts the dimensions of its input, if that is all it does.
    pub(super) fn permutation(&self, id: NodeId) -> Option<Vec<usize>> {
        let node = &self.graph[id];
        let [view] = &call_views(self.graph, node)?[..] else { return None };
        let source = self.ty(*node.inputs().first()?)?.shape.known()?;
        let result = self.ty(id.into())?.shape.known()?;
        // Loops of a view are not dimensions of its result: a slice may add and drop some of size 1.
        if !view.dims.iter().map(|dim| dim.size).eq(result.iter().copied()) {
            return None;
        }
        let (strides, rank) = (source.strides(), source.rank());
        let mut order: Vec<usize> = Vec::new();
        for (axis, dim) in view.dims.iter().enumerate() {
            let fits = |own: &usize| {
                let same = dim.size == 1 || dim.stride == strides[*own] as isize;
                !order.contains(own) && dim.size == source[*own] && same
            };
            let own = (axis < rank && fits(&axis)).then_some(axis);
            order.push(own.or_else(|| (0..rank).find(fits))?);
        }
        (view.offset == 0 && order.len() == rank && rank >= 2).then_some(order)
    }
}
