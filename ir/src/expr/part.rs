//! Expressions taken apart, and the reductions in them.

use super::{Constant, Expr, ExprId, ExprKind, ExprNode, Prim, add};
use crate::{dtype::DType, hash::FastMap, op::ReduceKind};
use smallvec::SmallVec;
use std::collections::BTreeSet;

impl Expr {
    /// The expression that is one input.
    pub fn input(position: usize, dtype: DType) -> Expr {
        let kind = ExprKind::Input(position);
        Expr::of_one(vec![ExprNode { kind, dtype }], ExprId(0), None)
    }

    /// The reduction of this expression over the reduced axes of a region.
    #[must_use]
    pub fn reduced(&self, kind: ReduceKind) -> Expr {
        let node = ExprNode { kind: ExprKind::Reduce(kind, self.root), dtype: self.dtype() };
        self.with_root(node)
    }

    /// A function of this expression and of input `position`, which has its dtype.
    #[must_use]
    pub fn combined(&self, prim: Prim, position: usize) -> Expr {
        let dtype = self.dtype();
        let input = self.with_root(ExprNode { kind: ExprKind::Input(position), dtype });
        let args = SmallVec::from_slice(&[self.root, input.root]);
        input.with_root(ExprNode { kind: ExprKind::Apply(prim, args), dtype })
    }

    /// A function of this expression alone, which has its dtype.
    #[must_use]
    pub fn applied(&self, prim: Prim) -> Expr {
        let args = SmallVec::from_slice(&[self.root]);
        self.with_root(ExprNode { kind: ExprKind::Apply(prim, args), dtype: self.dtype() })
    }

    fn with_root(&self, node: ExprNode) -> Expr {
        let mut nodes = self.nodes.clone();
        let known = nodes.iter().position(|known| *known == node);
        let root = known.unwrap_or_else(|| {
            nodes.push(node);
            nodes.len() - 1
        });
        Expr::of_one(nodes, ExprId(root as u32), self.fault)
    }

    /// The expression of node `root`, with the nodes for which `cut` returns a position as inputs.
    #[must_use]
    pub fn part(&self, root: ExprId, cut: impl Fn(ExprId) -> Option<usize>) -> Expr {
        let (mut nodes, mut known) = (Vec::new(), FastMap::default());
        let mut ids: Vec<ExprId> = Vec::with_capacity(root.index() + 1);
        for (index, node) in self.nodes[..=root.index()].iter().enumerate() {
            let mut node = node.clone();
            match cut(ExprId(index as u32)) {
                Some(position) => node.kind = ExprKind::Input(position),
                None => {
                    let args = node.kind.args_mut();
                    args.iter_mut().for_each(|arg| *arg = ids[arg.index()]);
                }
            }
            ids.push(add(&mut nodes, &mut known, node));
        }
        Expr::of_one(nodes, ids[root.index()], self.fault).without_dead_nodes()
    }

    /// The same over those of its inputs alone that it uses, and their positions before, in order.
    #[must_use]
    pub fn compacted(&self) -> (Expr, Vec<usize>) {
        let position = |node: &ExprNode| match node.kind {
            ExprKind::Input(position) => Some(position),
            ExprKind::Const(_) | ExprKind::Apply(..) | ExprKind::Reduce(..) => None,
        };
        let used: BTreeSet<usize> = self.nodes.iter().filter_map(position).collect();
        let used: Vec<usize> = used.into_iter().collect();
        let mut nodes = self.nodes.clone();
        for node in &mut nodes {
            if let ExprKind::Input(position) = &mut node.kind {
                *position = used.partition_point(|used| used < position);
            }
        }
        (Expr { nodes, root: self.root, others: self.others.clone(), fault: self.fault }, used)
    }

    /// The same with a multiplication by the reciprocal for each division of floats by a node that
    /// `is_divisor` chooses.
    #[must_use]
    pub fn with_reciprocals(&self, is_divisor: impl Fn(ExprId) -> bool) -> Expr {
        let (mut nodes, mut known) = (Vec::new(), FastMap::default());
        let mut ids: Vec<ExprId> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut node = node.clone();
            if let ExprKind::Apply(Prim::Div, args) = &mut node.kind
                && node.dtype.is_float()
                && is_divisor(args[1])
            {
                let (dtype, divisor) = (node.dtype, ids[args[1].index()]);
                let kind = ExprKind::Const(Constant::Float(1.0));
                let one = add(&mut nodes, &mut known, ExprNode { kind, dtype });
                let kind = ExprKind::Apply(Prim::Div, SmallVec::from_slice(&[one, divisor]));
                let reciprocal = add(&mut nodes, &mut known, ExprNode { kind, dtype });
                let args = SmallVec::from_slice(&[ids[args[0].index()], reciprocal]);
                node.kind = ExprKind::Apply(Prim::Mul, args);
            } else {
                node.kind.args_mut().iter_mut().for_each(|arg| *arg = ids[arg.index()]);
            }
            ids.push(add(&mut nodes, &mut known, node));
        }
        Expr::of_one(nodes, ids[self.root.index()], self.fault).without_dead_nodes()
    }

    /// The nodes with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (ExprId, &ExprNode)> {
        self.nodes.iter().enumerate().map(|(index, node)| (ExprId(index as u32), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attr::Attrs, expr::Replacement};

    #[test]
    fn parts_have_the_nodes_that_are_cut_as_inputs() {
        let x = Expr::input(0, DType::F32);
        let largest = x.reduced(ReduceKind::Max);
        let centred =
            Expr::build(&Attrs::new(), &[DType::F32; 2], DType::F32, |s| (s.x(0) - s.x(1)).exp());
        let centred = centred
            .unwrap()
            .substitute(&[Replacement::Input(0, DType::F32), Replacement::Expr(&largest)]);
        assert!(centred.reduces());
        let reduced = centred.iter().find(|(_, node)| matches!(node.kind, ExprKind::Reduce(..)));
        let (reduced, _) = reduced.unwrap();
        let part = centred.part(centred.root(), |id| (id == reduced).then_some(1));
        assert!(!part.reduces());
        assert_eq!((part.n_inputs(), part.nodes().len()), (2, centred.nodes().len()));
        assert_eq!(x.combined(Prim::Add, 3).nodes().len(), 3);
    }
}
