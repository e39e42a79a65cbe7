//! Diagonals and bands of matrices.

use super::sets::*;
use crate::emit::call;
use crate::gradient::{self, Gradient, grads};
use crate::{
    diagonal::Band,
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
};
use smallvec::SmallVec;

/// Alignment of shorter diagonals in rows as long as the longest: those above the main one, then
/// those below it.
const ALIGN: AttrDef = one_of("align", &["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
    .or(AttrDefault::String("RIGHT_LEFT"));

/// The types of `Diag` and `DiagPart`.
const DIAGONAL: &[DType] = &[
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::I32,
    DType::I64,
    DType::C64,
    DType::C128,
];

/// Matrices with specified diagonals.
const MATRIX_DIAG: OpDef = OpDef {
    inputs: &[
        arg("diagonal", "T"),
        arg_of("k", DType::I32).host(),
        arg_of("num_rows", DType::I32).host(),
        arg_of("num_cols", DType::I32).host(),
        arg("padding_value", "T"),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T")],
    infer: matrix_diag,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// Diagonals of matrices.
const MATRIX_DIAG_PART: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg_of("k", DType::I32).host(), arg("padding_value", "T")],
    outputs: &[arg("diagonal", "T")],
    attrs: &[any_ty("T")],
    infer: matrix_diag_part,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// Matrices with some diagonals replaced.
const MATRIX_SET_DIAG: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("diagonal", "T"), arg_of("k", DType::I32).host()],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T")],
    infer: matrix_set_diag,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Diag",
        summary: "Puts a tensor on the diagonal of one of twice the rank, among zeros.",
        inputs: &[arg("diagonal", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", DIAGONAL)],
        infer: diag,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(|b| grads([call("DiagPart", [b.dy(0)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "DiagPart",
        summary: "Takes the diagonal of a tensor whose shape is a shape said twice.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("diagonal", "T")],
        attrs: &[ty("T", DIAGONAL)],
        infer: diag_part,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(|b| grads([call("Diag", [b.dy(0)])])),
        ..OpDef::PURE
    },
    OpDef {
        name: "MatrixBandPart",
        summary: "Keeps the diagonals of matrices around the main one, and sets the rest to zero.",
        inputs: &[arg("input", "T"), arg("num_lower", "Tindex"), arg("num_upper", "Tindex")],
        outputs: &[arg("band", "T")],
        attrs: &[any_ty("T"), ty_or("Tindex", INDEX, DType::I64)],
        infer: matrix_band_part,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::array::mirrored),
        sharding: Some(ShardingRule::Matrices),
        ..OpDef::PURE
    },
    OpDef {
        name: "MatrixDiag",
        summary: "Makes diagonal matrices.",
        inputs: &[arg("diagonal", "T")],
        gradient: Gradient::Rule(gradient::array::matrix_diag_v1),
        ..MATRIX_DIAG
    },
    OpDef {
        name: "MatrixDiagPart",
        summary: "Takes the main diagonals of matrices.",
        inputs: &[arg("input", "T")],
        gradient: Gradient::Rule(gradient::array::matrix_diag_part_v1),
        ..MATRIX_DIAG_PART
    },
    OpDef {
        name: "MatrixDiagPartV2",
        summary: "Takes a band of diagonals of matrices.",
        gradient: Gradient::Rule(gradient::array::matrix_diag_part_v2),
        ..MATRIX_DIAG_PART
    },
    OpDef {
        name: "MatrixDiagPartV3",
        summary: "Takes a band of diagonals of matrices.",
        attrs: &[any_ty("T"), ALIGN],
        gradient: Gradient::Rule(gradient::array::matrix_diag_part_v3),
        ..MATRIX_DIAG_PART
    },
    OpDef {
        name: "MatrixDiagV2",
        summary: "Makes matrices with a given band of diagonals.",
        gradient: Gradient::Rule(gradient::array::matrix_diag_v2),
        ..MATRIX_DIAG
    },
    OpDef {
        name: "MatrixDiagV3",
        summary: "Makes matrices with a given band of diagonals.",
        attrs: &[any_ty("T"), ALIGN],
        gradient: Gradient::Rule(gradient::array::matrix_diag_v3),
        ..MATRIX_DIAG
    },
    OpDef {
        name: "MatrixSetDiag",
        summary: "Replaces the main diagonals of matrices.",
        inputs: &[arg("input", "T"), arg("diagonal", "T")],
        gradient: Gradient::Rule(gradient::array::matrix_set_diag_v1),
        ..MATRIX_SET_DIAG
    },
    OpDef {
        name: "MatrixSetDiagV2",
        summary: "Replaces a band of diagonals of matrices.",
        gradient: Gradient::Rule(gradient::array::matrix_set_diag_v2),
        ..MATRIX_SET_DIAG
    },
    OpDef {
        name: "MatrixSetDiagV3",
        summary: "Replaces a band of diagonals of matrices.",
        attrs: &[any_ty("T"), ALIGN],
        gradient: Gradient::Rule(gradient::array::matrix_set_diag_v3),
        ..MATRIX_SET_DIAG
    },
];

fn diag(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    if let Some(dims) = context.shape(0).dims() {
        context.set(0, PartialShape::ranked(dims.iter().chain(dims).copied()));
    }
    Ok(())
}

fn diag_part(context: &mut OpContext<'_>) -> Result<()> {
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    if dims.len() % 2 == 1 {
        return Err(context.wrong(0, "of even rank", context.shape(0)));
    }
    let (rows, columns) = dims.split_at(dims.len() / 2);
    let mut diagonal: SmallVec<[Dim; 6]> = SmallVec::new();
    for (&row, &column) in rows.iter().zip(columns) {
        diagonal.push(context.same("sizes of both halves of the shape", row, column)?);
    }
    context.set(0, PartialShape::Ranked(diagonal));
    Ok(())
}

pub(super) fn matrix_band_part(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 2)?;
    context.check_rank(1, 0)?;
    context.check_rank(2, 0)?;
    infer::unchanged(context)
}

pub(super) fn matrix_diag(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let padding = if context.n_inputs() > 4 { context.shape(4).known() } else { None };
    if let Some(padding) = padding.filter(|padding| padding.num_elements() != 1) {
        return Err(context.wrong(4, "of one element", padding));
    }
    if let Some(diagonal) = context.shape(0).known()
        && context.host_values_known()
    {
        let (band, batch) = Band::of_diagonals(context, &diagonal)?;
        let dims = diagonal[..batch].iter().copied().chain([band.rows, band.columns]);
        context.set(0, PartialShape::ranked(dims.map(Some)));
    }
    Ok(())
}

pub(super) fn matrix_diag_part(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 2)?;
    if context.n_inputs() > 2 {
        context.check_rank(2, 0)?;
    }
    if let Some(matrix) = context.shape(0).known()
        && context.host_values_known()
    {
        let band = Band::of_matrix(context, &matrix, 1)?;
        context.set(0, band.diagonals(&matrix[..matrix.rank() - 2]));
    }
    Ok(())
}

pub(super) fn matrix_set_diag(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 2)?;
    context.check_rank_at_least(1, 1)?;
    if let Some(matrix) = context.shape(0).known()
        && context.host_values_known()
    {
        let band = Band::of_matrix(context, &matrix, 2)?;
        let expected = band.diagonals(&matrix[..matrix.rank() - 2]);
        if !context.shape(1).is_compatible_with(&expected) {
            return Err(context.wrong(1, format!("of shape {expected}"), context.shape(1)));
        }
    }
    infer::unchanged(context)
}
