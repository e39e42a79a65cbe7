//! Ops of old programs, as formulas over newer ones.

use super::{
    diagonal,
    linalg::{SOLVE, SQUARE, determinant, least_squares_shape, singular_shapes, square},
    sets::*,
};
use crate::gradient::Gradient;
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with, calls_with},
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
};

/// A function of matrices in single and double precision.
const FLOAT_SQUARE: OpDef = OpDef { attrs: &[ty("T", F32_F64)], ..SQUARE };

/// A change of some rows.
const ROWS: OpDef = OpDef {
    inputs: &[arg("x", "T"), arg_of("i", DType::I32), arg("v", "T")],
    outputs: &[arg("y", "T")],
    attrs: &[any_ty("T")],
    infer: |context| {
        context.check_rank_at_least(0, 1)?;
        let [indices] = context.dims::<1>(1)?;
        let (x, v) = (context.shape(0), context.shape(2));
        context.check_rank_at_least(2, 1)?;
        context.same("the rows of v", indices, v.dim(0))?;
        let is_row = match (x.dims(), v.dims()) {
            (Some(x), Some(v)) => x.len() == v.len() && x[1..] == v[1..],
            _ => true,
        };
        match is_row {
            true => context.set(0, x.clone()),
            false => return Err(context.wrong(2, format!("rows as those of {x}"), v)),
        }
        Ok(())
    },
    ..OpDef::PURE
};

const NORM: OpDef = OpDef {
    inputs: &[arg("t", "T"), arg("m", "T"), arg("v", "T"), arg("beta", "T"), arg("gamma", "T")],
    outputs: &[arg("result", "T")],
    attrs: &[
        ty("T", NUMBERS),
        float("variance_epsilon"),
        required_flag("scale_after_normalization"),
    ],
    infer: |context| {
        context.check_rank(0, 4)?;
        for index in 1..context.n_inputs() {
            let [channels] = context.dims::<1>(index)?;
            context.same("the channels", context.shape(0).dim(3), channels)?;
        }
        context.set(0, context.shape(0).clone());
        Ok(())
    },
    lowering: Lowering::Composite(norm),
    ..OpDef::PURE
};

/// Eigenvalues as a row above the eigenvectors.
const EIGEN_ROWS: OpDef = OpDef {
    infer: |context| {
        let (matrices, n) = square(context, 0)?;
        let Some(dims) = matrices.dims() else { return Ok(()) };
        let stack = dims[..dims.len() - 2].iter().copied();
        context.set(0, PartialShape::ranked(stack.chain([n.map(|n| n + 1), n])));
        Ok(())
    },
    lowering: Lowering::Composite(|c| {
        let found = calls_with("SelfAdjointEigV2", Attrs::new(), &[c.x(0)]);
        let axis = found.at(0).shape().rank() as i64 - 1;
        let row = call("ExpandDims", [found.at(0), c.scalar(axis as i32)]);
        vec![Value::concat(&[row, found.at(1)], axis)]
    }),
    ..SQUARE
};

const CONV_GRAD: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("filter", "T"), arg("out_backprop", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[
        ty("T", IEEE_FLOATS),
        ints("strides").at_least(5),
        one_of("padding", &["SAME", "VALID"]),
        ints_or("dilations", &[1, 1, 1, 1, 1]),
    ],
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AccumulateNV2",
        summary: "Adds any number of tensors of one shape.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("sum", "T")],
        attrs: &[int("N").at_least(1), ty("T", NUMBERS), shape("shape")],
        infer: infer::all_same,
        lowering: Lowering::Composite(|c| c.renamed("AddN")),
        gradient: Gradient::Rule(|b| b.xs().iter().map(|_| Some(b.dy(0).into())).collect()),
        ..OpDef::PURE
    },
    OpDef {
        name: "AdjustContrast",
        summary: "Moves samples away from their mean in each channel, within bounds.",
        inputs: &[
            arg("images", "T"),
            arg_of("contrast_factor", DType::F32),
            arg_of("min_value", DType::F32),
            arg_of("max_value", DType::F32),
        ],
        outputs: &[arg_of("output", DType::F32)],
        attrs: &[ty(
            "T",
            &[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F32, DType::F64],
        )],
        infer: |context| {
            context.check_rank_at_least(0, 3)?;
            (1..4).try_for_each(|index| context.check_rank(index, 0))?;
            context.set(0, context.shape(0).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let x = c.x(0).cast(DType::F32);
            let mean = x.mean(&[-3, -2], true);
            vec![((x - mean) * c.x(1) + mean).maximum(c.x(2)).minimum(c.x(3))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchCholesky",
        summary: "As `Cholesky`.",
        lowering: Lowering::Composite(|c| c.renamed("Cholesky")),
        ..FLOAT_SQUARE
    },
    OpDef {
        name: "BatchCholeskyGrad",
        summary: "As `CholeskyGrad`.",
        inputs: &[arg("l", "T"), arg("grad", "T")],
        lowering: Lowering::Composite(|c| c.renamed("CholeskyGrad")),
        ..FLOAT_SQUARE
    },
    OpDef {
        name: "BatchMatrixBandPart",
        summary: "As `MatrixBandPart`.",
        inputs: &[
            arg("input", "T"),
            arg_of("num_lower", DType::I64),
            arg_of("num_upper", DType::I64),
        ],
        outputs: &[arg("band", "T")],
        attrs: &[any_ty("T")],
        infer: diagonal::matrix_band_part,
        lowering: Lowering::Composite(|c| c.renamed("MatrixBandPart")),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatrixDeterminant",
        summary: "As `MatrixDeterminant`.",
        attrs: &[ty("T", &[DType::F32, DType::F64, DType::C64, DType::C128])],
        infer: determinant,
        lowering: Lowering::Composite(|c| c.renamed("MatrixDeterminant")),
        ..SQUARE
    },
    OpDef {
        name: "BatchMatrixDiag",
        summary: "As `MatrixDiag`.",
        inputs: &[arg("diagonal", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: diagonal::matrix_diag,
        lowering: Lowering::Composite(|c| c.renamed("MatrixDiag")),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatrixDiagPart",
        summary: "As `MatrixDiagPart`.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("diagonal", "T")],
        attrs: &[any_ty("T")],
        infer: diagonal::matrix_diag_part,
        lowering: Lowering::Composite(|c| c.renamed("MatrixDiagPart")),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatrixInverse",
        summary: "As `MatrixInverse`.",
        attrs: &[flag("adjoint", false), ty("T", F32_F64)],
        lowering: Lowering::Composite(|c| c.renamed("MatrixInverse")),
        ..SQUARE
    },
    OpDef {
        name: "BatchMatrixSetDiag",
        summary: "As `MatrixSetDiag`.",
        inputs: &[arg("input", "T"), arg("diagonal", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: diagonal::matrix_set_diag,
        lowering: Lowering::Composite(|c| c.renamed("MatrixSetDiag")),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatrixSolve",
        summary: "As `MatrixSolve`.",
        attrs: &[flag("adjoint", false), ty("T", F32_F64)],
        lowering: Lowering::Composite(|c| c.renamed("MatrixSolve")),
        ..SOLVE
    },
    OpDef {
        name: "BatchMatrixSolveLs",
        summary: "As `MatrixSolveLs`.",
        inputs: &[arg("matrix", "T"), arg("rhs", "T"), arg_of("l2_regularizer", DType::F64)],
        attrs: &[ty("T", F32_F64), flag("fast", true)],
        infer: least_squares_shape,
        lowering: Lowering::Composite(|c| c.renamed("MatrixSolveLs")),
        ..SOLVE
    },
    OpDef {
        name: "BatchMatrixTriangularSolve",
        summary: "As `MatrixTriangularSolve`.",
        attrs: &[flag("lower", true), flag("adjoint", false), ty("T", F32_F64)],
        lowering: Lowering::Composite(|c| c.renamed("MatrixTriangularSolve")),
        ..SOLVE
    },
    OpDef {
        name: "BatchNormWithGlobalNormalization",
        summary: "Takes a mean from each channel and divides by the root of a variance.",
        ..NORM
    },
    OpDef {
        name: "BatchNormWithGlobalNormalizationGrad",
        summary: "Gradient of `BatchNormWithGlobalNormalization`.",
        inputs: &[
            arg("t", "T"),
            arg("m", "T"),
            arg("v", "T"),
            arg("gamma", "T"),
            arg("backprop", "T"),
        ],
        outputs: &[arg("dx", "T"), arg("dm", "T"), arg("dv", "T"), arg("db", "T"), arg("dg", "T")],
        infer: |context| {
            let images = context.merged(0, 4)?;
            context.check_rank(0, 4)?;
            let mut channels = images.dim(-1);
            for index in 1..4 {
                let [own] = context.dims::<1>(index)?;
                channels = context.same("the channels", channels, own)?;
            }
            context.set_all(&PartialShape::vector(channels));
            context.set(0, images);
            Ok(())
        },
        lowering: Lowering::Composite(norm_grad),
        ..NORM
    },
    OpDef {
        name: "BatchSelfAdjointEig",
        summary: "As `SelfAdjointEig`.",
        attrs: &[ty("T", F32_F64)],
        ..EIGEN_ROWS
    },
    OpDef {
        name: "BatchSelfAdjointEigV2",
        summary: "As `SelfAdjointEigV2`.",
        outputs: &[arg("e", "T"), arg("v", "T")],
        attrs: &[flag("compute_v", true), ty("T", F32_F64)],
        infer: |context| {
            let (matrices, n) = square(context, 0)?;
            let Some(dims) = matrices.dims() else { return Ok(()) };
            let values = dims[..dims.len() - 2].iter().copied().chain([n]);
            context.set(0, PartialShape::ranked(values));
            let vectors = context.attrs.bool("compute_v")?;
            context.set(1, if vectors { matrices } else { PartialShape::scalar() });
            Ok(())
        },
        lowering: Lowering::Composite(|c| c.renamed("SelfAdjointEigV2")),
        ..SQUARE
    },
    OpDef {
        name: "BatchSvd",
        summary: "As `Svd`.",
        outputs: &[arg("s", "T"), arg("u", "T"), arg("v", "T")],
        attrs: &[
            flag("compute_uv", true),
            flag("full_matrices", false),
            ty("T", &[DType::F32, DType::F64, DType::C64, DType::C128]),
        ],
        infer: singular_shapes,
        lowering: Lowering::Composite(|c| c.renamed("Svd")),
        ..SQUARE
    },
    OpDef {
        name: "Conv3DBackpropFilter",
        summary: "Gradient of `Conv3D` by its filter, for a filter of the same shape.",
        infer: |context| conv_grad(context, 1),
        lowering: Lowering::Composite(|c| {
            let sizes = c.x(1).int32_vector(&c.x(1).shape().to_i64());
            vec![call_with("Conv3DBackpropFilterV2", c.attrs.clone(), [c.x(0), sizes, c.x(2)])]
        }),
        ..CONV_GRAD
    },
    OpDef {
        name: "Conv3DBackpropInput",
        summary: "Gradient of `Conv3D` by its input, for an input of the same shape.",
        infer: |context| conv_grad(context, 0),
        lowering: Lowering::Composite(|c| {
            let sizes = c.x(0).int32_vector(&c.x(0).shape().to_i64());
            vec![call_with("Conv3DBackpropInputV2", c.attrs.clone(), [sizes, c.x(1), c.x(2)])]
        }),
        ..CONV_GRAD
    },
    OpDef {
        name: "InplaceAdd",
        summary: "Adds to some rows.",
        lowering: Lowering::Composite(|c| rows(c, "TensorScatterAdd")),
        ..ROWS
    },
    OpDef {
        name: "InplaceSub",
        summary: "Subtracts from some rows.",
        lowering: Lowering::Composite(|c| rows(c, "TensorScatterSub")),
        ..ROWS
    },
    OpDef {
        name: "InplaceUpdate",
        summary: "Replaces some rows.",
        lowering: Lowering::Composite(|c| rows(c, "TensorScatterUpdate")),
        ..ROWS
    },
    OpDef {
        name: "ParallelConcat",
        summary: "Joins tensors of one row each.",
        inputs: &[args("values", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(1), any_ty("T"), shape("shape")],
        infer: |context| {
            let rows = context.n_inputs();
            let mut row = context.shape(0).clone();
            for index in 0..rows {
                context.check_rank_at_least(index, 1)?;
                let other = context.shape(index);
                context.same("the rows of a value", other.dim(0), Some(1))?;
                let wrong =
                    || context.wrong(index, format!("of shape {row}, as the others"), other);
                row = row.merge(other).ok_or_else(wrong)?;
            }
            if let Some([_, rest @ ..]) = row.dims() {
                let dims = std::iter::once(Some(rows)).chain(rest.iter().copied());
                context.set(0, PartialShape::ranked(dims));
            }
            Ok(())
        },
        lowering: Lowering::Composite(|c| match c.inputs() {
            [single] => vec![*single],
            inputs => vec![Value::concat(inputs, 0)],
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "QuantizeAndDequantize",
        summary: "As `QuantizeAndDequantizeV2`, with a range that is an attribute.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            flag("signed_input", true),
            int_or("num_bits", 8),
            flag("range_given", false),
            float_or("input_min", 0.0),
            float_or("input_max", 0.0),
            ty("T", FLOATS),
        ],
        infer: infer::unchanged,
        lowering: Lowering::Composite(|c| {
            let end = |name: &str| c.x(0).like(c.float(name).into());
            let ends = (end("input_min"), end("input_max"));
            vec![call_with("QuantizeAndDequantizeV2", c.attrs.clone(), [c.x(0), ends.0, ends.1])]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "SelfAdjointEig",
        summary: "Gives a row of eigenvalues, smallest first, and below it the eigenvectors.",
        attrs: &[ty("T", IEEE_FLOATS)],
        ..EIGEN_ROWS
    },
    OpDef {
        name: "SparseMatMul",
        summary: "Multiplies matrices that may have many zeros, in single precision.",
        inputs: &[arg("a", "Ta"), arg("b", "Tb")],
        outputs: &[arg_of("product", DType::F32)],
        attrs: &[
            flag("transpose_a", false),
            flag("transpose_b", false),
            flag("a_is_sparse", false),
            flag("b_is_sparse", false),
            ty_or("Ta", &[DType::F32, DType::BF16], DType::F32),
            ty_or("Tb", &[DType::F32, DType::BF16], DType::F32),
        ],
        infer: |context| {
            let (mut a, mut b) = (context.dims::<2>(0)?, context.dims::<2>(1)?);
            if context.attrs.bool("transpose_a")? {
                a.reverse();
            }
            if context.attrs.bool("transpose_b")? {
                b.reverse();
            }
            context.same("the inner sizes", a[1], b[0])?;
            context.set(0, PartialShape::ranked([a[0], b[1]]));
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let (a, b) = (c.x(0).cast(DType::F32), c.x(1).cast(DType::F32));
            vec![a.matmul(b, c.flag("transpose_a"), c.flag("transpose_b"))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "TileGrad",
        summary: "Gradient of `Tile`: adds up the copies.",
        inputs: &[arg("input", "T"), arg_of("multiples", DType::I32).host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: |context| {
            let [count] = context.dims::<1>(1)?;
            let Some(dims) = context.shape(0).dims() else { return Ok(()) };
            context.same("the number of multiples", count, Some(dims.len()))?;
            let Some(multiples) = context.ints(1)? else {
                context.set(0, PartialShape::of_rank(dims.len()));
                return Ok(());
            };
            let mut sizes: Vec<Dim> = Vec::with_capacity(dims.len());
            for (&dim, &copies) in dims.iter().zip(&multiples) {
                let wrong = || context.wrong(1, "a divisor of the size", copies);
                let copies = usize::try_from(copies).ok().filter(|&copies| copies > 0);
                let copies = copies.ok_or_else(wrong)?;
                if dim.is_some_and(|size| !size.is_multiple_of(copies)) {
                    return Err(wrong());
                }
                sizes.push(dim.map(|size| size / copies));
            }
            context.set(0, PartialShape::ranked(sizes));
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let pairs = c.x(0).shape().to_i64().into_iter().zip(c.ints(1));
            let folded: Vec<i64> =
                pairs.flat_map(|(size, copies)| [copies, size / copies.max(1)]).collect();
            let copies: Vec<i64> = (0..folded.len() as i64).step_by(2).collect();
            vec![c.x(0).reshape(&folded).sum(&copies, false)]
        }),
        ..OpDef::PURE
    },
];

/// Numbers of rows go round: -1 is the last.
fn rows<'e>(c: &Composite<'e>, name: &str) -> Vec<Value<'e>> {
    let (x, n_rows) = (c.x(0), c.x(0).shape()[0]);
    let n_rows = i32::try_from(n_rows).unwrap_or(i32::MAX).max(1);
    let rows = call("FloorMod", [c.x(1), c.scalar(n_rows)]).reshape(&[-1, 1]);
    vec![call(name, [x, rows, c.x(2)])]
}

/// Source: `BatchNormGrad` in `tensorflow/core/kernels/batch_norm_op.h`.
fn norm_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, mean, variance, gamma, dy) = (c.x(0), c.x(1), c.x(2), c.x(3), c.x(4));
    let centred = x - mean;
    let inverse = (variance + f64::from(c.float("variance_epsilon"))).rsqrt();
    let is_scaled = c.flag("scale_after_normalization");
    let slope = if is_scaled { inverse * gamma } else { inverse };
    let over_images = |x: Value<'e>| x.sum(&[0, 1, 2], false);
    let (by_offset, along) = (over_images(dy), over_images(dy * centred));
    let by_scale = if is_scaled { along * inverse } else { gamma.zeros_like() };
    let by_variance = along * slope * inverse.square() * -0.5;
    vec![dy * slope, -by_offset * slope, by_variance, by_offset, by_scale]
}

fn norm<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (t, mean, variance, beta, gamma) = (c.x(0), c.x(1), c.x(2), c.x(3), c.x(4));
    let scale = (variance + f64::from(c.float("variance_epsilon"))).rsqrt();
    let scale = if c.flag("scale_after_normalization") { scale * gamma } else { scale };
    vec![(t - mean) * scale + beta]
}

fn conv_grad(context: &mut OpContext<'_>, like: usize) -> Result<()> {
    (0..3).try_for_each(|index| context.check_rank(index, 5))?;
    context.set(0, context.shape(like).clone());
    Ok(())
}
