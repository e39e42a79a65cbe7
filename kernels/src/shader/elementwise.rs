//! Elementwise calls, fused ones too.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    expr, index,
    scalar_type::Caps,
};
use crate::{
    device::{OpCall, OperandSpec},
    error::Result,
    plan::broadcast::{InputAccess, access},
};
use ferroflow_ir::{DType, Expr, Shape};
use std::borrow::Cow;

/// Elements that an invocation computes where there are many: more reads are under way at a time.
const TURNS: usize = 4;
const MANY: usize = 1 << 20;

/// The element of an operand, in a buffer, that broadcasts to element `n` of a shape. An operand that
/// does not broadcast makes the kernel none.
pub(super) fn element<'k>(
    k: &'k KernelBuilder,
    buffer: KernelBuffer<'k>,
    operand: &OperandSpec,
    shape: &Shape,
    n: KernelValue<'k>,
) -> KernelValue<'k> {
    k.requires(operand.shape.broadcast(shape).is_ok_and(|both| both == *shape));
    buffer.at(match access(&operand.shape, shape) {
        InputAccess::Contiguous => n,
        InputAccess::Scalar => k.index(0),
        InputAccess::Strided(view) => index::position(k, &view, n),
    })
}

/// The shader of an elementwise call; `None` when a primitive has no code for a dtype, or shapes
/// do not broadcast.
///
/// # Errors
///
/// When the call's attributes do not fit its formula.
pub(super) fn shader(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let dtypes: Vec<DType> = call.inputs.iter().map(|input| input.dtype).collect();
    let expr = match call.expr {
        Some(expr) => Cow::Borrowed(expr),
        None => Cow::Owned(Expr::of(call.op, call.attrs, &dtypes, call.outputs[0].dtype)?),
    };
    let shape = call.output_shape(0)?;
    let k = KernelBuilder::new(caps);
    let n = k.element();
    let elements = call.inputs.iter().enumerate().map(|(position, operand)| {
        element(&k, k.input(position, operand.dtype), operand, &shape, n)
    });
    let elements: Vec<KernelValue<'_>> = elements.collect();
    let Some(value) = expr::value(&k, &expr, &elements) else { return Ok(None) };
    k.output(expr.dtype()).set(n, value);
    let count = shape.num_elements();
    let turns = if caps.tiles && count >= MANY { TURNS } else { 1 };
    Ok(k.finish(count)?.map(|shader| Shader { turns, ..shader }))
}
