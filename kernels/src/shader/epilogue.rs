//! Epilogues of matmuls, from sums to elements of the output: rounded, and put through the epilogue
//! of the call.

use super::{
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    elementwise::element,
    expr,
};
use crate::device::{OpCall, Then};
use ferroflow_ir::{DType, Shape};

/// Longer expressions, written out for each element of a block, are long to compile.
const MOST_NODES: usize = 48;

/// The end of a kernel whose elements are written once each.
pub(super) struct Epilogue<'a> {
    /// Dtype that the call's own elements are rounded to.
    dtype: DType,
    fused: Option<&'a Then<'a>>,
    /// Inputs of the call, after which those of the epilogue come.
    first: usize,
}

impl<'a> Epilogue<'a> {
    /// Of a call with nothing fused into it.
    pub(super) fn plain(call: &OpCall<'_>) -> Epilogue<'a> {
        Epilogue { dtype: call.outputs[0].dtype, fused: None, first: call.inputs.len() }
    }

    /// Of a call, with what is fused into it; `None` where that is too long.
    pub(super) fn fused(call: &OpCall<'_>, then: &'a Then<'a>) -> Option<Epilogue<'a>> {
        let fits = call.outputs.len() == 1 && then.expr.nodes().len() <= MOST_NODES;
        fits.then(|| Epilogue { fused: Some(then), ..Epilogue::plain(call) })
    }

    /// The output of a kernel that has its own inputs already, of this shape.
    pub(super) fn output<'k>(&'k self, k: &'k KernelBuilder, shape: &'k Shape) -> FusedOutput<'k> {
        let (others, dtype) = match self.fused {
            None => (Vec::new(), self.dtype),
            Some(then) => {
                let inputs = then.others.iter().enumerate();
                let inputs =
                    inputs.map(|(number, other)| k.input(self.first + number, other.dtype));
                (inputs.collect(), then.expr.dtype())
            }
        };
        FusedOutput { k, epilogue: self, shape, others, buffer: k.output(dtype) }
    }
}

/// The output that an epilogue writes.
pub(super) struct FusedOutput<'k> {
    k: &'k KernelBuilder,
    epilogue: &'k Epilogue<'k>,
    shape: &'k Shape,
    others: Vec<KernelBuffer<'k>>,
    buffer: KernelBuffer<'k>,
}

impl<'k> FusedOutput<'k> {
    /// Stores what the epilogue makes of a sum as the element at a position.
    pub(super) fn set(&self, at: KernelValue<'k>, sum: KernelValue<'k>) {
        let (k, sum) = (self.k, sum.rounded(self.epilogue.dtype));
        let Some(then) = self.epilogue.fused else { return self.buffer.set(at, sum) };
        let (at, mut values) = (k.bind("at", at), vec![k.bind("sum", sum)]);
        for (&buffer, other) in self.others.iter().zip(then.others) {
            values.push(element(k, buffer, other, self.shape, at));
        }
        match expr::value(k, then.expr, &values) {
            Some(value) => self.buffer.set(at, value),
            None => k.unsupported(),
        }
    }
}
