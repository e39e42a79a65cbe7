//! Calls of which a single result is read: it has the bits that it has where all of them are.
//!
//! Kernels may leave out results that nothing reads, and so a fault in that shows only in functions.

use anyhow::Result;
use ferroflow::{
    ir::{
        Attrs, DType, Effect, FunctionDef, FunctionLibrary, HostTensor, OpDef, PartialShape,
        ValueType, build::GraphBuilder,
    },
    runtime::{CallableFunction, Context, EagerTensor},
};
use std::sync::Arc;

/// The first result of a call that is another one where nothing else is read; `None` if all are the same.
pub(super) fn differing(
    context: &Context,
    op: &OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
    results: &[EagerTensor],
) -> Result<Option<usize>> {
    if op.effect != Effect::Pure || results.len() < 2 {
        return Ok(None);
    }
    for (index, expected) in results.iter().enumerate() {
        for knows_shapes in [true, false] {
            let (def, args) = function(op, attrs, inputs, index, knows_shapes)?;
            let (library, resources) = (FunctionLibrary::new(), context.resources().clone());
            let (def, library) = (Arc::new(def), Arc::new(library));
            let function =
                CallableFunction::with_captures(context, def, library, resources, Vec::new());
            if !is_same(function.call(&args)?[0].host()?, expected.host()?) {
                return Ok(Some(index));
            }
        }
    }
    Ok(None)
}

/// A function that returns result `index` of a call, and its arguments. It may know the shapes of the inputs
/// ahead, or be told them by data.
fn function(
    op: &OpDef,
    attrs: &Attrs,
    inputs: &[EagerTensor],
    index: usize,
    knows_shapes: bool,
) -> Result<(FunctionDef, Vec<EagerTensor>)> {
    let mut builder = GraphBuilder::new();
    let (mut args, mut operands) = (inputs.to_vec(), Vec::new());
    for (number, input) in inputs.iter().enumerate() {
        let ty = ValueType::new(input.dtype(), PartialShape::Unknown);
        operands.push(builder.arg(&format!("arg{number}"), ty)?);
    }
    for (number, input) in inputs.iter().enumerate() {
        if knows_shapes || !(input.dtype().size().is_some() || input.dtype() == DType::String) {
            continue;
        }
        let sizes: Vec<i64> = input.shape().iter().map(|size| *size as i64).collect();
        args.push(HostTensor::vector(&sizes)?.into());
        let ty = ValueType::new(DType::I64, PartialShape::of_rank(1));
        let sizes = builder.arg(&format!("sizes{number}"), ty)?;
        let shaped =
            builder.call("Reshape", &format!("shaped{number}"), &[operands[number], sizes])?;
        operands[number] = shaped[0];
    }
    let outlets = builder.call_with(op.name, "call", attrs.clone(), &operands)?;
    Ok((builder.finish_function("one_result", &[("result", outlets[index])]), args))
}

/// Whether tensors have the same bits; handles are not compared.
fn is_same(a: &HostTensor, b: &HostTensor) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    match (a.strings(), b.strings()) {
        (Ok(a), Ok(b)) => a == b,
        _ => !a.is_plain() || a.bytes() == b.bytes(),
    }
}
