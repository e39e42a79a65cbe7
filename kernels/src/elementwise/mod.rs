//! Elementwise expressions: one meaning, a form for each device.
//!
//! [`spelling`] says how each primitive is written for each element type; [`portable`] runs
//! expressions of any types on the CPU, block by block; [`scalar`] does single elements.

mod cast;
mod complex;
mod float8;
pub(crate) mod flush;
pub(crate) mod lines;
mod loops;
mod number;
mod portable;
pub mod scalar;
mod single;
mod special;
mod strings;
pub(crate) mod tile;

use crate::{
    device::OpCall,
    error::Result,
    kernel::Kernel,
    plan::{
        broadcast::{InputAccess, access},
        strided,
    },
};
use bytemuck::Pod;
use ferroflow_ir::{DType, Expr, StridedView};
use std::{borrow::Cow, sync::Arc};

/// Compiles an elementwise call for the CPU; `None` when a primitive has no code for a dtype.
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
    if let Some(kernel) = single::compile(call) {
        return Ok(Some(kernel));
    }
    Ok(of_expr(&expr, &inputs, accesses))
}

/// Compiles an expression of numbers for the CPU; `None` when a primitive has no code for a
/// dtype.
pub(crate) fn of_expr(
    expr: &Expr,
    inputs: &[DType],
    accesses: Vec<InputAccess>,
) -> Option<Arc<dyn Kernel>> {
    if let Some(kernel) = tile::compile(expr, inputs, &accesses) {
        return Some(kernel);
    }
    portable::compile(expr, inputs, accesses)
}

/// Reads a block of a strided input whose elements take `width` bytes.
fn gather(view: &StridedView, source: &[u8], start: usize, out: &mut [u8], width: usize) {
    fn typed<T: Pod>(view: &StridedView, source: &[u8], start: usize, out: &mut [u8]) {
        strided::read(
            view,
            bytemuck::cast_slice::<_, T>(source),
            start,
            bytemuck::cast_slice_mut::<_, T>(out),
        );
    }
    match width {
        1 => typed::<u8>(view, source, start, out),
        2 => typed::<u16>(view, source, start, out),
        4 => typed::<u32>(view, source, start, out),
        8 => typed::<u64>(view, source, start, out),
        _ => typed::<[u64; 2]>(view, source, start, out),
    }
}

/// Whether inputs are read at the position that is written, for each input.
fn reads_in_place(accesses: &[InputAccess], index: usize) -> bool {
    accesses[index] == InputAccess::Contiguous
}
