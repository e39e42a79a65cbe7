//! Programs through values that are no numbers: arrays and lists of tensors, optionals, sparse
//! matrices, ragged tensors as variants.

use super::Order;
use crate::ops::CallTape;
use anyhow::Result;
use ferroflow::ir::{
    AttrValue, Attrs, DType, HostTensor, PartialShape, Shape,
    emit::{Emit, ValueId},
    registry,
};

/// A name, the inputs, how far gradients go, and the program. Arrays of gradients have none, nor
/// have ragged tensors as variants.
type Entry =
    (&'static str, &'static str, Order, fn(&mut CallTape<'_>, &[ValueId]) -> Result<Vec<ValueId>>);

pub(super) static PROGRAMS: &[Entry] = &[
    ("arrays: write, read", "f[3] f[3]", Order::First, |tape, x| {
        let (handle, flow) = array(tape, 2)?;
        let flow = write(tape, handle, 0, x[0], flow)?;
        let product = op(tape, "Mul", Attrs::new(), &[x[0], x[1]])?[0];
        let flow = write(tape, handle, 1, product, flow)?;
        let mut read = Vec::new();
        for place in [0, 1, 1] {
            let place = tape.constant(HostTensor::scalar(place))?;
            read.push(op(tape, "TensorArrayReadV3", of_double(), &[handle, place, flow])?[0]);
        }
        Ok(vec![
            op(tape, "Mul", Attrs::new(), &[read[0], read[1]])?[0],
            op(tape, "Exp", Attrs::new(), &[read[2]])?[0],
        ])
    }),
    ("arrays: scatter, gather", "f[2,3]", Order::First, |tape, x| {
        let (handle, flow) = array(tape, 2)?;
        let places = tape.constant(HostTensor::vector(&[1i32, 0])?)?;
        let flow =
            op(tape, "TensorArrayScatterV3", Attrs::new(), &[handle, places, x[0], flow])?[0];
        let found = op(tape, "TensorArrayGatherV3", of_double(), &[handle, places, flow])?[0];
        Ok(vec![op(tape, "Exp", Attrs::new(), &[found])?[0]])
    }),
    ("arrays: split, concat", "f[4,2]", Order::First, |tape, x| {
        let (handle, flow) = array(tape, 2)?;
        let lengths = tape.constant(HostTensor::vector(&[1i64, 3])?)?;
        let flow = op(tape, "TensorArraySplitV3", Attrs::new(), &[handle, x[0], lengths, flow])?[0];
        let found = op(tape, "TensorArrayConcatV3", of_double(), &[handle, flow])?[0];
        Ok(vec![op(tape, "Exp", Attrs::new(), &[found])?[0]])
    }),
    ("optionals", "f[3] f[2]", Order::Second, |tape, x| {
        let types = vec![DType::F64, DType::F64];
        let attrs = Attrs::new().with("Toutput_types", types.clone());
        let optional = op(tape, "OptionalFromValue", attrs, x)?[0];
        let shapes = AttrValue::Shapes(vec![PartialShape::Unknown, PartialShape::Unknown]);
        let attrs = Attrs::new().with("output_types", types).with("output_shapes", shapes);
        let found = op(tape, "OptionalGetValue", attrs, &[optional])?;
        found.iter().map(|&y| Ok(op(tape, "Exp", Attrs::new(), &[y])?[0])).collect()
    }),
    ("ragged tensors as variants", "f[3]", Order::First, |tape, x| {
        let splits = tape.constant(HostTensor::vector(&[0i64, 2, 3])?)?;
        let attrs = Attrs::new().with("RAGGED_RANK", 1i64).with("batched_input", true);
        let rows = op(tape, "RaggedTensorToVariant", attrs, &[splits, x[0]])?[0];
        let attrs = Attrs::new()
            .with("input_ragged_rank", 0i64)
            .with("output_ragged_rank", 1i64)
            .with("Tvalues", DType::F64);
        let found = op(tape, "RaggedTensorFromVariant", attrs, &[rows])?;
        Ok(vec![op(tape, "Exp", Attrs::new(), &[found[1]])?[0]])
    }),
    ("SparseMatrixMatMul", "f[3] f[3,2]", Order::Second, |tape, x| {
        let matrix = matrix(tape, x[0])?;
        product(tape, matrix, x[1], &[])
    }),
    ("SparseMatrixMatMul turned", "c[3] c[4,2]", Order::First, |tape, x| {
        let matrix = matrix(tape, x[0])?;
        let flags = ["transpose_a", "adjoint_b", "transpose_output", "conjugate_output"];
        product(tape, matrix, x[1], &flags)
    }),
    ("SparseMatrixMatMul adjoint", "c[3] c[4,2]", Order::First, |tape, x| {
        let matrix = matrix(tape, x[0])?;
        product(tape, matrix, x[1], &["adjoint_a", "transpose_b"])
    }),
    ("SparseMatrixSparseMatMul", "f[3] f[3,3]", Order::Second, |tape, x| {
        let a = matrix(tape, x[0])?;
        let places = tape
            .constant(HostTensor::from_slice(Shape::new([4, 2])?, &[0i64, 0, 1, 2, 2, 0, 2, 1])?)?;
        let b = op(tape, "DenseToCSRSparseMatrix", Attrs::new(), &[x[1], places])?[0];
        let attrs = of_type().with("transpose_b", true);
        let found = op(tape, "SparseMatrixSparseMatMul", attrs, &[b, a])?[0];
        let attrs = of_type().with("adjoint_a", true).with("transpose_b", true);
        let found = op(tape, "SparseMatrixSparseMatMul", attrs, &[found, b])?[0];
        let found = op(tape, "SparseMatrixTranspose", of_type(), &[found])?[0];
        let dense = op(tape, "CSRSparseMatrixToDense", of_type(), &[found])?[0];
        let values = op(tape, "CSRSparseMatrixToSparseTensor", of_type(), &[a])?[1];
        Ok(vec![
            op(tape, "Sin", Attrs::new(), &[dense])?[0],
            op(tape, "Exp", Attrs::new(), &[values])?[0],
        ])
    }),
    ("lists: push, pop", "f[3] f[3]", Order::Second, |tape, x| {
        let shape = tape.constant(HostTensor::scalar(-1i32))?;
        let attrs = Attrs::new().with("element_dtype", DType::F64);
        let mut list = op(tape, "EmptyTensorList", attrs.clone(), &[shape, shape])?[0];
        for &x in x {
            list = op(tape, "TensorListPushBack", attrs.clone(), &[list, x])?[0];
        }
        let all = op(tape, "TensorListStack", attrs.clone(), &[list, shape])?[0];
        let found = op(tape, "TensorListPopBack", attrs, &[list, shape])?;
        Ok(vec![
            op(tape, "Exp", Attrs::new(), &[all])?[0],
            op(tape, "Sin", Attrs::new(), &[found[1]])?[0],
        ])
    }),
    ("lists: from a tensor, set, get", "f[2,3] f[3]", Order::Second, |tape, x| {
        let shape = tape.constant(HostTensor::scalar(-1i32))?;
        let (zero, one) =
            (tape.constant(HostTensor::scalar(0i32))?, tape.constant(HostTensor::scalar(1i32))?);
        let attrs = Attrs::new().with("element_dtype", DType::F64);
        let list = op(tape, "TensorListFromTensor", attrs.clone(), &[x[0], shape])?[0];
        let list = op(tape, "TensorListSetItem", attrs.clone(), &[list, one, x[1]])?[0];
        let mut found = Vec::new();
        for place in [zero, one] {
            let item = op(tape, "TensorListGetItem", attrs.clone(), &[list, place, shape])?[0];
            found.push(op(tape, "Exp", Attrs::new(), &[item])?[0]);
        }
        Ok(found)
    }),
];

fn op(
    tape: &mut CallTape<'_>,
    name: &str,
    attrs: Attrs,
    inputs: &[ValueId],
) -> Result<Vec<ValueId>> {
    let op = registry::find(name).ok_or_else(|| anyhow::anyhow!("no op {name}"))?;
    Ok(tape.emit(op, attrs, inputs)?.into_vec())
}

fn of_double() -> Attrs {
    Attrs::new().with("dtype", DType::F64)
}

fn array(tape: &mut CallTape<'_>, size: i32) -> Result<(ValueId, ValueId)> {
    let size = tape.constant(HostTensor::scalar(size))?;
    let attrs = of_double().with("clear_after_read", false);
    let found = op(tape, "TensorArrayV3", attrs, &[size])?;
    Ok((found[0], found[1]))
}

fn write(
    tape: &mut CallTape<'_>,
    array: ValueId,
    place: i32,
    x: ValueId,
    flow: ValueId,
) -> Result<ValueId> {
    let place = tape.constant(HostTensor::scalar(place))?;
    Ok(op(tape, "TensorArrayWriteV3", Attrs::new(), &[array, place, x, flow])?[0])
}

fn of_type() -> Attrs {
    Attrs::new().with("type", DType::F64)
}

/// A sparse matrix of two rows and three columns.
fn matrix(tape: &mut CallTape<'_>, values: ValueId) -> Result<ValueId> {
    let places = HostTensor::from_slice(Shape::new([3, 2])?, &[0i64, 1, 1, 0, 1, 2])?;
    let (places, dims) = (tape.constant(places)?, tape.constant(HostTensor::vector(&[2i64, 3])?)?);
    Ok(op(tape, "SparseTensorToCSRSparseMatrix", Attrs::new(), &[places, values, dims])?[0])
}

/// A function of the product of a sparse matrix, which the flags turn, and a dense one.
fn product(
    tape: &mut CallTape<'_>,
    matrix: ValueId,
    dense: ValueId,
    flags: &[&str],
) -> Result<Vec<ValueId>> {
    let attrs = flags.iter().fold(Attrs::new(), |attrs, flag| attrs.with(*flag, true));
    let found = op(tape, "SparseMatrixMatMul", attrs, &[matrix, dense])?[0];
    Ok(vec![op(tape, "Sin", Attrs::new(), &[found])?[0]])
}
