//! Gradients of factorings of matrices, in stacks.

use super::{Backprop, Grads, grads, linalg, math};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with, calls_with},
};
use linalg::{adjoint_of, part};

const SHAPE: &str = "its gradient needs a known shape";

/// The sizes of the stack, and of its matrices.
fn sizes(x: Value<'_>) -> Option<(Vec<i64>, [i64; 2])> {
    let mut dims = x.dims()?;
    let (columns, rows) = (dims.pop()?, dims.pop()?);
    Some((dims, [rows, columns]))
}

/// The matrices with the parts above the diagonal and on it replaced: what is below is mirrored,
/// and of the diagonal the real part stays.
fn mirrored(x: Value<'_>) -> Value<'_> {
    let diagonal = call("MatrixDiagPart", [x]);
    let below = call("MatrixSetDiag", [part(x, true), diagonal.zeros_like()]);
    let real = match x.dtype().is_complex() {
        true => math::real(diagonal).cast(x.dtype()),
        false => diagonal,
    };
    below + adjoint_of(below) + call("MatrixDiag", [real])
}

/// `x` times the inverse of the adjoint of the upper triangle `r`.
fn divided<'e>(x: Value<'e>, r: Value<'e>) -> Value<'e> {
    let attrs = Attrs::new().with("lower", false);
    adjoint_of(call_with("MatrixTriangularSolve", attrs, [r, adjoint_of(x)]))
}

/// Of a matrix with at least as many rows as columns.
fn deep<'e>(q: Value<'e>, r: Value<'e>, dq: Value<'e>, dr: Value<'e>) -> Value<'e> {
    let inner = r.batch_matmul(dr, false, true) - dq.batch_matmul(q, true, false);
    divided(dq + q.batch_matmul(mirrored(inner), false, false), r)
}

/// J. Roberts and Z. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for
/// square, wide, and deep matrices" (2020), equations 1 and 2.
pub(crate) fn qr<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, q, r, dq, dr) = (b.x(0), b.y(0), b.y(1), b.dy(0), b.dy(1));
    let Some((_, [rows, columns])) = sizes(x) else { return b.postponed(SHAPE) };
    if rows > columns && b.flag("full_matrices") {
        return b.unsupported("its gradient for full matrices with more rows than columns");
    }
    if rows >= columns {
        return grads([deep(q, r, dq, dr)]);
    }
    let rank = x.rank().unwrap_or(2).max(2);
    let columns_of = |x: Value<'e>, from: i64| {
        let mut begin = vec![0; rank];
        let mut size = vec![-1; rank];
        begin[rank - 1] = from;
        size[rank - 1] = if from == 0 { rows } else { columns - rows };
        x.slice(&begin, &size)
    };
    let (right, dv) = (columns_of(x, rows), columns_of(dr, rows));
    let dq = dq + right.batch_matmul(dv, false, true);
    let by_left = deep(q, columns_of(r, 0), dq, columns_of(dr, 0));
    let by_right = q.batch_matmul(dv, false, false);
    grads([Value::concat(&[by_left, by_right], rank as i64 - 1)])
}

/// J. Townsend, "Differentiating the singular value decomposition" (2016), section 1; what differs
/// between equal singular values is left out.
pub(crate) fn svd<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let x = b.x(0);
    let diagonal = |values: Value<'e>| call("MatrixDiag", [values.cast(x.dtype())]);
    if !b.flag("compute_uv") {
        let attrs = b.own_attrs().with("compute_uv", true).with("full_matrices", false);
        let factors = calls_with("Svd", attrs, &[x]);
        let scaled = factors.at(1).batch_matmul(diagonal(b.dy(0)), false, false);
        return grads([scaled.batch_matmul(factors.at(2), false, true)]);
    }
    if x.dtype().is_complex() {
        return b.unsupported("its gradient for complex matrices with compute_uv");
    }
    let Some((_, [rows, columns])) = sizes(x) else { return b.postponed(SHAPE) };
    if b.flag("full_matrices") && rows != columns {
        return b.unsupported("its gradient for full matrices that are not square");
    }
    let (s, u, v) = (b.y(0), b.y(1), b.y(2));
    let squares = s.square();
    let row = call("ExpandDims", [squares, s.literal(-2i64)]);
    let column = call("ExpandDims", [squares, s.literal(-1i64)]);
    let factors = math::reciprocal_or_zero(row - column);
    let (scale, inverse) = (diagonal(s), diagonal(math::reciprocal_or_zero(s)));
    let turned = |own: Value<'e>, d: Value<'e>| {
        let inner = factors * own.batch_matmul(d, true, false);
        inner + adjoint_of(inner)
    };
    let mut inner = diagonal(b.dy(0));
    let mut outer = Vec::new();
    if let Some(du) = b.present_dy(1) {
        inner = inner + turned(u, du).batch_matmul(scale, false, false);
        let outside = du - u.batch_matmul(u.batch_matmul(du, true, false), false, false);
        let scaled = outside.batch_matmul(inverse, false, false);
        outer.push(scaled.batch_matmul(v, false, true));
    }
    if let Some(dv) = b.present_dy(2) {
        inner = inner + scale.batch_matmul(turned(v, dv), false, false);
        let outside = dv - v.batch_matmul(v.batch_matmul(dv, true, false), false, false);
        let scaled = u.batch_matmul(inverse, false, false);
        outer.push(scaled.batch_matmul(outside, false, true));
    }
    let total = u.batch_matmul(inner, false, false).batch_matmul(v, false, true);
    grads([outer.into_iter().fold(total, |total, part| total + part)])
}

/// The solution of `yᴴ g + g yᴴ = dy`, as a system of linear equations in all elements of `g`.
pub(crate) fn square_root<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, dy) = (b.y(0), b.dy(0));
    let Some((batch, [n, _])) = sizes(y) else { return b.postponed(SHAPE) };
    let shaped = |x: Value<'e>, inner: &[i64]| x.reshape(&[&batch[..], inner].concat());
    let one = call("Diag", [y.int_vector(&vec![1; n as usize]).cast(y.dtype())]);
    let left = shaped(adjoint_of(y), &[n, 1, n, 1]) * one.reshape(&[1, n, 1, n]);
    let right = one.reshape(&[n, 1, n, 1]) * shaped(y.adjoint(), &[1, n, 1, n]);
    let system = shaped(left + right, &[n * n, n * n]);
    let solution = call("MatrixSolve", [system, shaped(dy, &[n * n, 1])]);
    grads([solution.reshape_like(y)])
}
