//! Sparse matrices that know where each row begins.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    variant::{
        self,
        csr::{Csr, Orientation},
    },
};
use ferroflow_ir::{Error as IrError, HostTensor, Shape};
use smallvec::SmallVec;

/// The matrix in input `index`, of entries of the dtype that an attribute says.
fn matrix<'a>(call: &'a RuntimeCall<'_>, index: usize, attr: &str) -> Result<&'a Csr> {
    let matrix: &Csr = variant::value(call.host(index)?, "a sparse matrix of rows")?;
    matrix.check(call.attrs.dtype(attr)?)?;
    Ok(matrix)
}

/// Orientation of an operand by the flags of a call.
fn turn(call: &RuntimeCall<'_>, transpose: &'static str, adjoint: &str) -> Result<Orientation> {
    let (transposed, adjoint) = (call.attrs.bool(transpose)?, call.attrs.bool(adjoint)?);
    if transposed && adjoint {
        let (expected, found) = ("false where there is an adjoint", true);
        return Err(IrError::argument(call.op.name, transpose, expected, found).into());
    }
    Ok(Orientation { transposed: transposed || adjoint, conjugated: adjoint })
}

fn components(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let index = call.host(1)?.as_scalar::<i32>()?;
    let found = matrix(call, 0, "type")?.components(index)?;
    Ok(found.into_iter().map(Into::into).collect())
}

fn to_dense(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(matrix(call, 0, "type")?.to_dense(call.context())?)
}

fn to_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let matrix = matrix(call, 0, "type")?;
    let dims: Vec<i64> = matrix.dims().into_iter().map(|dim| dim as i64).collect();
    let (places, values) = (matrix.places()?, matrix.values().clone());
    Ok(SmallVec::from_iter([places.into(), values.into(), HostTensor::vector(&dims)?.into()]))
}

fn of_dense(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dense, places) = (call.host(0)?, call.host(1)?);
    let rank = dense.shape().rank();
    let &[n, depth] = &places.shape()[..] else {
        return Err(wrong(call, "indices", "a matrix", places.shape().to_string()));
    };
    if depth != rank || !(2..=3).contains(&rank) {
        let found = format!("{} and {}", dense.shape(), places.shape());
        return Err(wrong(call, "indices", "of as many columns as the rank, 2 or 3", found));
    }
    let size = dense.dtype().size().unwrap_or(1);
    let mut bytes = Vec::with_capacity(n * size);
    for place in places.as_slice::<i64>()?.chunks_exact(depth) {
        let mut at = 0;
        for (index, dim) in place.iter().zip(dense.shape().iter()) {
            let fit = usize::try_from(*index).ok().filter(|index| index < dim);
            let found = || wrong(call, "indices", "within the shape", format!("{place:?}"));
            at = at * dim + fit.ok_or_else(found)?;
        }
        bytes.extend_from_slice(&dense.bytes()[at * size..][..size]);
    }
    let values = HostTensor::from_bytes(dense.dtype(), Shape::new([n])?, &bytes)?;
    let dims: Vec<i64> = dense.shape().iter().map(|&dim| dim as i64).collect();
    one(variant::scalar(Csr::new(call.context(), places, values, &dims)?))
}

fn wrong(
    call: &RuntimeCall<'_>,
    argument: &'static str,
    expected: &'static str,
    found: String,
) -> crate::error::Error {
    IrError::argument(call.op.name, argument, expected, found).into()
}

fn of_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dims = call.host(2)?.to_i64s()?;
    let values = call.host(1)?.clone();
    one(variant::scalar(Csr::new(call.context(), call.host(0)?, values, &dims)?))
}

fn n_entries(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let matrix: &Csr = variant::value(call.host(0)?, "a sparse matrix of rows")?;
    one(matrix.n_entries()?)
}

fn transpose(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let turn = Orientation { transposed: true, conjugated: call.attrs.bool("conjugate")? };
    let matrix = matrix(call, 0, "type")?;
    one(variant::scalar(matrix.turned(call.context(), turn)?))
}

fn times_dense(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let turns = [
        turn(call, "transpose_b", "adjoint_b")?,
        Orientation {
            transposed: call.attrs.bool("transpose_output")?,
            conjugated: call.attrs.bool("conjugate_output")?,
        },
    ];
    let own = turn(call, "transpose_a", "adjoint_a")?;
    let (context, matrix, dense) = (call.context(), matrix(call, 0, "T")?, call.host(1)?);
    one(match own.is_none() {
        true => matrix.times_dense(context, dense, turns)?,
        false => matrix.turned(context, own)?.times_dense(context, dense, turns)?,
    })
}

fn times(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (a, b) = (turn(call, "transpose_a", "adjoint_a")?, turn(call, "transpose_b", "adjoint_b")?);
    let (context, mut factors) = (call.context(), Vec::with_capacity(2));
    for (index, turn) in [a, b].into_iter().enumerate() {
        let matrix = matrix(call, index, "type")?;
        factors.push(match turn.is_none() {
            true => matrix.clone(),
            false => matrix.turned(context, turn)?,
        });
    }
    one(variant::scalar(factors[0].times(context, &factors[1])?))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("CSRSparseMatrixComponents", components),
    ("CSRSparseMatrixToDense", to_dense),
    ("CSRSparseMatrixToSparseTensor", to_sparse),
    ("DenseToCSRSparseMatrix", of_dense),
    ("SparseMatrixMatMul", times_dense),
    ("SparseMatrixNNZ", n_entries),
    ("SparseMatrixSparseMatMul", times),
    ("SparseMatrixTranspose", transpose),
    ("SparseTensorToCSRSparseMatrix", of_sparse),
];
