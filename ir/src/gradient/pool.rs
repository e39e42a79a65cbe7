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
    let (Some(dims), Some(out)) = (x.dims(), dy.dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    let overlap = i64::from(b.flag("overlapping"));
    let [rows, columns] =
        [1, 2].map(|axis| Side::new(b.y(axis), dims[axis], out[axis], overlap).shares());
    let sum = |equation: &str, shares: Value<'e>, dy: Value<'e>| {
        let attrs = Attrs::new().with("equation", equation);
        calls_with("Einsum", attrs, &[shares.cast(dy.dtype()), dy]).at(0)
    };
    grads([sum("wj,nhjc->nhwc", columns, sum("hi,nijc->nhjc", rows, dy))])
}

/// One place of each window at a time, from its first on: the first that has the largest element
/// takes the gradient.
pub(crate) fn fractional_max<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0), b.y(0), b.dy(0));
    let (Some(dims), Some(out)) = (x.dims(), y.dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    let overlap = i64::from(b.flag("overlapping"));
    let sides = [1, 2].map(|axis| Side::new(b.y(axis), dims[axis], out[axis], overlap));
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
    grads([total])
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
    /// Windows begin and end where the sequence says; those that overlap have one place more.
    fn new(borders: Value<'e>, size: i64, n_windows: i64, overlap: i64) -> Side<'e> {
        let first = borders.slice(&[0], &[n_windows]);
        let end = borders.slice(&[1], &[n_windows]) + borders.literal(overlap);
        let longest = size / n_windows.max(1) + 1 + overlap;
        Side { first, end: end.minimum(borders.literal(size)), size, longest }
    }

    /// The place in each window that lies `offset` behind its first, and whether there is one.
    fn at(&self, offset: i64) -> (Value<'e>, Value<'e>) {
        let place = self.first + self.first.literal(offset);
        (place.minimum(place.literal(self.size - 1)), place.less(self.end))
    }

    /// For each place and window the share of the place in the window, `[size, windows]`.
    fn shares(&self) -> Value<'e> {
        let (first, end) = (self.first, self.end);
        let places = shapes::range(first.literal(self.size)).reshape(&[-1, 1]);
        let inside = call("LogicalAnd", [places.greater_equal(first), places.less(end)]);
        inside.cast(DType::F64) / (end - first).cast(DType::F64)
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

/// Of the gradient of a pool: linear in the gradient it takes, flat in what the pool saw and gave.
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
    grads([to_places(b.x(0), b.dy(0), b.y(1), has_batch)])
}

/// Sums of `dy` where the maxima of `x` are: numbers within one image, or within the batch.
pub(crate) fn to_places<'e>(
    x: Value<'e>,
    dy: Value<'e>,
    places: Value<'e>,
    has_batch: bool,
) -> Value<'e> {
    let places = places.cast(DType::I64);
    let (batch, size) = (shapes::dim(x, 0), shapes::size(x));
    let places = if has_batch {
        places
    } else {
        let per_image = call("FloorDiv", [size, batch.maximum(x.literal(1i64))]);
        places + (shapes::range(batch) * per_image).reshape(&[-1, 1, 1, 1])
    };
    let sum = call("UnsortedSegmentSum", [dy.reshape(&[-1]), places.reshape(&[-1]), size]);
    sum.reshape_like(x)
}
