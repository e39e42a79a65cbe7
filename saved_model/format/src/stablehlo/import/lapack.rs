//! The routines of LAPACK that JAX calls on a CPU, by the ops that compute the same.
//!
//! Results are those of the routines: matrices, then the status, which is 0 where a routine succeeds. Ops
//! whose status is not known fail instead.

use super::{
    super::{
        constant::{malformed, unsupported},
        module::{Attr, HloOp},
    },
    elementwise::part,
    exactly,
    linalg::{MatrixOf, Triangle, transposed, turned},
};
use ferroflow_ir::{
    Attrs, DType, Error, Result,
    emit::{Value, call, call_with, calls_with},
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
    /// `geev`: eigenvalues and eigenvectors of any square matrix.
    GeneralEigen,
    /// `gees`: a triangle between a unitary matrix and its adjoint.
    Schur,
    /// `gtsv`: a system of equations with three diagonals.
    Tridiagonal,
    /// `gehrd`: a matrix with a diagonal below the main one.
    Hessenberg,
    /// `sytrd`, `hetrd`: three diagonals.
    ThreeDiagonals,
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
        "geev" => Routine::GeneralEigen,
        "gees" => Routine::Schur,
        "gtsv" => Routine::Tridiagonal,
        "gehrd" => Routine::Hessenberg,
        "sytrd" | "hetrd" => Routine::ThreeDiagonals,
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
                // The op has NaN where a matrix has no factor.
                let failed = call("NotEqual", [factor, factor]);
                let failed = call("Any", [failed, a.int_vector(&[-2, -1])]);
                Ok(vec![factor, failed.cast(DType::I32)])
            }
            Routine::Eigen => {
                let [a] = *exactly(op, x)?;
                let lower = if letter(op, "uplo")? == b'L' { a } else { turned(a) };
                let vectors = letter(op, "mode")? == b'V';
                let attrs = Attrs::new().with("compute_v", vectors);
                let found = calls_with("SelfAdjointEigV2", attrs, &[lower]);
                // Eigenvalues are real, and the op has them in the type of the matrix.
                Ok(vec![if vectors { found.at(1) } else { a }, real(found.at(0)), success(a)])
            }
            Routine::SingularValues => {
                let [a] = *exactly(op, x)?;
                let mode = letter(op, "mode")?;
                let attrs = Attrs::new().with("compute_uv", mode != b'N');
                let attrs = attrs.with("full_matrices", mode == b'A');
                let found = calls_with("Svd", attrs, &[a]);
                let [u, vh] = match mode {
                    // The vectors are there, and mean nothing.
                    b'N' => {
                        let [u, vh] = [(2, 2), (3, 1)].map(|(result, axis)| {
                            Ok(broadcast(a.like(0.0), &declared(op, result, square(a, axis))?))
                        });
                        [u?, vh?]
                    }
                    _ => [found.at(1), turned(found.at(2))],
                };
                Ok(vec![a, real(found.at(0)), u, vh, success(a)])
            }
            Routine::Lu => {
                let [a] = *exactly(op, x)?;
                Ok(calls_with("_LuFactors", Attrs::new(), &[a]).values().to_vec())
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
            Routine::GeneralEigen => {
                let [a] = *exactly(op, x)?;
                let vectors = |name: &str| Ok(letter(op, name)? == b'V');
                Ok(eigen(a, vectors("compute_left")?, vectors("compute_right")?))
            }
            Routine::Schur => {
                let [a] = *exactly(op, x)?;
                if letter(op, "sort")? != b'N' {
                    return Err(unsupported(op, "a Schur form in an order"));
                }
                if !a.dtype().is_complex() {
                    let found = calls_with("_RealSchur", Attrs::new(), &[a]);
                    let (t, z) = (found.at(0), found.at(1));
                    let parts = [call("MatrixDiagPart", [t]), found.at(2)];
                    return Ok(vec![t, z, parts[0], parts[1], success(a), success(a)]);
                }
                let found = calls_with("_Schur", Attrs::new(), &[a]);
                let (t, z) = (found.at(0), found.at(1));
                let values = call("MatrixDiagPart", [t]);
                Ok(vec![t, z, values, success(a), success(a)])
            }
            Routine::Hessenberg => {
                let [a] = *exactly(op, x)?;
                let whole =
                    [("low", Some(1)), ("high", op.result_type(0)?.dims.last().copied().flatten())];
                for (name, expected) in whole {
                    if option(op, name)? != expected.map_or(-1, |n| n as i64) {
                        return Err(unsupported(op, "a part of a matrix"));
                    }
                }
                let found = calls_with("_Hessenberg", Attrs::new(), &[a]);
                Ok(vec![found.at(0), found.at(1), success(a)])
            }
            Routine::ThreeDiagonals => {
                let [a] = *exactly(op, x)?;
                let attrs = Attrs::new().with("lower", letter(op, "uplo")? == b'L');
                let found = calls_with("_Tridiagonal", attrs, &[a]);
                // Diagonals are real, and the op has them in the type of the matrix.
                let diagonals = [1, 2].map(|index| real(found.at(index)));
                Ok(vec![found.at(0), diagonals[0], diagonals[1], found.at(3), success(a)])
            }
            Routine::Tridiagonal => {
                let [below, main, above, b] = *exactly(op, x)?;
                let axis = b.literal(-2i32);
                let rows = [above, main, below].map(|x| call("ExpandDims", [x, axis]));
                let diagonals = Value::concat(&rows, -2);
                let solved = call("TridiagonalSolve", [diagonals, b]);
                Ok(vec![below, main, above, solved, success(b)])
            }
        }
    }
}

/// Eigenvalues, in two parts for a real matrix; eigenvectors of the left and of the right side, of
/// length 1 and with a real largest element, where they are asked for; the status.
fn eigen<'e>(a: Value<'e>, left: bool, right: bool) -> Vec<Value<'e>> {
    let complex = match a.dtype() {
        DType::F64 | DType::C128 => DType::C128,
        _ => DType::C64,
    };
    let attrs = Attrs::new().with("compute_v", left || right).with("Tout", complex);
    let found = calls_with("Eig", attrs, &[a]);
    let values = found.at(0);
    let mut results = match a.dtype().is_complex() {
        true => vec![values],
        false => ["Real", "Imag"]
            .map(|part| call_with(part, Attrs::new().with("Tout", a.dtype()), [values]))
            .to_vec(),
    };
    let none = || broadcast(a.cast(complex).like(0.0), &sizes(a));
    // Vectors of the left side are the rows of the inverse of those of the right one.
    results.push(match left {
        true => normalized(turned(call("MatrixInverse", [found.at(1)]))),
        false => none(),
    });
    results.push(if right { normalized(found.at(1)) } else { none() });
    results.push(success(a));
    results
}

/// Columns of length 1 whose largest element is real.
fn normalized(vectors: Value<'_>) -> Value<'_> {
    let real = vectors.dtype().real_type();
    let size = |x| call_with("ComplexAbs", Attrs::new().with("Tout", real), [x]);
    let sizes_of = size(vectors);
    // Something that is no matrix is an error already.
    let n = sizes(vectors).pop().unwrap_or(Size::Known(1));
    let n = n.value(vectors).cast(DType::I32);
    let attrs = Attrs::new().with("output_type", DType::I64);
    let largest = call_with("ArgMax", attrs, [sizes_of, vectors.literal(-2i32)]);
    let attrs = Attrs::new().with("axis", -1i64);
    let ones = [vectors.like(1.0), vectors.like(0.0)];
    let chosen = call_with("OneHot", attrs, [largest, n, ones[0], ones[1]]);
    let chosen = (vectors * transposed(chosen)).sum(&[-2], true);
    let length = sizes_of.square().sum(&[-2], true).sqrt();
    vectors * chosen.conj() / (size(chosen) * length).cast(vectors.dtype())
}

fn without_options(op: &HloOp) -> Error {
    malformed(op, "a routine of LAPACK has its options")
}

/// A number among the options of a call.
fn option(op: &HloOp, name: &str) -> Result<i64> {
    let config = op.attr("mhlo.backend_config").or_else(|| op.attr("backend_config"));
    let Some(Attr::Dict(entries)) = config else { return Err(without_options(op)) };
    let found = entries.iter().find(|(own, _)| own.text() == Some(name));
    match found.map(|(_, value)| &**value) {
        Some(Attr::Int(number)) => Ok(*number),
        _ => Err(without_options(op)),
    }
}

/// A letter among the options of a call.
fn letter(op: &HloOp, name: &str) -> Result<u8> {
    u8::try_from(option(op, name)?).map_err(|_| without_options(op))
}

/// Eigenvalues and singular values are real; ops may have them in the type of the matrix.
fn real(values: Value<'_>) -> Value<'_> {
    part(values, "Real")
}

/// Sizes of matrices, of which the program declares some.
fn declared<'e>(op: &HloOp, result: usize, mut sizes: Vec<Size<'e>>) -> Result<Vec<Size<'e>>> {
    let dims = &op.result_type(result)?.dims;
    let matrices = sizes.iter_mut().rev().zip(dims.iter().rev()).take(2);
    for (size, &known) in matrices.filter_map(|(size, dim)| Some((size, dim.as_ref()?))) {
        *size = Size::Known(known as i64);
    }
    Ok(sizes)
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
