//! Gradients of sparse matrices that know where each row begins: matrices of the same entries.

use super::{Backprop, Grads, grads};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{CallResults, Value, call, call_with, calls_with},
};

fn of_type(dtype: DType) -> Attrs {
    Attrs::new().with("type", dtype)
}

/// Places, values and sizes of a matrix.
fn sparse<'e>(matrix: Value<'e>, dtype: DType) -> CallResults<'e> {
    calls_with("CSRSparseMatrixToSparseTensor", of_type(dtype), &[matrix])
}

/// The matrix of these values at the places of another.
fn at_places<'e>(places: &CallResults<'e>, values: Value<'e>) -> Value<'e> {
    call("SparseTensorToCSRSparseMatrix", [places.at(0), values, places.at(2)])
}

pub(crate) fn to_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let places = sparse(b.x(0), b.dtype("type")).at(0);
    grads([call("DenseToCSRSparseMatrix", [b.dy(0), places])])
}

pub(crate) fn to_sparse<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call("SparseTensorToCSRSparseMatrix", [b.y(0), b.dy(1), b.y(2)])])
}

pub(crate) fn of_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dense = call_with("CSRSparseMatrixToDense", of_type(b.dtype("T")), [b.dy(0)]);
    grads([dense.reshape_like(b.x(0))])
}

pub(crate) fn of_sparse<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let values = sparse(b.dy(0), b.dtype("T")).at(1).reshape_like(b.x(1));
    vec![None, Some(values.into())]
}

pub(crate) fn transpose<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let attrs = of_type(b.dtype("type")).with("conjugate", b.flag("conjugate"));
    grads([call_with("SparseMatrixTranspose", attrs, [b.dy(0)])])
}

/// Whether an operand of a product is transposed, and whether it is conjugated.
fn turned(b: &Backprop<'_>, transpose: &str, adjoint: &str) -> (bool, bool) {
    (b.flag(transpose) || b.flag(adjoint), b.flag(adjoint))
}

/// The places of entries but for their rows, or but for their columns: those of rows of a factor.
fn rows_at<'e>(places: Value<'e>, rank: usize, column: bool) -> Value<'e> {
    let index = rank as i64 - 2 + i64::from(column);
    let own = places.slice(&[0, index], &[-1, 1]);
    match rank {
        2 => own,
        _ => Value::concat(&[places.slice(&[0, 0], &[-1, 1]), own], 1),
    }
}

fn swapped(x: Value<'_>, rank: usize) -> Value<'_> {
    x.transpose(if rank == 2 { &[1, 0] } else { &[0, 2, 1] })
}

pub(crate) fn times_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (a, factor, mut dy) = (b.x(0), b.x(1), b.dy(0));
    let Some(rank) = factor.rank() else {
        return b.postponed("its gradient needs a known rank");
    };
    let (a_swapped, a_conjugated) = turned(b, "transpose_a", "adjoint_a");
    let (b_swapped, b_conjugated) = turned(b, "transpose_b", "adjoint_b");
    if b.flag("transpose_output") {
        dy = swapped(dy, rank);
    }
    if b.flag("conjugate_output") {
        dy = dy.adjoint();
    }
    // Only what is at the places of the entries.
    let by_matrix = || {
        let factor = if b_swapped { swapped(factor, rank) } else { factor };
        let factor = if b_conjugated { factor } else { factor.adjoint() };
        let entries = sparse(a, factor.dtype());
        let rows = |of: Value<'e>, column: bool| {
            call("GatherNd", [of, rows_at(entries.at(0), rank, column)])
        };
        let values = (rows(dy, a_swapped) * rows(factor, !a_swapped)).sum(&[1], false);
        at_places(&entries, if a_conjugated { values.adjoint() } else { values })
    };
    // The adjoint of the turned matrix, times `dy`; that of a transposed one is its conjugate.
    let by_factor = || {
        let is_conjugate = a_swapped && !a_conjugated;
        let dy = if is_conjugate { dy.adjoint() } else { dy };
        let attrs = Attrs::new()
            .with("adjoint_a", !a_swapped)
            .with("transpose_output", b_swapped)
            .with("conjugate_output", is_conjugate != b_conjugated);
        call_with("SparseMatrixMatMul", attrs, [a, dy])
    };
    b.both(by_matrix, by_factor)
}

pub(crate) fn times<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dtype = b.dtype("type");
    let dense = |matrix| call_with("CSRSparseMatrixToDense", of_type(dtype), [matrix]);
    let (x, y, dy) = (b.x(0), b.x(1), b.dy(0));
    // `op(matrix)` as a factor on the other side of `dy`: its adjoint.
    let adjoint = |matrix: Value<'e>, (swapped, conjugated): (bool, bool)| {
        let attrs = of_type(dtype).with("conjugate", true);
        let own = call_with("SparseMatrixTranspose", attrs, [matrix]);
        match (swapped, conjugated) {
            (false, _) => own,
            (true, true) => matrix,
            (true, false) => {
                let attrs = of_type(dtype).with("conjugate", false);
                call_with("SparseMatrixTranspose", attrs, [own])
            }
        }
    };
    let product = |a, b| call_with("SparseMatrixSparseMatMul", of_type(dtype), [a, b]);
    // What is at the places of the entries of a factor, which may be fewer.
    let by = |found: Value<'e>, factor: Value<'e>, (swapped, conjugated): (bool, bool)| {
        let attrs = of_type(dtype).with("conjugate", conjugated);
        let found = match swapped {
            true => call_with("SparseMatrixTranspose", attrs, [found]),
            false => found,
        };
        let places = sparse(factor, dtype).at(0);
        call("DenseToCSRSparseMatrix", [dense(found), places])
    };
    let turns = [turned(b, "transpose_a", "adjoint_a"), turned(b, "transpose_b", "adjoint_b")];
    b.both(
        || by(product(dy, adjoint(y, turns[1])), x, turns[0]),
        || by(product(adjoint(x, turns[0]), dy), y, turns[1]),
    )
}
