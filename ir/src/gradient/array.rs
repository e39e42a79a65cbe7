//! Gradients of ops that move elements: the same movement backwards.

use super::{Backprop, Grad, Grads, grads, only, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with, calls_with},
};

pub(crate) fn same<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.dy(0)])
}

/// Each result is the input of its position.
pub(crate) fn each_same<'e>(b: &Backprop<'e>) -> Grads<'e> {
    (0..b.ys().len()).map(|index| b.present_dy(index).map(Grad::Dense)).collect()
}

pub(crate) fn reshape<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.dy(0).reshape_like(b.x(0))])
}

pub(crate) fn cast<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.dy(0).cast(b.x(0).dtype())])
}

pub(crate) fn concat_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (parts, axis) = (&b.xs()[..b.xs().len() - 1], b.x(b.xs().len() - 1));
    split_like(b.dy(0), parts, axis).into_iter().map(|part| Some(part.into())).collect()
}

pub(crate) fn concat<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let parts = split_like(b.dy(0), &b.xs()[1..], b.x(0));
    std::iter::once(None).chain(parts.into_iter().map(|part| Some(part.into()))).collect()
}

fn split_like<'e>(dy: Value<'e>, parts: &[Value<'e>], axis: Value<'e>) -> Vec<Value<'e>> {
    if parts.len() == 1 {
        return vec![dy];
    }
    let sizes: Vec<Value<'e>> = parts.iter().map(|&part| size_along(part, axis)).collect();
    let inputs = [dy, shapes::join(&sizes), axis.cast(DType::I32)];
    let attrs = Attrs::new().with("num_split", parts.len() as i64);
    calls_with("SplitV", attrs, &inputs).values().to_vec()
}

/// The size of a dimension, which may be computed and may be counted from the end.
fn size_along<'e>(x: Value<'e>, axis: Value<'e>) -> Value<'e> {
    match axis.known().and_then(|axis| axis.to_i64s().ok()?.first().copied()) {
        Some(axis) if axis >= 0 => shapes::dim(x, axis as usize),
        Some(axis) if x.rank().is_some() => {
            shapes::dim(x, (axis + x.rank().unwrap_or(0) as i64).max(0) as usize)
        }
        _ => call("GatherV2", {
            let rank = shapes::rank(x);
            let axis = call("FloorMod", [axis.cast(DType::I64), rank]);
            [x.shape_vector(), axis, x.literal(0i64)]
        }),
    }
}

pub(crate) fn pack<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let attrs = Attrs::new().with("num", b.xs().len() as i64).with("axis", b.int("axis"));
    let parts = calls_with("Unpack", attrs, &[b.dy(0)]);
    (0..b.xs().len()).map(|index| Some(parts.at(index).into())).collect()
}

fn all_dys<'e>(b: &Backprop<'e>) -> Vec<Value<'e>> {
    (0..b.ys().len()).map(|index| b.dy(index)).collect()
}

pub(crate) fn unpack<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let attrs = Attrs::new().with("axis", b.int("axis"));
    grads([calls_with("Pack", attrs, &all_dys(b)).at(0)])
}

fn joined<'e>(b: &Backprop<'e>, axis: Value<'e>) -> Value<'e> {
    let mut inputs = all_dys(b);
    if inputs.len() == 1 {
        return inputs[0];
    }
    inputs.push(axis);
    calls_with("ConcatV2", Attrs::new(), &inputs).at(0)
}

pub(crate) fn split<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, joined(b, b.x(0)))
}

pub(crate) fn split_v<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([joined(b, b.x(2))])
}

/// Zeros around the gradient, up to the shape of the input.
pub(crate) fn slice<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, begin, dy) = (b.x(0), b.x(1).cast(DType::I64), b.dy(0));
    let paddings = match (x.dims(), begin.ints(), dy.dims()) {
        (Some(x_dims), Some(begin), Some(dims)) => {
            let pair =
                |(axis, &size): (usize, &i64)| [begin[axis], x_dims[axis] - begin[axis] - size];
            let pairs: Vec<i64> = dims.iter().enumerate().flat_map(pair).collect();
            x.int_vector(&pairs).reshape(&[-1, 2])
        }
        _ => {
            let after = x.shape_vector() - begin - dy.shape_vector();
            calls_with("Pack", Attrs::new().with("axis", 1i64), &[begin, after]).at(0)
        }
    };
    grads([call("Pad", [dy, paddings])])
}

pub(crate) fn strided_slice<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let shape = b.x(0).shape_vector().cast(b.x(1).dtype());
    let inputs = [shape, b.x(1), b.x(2), b.x(3), b.dy(0)];
    grads([b.with_attrs("StridedSliceGrad", inputs)])
}

pub(crate) fn strided_slice_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(4, b.with_attrs("StridedSlice", [b.dy(0), b.x(1), b.x(2), b.x(3)]))
}

/// Overwritten elements have no gradient.
pub(crate) fn strided_slice_update<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (begin, end, strides, value, dy) = (b.x(1), b.x(2), b.x(3), b.x(4), b.dy(0));
    let inputs = [dy, begin, end, strides, value.zeros_like()];
    let kept = b.with_attrs("TensorStridedSliceUpdate", inputs);
    let taken = b.with_attrs("StridedSlice", [dy, begin, end, strides]);
    let by_value = shapes::sum_to_shape_of(taken, value);
    vec![Some(kept.into()), None, None, None, Some(by_value.into())]
}

pub(crate) fn tile<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, times, dy) = (b.x(0), b.x(1).cast(DType::I64), b.dy(0));
    let (Some(rank), dims, known) = (x.rank(), x.dims(), times.ints()) else {
        return b.postponed("its gradient needs a known rank");
    };
    let axes: Vec<i64> = (0..rank as i64).map(|axis| 2 * axis).collect();
    let folded = match (dims, known) {
        (Some(dims), Some(times)) => {
            let pairs: Vec<i64> = times.iter().zip(&dims).flat_map(|(&t, &d)| [t, d]).collect();
            x.int_vector(&pairs)
        }
        _ => {
            let pairs = [times, x.shape_vector()];
            let pairs = calls_with("Pack", Attrs::new().with("axis", 1i64), &pairs).at(0);
            pairs.reshape(&[-1])
        }
    };
    grads([dy.reshape_to(folded).sum(&axes, false).reshape_like(x)])
}

fn inverse<'e>(permutation: Value<'e>) -> Value<'e> {
    let Some(order) = permutation.ints() else {
        return call("InvertPermutation", [permutation]);
    };
    let mut inverse = vec![0i64; order.len()];
    for (at, &axis) in order.iter().enumerate() {
        let axis = if axis < 0 { axis + order.len() as i64 } else { axis };
        if let Some(slot) = inverse.get_mut(axis as usize) {
            *slot = at as i64;
        }
    }
    permutation.int_vector(&inverse)
}

pub(crate) fn transpose<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call(b.op.name, [b.dy(0), inverse(b.x(1))])])
}

/// The first column of a list of paddings.
fn begins(paddings: Value<'_>) -> Value<'_> {
    match paddings.ints() {
        Some(pairs) => {
            let begins: Vec<i64> = pairs.chunks(2).map(|pair| pair[0]).collect();
            paddings.int_vector(&begins)
        }
        None => paddings.cast(DType::I64).slice(&[0, 0], &[-1, 1]).reshape(&[-1]),
    }
}

pub(crate) fn pad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    grads([call("Slice", [dy, begins(b.x(1)), x.shape_vector()])])
}

pub(crate) fn mirror_pad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MirrorPadGrad", [b.dy(0), b.x(1)])])
}

pub(crate) fn mirror_pad_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MirrorPad", [b.dy(0), b.x(1)])])
}

/// Of an op that undoes itself: the same op, with the same other arguments.
pub(crate) fn mirrored<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let mut inputs = b.xs().to_vec();
    inputs[0] = b.dy(0);
    grads([calls_with(b.op.name, b.own_attrs(), &inputs).at(0)])
}

pub(crate) fn roll<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call("Roll", [b.dy(0), -b.x(1), b.x(2)])])
}

pub(crate) fn matrix_diag_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call("MatrixDiagPart", [b.dy(0)])])
}

pub(crate) fn matrix_diag_part_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call("MatrixSetDiag", [b.x(0).zeros_like(), b.dy(0)])])
}

pub(crate) fn matrix_set_diag_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    let inner = call("MatrixSetDiag", [dy, b.x(1).zeros_like()]);
    grads([inner, call("MatrixDiagPart", [dy])])
}

pub(crate) fn matrix_diag_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([diag_part("MatrixDiagPartV2", b, b.x(1))])
}

pub(crate) fn matrix_diag_v3<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([diag_part("MatrixDiagPartV3", b, b.x(1))])
}

fn diag_part<'e>(name: &str, b: &Backprop<'e>, k: Value<'e>) -> Value<'e> {
    let dy = b.dy(0);
    call_with(name, b.own_attrs(), [dy, k, dy.like(0.0)])
}

pub(crate) fn matrix_diag_part_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MatrixSetDiagV2", [b.x(0).zeros_like(), b.dy(0), b.x(1)])])
}

pub(crate) fn matrix_diag_part_v3<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MatrixSetDiagV3", [b.x(0).zeros_like(), b.dy(0), b.x(1)])])
}

pub(crate) fn matrix_set_diag_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let inner = b.with_attrs("MatrixSetDiagV2", [b.dy(0), b.x(1).zeros_like(), b.x(2)]);
    grads([inner, diag_part("MatrixDiagPartV2", b, b.x(2))])
}

pub(crate) fn matrix_set_diag_v3<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let inner = b.with_attrs("MatrixSetDiagV3", [b.dy(0), b.x(1).zeros_like(), b.x(2)]);
    grads([inner, diag_part("MatrixDiagPartV3", b, b.x(2))])
}

/// Adds each element of a patch to the index it was taken from. An image that holds the numbers of
/// its places tells where that is.
pub(crate) fn extract_image_patches<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let (Some(dims), Some(out)) = (x.dims(), b.y(0).dims()) else {
        return b.postponed("its gradient needs a known shape");
    };
    let [n, h, w, c] = dims[..] else { return b.unsupported("its gradient needs four dimensions") };
    let n_offsets = out[3] / c.max(1);
    let numbers: Vec<i64> = (1..=h * w).collect();
    let image = x.int_vector(&numbers).reshape(&[1, h, w, 1]);
    let indices = b.with_attrs("ExtractImagePatches", [image]).reshape(&[-1]) - 1.0;
    let rows = dy.reshape(&[n, out[1] * out[2] * n_offsets, c]).transpose(&[1, 0, 2]);
    let total = call("UnsortedSegmentSum", [rows, indices, x.literal(h * w)]);
    grads([total.transpose(&[1, 0, 2]).reshape(&dims)])
}
