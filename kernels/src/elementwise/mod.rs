//! Elementwise expressions: one meaning, a form for each device.
//!
//! [`spelling`] says how each primitive is written for each element type; [`portable`] runs
//! expressions of any types on the CPU, block by block.

mod cast;
mod number;
mod portable;
mod spelling;
mod strings;

use crate::{
    device::OpCall,
    error::Result,
    kernel::Kernel,
    plan::broadcast::{Access, access},
};
use ferroflow_ir::{DType, Expr};
use std::{borrow::Cow, sync::Arc};

/// Compiles an elementwise call for the CPU; `None` when a primitive has no spelling for a dtype.
///
/// # Errors
///
/// When the call's attributes do not fit its formula.
pub(crate) fn compile(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let inputs: Vec<DType> = call.inputs.iter().map(|input| input.dtype).collect();
    let expr = match call.expr {
        Some(expr) => Cow::Borrowed(expr),
        None => Cow::Owned(Expr::of(call.op, call.attrs, &inputs, call.outputs[0].dtype)?),
    };
    let output = call.output_shape(0)?;
    // Shapes that do not broadcast are allowed where the formula's op says so (`Equal` without
    // `incompatible_shape_error`), and then the result is a constant.
    let mut accesses = Vec::with_capacity(call.inputs.len());
    for input in call.inputs {
        match input.shape.broadcast(&output) {
            Ok(shape) if shape == output => accesses.push(access(&input.shape, &output)),
            _ => return Ok(Some(portable::unequal_shapes(&expr))),
        }
    }
    if inputs.contains(&DType::String) {
        return Ok(strings::compile(&expr, accesses, output));
    }
    Ok(portable::compile(&expr, &inputs, accesses))
}

/// Which inputs are read at the position that is written.
fn reads_in_place(accesses: &[Access], index: usize) -> bool {
    accesses[index] == Access::Contiguous
}
