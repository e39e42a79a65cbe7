//! Elementwise calls, fused ones too.

use super::{
    Shader, expr, index,
    word::{Caps, Word},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::broadcast::{Access, access},
};
use ferroflow_ir::{DType, Expr};
use std::borrow::Cow;

/// The shader of an elementwise call; `None` when a primitive has no spelling for a dtype, or shapes
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
        let fits = input.shape.broadcast(&output).is_ok_and(|shape| shape == output);
        let Some(word) = Word::of(input.dtype, caps).filter(|_| fits) else { return Ok(None) };
        let at = match access(&input.shape, &output) {
            Access::Contiguous => "n".into(),
            Access::Scalar => "0u".into(),
            Access::Strided(view) => index::position(&view, "n"),
        };
        inputs.push((position, word));
        values.push(word.load(&format!("in{position}"), &at));
    }
    let Some((lines, result)) = expr::print(&expr, &values, caps) else { return Ok(None) };
    let Some(word) = Word::of(expr.dtype(), caps) else { return Ok(None) };
    let body = lines + &word.store("out0", "n", &result);
    Ok(Some(Shader::plain(inputs, vec![word], body, output.num_elements())))
}
