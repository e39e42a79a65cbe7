//! Kernels of ops that run with what their inputs turn out to be, kept from one call to the next.
//!
//! Most calls of a node are like the one before: the same dtypes, shapes, and values of inputs that steer shapes.
//! Compiling a kernel takes microseconds, more than small tensors take to compute.

use crate::{
    context::Context,
    eager_tensor::EagerTensor,
    error::Result,
    kernel_call::{KernelCall, UnreadOutputs, operand_specs},
    sync::Mutex,
};
use ferroflow_ir::{Attrs, OpDef};
use ferroflow_kernels::{OpCall, OperandSpec};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most elements of an operand or result of a call that is kept: kernels may have tables as long as those, and
/// what is larger takes long anyway.
const MAX_ELEMENTS: usize = 1 << 16;

/// The most bytes of the value of a host operand.
const MAX_VALUE_BYTES: usize = 1 << 10;

/// The kernel of the last call of a node.
#[derive(Debug, Default)]
pub(crate) struct LastCall(Mutex<Option<Arc<CompiledCall>>>);

/// A kernel, and the operands that it was compiled for.
#[derive(Debug)]
pub(crate) struct CompiledCall {
    op: &'static OpDef,
    operands: SmallVec<[OperandSpec; 4]>,
    pub(crate) call: KernelCall,
}

impl LastCall {
    /// The kernel for inputs like these, without the results that nothing reads.
    ///
    /// # Errors
    ///
    /// Those of [`KernelCall::new`].
    pub(crate) fn kernel(
        &self,
        context: &Context,
        (op, attrs): (&'static OpDef, &Attrs),
        inputs: &[EagerTensor],
        unread: UnreadOutputs,
    ) -> Result<Arc<CompiledCall>> {
        let last = self.0.lock().clone();
        if let Some(last) = last.filter(|last| last.fits(op, inputs)) {
            return Ok(last);
        }
        let operands = operand_specs(op, attrs, inputs)?;
        let call = OpCall::new(op, attrs, &operands, None)?;
        let call = KernelCall::of(context, &call.with_precision(context.precision()))?;
        let is_kept = operands.iter().all(is_small) && call.is_small(MAX_ELEMENTS);
        let compiled = Arc::new(CompiledCall { op, operands, call: call.without(unread) });
        if is_kept {
            *self.0.lock() = Some(compiled.clone());
        }
        Ok(compiled)
    }
}

impl CompiledCall {
    fn fits(&self, op: &'static OpDef, inputs: &[EagerTensor]) -> bool {
        let is_like = |(operand, input): (&OperandSpec, &EagerTensor)| {
            operand.dtype == input.dtype()
                && operand.shape == *input.shape()
                && operand.value.as_ref().is_none_or(|value| {
                    input.host().is_ok_and(|host| host.is_plain() && host.bytes() == value.bytes())
                })
        };
        std::ptr::eq(self.op, op)
            && self.operands.len() == inputs.len()
            && self.operands.iter().zip(inputs).all(is_like)
    }
}

fn is_small(operand: &OperandSpec) -> bool {
    let value = operand.value.as_ref();
    operand.shape.num_elements() <= MAX_ELEMENTS
        && value.is_none_or(|value| value.is_plain() && value.bytes().len() <= MAX_VALUE_BYTES)
}
