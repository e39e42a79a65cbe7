//! `gather`: slices of one size, at indices that vectors of indices name.

use super::size::{Size, product, range_along, rank, reshape, sizes, transpose};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call_with},
};

/// The axes of operand, indices and result.
#[derive(Debug, Clone, Default)]
pub struct GatherAxes {
    /// The axes of the result that are axes of slices.
    pub offset: Vec<usize>,
    /// The axes of the operand that slices do not keep.
    pub collapsed: Vec<usize>,
    /// The axes of the operand that count batches.
    pub operand_batch: Vec<usize>,
    /// The same axes of the indices.
    pub indices_batch: Vec<usize>,
    /// The axes of the operand that the elements of an index vector are for.
    pub start_map: Vec<usize>,
    /// The axis of the indices that is the index vector.
    pub index_vector: usize,
}

/// The indices with their vectors in the last axis, as `i64`.
pub(super) fn vectors_last<'e>(indices: Value<'e>, axis: usize) -> Value<'e> {
    let indices = indices.cast(DType::I64);
    let n = rank(indices);
    if axis >= n {
        let mut shape = sizes(indices);
        shape.push(Size::Known(1));
        return reshape(indices, &shape);
    }
    let order: Vec<usize> = (0..n).filter(|&own| own != axis).chain([axis]).collect();
    transpose(indices, &order)
}

/// Element `position` of each index vector.
pub(super) fn component<'e>(indices: Value<'e>, position: usize) -> Value<'e> {
    let axis = rank(indices) as i64 - 1;
    let (at, axis) = (indices.literal(position as i64), indices.literal(axis));
    call_with("GatherV2", Attrs::new(), [indices, at, axis])
}

/// The position of an axis of the indices among those that are not the index vector.
pub(super) fn batch_position(axis: usize, index_vector: usize) -> usize {
    axis - usize::from(axis > index_vector)
}

/// The slices.
pub fn gather<'e>(
    operand: Value<'e>,
    indices: Value<'e>,
    axes: &GatherAxes,
    slice: &[Size<'e>],
) -> Value<'e> {
    let plan = Plan::new(operand, indices, axes, slice);
    let gathered = plan.gathered();
    plan.arranged(gathered)
}

struct Plan<'e, 'a> {
    operand: Value<'e>,
    indices: Value<'e>,
    axes: &'a GatherAxes,
    slice: &'a [Size<'e>],
    whole: Vec<Size<'e>>,
    n_batch: usize,
    /// The axes of the operand whose index has to be computed, and the others: slices have all of
    /// those.
    indexed: Vec<usize>,
    full: Vec<usize>,
}

impl<'e, 'a> Plan<'e, 'a> {
    fn new(
        operand: Value<'e>,
        indices: Value<'e>,
        axes: &'a GatherAxes,
        slice: &'a [Size<'e>],
    ) -> Plan<'e, 'a> {
        let indices = vectors_last(indices, axes.index_vector);
        let whole = sizes(operand);
        let n_batch = rank(indices).saturating_sub(1);
        let is_full = |axis: &usize| {
            let known = (whole[*axis].known(), slice[*axis].known());
            let all = matches!(known, (Some(whole), Some(slice)) if whole == slice);
            // A slice of a size that is not known is all of the axis if no index moves it.
            let unmoved = known.0.is_none() && !axes.start_map.contains(axis);
            let kept = !axes.collapsed.contains(axis) && !axes.operand_batch.contains(axis);
            kept && (all || unmoved && known.1.is_none())
        };
        let (full, indexed) = (0..whole.len()).partition(is_full);
        Plan { operand, indices, axes, slice, whole, n_batch, indexed, full }
    }

    /// The axes of slices, in their order in the result.
    fn kept(&self) -> Vec<usize> {
        let dropped = |axis: &usize| {
            self.axes.collapsed.contains(axis) || self.axes.operand_batch.contains(axis)
        };
        (0..self.whole.len()).filter(|axis| !dropped(axis)).collect()
    }

    /// The axes of slices whose indices are computed.
    fn spread(&self) -> Vec<usize> {
        let kept = self.kept();
        self.indexed.iter().copied().filter(|axis| kept.contains(axis)).collect()
    }

    /// The indices along an indexed axis, of rank `n_batch` + the number of spread axes.
    fn slice_indices(&self, axis: usize, spread: &[usize]) -> Value<'e> {
        let rank = self.n_batch + spread.len();
        let mut slice_indices = None;
        if let Some(position) = self.axes.start_map.iter().position(|&own| own == axis) {
            let start = component(self.indices, position);
            let last = self.whole[axis].minus(self.slice[axis]).value(start);
            let start = start.minimum(last).maximum(start.literal(0i64));
            let mut shape = sizes(start);
            shape.resize(rank, Size::Known(1));
            slice_indices = Some(reshape(start, &shape));
        }
        if let Some(position) = self.axes.operand_batch.iter().position(|&own| own == axis) {
            let of_indices = self.axes.indices_batch[position];
            let at = batch_position(of_indices, self.axes.index_vector);
            let batch = range_along(self.whole[axis], at, rank, self.indices);
            slice_indices = Some(slice_indices.map_or(batch, |places| places + batch));
        }
        if let Some(position) = spread.iter().position(|&own| own == axis)
            && self.slice[axis].known() != Some(1)
        {
            let at = self.n_batch + position;
            let offsets = range_along(self.slice[axis], at, rank, self.indices);
            slice_indices = Some(slice_indices.map_or(offsets, |places| places + offsets));
        }
        slice_indices.unwrap_or_else(|| self.indices.literal(0i64).reshape(&vec![1; rank]))
    }

    /// The slices: batch axes, spread axes, full axes.
    fn gathered(&self) -> Value<'e> {
        let spread = self.spread();
        let mut shape: Vec<Size<'e>> = sizes(self.indices)[..self.n_batch].to_vec();
        shape.extend(spread.iter().map(|&axis| self.slice[axis]));
        let mut flat: Option<Value<'e>> = None;
        for &axis in &self.indexed {
            let slice_indices = self.slice_indices(axis, &spread);
            flat = Some(match flat {
                None => slice_indices,
                Some(flat) => flat * self.whole[axis].value(flat) + slice_indices,
            });
        }
        let flat = flat.unwrap_or_else(|| self.indices.literal(0i64));
        let flat = super::size::broadcast(flat, &shape);
        let attrs = Attrs::new().with("batch_dims", 0i64);
        if let [axis] = self.indexed[..]
            && axis == 0
        {
            return call_with("GatherV2", attrs, [self.operand, flat, flat.literal(0i32)]);
        }
        let order: Vec<usize> = self.indexed.iter().chain(&self.full).copied().collect();
        let size_of = |axes: &[usize]| -> Vec<Size<'e>> {
            axes.iter().map(|&axis| self.whole[axis]).collect()
        };
        let mut rows = vec![product(&size_of(&self.indexed))];
        rows.extend(size_of(&self.full));
        let rows = reshape(transpose(self.operand, &order), &rows);
        call_with("GatherV2", attrs, [rows, flat, flat.literal(0i32)])
    }

    /// The axes in the order of the result.
    fn arranged(&self, gathered: Value<'e>) -> Value<'e> {
        let present: Vec<usize> = self.spread().into_iter().chain(self.full.clone()).collect();
        let kept = self.kept();
        let n = self.n_batch + kept.len();
        let (mut batch, mut offset) = (0, 0);
        let mut order = Vec::with_capacity(n);
        for axis in 0..n {
            if self.axes.offset.contains(&axis) && offset < kept.len() {
                let position = present.iter().position(|own| *own == kept[offset]);
                order.push(self.n_batch + position.unwrap_or(0));
                offset += 1;
            } else {
                order.push(batch);
                batch += 1;
            }
        }
        transpose(gathered, &order)
    }
}
