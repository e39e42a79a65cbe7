//! Reading and changing variables.

use super::{IntoOperand, NamedOp, call};
use crate::{context, error::Result, func_graph::Call, tensor::Tensor, variable::Variable};
use ferroflow_ir::error::SourceLocation;
use ferroflow_ir::{Attrs, registry};
use std::{borrow::Borrow, panic::Location};

static READ: NamedOp = NamedOp::new("ReadVariableOp");

/// The value of a variable.
#[track_caller]
pub(crate) fn read(variable: &Variable) -> Result<Tensor> {
    let attrs = Attrs::new().with("dtype", variable.dtype());
    super::one(&READ, attrs, &[&variable.handle()])
}

/// The value of a variable at the end of traced code: after all that the code changes of it.
pub(crate) fn read_at_end(variable: &Variable, location: SourceLocation) -> Result<Tensor> {
    let Some(trace) = context::current_trace() else { return variable.read() };
    Ok(trace.call_after_changes(read_call(variable, &[&variable.handle()], location))?.remove(0))
}

fn read_call<'a>(
    variable: &Variable,
    inputs: &'a [&'a Tensor],
    location: SourceLocation,
) -> Call<'a> {
    let attrs = Attrs::new().with("dtype", variable.dtype());
    Call { op: READ.record(), attrs, inputs, name: "", location: Some(location) }
}

/// Changes a variable by an op of its handle and a value.
#[track_caller]
pub(crate) fn update(variable: &Variable, op: &'static str, value: impl IntoOperand) -> Result<()> {
    let value = value.into_operand(variable.dtype())?;
    let op = registry::find(op).expect("a built-in record");
    let attrs = Attrs::new().with("dtype", variable.dtype());
    call(op, attrs, &[&variable.handle(), value.borrow()], "", Location::caller()).map(drop)
}

/// As [`update`], and reads the variable after that, whatever keeps the order of effects.
pub(crate) fn update_and_read(
    variable: &Variable,
    op: &'static str,
    value: impl IntoOperand,
    location: SourceLocation,
) -> Result<Tensor> {
    let value = value.into_operand(variable.dtype())?;
    let op = registry::find(op).expect("a built-in record");
    let attrs = Attrs::new().with("dtype", variable.dtype());
    let handle = variable.handle();
    call(op, attrs, &[&handle, value.borrow()], "", location)?;
    let Some(trace) = context::current_trace() else { return variable.read() };
    Ok(trace.call_after_last(read_call(variable, &[&handle], location))?.remove(0))
}
