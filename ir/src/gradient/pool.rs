//! Gradients of pooling.

use super::{Backprop, Grads, grads, only, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, calls_with},
};

pub(crate) fn avg_pool<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("AvgPoolGrad", [shapes::shape_i32(b.x(0)), b.dy(0)])])
}

pub(crate) fn avg_pool_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, b.with_attrs("AvgPool", [b.dy(0)]))
}

pub(crate) fn avg_pool_3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("AvgPool3DGrad", [shapes::shape_i32(b.x(0)), b.dy(0)])])
}

pub(crate) fn avg_pool_3d_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, b.with_attrs("AvgPool3D", [b.dy(0)]))
}

/// Each element gets its share of the windows it is in.
pub(crate) fn fractional_avg<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let (Some(dims), Some(_)) = (x.dims(), dy.dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    grads([to_shares(dy, [b.y(1), b.y(2)], &dims, b.flag("overlapping"))])
}

/// As [`fractional_avg`], for an input of these sizes, whose windows have these borders.
pub(crate) fn to_shares<'e>(
    dy: Value<'e>,
    borders: [Value<'e>; 2],
    dims: &[i64],
    overlapping: bool,
) -> Value<'e> {
    let (Some(out), &[_, height, width, _]) = (dy.dims(), dims) else { return dy };
    let overlap = i64::from(overlapping);
    let rows = Side::new(borders[0], height, out[1], overlap);
    let columns = Side::new(borders[1], width, out[2], overlap);
    let areas = rows.lengths().reshape(&[-1, 1]) * columns.lengths();
    let share = dy.cast(DType::F64) / areas.reshape(&[1, out[1], out[2], 1]);
    let sum = |equation: &str, side: &Side<'e>, dy: Value<'e>| {
        let attrs = Attrs::new().with("equation", equation);
        calls_with("Einsum", attrs, &[side.membership(), dy]).at(0)
    };
    let found = sum("hi,niwc->nhwc", &rows, sum("wj,nijc->niwc", &columns, share));
    found.cast(dy.dtype())
}

/// Visits an index of all windows at a time, from the first on: the first that has the largest
/// element takes the gradient.
pub(crate) fn fractional_max<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0), b.y(0), b.dy(0));
    if x.dims().is_none() || y.dims().is_none() {
        return b.postponed("its gradient needs a known shape");
    }
    grads([to_largest(x, y, dy, [b.y(1), b.y(2)], b.flag("overlapping"))])
}

/// As [`fractional_max`], for windows that have these borders.
pub(crate) fn to_largest<'e>(
    x: Value<'e>,
    y: Value<'e>,
    dy: Value<'e>,
    borders: [Value<'e>; 2],
    overlapping: bool,
) -> Value<'e> {
    let (Some(dims), Some(out)) = (x.dims(), y.dims()) else { return x };
    let overlap = i64::from(overlapping);
    let sides = [1, 2].map(|axis| Side::new(borders[axis - 1], dims[axis], out[axis], overlap));
    let [rows, columns] = &sides;
    let mut is_free = y.ones_like().cast(DType::Bool);
    let mut total = x.zeros_like();
    for down in 0..rows.longest {
        for along in 0..columns.longest {
            let ((row, is_row), (column, is_column)) = (rows.at(down), columns.at(along));
            let seen = call("GatherV2", [x, row, row.literal(1i64)]);
            let seen = call("GatherV2", [seen, column, column.literal(2i64)]);
            let inside = call("LogicalAnd", [is_row.reshape(&[-1, 1]), is_column]);
            let inside = inside.reshape(&[1, out[1], out[2], 1]);
            let is_hit = call("LogicalAnd", [call("LogicalAnd", [seen.equal(y), inside]), is_free]);
            is_free = call("LogicalAnd", [is_free, is_hit.logical_not()]);
            let part = super::math::where_true(is_hit, dy).transpose(&[1, 2, 0, 3]);
            let part = call("UnsortedSegmentSum", [part, row, row.literal(dims[1])]);
            let part = part.transpose(&[1, 0, 2, 3]);
            let part = call("UnsortedSegmentSum", [part, column, column.literal(dims[2])]);
            total = total + part.transpose(&[2, 1, 0, 3]);
        }
    }
    total
}

/// The windows along one dimension.
struct Side<'e> {
    first: Value<'e>,
    end: Value<'e>,
    size: i64,
    /// No window is longer.
    longest: i64,
}

impl<'e> Side<'e> {
    /// Windows begin and end where the sequence says; those that overlap have one position more.
    fn new(borders: Value<'e>, size: i64, n_windows: i64, overlap: i64) -> Side<'e> {
        let first = borders.slice(&[0], &[n_windows]);
        let end = borders.slice(&[1], &[n_windows]) + borders.literal(overlap);
        let longest = size / n_windows.max(1) + 1 + overlap;
        Side { first, end: end.minimum(borders.literal(size)), size, longest }
    }

    /// The position in each window that is `offset` behind its first, and whether there is one.
    fn at(&self, offset: i64) -> (Value<'e>, Value<'e>) {
        let position = self.first + self.first.literal(offset);
        (position.minimum(position.literal(self.size - 1)), position.less(self.end))
    }

    /// The numbers of positions in the windows.
    fn lengths(&self) -> Value<'e> {
        (self.end - self.first).cast(DType::F64)
    }

    /// For each position and window 1 where the position is in the window, `[size, windows]`.
    fn membership(&self) -> Value<'e> {
        let (first, end) = (self.first, self.end);
        let positions = shapes::range(first.literal(self.size)).reshape(&[-1, 1]);
        call("LogicalAnd", [positions.greater_equal(first), positions.less(end)]).cast(DType::F64)
    }
}

pub(crate) fn max_pool<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPoolGrad", [b.x(0), b.y(0), b.dy(0)])])
}

pub(crate) fn max_pool_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPoolGradV2", [b.x(0), b.y(0), b.dy(0), b.x(1), b.x(2)])])
}

pub(crate) fn max_pool_3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPool3DGrad", [b.x(0), b.y(0), b.dy(0)])])
}

/// Of the gradient of a pool: linear in the gradient it takes, flat in what the pool saw and
/// returned.
fn linear<'e>(b: &Backprop<'e>, other: &str) -> Grads<'e> {
    let mut inputs = b.xs().to_vec();
    inputs[2] = b.dy(0);
    let by_inner = calls_with(other, b.own_attrs(), &inputs).at(0);
    grads([b.x(0).zeros_like(), b.x(1).zeros_like(), by_inner])
}

pub(crate) fn max_pool_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradGrad")
}

pub(crate) fn max_pool_grad_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGrad")
}

pub(crate) fn max_pool_grad_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradGradV2")
}

pub(crate) fn max_pool_grad_grad_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradV2")
}

pub(crate) fn max_pool_3d_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPool3DGradGrad")
}

pub(crate) fn max_pool_3d_grad_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPool3DGrad")
}

pub(crate) fn max_pool_with_argmax<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let has_batch = b.flag("include_batch_in_index");
    grads([scattered_to(b.x(0), b.dy(0), b.y(1), has_batch)])
}

/// Sums of `dy` where the maxima of `x` are: numbers within one image, or within the batch.
pub(crate) fn scattered_to<'e>(
    x: Value<'e>,
    dy: Value<'e>,
    places: Value<'e>,
    has_batch: bool,
) -> Value<'e> {
    let positions = within_batch(x, places, has_batch);
    let sum = call("UnsortedSegmentSum", [dy.reshape(&[-1]), positions, shapes::size(x)]);
    sum.reshape_like(x)
}

/// The elements of `x` at the positions of maxima, as [`scattered_to`] tells them.
pub(crate) fn gathered_at<'e>(x: Value<'e>, places: Value<'e>, has_batch: bool) -> Value<'e> {
    let flat = within_batch(x, places, has_batch);
    call("Gather", [x.reshape(&[-1]), flat]).reshape_like(places)
}

/// Positions within the batch `x`, as a vector.
fn within_batch<'e>(x: Value<'e>, places: Value<'e>, has_batch: bool) -> Value<'e> {
    let positions = places.cast(DType::I64);
    if has_batch {
        return positions.reshape(&[-1]);
    }
    let (batch, size) = (shapes::dim(x, 0), shapes::size(x));
    let per_image = call("FloorDiv", [size, batch.maximum(x.literal(1i64))]);
    (positions + (shapes::range(batch) * per_image).reshape(&[-1, 1, 1, 1])).reshape(&[-1])
}
