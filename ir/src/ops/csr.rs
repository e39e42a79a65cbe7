//! Sparse matrices that know where each row begins: values of dtype variant.

use crate::{
    dtype::DType,
    error::Result,
    gradient::{self, Gradient},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// The dtypes of entries.
const ENTRIES: &[DType] = &[DType::F32, DType::F64, DType::C64, DType::C128];

/// An op on such a matrix that gives one.
const MATRIX: OpDef = OpDef {
    inputs: &[arg_of("input", DType::Variant)],
    outputs: &[arg_of("output", DType::Variant)],
    attrs: &[ty("type", ENTRIES)],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "CSRSparseMatrixComponents",
        summary: "Gives where rows of a sparse matrix begin, and its columns and values.",
        inputs: &[arg_of("csr_sparse_matrix", DType::Variant), arg_of("index", DType::I32)],
        outputs: &[
            arg_of("row_ptrs", DType::I32),
            arg_of("col_inds", DType::I32),
            arg("values", "type"),
        ],
        infer: vectors,
        ..MATRIX
    },
    OpDef {
        name: "CSRSparseMatrixToDense",
        summary: "Gives all elements of a sparse matrix.",
        inputs: &[arg_of("sparse_input", DType::Variant)],
        outputs: &[arg("dense_output", "type")],
        infer: infer::unknown,
        gradient: Gradient::Rule(gradient::csr::to_dense),
        ..MATRIX
    },
    OpDef {
        name: "CSRSparseMatrixToSparseTensor",
        summary: "Gives the places and values of a sparse matrix, and its sizes.",
        inputs: &[arg_of("sparse_matrix", DType::Variant)],
        outputs: &[
            arg_of("indices", DType::I64),
            arg("values", "type"),
            arg_of("dense_shape", DType::I64),
        ],
        infer: sparse_tensor,
        gradient: Gradient::Rule(gradient::csr::to_sparse),
        ..MATRIX
    },
    OpDef {
        name: "DenseToCSRSparseMatrix",
        summary: "Makes a sparse matrix of some elements of a dense one.",
        inputs: &[arg("dense_input", "T"), arg_of("indices", DType::I64)],
        outputs: &[arg_of("sparse_output", DType::Variant)],
        attrs: &[ty("T", ENTRIES)],
        gradient: Gradient::Rule(gradient::csr::of_dense),
        ..MATRIX
    },
    OpDef {
        name: "SparseMatrixMatMul",
        summary: "Multiplies a sparse matrix by a dense one.",
        inputs: &[arg_of("a", DType::Variant), arg("b", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            flag("transpose_a", false),
            flag("transpose_b", false),
            flag("adjoint_a", false),
            flag("adjoint_b", false),
            flag("transpose_output", false),
            flag("conjugate_output", false),
        ],
        infer: times_dense,
        gradient: Gradient::Rule(gradient::csr::times_dense),
        ..MATRIX
    },
    OpDef {
        name: "SparseMatrixNNZ",
        summary: "Gives the number of entries of a sparse matrix.",
        inputs: &[arg_of("sparse_matrix", DType::Variant)],
        outputs: &[arg_of("nnz", DType::I32)],
        attrs: &[],
        infer: infer::unknown,
        gradient: Gradient::Zero,
        ..MATRIX
    },
    OpDef {
        name: "SparseMatrixSparseMatMul",
        summary: "Multiplies two sparse matrices.",
        inputs: &[arg_of("a", DType::Variant), arg_of("b", DType::Variant)],
        outputs: &[arg_of("c", DType::Variant)],
        attrs: &[
            ty("type", ENTRIES),
            flag("transpose_a", false),
            flag("transpose_b", false),
            flag("adjoint_a", false),
            flag("adjoint_b", false),
        ],
        gradient: Gradient::Rule(gradient::csr::times),
        ..MATRIX
    },
    OpDef {
        name: "SparseMatrixTranspose",
        summary: "Swaps rows and columns of a sparse matrix.",
        attrs: &[flag("conjugate", false), ty("type", ENTRIES)],
        gradient: Gradient::Rule(gradient::csr::transpose),
        ..MATRIX
    },
    OpDef {
        name: "SparseTensorToCSRSparseMatrix",
        summary: "Makes a sparse matrix of places and values.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "T"),
            arg_of("dense_shape", DType::I64),
        ],
        outputs: &[arg_of("sparse_matrix", DType::Variant)],
        attrs: &[ty("T", ENTRIES)],
        gradient: Gradient::Rule(gradient::csr::of_sparse),
        ..MATRIX
    },
];

fn vectors(context: &mut OpContext<'_>) -> Result<()> {
    context.set_all(&PartialShape::vector(None));
    Ok(())
}

fn sparse_tensor(context: &mut OpContext<'_>) -> Result<()> {
    vectors(context)?;
    context.set(0, PartialShape::of_rank(2));
    Ok(())
}

fn times_dense(context: &mut OpContext<'_>) -> Result<()> {
    let flag = |name| context.attrs.bool(name);
    let is_turned = flag("transpose_b")? || flag("adjoint_b")?;
    let is_out_turned = flag("transpose_output")?;
    let Some(dims) = context.shape(1).dims() else { return infer::unknown(context) };
    let mut found = match dims {
        [rows, columns] => vec![None, if is_turned { *rows } else { *columns }],
        [batch, rows, columns] => vec![*batch, None, if is_turned { *rows } else { *columns }],
        _ => return Err(context.wrong(1, "of rank 2 or 3", context.shape(1))),
    };
    if is_out_turned {
        let last = found.len() - 1;
        found.swap(last, last - 1);
    }
    context.set(0, PartialShape::ranked(found));
    Ok(())
}
