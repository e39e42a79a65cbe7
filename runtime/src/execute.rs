//! Execution of a single op.

use crate::{
    context::Context,
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    execute_op::{complete, execute_op},
    kernel_call::{KernelCall, compile, operand_spec},
    panics::caught,
    placed_calls::execute_placed,
    scope::Scope,
};
use ferroflow_ir::{Attrs, DType, FunctionLibrary, HostTensor, OpDef, ValueType};
use ferroflow_kernels::{Io, OpCall, Operand, OperandSpec, Target};
use smallvec::SmallVec;
use std::sync::Arc;

/// Runs an op. Attributes that follow from the inputs or have defaults may be left out.
///
/// # Errors
///
/// When the op does not exist, the call does not fit it, or the data makes it impossible.
pub fn execute(
    context: &Context,
    op: &str,
    attrs: Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    let _memory = context.count_memory();
    caught(context, || execute_uncaught(context, op, attrs, inputs)).map_err(of_op(op))
}

/// Names the op in the error of a panic, which says nothing of it.
pub(crate) fn of_op(op: &str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::Panic { message } => Error::Panic { message: format!("{op}: {message}") },
        error => error,
    }
}

fn execute_uncaught(
    context: &Context,
    op: &str,
    attrs: Attrs,
    inputs: &[EagerTensor],
) -> Result<Results> {
    let (op, attrs) = find(context, op, attrs, inputs.iter().map(EagerTensor::dtype))?;
    let library = Arc::new(FunctionLibrary::new());
    let scope = Scope::eager(context, &library);
    if context.default_device().is_some() || inputs.iter().any(|input| input.device().is_some()) {
        let inputs: SmallVec<[&EagerTensor; 4]> = inputs.iter().collect();
        return execute_placed(scope, context.default_device(), op, &attrs, &inputs);
    }
    execute_op(scope, op, &attrs, inputs.iter().cloned().collect())
}

/// The op of this name, and its attributes completed for inputs of these dtypes.
fn find(
    context: &Context,
    op: &str,
    attrs: Attrs,
    dtypes: impl Iterator<Item = DType>,
) -> Result<(&'static OpDef, Attrs)> {
    let unknown = || ferroflow_ir::Error::NotFound { kind: "op", name: op.into() };
    let op = context.registry().find(op).ok_or_else(unknown)?;
    let attrs = complete(op, attrs, dtypes)?;
    Ok((op, attrs))
}

/// Replaces `value` by the result of an op of which it is input 0: in its own memory, where the
/// kernel can do that.
///
/// # Errors
///
/// When the op does not exist or has no kernel, the call does not fit it, or the data makes it
/// impossible.
pub(crate) fn execute_in_place(
    context: &Context,
    op: &str,
    attrs: Attrs,
    value: &mut HostTensor,
    others: &[EagerTensor],
) -> Result<()> {
    let dtypes = [value.dtype()].into_iter().chain(others.iter().map(EagerTensor::dtype));
    let (op, attrs) = find(context, op, attrs, dtypes)?;
    let host = op.host_inputs(&attrs)?;
    let mut specs: SmallVec<[OperandSpec; 4]> = SmallVec::new();
    specs.push(OperandSpec::new(value.dtype(), value.shape().clone()));
    for (index, other) in others.iter().enumerate() {
        specs.push(operand_spec(other, host.get(index + 1) == Some(&true))?);
    }
    let call = OpCall::new(op, &attrs, &specs, None)?.with_precision(context.precision());
    let kernel = compile(context, &call)?;
    let same = ValueType::new(value.dtype(), value.shape());
    if !value.is_plain() || !kernel.in_place(0) || call.outputs.first() != Some(&same) {
        let inputs: SmallVec<[EagerTensor; 4]> =
            [value.clone().into()].into_iter().chain(others.iter().cloned()).collect();
        let inputs: SmallVec<[&EagerTensor; 4]> = inputs.iter().collect();
        let call = KernelCall::new(context, op, &attrs, &inputs)?;
        *value = call.run(context, &inputs)?.remove(0).into_host()?;
        return Ok(());
    }
    let mut operands: SmallVec<[Operand<'_>; 4]> = SmallVec::from_slice(&[Operand::InPlace]);
    for other in others {
        operands.push(Operand::Tensor(other.host()?));
    }
    let limit = context.limits().tensor_bytes;
    let target = Target::Plain(value.bytes_mut());
    Ok(kernel.run(&mut Io::new(operands, [target], context.threads(), limit))?)
}
