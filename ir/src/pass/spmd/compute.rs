//! Nodes without effects: how they are computed on pieces.

use super::{
    local::is_op,
    report::CollectiveKind,
    rules::{self, Dims, Factors, RuleCall},
    sharding::{Partial, Sharding},
    walk::{LocalValue, Walk},
};
use crate::{
    dtype::DType,
    error::Result,
    expr::{Expr, ExprKind, Prim},
    graph::{NodeDef, NodeId, Outlet},
    op::{AliasKind, Lowering, OpDef},
    ops::names,
    shape::Shape,
};
use std::collections::HashMap;

/// The mesh dimension that splits each factor, if one does.
type Assignment = HashMap<usize, usize>;

impl Walk<'_> {
    /// Adds a node without effects.
    pub(super) fn compute(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        if let Lowering::Alias(kind) = op.lowering
            && self.alias(id, kind)?
        {
            self.note(id, false);
            return Ok(());
        }
        let call = RuleCall { graph: self.source(), node, op };
        let factors = rules::factors(&call);
        let gathered = match factors {
            Some(factors) => self.by_factors(id, op, &factors).map(|()| false)?,
            None => {
                let gathered = self.has_split_operand(node);
                self.on_whole(id, op)?;
                gathered
            }
        };
        self.note(id, gathered);
        Ok(())
    }

    /// Adds a node that every device computes with whole operands.
    pub(super) fn on_whole(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let node = &self.source()[id];
        let inputs = self.whole_operands(node)?;
        let results = node.outputs().iter().map(|ty| Sharding::replicated(ty.shape.rank()));
        self.add(id, op, &inputs, results.collect())
    }

    fn by_factors(&mut self, id: NodeId, op: &'static OpDef, factors: &Factors) -> Result<()> {
        let node = &self.source()[id];
        let values: Vec<LocalValue> =
            node.inputs().iter().map(|&input| self.value(input)).collect::<Result<_>>()?;
        let partial = self.kept_partial(node, op, &values);
        let assignment = self.assign(node, factors, &values);
        let mut inputs = Vec::with_capacity(values.len());
        for (&input, dims) in node.inputs().iter().zip(&factors.operands) {
            let mut want = match dims {
                Some(dims) => split(dims, &assignment),
                None => self.replicated(input)?,
            };
            want.partial = partial.filter(|_| dims.is_some());
            inputs.push(self.in_sharding(input, &want, &node.name)?);
        }
        self.change_sizes(node, factors, &assignment, &mut inputs)?;
        let terms = terms(factors, &assignment).or(partial);
        let result = |dims: &Dims| Sharding { partial: terms, ..split(dims, &assignment) };
        let results = factors.results.iter().map(result).collect();
        self.add(id, op, &inputs, results)
    }

    /// Replaces the shape operands that name sizes of pieces.
    fn change_sizes(
        &mut self,
        node: &NodeDef,
        factors: &Factors,
        assignment: &Assignment,
        inputs: &mut [Outlet],
    ) -> Result<()> {
        for sizes in &factors.sizes {
            let parts = |factor: &Option<usize>| {
                let dim = factor.and_then(|factor| assignment.get(&factor));
                dim.map_or(1, |&dim| self.mesh.dim_size(dim)) as i64
            };
            if sizes.entries.iter().all(|(_, factor)| parts(factor) == 1) {
                continue;
            }
            let pieces: Vec<i64> =
                sizes.entries.iter().map(|(size, factor)| size / parts(factor)).collect();
            let dtype = self.ty(node.inputs()[sizes.input])?.dtype;
            let name = format!("{}/sizes", node.name);
            inputs[sizes.input] = self.local.sizes(&name, &pieces, dtype)?;
        }
        Ok(())
    }

    /// The mesh dimension that splits each factor. Splits that most bytes have already win.
    fn assign(&self, node: &NodeDef, factors: &Factors, values: &[LocalValue]) -> Assignment {
        let mut votes: Vec<((usize, usize), usize)> = Vec::new();
        for ((value, dims), &input) in values.iter().zip(&factors.operands).zip(node.inputs()) {
            let Some(dims) = dims else { continue };
            let weight = self.whole_bytes(input).max(1);
            for (factor, mesh_dim) in dims.iter().zip(&value.sharding.dims) {
                let (Some(factor), Some(mesh_dim)) = (*factor, *mesh_dim) else { continue };
                let vote = (factor, mesh_dim);
                match votes.iter_mut().find(|(known, _)| *known == vote) {
                    Some((_, sum)) => *sum = sum.saturating_add(weight),
                    None => votes.push((vote, weight)),
                }
            }
        }
        votes.sort_by_key(|&(vote, weight)| (std::cmp::Reverse(weight), vote));
        let mut assignment = Assignment::new();
        for ((factor, mesh_dim), _) in votes {
            let is_taken = assignment.values().any(|&taken| taken == mesh_dim);
            if !is_taken && can_split(factors, factor) {
                assignment.entry(factor).or_insert(mesh_dim);
            }
        }
        assignment
    }

    fn whole_bytes(&self, outlet: Outlet) -> usize {
        let ty = self.source().ty(outlet);
        let bytes = ty.and_then(|ty| Some(ty.shape.known()?.num_elements() * ty.dtype.size()?));
        bytes.unwrap_or(0)
    }

    /// The partial state of operands that the result of a node may have as well: sums of terms are
    /// terms of the sum, and elements that are moved stay what they are. Terms that others use too are merged
    /// first, once for all.
    fn kept_partial(
        &self,
        node: &NodeDef,
        op: &'static OpDef,
        values: &[LocalValue],
    ) -> Option<Partial> {
        let partial = values.first()?.sharding.partial?;
        let is_last_use = |input: &Outlet| self.uses.get(input) == Some(&1);
        if let Lowering::View(_) = op.lowering {
            return is_last_use(&node.inputs()[0]).then_some(partial);
        }
        let is_same = |value: &LocalValue| value.sharding.partial == Some(partial);
        let result = &node.outputs().first()?.shape;
        let is_alike = |input: &Outlet| {
            self.source().ty(*input).is_some_and(|ty| ty.shape == *result) && is_last_use(input)
        };
        let can = partial.merge.is_linear()
            && values.iter().all(is_same)
            && node.inputs().iter().all(is_alike)
            && self.is_sum(node, op);
        can.then_some(partial)
    }

    /// Whether a node adds, subtracts or negates its operands, and no more.
    fn is_sum(&self, node: &NodeDef, op: &'static OpDef) -> bool {
        let types: Option<Vec<DType>> =
            node.inputs().iter().map(|&input| Some(self.source().ty(input)?.dtype)).collect();
        let (Some(types), Some(result)) = (types, node.outputs().first()) else { return false };
        let Lowering::Elementwise(_) = op.lowering else { return false };
        let Ok(expr) = Expr::of(op, &node.attrs, &types, result.dtype) else { return false };
        expr.nodes().iter().all(|part| match &part.kind {
            ExprKind::Input(_) => true,
            ExprKind::Apply(prim, _) => {
                matches!(prim, Prim::Add | Prim::Sub | Prim::Neg | Prim::Flush)
            }
            ExprKind::Const(_) | ExprKind::Reduce(..) => false,
        })
    }

    /// Adds an alias; `false` if it is to be computed with its operand whole.
    fn alias(&mut self, id: NodeId, kind: AliasKind) -> Result<bool> {
        let node = &self.source()[id];
        let (input, result) = (node.inputs()[0], &node.outputs()[0]);
        let LocalValue { outlet, sharding } = self.value(input)?;
        let ty = self.ty(input)?;
        if kind == AliasKind::Identity {
            self.set(id.into(), outlet, sharding);
            return Ok(true);
        }
        let (Some(from), Some(to)) = (ty.shape.known(), result.shape.known()) else {
            return Ok(false);
        };
        if ty.dtype != result.dtype {
            return Ok(false);
        }
        let (operand, split) = reshaped(&sharding, &from, &to, |dim| self.mesh.dim_size(dim));
        let is_last_use = self.uses.get(&input) == Some(&1);
        let partial = sharding.partial.filter(|_| is_last_use);
        let want = Sharding { partial, ..operand };
        let outlet = self.in_sharding(input, &want, &node.name)?;
        let piece = split.piece_shape(&self.mesh, &result.shape).known().unwrap_or_default();
        let piece = self.local.reshape(&node.name, outlet, piece.dims())?;
        self.set(id.into(), piece, Sharding { partial, ..split });
        Ok(true)
    }

    /// Adds a node that looks at the shape of its operand only: it is that of the whole value.
    pub(super) fn of_shape(&mut self, id: NodeId, op: &'static OpDef) -> Result<()> {
        let gathered = self.has_split_operand(&self.source()[id]);
        self.on_whole(id, op)?;
        self.note(id, gathered);
        Ok(())
    }

    /// Adds a gather from a table that is split along the axis of the indices: each device looks up what
    /// it has and contributes zeros for the rest. `false` if the node is none, or its table is not split so.
    pub(super) fn lookup(&mut self, id: NodeId) -> Result<bool> {
        let node = &self.source()[id];
        if !is_op(node, names::GATHER_V2) || node.attrs.int("batch_dims")? != 0 {
            return Ok(false);
        }
        let found = super::lookup::lookup(self, id)?;
        if found {
            self.note(id, false);
        }
        Ok(found)
    }

    pub(super) fn note_broadcast(&mut self, source: Outlet, sent: Outlet) {
        let all = (1u32 << self.mesh.rank()) - 1;
        let name = &self.source()[source.node].name;
        self.note_collective(CollectiveKind::Broadcast, source, name, all, sent);
    }
}

/// Whether a factor may be split: it is in every result, or there is a reduction for its terms.
fn can_split(factors: &Factors, factor: usize) -> bool {
    let is_in = |dims: &Dims| dims.contains(&Some(factor));
    factors.results.iter().all(is_in)
        || (factors.merges.iter().any(|(merged, _)| *merged == factor)
            && !factors.results.iter().any(is_in))
}

/// The partial state of the results of a node whose factors are split so. Factors of different reductions
/// are not split together.
fn terms(factors: &Factors, assignment: &Assignment) -> Option<Partial> {
    let mut terms: Option<Partial> = None;
    for (factor, merge) in &factors.merges {
        if let Some(mesh_dim) = assignment.get(factor) {
            let dims = terms.map_or(0, |partial| partial.dims) | 1 << mesh_dim;
            terms = Some(Partial { dims, merge: *merge });
        }
    }
    terms
}

fn split(dims: &Dims, assignment: &Assignment) -> Sharding {
    Sharding::of(dims.iter().map(|factor| assignment.get(&(*factor)?).copied()))
}

/// The sharding of the operand and of the result of a reshape. A split dimension stays split where the
/// result has a dimension that begins after as many elements, and whose size divides.
fn reshaped(
    sharding: &Sharding,
    from: &Shape,
    to: &Shape,
    parts: impl Fn(usize) -> usize,
) -> (Sharding, Sharding) {
    let mut operand = Sharding::replicated(Some(from.rank()));
    let mut result = Sharding::replicated(Some(to.rank()));
    if from.num_elements() == 0 {
        return (operand, result);
    }
    for (axis, mesh_dim) in sharding.dims.iter().enumerate() {
        let Some(mesh_dim) = *mesh_dim else { continue };
        let before: usize = from[..axis].iter().product();
        let mut outer = 1usize;
        for (own, &size) in to.iter().enumerate() {
            if outer == before && size % parts(mesh_dim) == 0 && result.dims[own].is_none() {
                (operand.dims[axis], result.dims[own]) = (Some(mesh_dim), Some(mesh_dim));
                break;
            }
            outer *= size;
        }
    }
    (operand, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The split of the result of a reshape, of that of the operand; both with 2 parts a dimension.
    fn after(
        from: &[usize],
        dims: &[Option<usize>],
        to: &[usize],
    ) -> (Vec<bool>, Vec<Option<usize>>) {
        let shape = |dims: &[usize]| Shape::new(dims.iter().copied()).unwrap();
        let sharding = Sharding::of(dims.iter().copied());
        let (operand, result) = reshaped(&sharding, &shape(from), &shape(to), |_| 2);
        (operand.dims.iter().map(Option::is_some).collect(), result.dims.to_vec())
    }

    #[test]
    fn reshapes_keep_splits_of_outer_dimensions() {
        let x = Some(0);
        assert_eq!(after(&[4, 6], &[x, None], &[24]), (vec![true, false], vec![x]));
        assert_eq!(after(&[4, 6], &[None, x], &[24]), (vec![false, false], vec![None]));
        assert_eq!(after(&[4, 6], &[None, x], &[4, 2, 3]).1, [None, x, None]);
        assert_eq!(after(&[4, 6], &[None, x], &[4, 3, 2]).1, [None, None, None]);
        assert_eq!(after(&[4, 6], &[x, Some(1)], &[1, 4, 1, 6]).1, [None, x, None, Some(1)]);
        assert_eq!(after(&[0, 6], &[x, None], &[6, 0]).1, [None, None]);
    }
}
