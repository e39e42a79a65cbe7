//! `scatter`: updates of slices at indices that vectors of indices name.
//!
//! A slice that is not inside as a whole is left out, as XLA does on every platform.

use super::{
    carrier::carrier,
    gather::{batch_position, component, vectors_last},
    region::Monoid,
    size::{Size, broadcast, product, range_along, reshape, sizes, sizes_of_rank, transpose},
};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with},
};

/// The axes of operand, indices and updates.
#[derive(Debug, Clone, Default)]
pub struct ScatterAxes {
    /// The axes of the updates that are axes of slices.
    pub window: Vec<usize>,
    /// The axes of the operand that slices do not have.
    pub inserted: Vec<usize>,
    /// The axes of the operand that count batches.
    pub operand_batch: Vec<usize>,
    /// The same axes of the indices.
    pub indices_batch: Vec<usize>,
    /// The axes of the operand that the elements of an index vector are for.
    pub start_map: Vec<usize>,
    /// The axis of the indices that is the index vector.
    pub index_vector: usize,
}

/// The operand as rows, and each update as a row with the number of its index.
#[derive(Debug, Clone)]
pub struct ScatterRows<'e> {
    /// The numbers of the indices; -1 for updates that are left out.
    pub places: Value<'e>,
    n_rows: Size<'e>,
    whole: Vec<Size<'e>>,
    row: Vec<Size<'e>>,
    /// The order of the axes of the operand: indexed ones, then those of rows.
    order: Vec<usize>,
    /// The order of the axes of the updates.
    update_order: Vec<usize>,
}

impl<'e> ScatterRows<'e> {
    /// The rows that a scatter updates.
    pub fn new(
        operand: Value<'e>,
        indices: Value<'e>,
        updates: Value<'e>,
        axes: &ScatterAxes,
    ) -> ScatterRows<'e> {
        let indices = vectors_last(indices, axes.index_vector);
        let (whole, all) = (sizes(operand), sizes(updates));
        let is_kept =
            |axis: &usize| !axes.inserted.contains(axis) && !axes.operand_batch.contains(axis);
        let kept: Vec<usize> = (0..whole.len()).filter(is_kept).collect();
        let window_of = |axis: usize| -> Option<usize> {
            let position = kept.iter().position(|&own| own == axis)?;
            axes.window.get(position).copied()
        };
        let is_row = |axis: &usize| {
            let window = window_of(*axis).map(|window| all[window]);
            let same = match (window, whole[*axis]) {
                (Some(window), whole) => match (window.known(), whole.known()) {
                    (Some(a), Some(b)) => a == b,
                    (None, None) => !axes.start_map.contains(axis),
                    _ => false,
                },
                (None, _) => false,
            };
            same && !axes.start_map.contains(axis)
        };
        let (row_axes, indexed): (Vec<usize>, Vec<usize>) = (0..whole.len()).partition(is_row);
        let scattered: Vec<usize> =
            (0..all.len()).filter(|axis| !axes.window.contains(axis)).collect();
        let spread: Vec<usize> = indexed.iter().filter_map(|&axis| window_of(axis)).collect();
        let rows = row_axes.iter().filter_map(|&axis| window_of(axis));
        let update_order: Vec<usize> =
            scattered.iter().copied().chain(spread.iter().copied()).chain(rows).collect();
        let flat_rank = scattered.len() + spread.len();
        let mut flat: Option<Value<'e>> = None;
        let mut valid: Option<Value<'e>> = None;
        for &axis in &indexed {
            let window = window_of(axis);
            let size = window.map_or(Size::Known(1), |window| all[window]);
            let mut index = None;
            if let Some(position) = axes.start_map.iter().position(|&own| own == axis) {
                let start = component(indices, position);
                let last = whole[axis].minus(size).value(start);
                let inside = call("GreaterEqual", [start, start.literal(0i64)]);
                let inside = call("LogicalAnd", [inside, call("LessEqual", [start, last])]);
                let mut shape = sizes(start);
                shape.resize(flat_rank, Size::Known(1));
                let inside = reshape(inside, &shape);
                valid = Some(valid.map_or(inside, |valid| call("LogicalAnd", [valid, inside])));
                index = Some(reshape(start, &shape));
            }
            if let Some(position) = axes.operand_batch.iter().position(|&own| own == axis) {
                let at = batch_position(axes.indices_batch[position], axes.index_vector);
                let batch = range_along(whole[axis], at, flat_rank, indices);
                index = Some(index.map_or(batch, |place| place + batch));
            }
            if let Some(window) = window
                && size.known() != Some(1)
            {
                let at = spread.iter().position(|&own| own == window).unwrap_or(0);
                let offsets = range_along(size, scattered.len() + at, flat_rank, indices);
                index = Some(index.map_or(offsets, |place| place + offsets));
            }
            let zero = || indices.literal(0i64).reshape(&vec![1; flat_rank]);
            let index = index.unwrap_or_else(zero);
            flat = Some(match flat {
                None => index,
                Some(flat) => flat * whole[axis].value(flat) + index,
            });
        }
        let mut flat = flat.unwrap_or_else(|| indices.literal(0i64));
        if let Some(valid) = valid {
            flat = valid.select(flat, flat.literal(-1i64));
        }
        let shape: Vec<Size<'e>> =
            update_order[..flat_rank].iter().map(|&axis| all[axis]).collect();
        let rows = reshape(broadcast(flat, &shape), &[product(&shape)]);
        let size_of =
            |axes: &[usize]| -> Vec<Size<'e>> { axes.iter().map(|&axis| whole[axis]).collect() };
        let n_rows = product(&size_of(&indexed));
        let row = size_of(&row_axes);
        let order = indexed.into_iter().chain(row_axes).collect();
        ScatterRows { places: rows, n_rows, whole, row, order, update_order }
    }

    fn rows_of(&self, value: Value<'e>, count: Size<'e>) -> Value<'e> {
        let mut shape = vec![count];
        shape.extend(&self.row);
        reshape(value, &shape)
    }

    /// An operand as rows.
    #[must_use]
    pub fn operand(&self, operand: Value<'e>) -> Value<'e> {
        self.rows_of(transpose(operand, &self.order), self.n_rows)
    }

    /// The updates as rows.
    #[must_use]
    pub fn updates(&self, updates: Value<'e>) -> Value<'e> {
        let count = sizes_of_rank(self.places, 1)[0];
        self.rows_of(transpose(updates, &self.update_order), count)
    }

    /// Rows as the operand was.
    #[must_use]
    pub fn result(&self, rows: Value<'e>) -> Value<'e> {
        let ordered: Vec<Size<'e>> = self.order.iter().map(|&axis| self.whole[axis]).collect();
        let mut back = vec![0; self.order.len()];
        for (position, &axis) in self.order.iter().enumerate() {
            back[axis] = position;
        }
        transpose(reshape(rows, &ordered), &back)
    }
}

/// The op that makes updates of one kind.
fn op_of(monoid: Monoid) -> Option<&'static str> {
    Some(match monoid {
        Monoid::Second => "TensorScatterUpdate",
        Monoid::Add => "TensorScatterAdd",
        Monoid::Mul => "_TensorScatterMul",
        Monoid::Min => "TensorScatterMin",
        Monoid::Max => "TensorScatterMax",
        _ => return None,
    })
}

/// The scatter of a kind that an op has; `None` if none does.
pub fn scatter_by<'e>(
    operand: Value<'e>,
    indices: Value<'e>,
    updates: Value<'e>,
    axes: &ScatterAxes,
    monoid: Monoid,
) -> Option<Value<'e>> {
    let dtype = operand.dtype();
    let (op, through) = match (op_of(monoid), monoid, dtype) {
        (_, Monoid::And | Monoid::Min | Monoid::Mul, crate::DType::Bool) => {
            ("TensorScatterMin", Some(crate::DType::U8))
        }
        (_, Monoid::Or | Monoid::Max | Monoid::Add, crate::DType::Bool) => {
            ("TensorScatterMax", Some(crate::DType::U8))
        }
        (Some(op), _, _) => (op, carrier(dtype)),
        (None, _, _) => return None,
    };
    let rows = ScatterRows::new(operand, indices, updates, axes);
    let through = through.unwrap_or(dtype);
    let attrs = Attrs::new().with("bad_indices_policy", "IGNORE");
    let updated = reshape(rows.places, &[sizes_of_rank(rows.places, 1)[0], Size::Known(1)]);
    let (before, new) = (rows.operand(operand).cast(through), rows.updates(updates).cast(through));
    let after = call_with(op, attrs, [before, updated, new]);
    Some(rows.result(after.cast(dtype)))
}

impl ScatterAxes {
    /// Whether the axes fit tensors of these ranks.
    pub fn fits(&self, operand: usize, indices: usize, updates: usize) -> bool {
        let below = |axes: &[usize], rank: usize| {
            axes.iter().all(|&axis| axis < rank) && super::region::distinct(axes)
        };
        let index_rank = indices - usize::from(self.index_vector < indices);
        below(&self.window, updates)
            && self.window.is_sorted()
            && below(&self.inserted, operand)
            && below(&self.operand_batch, operand)
            && below(&self.indices_batch, indices)
            && below(&self.start_map, operand)
            && self.index_vector <= indices
            && !self.indices_batch.contains(&self.index_vector)
            && self.operand_batch.len() == self.indices_batch.len()
            && !self.inserted.iter().any(|axis| self.operand_batch.contains(axis))
            && self.window.len() + self.inserted.len() + self.operand_batch.len() == operand
            && updates - self.window.len() == index_rank
    }
}

impl super::gather::GatherAxes {
    /// Whether the axes fit an operand and indices of these ranks.
    pub fn fits(&self, operand: usize, indices: usize) -> bool {
        let below = |axes: &[usize], rank: usize| {
            axes.iter().all(|&axis| axis < rank) && super::region::distinct(axes)
        };
        let index_rank = indices - usize::from(self.index_vector < indices);
        below(&self.offset, index_rank + self.offset.len())
            && self.offset.is_sorted()
            && below(&self.collapsed, operand)
            && below(&self.operand_batch, operand)
            && below(&self.indices_batch, indices)
            && below(&self.start_map, operand)
            && self.index_vector <= indices
            && !self.indices_batch.contains(&self.index_vector)
            && self.operand_batch.len() == self.indices_batch.len()
            && !self.collapsed.iter().any(|axis| self.operand_batch.contains(axis))
            && self.offset.len() + self.collapsed.len() + self.operand_batch.len() == operand
    }
}
