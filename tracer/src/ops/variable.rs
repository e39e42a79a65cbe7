//! Reading and changing variables.

use super::{IntoOperand, Op, call};
use crate::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_ir::{Attrs, registry};
use std::panic::Location;

static READ: Op = Op::new("ReadVariableOp");

/// The value of a variable.
#[track_caller]
pub(crate) fn read(variable: &Variable) -> Result<Tensor> {
    let attrs = Attrs::new().with("dtype", variable.dtype());
    super::one(&READ, attrs, &[&variable.handle()])
}

/// Changes a variable by an op of its handle and a value.
#[track_caller]
pub(crate) fn update(variable: &Variable, op: &'static str, value: impl IntoOperand) -> Result<()> {
    let value = value.into_operand(variable.dtype())?;
    let op = registry::find(op).expect("a built-in record");
    let attrs = Attrs::new().with("dtype", variable.dtype());
    call(op, attrs, &[&variable.handle(), &value], "", Location::caller()).map(drop)
}
