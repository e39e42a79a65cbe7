//! Sparse matrices that know where each row begins: values of dtype variant.

use super::sets::F32_F64;
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{CallResults, Composite, Value, call, call_with, calls_with},
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
        name: "SparseMatrixAdd",
        summary: "Adds multiples of two sparse matrices.",
        inputs: &[
            arg_of("a", DType::Variant),
            arg_of("b", DType::Variant),
            arg("alpha", "T"),
            arg("beta", "T"),
        ],
        outputs: &[arg_of("c", DType::Variant)],
        attrs: &[ty("T", ENTRIES)],
        infer: |context| {
            (0..4).try_for_each(|index| context.check_rank(index, 0))?;
            infer::scalar(context)
        },
        lowering: Lowering::Composite(added),
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
        name: "SparseMatrixMul",
        summary: "Multiplies the entries of a sparse matrix by a number, or by one for each of a batch.",
        inputs: &[arg_of("a", DType::Variant), arg("b", "T")],
        attrs: &[any_ty("T")],
        infer: |context| {
            let is_known =
                matches!(context.shape(1).dims(), None | Some([] | [_, Some(1), Some(1)]));
            if !is_known {
                return Err(context.wrong(
                    1,
                    "a scalar or of shape [batch, 1, 1]",
                    context.shape(1),
                ));
            }
            infer::scalar(context)
        },
        lowering: Lowering::Composite(scaled),
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
        name: "SparseMatrixSoftmax",
        summary: "Computes softmax over the entries of each row of a sparse matrix.",
        inputs: &[arg_of("logits", DType::Variant)],
        outputs: &[arg_of("softmax", DType::Variant)],
        attrs: &[ty("type", F32_F64)],
        lowering: Lowering::Composite(|c| {
            let entries = entries(c.x(0), c.dtype_attr("type"));
            vec![at_places(
                &entries,
                call("SparseSoftmax", [entries.at(0), entries.at(1), entries.at(2)]),
            )]
        }),
        ..MATRIX
    },
    OpDef {
        name: "SparseMatrixSoftmaxGrad",
        summary: "Computes the gradient of `SparseMatrixSoftmax` from what that gave.",
        inputs: &[arg_of("softmax", DType::Variant), arg_of("grad_softmax", DType::Variant)],
        outputs: &[arg_of("gradient", DType::Variant)],
        attrs: &[ty("type", F32_F64)],
        lowering: Lowering::Composite(softmax_grad),
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
        name: "SparseMatrixZeros",
        summary: "Makes a sparse matrix without entries.",
        inputs: &[arg_of("dense_shape", DType::I64)],
        outputs: &[arg_of("sparse_matrix", DType::Variant)],
        infer: |context| {
            context.check_rank(0, 1)?;
            infer::scalar(context)
        },
        lowering: Lowering::Composite(|c| {
            let rank = c.x(0).shape().num_elements() as i64;
            let places = c.x(0).slice(&[0], &[0]).reshape(&[0, rank]);
            let values = c.x(0).slice(&[0], &[0]).cast(c.dtype_attr("type"));
            vec![call("SparseTensorToCSRSparseMatrix", [places, values, c.x(0)])]
        }),
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

/// Places, values and sizes of a matrix.
fn entries<'e>(matrix: Value<'e>, dtype: DType) -> CallResults<'e> {
    calls_with("CSRSparseMatrixToSparseTensor", Attrs::new().with("type", dtype), &[matrix])
}

/// The matrix of these values at the places of another.
fn at_places<'e>(places: &CallResults<'e>, values: Value<'e>) -> Value<'e> {
    call("SparseTensorToCSRSparseMatrix", [places.at(0), values, places.at(2)])
}

fn added<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let dtype = c.dtype_attr("T");
    let [a, b] = [0, 1].map(|index| entries(c.x(index), dtype));
    let least = match dtype {
        DType::F64 | DType::C128 => c.scalar(0f64),
        _ => c.scalar(0f32),
    };
    let (of_a, of_b) = (a.at(1) * c.x(2), b.at(1) * c.x(3));
    let inputs = [a.at(0), of_a, a.at(2), b.at(0), of_b, b.at(2), least];
    let sum = calls_with("SparseAdd", Attrs::new(), &inputs);
    vec![at_places(&sum, sum.at(1))]
}

fn scaled<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (a, b) = (entries(c.x(0), c.dtype_attr("T")), c.x(1));
    let factor = match b.shape().rank() {
        0 => b,
        _ => call("GatherNd", [b.reshape(&[-1]), a.at(0).slice(&[0, 0], &[-1, 1])]),
    };
    vec![at_places(&a, a.at(1) * factor)]
}

/// Each entry times what its gradient has beyond the mean of the row.
fn softmax_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let dtype = c.dtype_attr("type");
    let y = entries(c.x(0), dtype);
    let (places, values, dims) = (y.at(0), y.at(1), y.at(2));
    let dense = call_with("CSRSparseMatrixToDense", Attrs::new().with("type", dtype), [c.x(1)]);
    let dy = call("GatherNd", [dense, places]);
    let inputs = [places, dy * values, dims, c.vector(&[-1i32])];
    let of_rows = call_with("SparseReduceSum", Attrs::new().with("keep_dims", true), inputs);
    let means = call("SparseDenseCwiseMul", [places, values.ones_like(), dims, of_rows]);
    vec![at_places(&y, (dy - means) * values)]
}

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
