//! The routines of LAPACK that JAX calls on a CPU, by the ops that compute the same.
//!
//! Results are those of the routines: matrices, then the status, which is always 0
//! here: ops that do not succeed fail.

use super::{
    super::{
        constant::malformed,
        module::{Attr, HloOp},
    },
    exactly,
    linalg::{MatrixOf, Triangle, turned},
};
use ferroflow_ir::{
    Attrs, DType, Result,
    emit::{Value, call, calls_with},
    xla::size::{Size, broadcast, sizes},
};

/// A routine, without the letter of its type.
#[derive(Clone, Copy)]
pub(super) enum Routine {
    /// `potrf`: the Cholesky factor.
    Cholesky,
    /// `syevd`, `heevd`: eigenvalues and eigenvectors of a symmetric matrix.
    Eigen,
    /// `gesdd`: singular values.
    SingularValues,
    /// `getrf`: triangles with partial pivoting.
    Lu,
    /// `geqrf`: reflections and a triangle.
    Qr,
    /// `orgqr`, `ungqr`: the product of reflections.
    ReflectionProduct,
    /// `trsm`: a system of equations with a triangle.
    Triangle,
}

/// The routine of a custom call.
pub(super) fn routine(target: &str) -> Option<Routine> {
    let name = target.strip_prefix("lapack_").or_else(|| target.strip_prefix("blas_"))?;
    let name = name.strip_suffix("_ffi").unwrap_or(name);
    Some(match name.strip_prefix(['s', 'd', 'c', 'z'])? {
        "potrf" => Routine::Cholesky,
        "syevd" | "heevd" => Routine::Eigen,
        "gesdd" => Routine::SingularValues,
        "getrf" => Routine::Lu,
        "geqrf" => Routine::Qr,
        "orgqr" | "ungqr" => Routine::ReflectionProduct,
        "trsm" => Routine::Triangle,
        _ => return None,
    })
}

impl Routine {
    /// The results of a call.
    pub(super) fn results<'e>(self, op: &HloOp, x: &[Value<'e>]) -> Result<Vec<Value<'e>>> {
        match self {
            Routine::Cholesky => {
                let [a] = *exactly(op, x)?;
                let factor = match letter(op, "uplo")? {
                    b'L' => call("Cholesky", [a]),
                    _ => turned(call("Cholesky", [turned(a)])),
                };
                Ok(vec![factor, success(a)])
            }
            Routine::Eigen => {
                let [a] = *exactly(op, x)?;
                let lower = if letter(op, "uplo")? == b'L' { a } else { turned(a) };
                let vectors = letter(op, "mode")? == b'V';
                let attrs = Attrs::new().with("compute_v", vectors);
                let found = calls_with("SelfAdjointEigV2", attrs, &[lower]);
                // Eigenvalues are real, and the op has them in the type of the matrix.
                let values =
                    if a.dtype().is_complex() { call("Real", [found.at(0)]) } else { found.at(0) };
                Ok(vec![if vectors { found.at(1) } else { a }, values, success(a)])
            }
            Routine::SingularValues => {
                let [a] = *exactly(op, x)?;
                let mode = letter(op, "mode")?;
                let attrs = Attrs::new().with("compute_uv", mode != b'N');
                let attrs = attrs.with("full_matrices", mode == b'A');
                let found = calls_with("Svd", attrs, &[a]);
                let [u, vh] = match mode {
                    // The vectors are there, and mean nothing.
                    b'N' => [2, 1].map(|axis| broadcast(a.like(0.0), &square(a, axis))),
                    _ => [found.at(1), turned(found.at(2))],
                };
                Ok(vec![a, real(found.at(0)), u, vh, success(a)])
            }
            Routine::Lu => {
                let [a] = *exactly(op, x)?;
                let found =
                    calls_with("Lu", Attrs::new().with("output_idx_type", DType::I32), &[a]);
                Ok(vec![found.at(0), call("_LuPivots", [found.at(1)]), success(a)])
            }
            Routine::Qr => {
                let [a] = *exactly(op, x)?;
                Ok(calls_with("_HouseholderQr", Attrs::new(), &[a]).values().to_vec())
            }
            Routine::ReflectionProduct => {
                let [packed, factors] = *exactly(op, x)?;
                Ok(vec![call("_HouseholderProduct", [packed, factors])])
            }
            Routine::Triangle => {
                let [a, b] = *exactly(op, x)?;
                let triangle = Triangle {
                    left: letter(op, "side")? == b'L',
                    lower: letter(op, "uplo")? == b'L',
                    unit: letter(op, "diag")? == b'U',
                    matrix: match letter(op, "trans_x")? {
                        b'T' => MatrixOf::Transpose,
                        b'C' => MatrixOf::Adjoint,
                        _ => MatrixOf::Itself,
                    },
                };
                Ok(vec![triangle.solve(a, b)])
            }
        }
    }
}

/// A letter among the options of a call.
fn letter(op: &HloOp, name: &str) -> Result<u8> {
    let config = op.attr("mhlo.backend_config").or_else(|| op.attr("backend_config"));
    let missing = || malformed(op, "a routine of LAPACK has its options");
    let Some(Attr::Dict(entries)) = config else { return Err(missing()) };
    let found = entries.iter().find(|(own, _)| own.text() == Some(name));
    match found.map(|(_, value)| &**value) {
        Some(Attr::Int(letter)) => u8::try_from(*letter).map_err(|_| missing()),
        _ => Err(missing()),
    }
}

/// Eigenvalues and singular values are real; ops may have them in the type of the matrix.
fn real(values: Value<'_>) -> Value<'_> {
    if values.dtype().is_complex() { call("Real", [values]) } else { values }
}

/// The sizes of square matrices of as many rows as an axis, counted from the end, has elements.
fn square<'e>(a: Value<'e>, axis: usize) -> Vec<Size<'e>> {
    let mut dims = sizes(a);
    let n = dims.len();
    if n >= 2 {
        let size = dims[n - axis];
        dims[n - 2] = size;
        dims[n - 1] = size;
    }
    dims
}

/// Status of a routine: 0 for each matrix.
fn success<'e>(a: Value<'e>) -> Value<'e> {
    let mut stack = sizes(a);
    stack.truncate(stack.len().saturating_sub(2));
    let zero = a.literal(0i32);
    broadcast(zero, &stack)
}
