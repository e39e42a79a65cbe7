//! Softmax, and the losses made of it.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    xla::total,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "LogSoftmax",
        summary: "Computes `x - log(sum(exp(x)))` along the last dimension.",
        inputs: &[arg("logits", "T")],
        outputs: &[arg("logsoftmax", "T")],
        attrs: &[ty("T", FLOATS)],
        infer: at_least_a_row,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::log_softmax),
        sharding: Some(ShardingRule::Rows),
        ..OpDef::PURE
    },
    OpDef {
        name: "Softmax",
        summary: "Computes `exp(x) / sum(exp(x))` along the last dimension.",
        inputs: &[arg("logits", "T")],
        outputs: &[arg("softmax", "T")],
        attrs: &[ty("T", FLOATS)],
        infer: at_least_a_row,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::softmax),
        sharding: Some(ShardingRule::Rows),
        ..OpDef::PURE
    },
    OpDef {
        name: "SoftmaxCrossEntropyWithLogits",
        summary: "Computes the cross entropy of class probabilities, and its gradient.",
        inputs: &[arg("features", "T"), arg("labels", "T")],
        outputs: &[arg("loss", "T"), arg("backprop", "T")],
        attrs: &[ty("T", FLOATS)],
        infer: cross_entropy,
        lowering: Lowering::Kernel,
        gradient: Gradient::Broadcast(gradient::nn::cross_entropy),
        sharding: Some(ShardingRule::CrossEntropy),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseSoftmaxCrossEntropyWithLogits",
        summary: "Computes the cross entropy of one class per row, and its gradient.",
        inputs: &[arg("features", "T"), arg("labels", "Tlabels")],
        outputs: &[arg("loss", "T"), arg("backprop", "T")],
        attrs: &[ty("T", FLOATS), ty_or("Tlabels", INDEX, DType::I64)],
        infer: sparse_cross_entropy,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::sparse_cross_entropy),
        compiled: XlaFormula::Of(total::cross_entropy),
        sharding: Some(ShardingRule::SparseCrossEntropy),
        ..OpDef::PURE
    },
];

fn at_least_a_row(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    infer::unchanged(context)
}

fn cross_entropy(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 2)?;
    context.check_rank(1, 2)?;
    let shape = context.shape(0).broadcast(context.shape(1))?;
    context.set(0, PartialShape::vector(shape.dim(0)));
    context.set(1, shape);
    Ok(())
}

fn sparse_cross_entropy(context: &mut OpContext<'_>) -> Result<()> {
    let [batch, classes] = context.dims::<2>(0)?;
    let [labels] = context.dims::<1>(1)?;
    if classes == Some(0) {
        return Err(context.wrong(0, "of at least one class", context.shape(0)));
    }
    let batch = context.same("sizes of the batch", batch, labels)?;
    context.set(0, PartialShape::vector(batch));
    context.set(1, PartialShape::ranked([batch, classes]));
    Ok(())
}
