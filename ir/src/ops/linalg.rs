//! Linear algebra on stacks of matrices: the last two dimensions are those of a matrix.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::{AttrValue, Attrs},
    dtype::DType,
    emit::{Composite, Value, call, call_with, calls_with},
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

const SOLVABLE: &[DType] = &[DType::F64, DType::F32, DType::C64, DType::C128];

/// A function of square matrices that returns matrices of the same size.
pub(super) const SQUARE: OpDef = OpDef {
    inputs: &[arg("input", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[ty("T", LINALG)],
    infer: |context| {
        let (shape, ..) = square(context, 0)?;
        let n = shape.dim(-1);
        context.set(0, of_matrices(&shape, &[n, n]));
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
    ..OpDef::PURE
};

pub(super) const SOLVE: OpDef = OpDef {
    inputs: &[arg("matrix", "T"), arg("rhs", "T")],
    attrs: &[flag("adjoint", false), ty("T", LINALG)],
    infer: |context| {
        let (matrix, n) = square(context, 0)?;
        let (right, [rows, columns]) = matrices(context, 1)?;
        context.same("the rows of rhs", n, rows)?;
        let batch = stack(&matrix);
        let merged = batch.merge(&stack(&right));
        let batch = merged.ok_or_else(|| context.wrong(1, "a stack as that of matrix", right))?;
        context.set(0, joined(&batch, &[n, columns]));
        Ok(())
    },
    ..SQUARE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BandedTriangularSolve",
        summary: "Solves systems of linear equations whose matrix has some diagonals in a triangle.",
        attrs: &[flag("lower", true), flag("adjoint", false), ty("T", LINALG)],
        infer: |context| {
            let (bands, [_, n]) = matrices(context, 0)?;
            let (right, [rows, columns]) = matrices(context, 1)?;
            context.same("the rows of rhs", n, rows)?;
            let batch = stack(&bands).broadcast(&stack(&right))?;
            context.set(0, joined(&batch, &[n, columns]));
            Ok(())
        },
        lowering: Lowering::Composite(banded_solve),
        ..SOLVE
    },
    OpDef {
        name: "Cholesky",
        summary: "Computes the lower triangle whose product with its adjoint is the matrix.",
        gradient: Gradient::Rule(gradient::linalg::cholesky),
        ..SQUARE
    },
    OpDef {
        name: "CholeskyGrad",
        summary: "Gradient of `Cholesky`.",
        inputs: &[arg("l", "T"), arg("grad", "T")],
        attrs: &[ty("T", IEEE_FLOATS)],
        infer: |context| {
            let (shape, _) = square(context, 0)?;
            let merged = shape.merge(context.shape(1));
            let shape = merged.ok_or_else(|| context.wrong(1, "of the shape of l", shape))?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Composite(cholesky_grad),
        ..SQUARE
    },
    OpDef {
        name: "Eig",
        summary: "Computes eigenvalues and eigenvectors of square matrices.",
        outputs: &[arg("e", "Tout"), arg("v", "Tout")],
        attrs: &[
            flag("compute_v", true),
            ty("T", &[DType::F32, DType::F64, DType::C64, DType::C128]),
            ty("Tout", COMPLEX),
        ],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            let is_double = matches!(context.dtype(0), DType::F64 | DType::C128);
            let expected = if is_double { DType::C128 } else { DType::C64 };
            if context.output_dtype(0) != expected {
                let found = context.output_dtype(0);
                return Err(context.wrong_attr("Tout", expected.name(), found));
            }
            context.set(0, of_matrices(&shape, &[n]));
            let vectors = context.attrs.bool("compute_v")?;
            let vectors = vectors.then(|| of_matrices(&shape, &[n, n]));
            context.set(1, vectors.unwrap_or_else(PartialShape::scalar));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::linalg::eig),
        ..SQUARE
    },
    OpDef {
        name: "LogMatrixDeterminant",
        summary: "Computes the sign of the determinant and the logarithm of its magnitude.",
        outputs: &[arg("sign", "T"), arg("log_abs_determinant", "T")],
        infer: determinant,
        gradient: Gradient::Rule(gradient::linalg::log_determinant),
        ..SQUARE
    },
    OpDef {
        name: "Lu",
        summary: "Factors rows in another order into a lower and an upper triangle.",
        outputs: &[arg("lu", "T"), arg("p", "output_idx_type")],
        attrs: &[ty("T", LINALG), ty_or("output_idx_type", INDEX, DType::I32)],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            context.set(0, of_matrices(&shape, &[n, n]));
            context.set(1, of_matrices(&shape, &[n]));
            Ok(())
        },
        ..SQUARE
    },
    OpDef {
        name: "MatrixDeterminant",
        summary: "Computes the determinant.",
        infer: determinant,
        gradient: Gradient::Rule(gradient::linalg::determinant),
        ..SQUARE
    },
    OpDef {
        name: "MatrixExponential",
        summary: "Computes the exponential of the matrix.",
        gradient: Gradient::Rule(gradient::linalg::exponential),
        ..SQUARE
    },
    OpDef {
        name: "MatrixInverse",
        summary: "Computes the inverse of the matrix or of its adjoint.",
        attrs: &[flag("adjoint", false), ty("T", LINALG)],
        gradient: Gradient::Rule(gradient::linalg::inverse),
        ..SQUARE
    },
    OpDef {
        name: "MatrixLogarithm",
        summary: "Computes the principal logarithm of the matrix.",
        attrs: &[ty("T", COMPLEX)],
        ..SQUARE
    },
    OpDef {
        name: "MatrixSolve",
        summary: "Solves systems of linear equations.",
        gradient: Gradient::Broadcast(gradient::linalg::solve),
        ..SOLVE
    },
    OpDef {
        name: "MatrixSolveLs",
        summary: "Solves systems of linear equations as well as can be, by least squares.",
        inputs: &[arg("matrix", "T"), arg("rhs", "T"), arg_of("l2_regularizer", DType::F64)],
        attrs: &[ty("T", LINALG), flag("fast", true)],
        infer: least_squares_shape,
        lowering: Lowering::Composite(least_squares),
        ..SOLVE
    },
    OpDef {
        name: "MatrixSquareRoot",
        summary: "Computes the principal square root of the matrix.",
        gradient: Gradient::Rule(gradient::factor::square_root),
        ..SQUARE
    },
    OpDef {
        name: "MatrixTriangularSolve",
        summary: "Solves systems of linear equations whose matrix is a triangle.",
        attrs: &[flag("lower", true), flag("adjoint", false), ty("T", FLOATS_AND_COMPLEX)],
        infer: |context| {
            let (matrix, n) = square(context, 0)?;
            let (right, [rows, columns]) = matrices(context, 1)?;
            context.same("the rows of rhs", n, rows)?;
            let batch = stack(&matrix).broadcast(&stack(&right))?;
            context.set(0, joined(&batch, &[n, columns]));
            Ok(())
        },
        gradient: Gradient::Broadcast(gradient::linalg::triangular_solve),
        ..SOLVE
    },
    OpDef {
        name: "Qr",
        summary: "Factors into a matrix with orthonormal columns and an upper triangle.",
        outputs: &[arg("q", "T"), arg("r", "T")],
        attrs: &[flag("full_matrices", false), ty("T", LINALG)],
        infer: |context| {
            let (shape, [rows, columns]) = matrices(context, 0)?;
            let inner = match context.attrs.bool("full_matrices")? {
                true => rows,
                false => smaller(rows, columns),
            };
            context.set(0, of_matrices(&shape, &[rows, inner]));
            context.set(1, of_matrices(&shape, &[inner, columns]));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::factor::qr),
        ..SQUARE
    },
    OpDef {
        name: "SelfAdjointEigV2",
        summary: "Computes eigenvalues and eigenvectors of matrices that are their own adjoints.",
        outputs: &[arg("e", "T"), arg("v", "T")],
        attrs: &[flag("compute_v", true), ty("T", LINALG)],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            context.set(0, of_matrices(&shape, &[n]));
            let vectors = context.attrs.bool("compute_v")?;
            let vectors = vectors.then(|| of_matrices(&shape, &[n, n]));
            context.set(1, vectors.unwrap_or_else(PartialShape::scalar));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::linalg::self_adjoint_eig),
        ..SQUARE
    },
    OpDef {
        name: "Svd",
        summary: "Computes singular values and singular vectors.",
        outputs: &[arg("s", "T"), arg("u", "T"), arg("v", "T")],
        attrs: &[flag("compute_uv", true), flag("full_matrices", false), ty("T", LINALG)],
        infer: singular_shapes,
        gradient: Gradient::Rule(gradient::factor::svd),
        ..SQUARE
    },
    OpDef {
        name: "TridiagonalMatMul",
        summary: "Multiplies a matrix that has three diagonals by a matrix.",
        inputs: &[
            arg("superdiag", "T"),
            arg("maindiag", "T"),
            arg("subdiag", "T"),
            arg("rhs", "T"),
        ],
        attrs: &[ty("T", SOLVABLE)],
        infer: |context| {
            let (right, [rows, columns]) = matrices(context, 3)?;
            let mut batch = stack(&right);
            for index in 0..3 {
                let (diagonal, [one, n]) = matrices(context, index)?;
                context.same("the rows of a diagonal", one, Some(1))?;
                context.same("the size of a diagonal", n, rows)?;
                let merged = batch.merge(&stack(&diagonal));
                let found = diagonal;
                batch = merged.ok_or_else(|| context.wrong(index, "a stack as rhs", found))?;
            }
            context.set(0, joined(&batch, &[rows, columns]));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::linalg::tridiagonal_matmul),
        ..SQUARE
    },
    OpDef {
        name: "TridiagonalSolve",
        summary: "Solves systems of linear equations whose matrix has three diagonals.",
        inputs: &[arg("diagonals", "T"), arg("rhs", "T")],
        attrs: &[
            flag("partial_pivoting", true),
            flag("perturb_singular", false),
            ty("T", SOLVABLE),
        ],
        infer: |context| {
            let (diagonals, [three, n]) = matrices(context, 0)?;
            let (right, [rows, columns]) = matrices(context, 1)?;
            context.same("the number of diagonals", three, Some(3))?;
            context.same("the size of the diagonals", n, rows)?;
            let merged = stack(&diagonals).merge(&stack(&right));
            let batch = merged.ok_or_else(|| context.wrong(1, "a stack as diagonals", right))?;
            context.set(0, joined(&batch, &[rows, columns]));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::linalg::tridiagonal_solve),
        ..SQUARE
    },
    OpDef {
        name: "_Hessenberg",
        summary: "Turns a matrix into one with a diagonal below the main one, as LAPACK packs it.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("packed", "T"), arg("factors", "T")],
        attrs: &[ty("T", SOLVABLE)],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            let batch = stack(&shape);
            context.set(0, shape);
            context.set(1, joined(&batch, &[n.map(|n| n.saturating_sub(1))]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_HouseholderProduct",
        summary: "Multiplies reflections, as LAPACK packs them.",
        inputs: &[arg("packed", "T"), arg("factors", "T")],
        outputs: &[arg("q", "T")],
        attrs: &[ty("T", SOLVABLE)],
        infer: |context| {
            let (packed, [_, columns]) = matrices(context, 0)?;
            let factors = context.shape(1).clone();
            context.check_rank_at_least(1, 1)?;
            if let (Some(n), Some(columns)) = (factors.dim(-1), columns)
                && n > columns
            {
                return Err(context.wrong(1, format!("no longer than {columns}"), factors));
            }
            let ends = factors.dims().map(|dims| &dims[..dims.len() - 1]);
            if let (Some(own), Some(batch)) = (ends, stack(&packed).dims())
                && own != batch
            {
                return Err(context.wrong(1, "a stack as that of packed", factors));
            }
            context.set(0, packed);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_HouseholderQr",
        summary: "Factors a matrix into reflections and an upper triangle, as LAPACK packs them.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("packed", "T"), arg("factors", "T")],
        attrs: &[ty("T", SOLVABLE)],
        infer: |context| {
            let (shape, [rows, columns]) = matrices(context, 0)?;
            let least = rows.zip(columns).map(|(rows, columns)| rows.min(columns));
            let batch = stack(&shape);
            context.set(0, shape);
            context.set(1, joined(&batch, &[least]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_LuFactors",
        summary: "Factors rows in another order into triangles, as LAPACK packs them.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("packed", "T"), arg_of("pivots", DType::I32), arg_of("status", DType::I32)],
        attrs: &[ty("T", LINALG)],
        infer: |context| {
            let (shape, [rows, columns]) = matrices(context, 0)?;
            let least = rows.zip(columns).map(|(rows, columns)| rows.min(columns));
            let batch = stack(&shape);
            context.set(0, shape);
            context.set(1, joined(&batch, &[least]));
            context.set(2, batch);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_RealSchur",
        summary: "Factors a real matrix into blocks of up to two rows between orthogonal matrices.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("t", "T"), arg("z", "T"), arg("imaginary", "T")],
        attrs: &[ty("T", &[DType::F32, DType::F64])],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            let batch = stack(&shape);
            context.set(0, shape.clone());
            context.set(1, shape);
            context.set(2, joined(&batch, &[n]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_Schur",
        summary: "Factors a complex matrix into a triangle between a unitary matrix and its adjoint.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("t", "T"), arg("z", "T")],
        attrs: &[ty("T", COMPLEX)],
        infer: |context| {
            let (shape, _) = square(context, 0)?;
            context.set(0, shape.clone());
            context.set(1, shape);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
    OpDef {
        name: "_Tridiagonal",
        summary: "Turns a matrix that is its own adjoint into three diagonals, as LAPACK packs it.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("packed", "T"), arg("main", "T"), arg("beside", "T"), arg("factors", "T")],
        attrs: &[flag("lower", true), ty("T", SOLVABLE)],
        infer: |context| {
            let (shape, n) = square(context, 0)?;
            let batch = stack(&shape);
            let less = joined(&batch, &[n.map(|n| n.saturating_sub(1))]);
            context.set(0, shape);
            context.set(1, joined(&batch, &[n]));
            context.set(2, less.clone());
            context.set(3, less);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::LinearAlgebra),
        ..OpDef::PURE
    },
];

/// The shape of input `index` and the sizes of its matrices.
fn matrices(context: &OpContext<'_>, index: usize) -> Result<(PartialShape, [Dim; 2])> {
    context.check_rank_at_least(index, 2)?;
    let shape = context.shape(index);
    Ok((shape.clone(), [shape.dim(-2), shape.dim(-1)]))
}

/// The shape of input `index`, whose matrices are square, and their size.
pub(super) fn square(context: &OpContext<'_>, index: usize) -> Result<(PartialShape, Dim)> {
    let (shape, [rows, columns]) = matrices(context, index)?;
    let n = context.same("the rows and columns of a matrix", rows, columns)?;
    Ok((shape, n))
}

/// The dimensions before those of the matrices.
fn stack(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some(dims) => PartialShape::ranked(dims[..dims.len() - 2].iter().copied()),
        None => PartialShape::Unknown,
    }
}

/// Something of these sizes for each element of a stack.
fn joined(stack: &PartialShape, sizes: &[Dim]) -> PartialShape {
    match stack.dims() {
        Some(dims) => PartialShape::ranked(dims.iter().chain(sizes).copied()),
        None => PartialShape::Unknown,
    }
}

/// Something of these sizes for each matrix of a shape.
fn of_matrices(shape: &PartialShape, sizes: &[Dim]) -> PartialShape {
    joined(&stack(shape), sizes)
}

fn smaller(a: Dim, b: Dim) -> Dim {
    a.zip(b).map(|(a, b)| a.min(b))
}

pub(super) fn least_squares_shape(context: &mut OpContext<'_>) -> Result<()> {
    let (matrix, [rows, n]) = matrices(context, 0)?;
    let (right, [right_rows, columns]) = matrices(context, 1)?;
    context.same("the rows of rhs", rows, right_rows)?;
    context.check_rank(2, 0)?;
    let merged = stack(&matrix).merge(&stack(&right));
    let batch = merged.ok_or_else(|| context.wrong(1, "a stack as that of matrix", right))?;
    context.set(0, joined(&batch, &[n, columns]));
    Ok(())
}

pub(super) fn singular_shapes(context: &mut OpContext<'_>) -> Result<()> {
    let (shape, [rows, columns]) = matrices(context, 0)?;
    let inner = smaller(rows, columns);
    context.set(0, of_matrices(&shape, &[inner]));
    if !context.attrs.bool("compute_uv")? {
        context.set(1, PartialShape::scalar());
        context.set(2, PartialShape::scalar());
        return Ok(());
    }
    let full = context.attrs.bool("full_matrices")?;
    context.set(1, of_matrices(&shape, &[rows, if full { rows } else { inner }]));
    context.set(2, of_matrices(&shape, &[columns, if full { columns } else { inner }]));
    Ok(())
}

/// A number for each square matrix.
pub(super) fn determinant(context: &mut OpContext<'_>) -> Result<()> {
    let (shape, _) = square(context, 0)?;
    context.set_all(&of_matrices(&shape, &[]));
    Ok(())
}

/// The diagonals as a matrix: the main one is the first of a lower triangle and the last of an
/// upper one.
fn banded_solve<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let bands = c.x(0);
    let last = bands.shape()[bands.shape().rank() - 2] as i32 - 1;
    let range = if c.flag("lower") { vec![-last, 0] } else { vec![0, last] };
    let (bands, range) = match last {
        0 => {
            (call_with("Squeeze", Attrs::new().with("squeeze_dims", vec![-2i64]), [bands]), vec![0])
        }
        _ => (bands, range),
    };
    let attrs = Attrs::new().with("align", AttrValue::string("LEFT_RIGHT"));
    let zero = bands.like(0.0);
    let size = c.scalar(-1i32);
    let matrix = call_with("MatrixDiagV3", attrs, [bands, c.vector(&range), size, size, zero]);
    vec![call_with("MatrixTriangularSolve", c.attrs.clone(), [matrix, c.x(1)])]
}

/// The normal equations, with the square of a weight on the diagonal; or, not `fast`, the
/// singular values that are more than rounding, and no weight.
fn least_squares<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (a, b) = (c.x(0), c.x(1));
    let (shape, dtype) = (a.shape(), a.dtype());
    let (rows, columns) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
    if c.flag("fast") {
        let is_tall = rows >= columns;
        let gram = a.batch_matmul(a, is_tall, !is_tall);
        let diagonal = call("MatrixDiagPart", [gram]) + call("StopGradient", [c.x(2)]).cast(dtype);
        let normal = call("MatrixSetDiag", [gram, diagonal]);
        return vec![match is_tall {
            true => call("MatrixSolve", [normal, a.batch_matmul(b, true, false)]),
            false => a.batch_matmul(call("MatrixSolve", [normal, b]), true, false),
        }];
    }
    let factors = calls_with("Svd", Attrs::new(), &[a]);
    let sizes = match dtype {
        DType::C64 => call_with("Real", Attrs::new().with("Tout", DType::F32), [factors.at(0)]),
        DType::C128 => call_with("Real", Attrs::new().with("Tout", DType::F64), [factors.at(0)]),
        _ => factors.at(0),
    };
    let rounding = match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        DType::F16 => f64::powi(2.0, -10),
        _ => f64::from(f32::EPSILON),
    };
    let least = sizes.reduce_max(&[-1], true) * (rounding * rows.min(columns) as f64);
    let inverse = sizes.greater(least).select(sizes.like(1.0) / sizes, sizes.zeros_like());
    let inverse = call("ExpandDims", [inverse.cast(dtype), c.scalar(-1i32)]);
    let seen = factors.at(1).batch_matmul(b, true, false);
    vec![factors.at(2).batch_matmul(inverse * seen, false, false)]
}

/// The symmetric gradient of I. Murray, "Differentiation of the Cholesky decomposition" (2016),
/// equation 10: with `P` the lower triangle of `lᵀ grad` whose diagonal is halved, the symmetric
/// part of `l⁻ᵀ P l⁻¹`. Of `l`, too, only the lower triangle is read.
fn cholesky_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let band = |x: Value<'e>, below: i64| {
        let attrs = Attrs::new().with("T", x.dtype()).with("Tindex", DType::I64);
        c.call1("MatrixBandPart", attrs, &[x, c.scalar(below), c.scalar(0i64)])
    };
    let (l, grad) = (band(c.x(0), -1), c.x(1));
    let adjoint = |x: Value<'e>| {
        let rank = x.shape().rank() as i64;
        let swapped = (0..rank - 2).chain([rank - 1, rank - 2]);
        x.transpose(&swapped.collect::<Vec<_>>())
    };
    let solve = |right: Value<'e>| {
        let attrs = Attrs::new().with("T", l.dtype()).with("lower", true).with("adjoint", true);
        c.call1("MatrixTriangularSolve", attrs, &[l, right])
    };
    let gram = l.batch_matmul(band(grad, -1), true, false);
    let halved = band(gram, -1) - band(gram, 0) * 0.5;
    let result = solve(adjoint(solve(halved)));
    vec![(result + adjoint(result)) * 0.5]
}
