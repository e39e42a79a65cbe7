//! Gradients of linear algebra on stacks of matrices.

use super::{Backprop, Grads, grads, math, shapes};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with, calls_with},
};

pub(crate) fn cholesky<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, dy) = (b.y(0), b.dy(0));
    if !y.dtype().is_complex() {
        return grads([call("CholeskyGrad", [y, dy])]);
    }
    let attrs = Attrs::new().with("adjoint", false);
    let inverse = call_with("MatrixInverse", attrs, [y]);
    let inner = y.batch_matmul(dy, true, false);
    let lower = part(inner, true);
    let halved = call("MatrixSetDiag", [lower, call("MatrixDiagPart", [lower]) * 0.5]);
    let outer = inverse.batch_matmul(halved, true, false).batch_matmul(inverse, false, false);
    grads([(outer + adjoint_of(outer)) * 0.5])
}

/// The lower or the upper triangle.
pub(super) fn part(x: Value<'_>, lower: bool) -> Value<'_> {
    let (below, above) = if lower { (-1i64, 0i64) } else { (0, -1) };
    call("MatrixBandPart", [x, x.literal(below), x.literal(above)])
}

/// The conjugate transpose of each matrix.
pub(super) fn adjoint_of(x: Value<'_>) -> Value<'_> {
    let Some(rank) = x.rank().filter(|&rank| rank >= 2) else {
        let one = call("MatrixBandPart", [x.ones_like(), x.literal(0i64), x.literal(0i64)]);
        return x.batch_matmul(one, true, false);
    };
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.swap(rank - 2, rank - 1);
    x.transpose(&order).adjoint()
}

/// A value per matrix, with two dimensions of size 1 behind.
fn per_matrix(x: Value<'_>) -> Value<'_> {
    let column = call("ExpandDims", [x, x.literal(-1i64)]);
    call("ExpandDims", [column, x.literal(-1i64)])
}

fn adjoint_inverse(x: Value<'_>) -> Value<'_> {
    call_with("MatrixInverse", Attrs::new().with("adjoint", true), [x])
}

pub(crate) fn determinant<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    grads([per_matrix(dy * y) * adjoint_inverse(x)])
}

/// The magnitude is differentiated; of the sign only its phase moves, which TensorFlow leaves out.
pub(crate) fn log_determinant<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([per_matrix(b.dy(1)) * adjoint_inverse(b.x(0))])
}

pub(crate) fn inverse<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, dy) = (b.y(0), b.dy(0));
    let adjoint = b.flag("adjoint");
    let found = match adjoint {
        false => y.batch_matmul(dy.batch_matmul(y, false, true), true, false),
        true => y.batch_matmul(dy.batch_matmul(y, true, false), false, false),
    };
    grads([-found])
}

pub(crate) fn solve<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (matrix, _, dy) = b.binary();
    let adjoint = b.flag("adjoint");
    let attrs = b.own_attrs().with("adjoint", !adjoint);
    let by_rhs = call_with("MatrixSolve", attrs, [matrix, dy]);
    grads([by_matrix(by_rhs, b.y(0), adjoint), by_rhs])
}

fn by_matrix<'e>(by_rhs: Value<'e>, y: Value<'e>, adjoint: bool) -> Value<'e> {
    -(if adjoint {
        y.batch_matmul(by_rhs, false, true)
    } else {
        by_rhs.batch_matmul(y, false, true)
    })
}

pub(crate) fn triangular_solve<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (matrix, _, dy) = b.binary();
    let (adjoint, lower) = (b.flag("adjoint"), b.flag("lower"));
    let attrs = b.own_attrs().with("adjoint", !adjoint);
    let by_rhs = call_with("MatrixTriangularSolve", attrs, [matrix, dy]);
    grads([part(by_matrix(by_rhs, b.y(0), adjoint), lower), by_rhs])
}

/// Rows moved down (by -1: up) by one row along the axis before the last, zeros moving in.
fn moved(x: Value<'_>, down: bool) -> Option<Value<'_>> {
    moved_along(x, x.rank()? - 2, down)
}

fn moved_along(x: Value<'_>, axis: usize, down: bool) -> Option<Value<'_>> {
    let rank = x.rank()?;
    let rows = shapes::dim(x, axis).ints();
    let n = rows.and_then(|rows| rows.first().copied())?;
    let mut begin = vec![0i64; rank];
    let mut size = vec![-1i64; rank];
    let mut paddings = vec![0i64; 2 * rank];
    begin[axis] = i64::from(!down).min(n);
    size[axis] = (n - 1).max(0);
    paddings[2 * axis + usize::from(!down)] = 1.min(n);
    let paddings = x.int_vector(&paddings).reshape(&[-1, 2]);
    Some(call("Pad", [x.slice(&begin, &size), paddings]))
}

/// A row of the matrix of the three diagonals.
fn row(x: Value<'_>, index: i64) -> Value<'_> {
    call("GatherV2", [x, x.literal(index), x.literal(-2i64)])
}

fn rows_of<'e>(rows: [Value<'e>; 3]) -> Value<'e> {
    calls_with("Pack", Attrs::new().with("axis", -2i64), &rows).at(0)
}

const SHAPE: &str = "its gradient needs a known shape";

/// With the transposed matrix; the diagonals take their part of an outer product.
pub(crate) fn tridiagonal_solve<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (diagonals, _, dy) = b.binary();
    let find = || {
        let (above, main, below) = (row(diagonals, 0), row(diagonals, 1), row(diagonals, 2));
        let last = above.rank()? - 1;
        let turned =
            rows_of([moved_along(below, last, false)?, main, moved_along(above, last, true)?]);
        let by_rhs = call_with("TridiagonalSolve", b.own_attrs(), [turned, dy]);
        let y = b.y(0);
        let dot = |other: Value<'e>| (by_rhs * other).sum(&[-1], false);
        let by_diagonals = rows_of([dot(moved(y, false)?), dot(y), dot(moved(y, true)?)]);
        Some(grads([-by_diagonals, by_rhs]))
    };
    find().unwrap_or_else(|| b.postponed(SHAPE))
}

pub(crate) fn tridiagonal_matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    let [above, main, below, x] = [0, 1, 2, 3].map(|index| b.x(index).adjoint());
    let find = || {
        let dot = |other: Value<'e>| {
            let sum = (dy * other).sum(&[-1], false);
            call("ExpandDims", [sum, sum.literal(-2i64)])
        };
        let column = |row: Value<'e>| {
            let rank = row.rank()?;
            let mut order: Vec<i64> = (0..rank as i64).collect();
            order.swap(rank - 2, rank - 1);
            Some(row.transpose(&order))
        };
        let from_above = moved(column(above)? * dy, true)?;
        let from_below = moved(column(below)? * dy, false)?;
        let by_x = from_above + column(main)? * dy + from_below;
        Some(grads([dot(moved(x, false)?), dot(x), dot(moved(x, true)?), by_x]))
    };
    find().unwrap_or_else(|| b.postponed(SHAPE))
}

/// Source: `_EigGrad` in TensorFlow's `linalg_grad.py`. Without the eigenvectors they are computed.
pub(crate) fn eig<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let values = b.y(0);
    let vectors = match b.flag("compute_v") {
        true => b.y(1),
        false => {
            let attrs = Attrs::new().with("Tout", values.dtype());
            calls_with("Eig", attrs, &[b.x(0)]).at(1)
        }
    };
    let by_values = call("MatrixDiag", [b.dy(0)]);
    let inner = match b.present_dy(1).filter(|_| b.flag("compute_v")) {
        None => by_values,
        Some(dy) => {
            let row = call("ExpandDims", [values, values.literal(-2i64)]);
            let column = call("ExpandDims", [values, values.literal(-1i64)]);
            let factors = math::reciprocal_or_zero(row - column).conj();
            let turned = vectors.batch_matmul(dy, true, false);
            let lengths = call("MatrixDiagPart", [math::real(turned).cast(turned.dtype())]);
            let along = call("MatrixDiag", [lengths]);
            let own = vectors.batch_matmul(vectors, true, false);
            by_values + factors * (turned - own.batch_matmul(along, false, false))
        }
    };
    let adjoint = adjoint_of(vectors);
    let found = call("MatrixSolve", [adjoint, inner.batch_matmul(adjoint, false, false)]);
    let is_real = !b.x(0).dtype().is_complex();
    grads([if is_real { math::real(found) } else { found }])
}

/// The derivative in a direction is a block of the exponential of a matrix of four blocks (Van
/// Loan, "Computing integrals involving the matrix exponential", 1978); that of the adjoint matrix
/// in the direction `dy` is the gradient.
pub(crate) fn exponential<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (adjoint, dy) = (adjoint_of(b.x(0)), b.dy(0));
    let Some(dims) = adjoint.dims().filter(|dims| dims.len() >= 2) else {
        return b.postponed("its gradient needs a known shape");
    };
    let (rank, n) = (dims.len() as i64, dims[dims.len() - 1]);
    let beside = |left, right| Value::concat(&[left, right], rank - 1);
    let above = beside(adjoint, dy);
    let below = beside(adjoint.zeros_like(), adjoint);
    let whole = call("MatrixExponential", [Value::concat(&[above, below], rank - 2)]);
    let mut begin = vec![0; dims.len()];
    begin[dims.len() - 1] = n;
    grads([whole.slice(&begin, &dims)])
}

/// Of eigenvalues and eigenvectors (Giles 2008, section 3.1); what differs between equal
/// eigenvalues is left out.
pub(crate) fn self_adjoint_eig<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (values, vectors) = (b.y(0), b.y(1));
    let diagonal = |x: Value<'e>| call("MatrixDiag", [x]);
    let by_values = diagonal(b.dy(0).cast(vectors.dtype()));
    let inner = if b.flag("compute_v") && b.present_dy(1).is_some() {
        let row = call("ExpandDims", [values, values.literal(-2i64)]);
        let column = call("ExpandDims", [values, values.literal(-1i64)]);
        let gaps = row - column;
        let factors = math::reciprocal_or_zero(gaps);
        let turned = vectors.batch_matmul(b.dy(1), true, false);
        by_values + factors.cast(vectors.dtype()) * turned
    } else if b.flag("compute_v") {
        by_values
    } else {
        return b.unsupported("its gradient needs the eigenvectors: ask for them with compute_v");
    };
    let outer = vectors.batch_matmul(inner.batch_matmul(vectors, false, true), false, false);
    let sum = part(outer + adjoint_of(outer), true);
    let halved = call("MatrixSetDiag", [sum, call("MatrixDiagPart", [sum]) * 0.5]);
    grads([halved])
}
