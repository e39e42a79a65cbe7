//! Convolutions one after the other as one node.

use crate::{
    attr::NameAttrList,
    error::{Error, Result},
    facts::HostReason,
    infer::{InputFacts, OpContext, infer},
    op::*,
    registry,
    spec::ValueType,
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[OpDef {
    // Each of `convolutions` is a convolution or a region around one. The first inputs are those of
    // the first; the result of each but the last is input 0 of the next, whose other inputs come
    // next.
    name: "_FusedConvolutions",
    summary: "Computes convolutions one after the other, a few rows of an image at a time.",
    inputs: &[args_list("inputs", "Tin")],
    outputs: &[arg("y", "T")],
    attrs: &[types("Tin").at_least(1), any_ty("T"), funcs("convolutions").at_least(1)],
    infer: convolutions,
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
}];

/// The last result of the convolutions.
fn convolutions(context: &mut OpContext<'_>) -> Result<()> {
    let mut result: Option<ValueType> = None;
    let mut taken = 0;
    for convolution in context.attrs.funcs("convolutions")? {
        let (op, own) = of(convolution, result.is_some())?;
        if taken + own > context.n_inputs() {
            return Err(wrong(convolution, "convolutions of no more inputs"));
        }
        let others = (taken..taken + own).map(|index| *context.input(index));
        let before = result.take();
        let first = before.as_ref().map(|ty| InputFacts { ty, value: None });
        let inputs: SmallVec<[InputFacts<'_>; 4]> = first.into_iter().chain(others).collect();
        let outputs = infer(op, &convolution.attrs, &inputs)?;
        let [output] = &outputs[..] else { return Err(wrong(convolution, "ops of one output")) };
        result = Some(output.clone());
        taken += own;
    }
    if taken != context.n_inputs() {
        let found = context.n_inputs();
        return Err(Error::argument(context.op.name, "inputs", format!("{taken}"), found));
    }
    if let Some(result) = result {
        context.set(0, result.shape);
    }
    Ok(())
}

/// The op of a convolution, and the number of its inputs but one that is another's result.
fn of(convolution: &NameAttrList, is_fed: bool) -> Result<(&'static OpDef, usize)> {
    let op = registry::find(&convolution.name).ok_or_else(|| wrong(convolution, "names of ops"))?;
    let n_inputs = op.input_dtypes(&convolution.attrs)?.len();
    let own = n_inputs.checked_sub(usize::from(is_fed));
    Ok((op, own.ok_or_else(|| wrong(convolution, "ops of an input"))?))
}

fn wrong(convolution: &NameAttrList, expected: &'static str) -> Error {
    Error::argument("_FusedConvolutions", "attribute `convolutions`", expected, &*convolution.name)
}
