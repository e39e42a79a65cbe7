//! Elementwise calls, fused ones too.

use super::{
    Shader, expr, index,
    scalar_type::{Caps, ScalarType},
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

/// The value that an operand in buffer `source`, broadcast to a shape, has for an element of that
/// shape; `None` where it does not broadcast, or devices do not hold it.
pub(super) fn element(
    operand: &OperandSpec,
    source: &str,
    (shape, at): (&Shape, &str),
    caps: Caps,
) -> Option<(ScalarType, String)> {
    let fits = operand.shape.broadcast(shape).is_ok_and(|both| both == *shape);
    let scalar = ScalarType::of(operand.dtype, caps).filter(|_| fits)?;
    let element = match access(&operand.shape, shape) {
        InputAccess::Contiguous => at.into(),
        InputAccess::Scalar => "0u".into(),
        InputAccess::Strided(view) => index::position(&view, at),
    };
    Some((scalar, scalar.load(source, &element)))
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
    let output = call.output_shape(0)?;
    let mut inputs = Vec::new();
    let mut values = Vec::new();
    for (position, input) in call.inputs.iter().enumerate() {
        let source = format!("in{position}");
        let Some((word, value)) = element(input, &source, (&output, "n"), caps) else {
            return Ok(None);
        };
        inputs.push((position, word));
        values.push(value);
    }
    let Some((lines, result)) = expr::print(&expr, &values, caps) else { return Ok(None) };
    let Some(word) = ScalarType::of(expr.dtype(), caps) else { return Ok(None) };
    let body = lines + &word.store("out0", "n", &result);
    let count = output.num_elements();
    let turns = if caps.tiles && count >= MANY { TURNS } else { 1 };
    Ok(Some(Shader { turns, ..Shader::plain(inputs, vec![word], body, count) }))
}
