//! Softmax along the last dimension, its logarithm, and the losses made of it.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    rows,
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Expr, pass::region};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("LogSoftmax", log_softmax),
    ("Softmax", softmax),
    ("SoftmaxCrossEntropyWithLogits", cross_entropy),
    ("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy),
];

fn softmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    of_rows(call, caps, false)
}

fn log_softmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    of_rows(call, caps, true)
}

fn of_rows(call: &OpCall<'_>, caps: Caps, is_logarithm: bool) -> Result<Option<Shader>> {
    match region::softmax(&Expr::input(0, call.dtype(0)), is_logarithm) {
        Some(expr) => rows::of_one(call, &expr, caps),
        None => Ok(None),
    }
}

/// The largest of the elements of a row, and the sum of the exponentials of the others under it.
fn largest_and_sum<'k>(
    k: &'k KernelBuilder,
    row: usize,
    element: impl Fn(KernelValue<'k>) -> KernelValue<'k>,
) -> (KernelValue<'k>, KernelValue<'k>) {
    let largest = k.variable("largest", k.float(f32::MIN));
    k.for_below("i", row, |i| largest.set(largest.max(element(i))));
    let sum = k.variable("sum", k.float(0.0));
    k.for_below("i", row, |i| sum.set(sum + (element(i) - largest).function("exp_")));
    (largest, sum)
}

/// Logits and labels `[batch, classes]`, either of which may have one row only → loss `[batch]` and
/// its gradient `[batch, classes]`.
fn cross_entropy(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (shape, dtype) = (call.output_shape(1)?, call.dtype(0));
    let (batch, row) = (shape[0], shape[1]);
    let k = KernelBuilder::new(caps);
    let ([logits, labels], n) = (k.inputs(call, [0, 1]), k.element());
    let (losses, gradients) = (k.output(dtype), k.output(dtype));
    let steps = [0, 1].map(|input| {
        let own = call.shape(input);
        let (down, across) = (own[0] != 1 || batch == 1, own[1] != 1 || row == 1);
        (if down { own[1] } else { 0 }, usize::from(across))
    });
    let [logit, label] = [(logits, steps[0]), (labels, steps[1])]
        .map(|(buffer, (down, across))| move |i| buffer.at(n * down + i * across));
    let (largest, sum) = largest_and_sum(&k, row, logit);
    let logarithm = k.bind("logarithm", sum.function("log_"));
    let loss = k.variable("loss", k.float(0.0));
    k.for_below("i", row, |i| {
        let x = k.bind("x", logit(i) - largest);
        let label = k.bind("label", label(i));
        loss.set(loss + label * (logarithm - x));
        gradients.set(n * row + i, (x.function("exp_") / sum - label).rounded(dtype));
    });
    losses.set(n, loss.rounded(dtype));
    k.finish(batch)
}

/// A label outside makes NaN, as on TensorFlow's accelerators.
fn sparse_cross_entropy(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (batch, row, dtype) = (call.shape(0)[0], call.shape(0)[1], call.dtype(0));
    let k = KernelBuilder::new(caps);
    let ([logits, labels], n) = (k.inputs(call, [0, 1]), k.element());
    let (losses, gradients) = (k.output(dtype), k.output(dtype));
    k.requires(logits.scalar == ScalarType::F32);
    let base = k.bind("base", n * row);
    let (largest, sum) = largest_and_sum(&k, row, |i| logits.at(base + i));
    let label = k.bind("label", labels.at(n).as_index());
    let inside = label.lt(row);
    k.for_below("i", row, |i| {
        let share = (logits.at(base + i) - largest).function("exp_") / sum;
        let slope = k.variable("slope", share - i.eq(label).to(ScalarType::F32));
        k.when(!inside, || slope.set(f32::NAN));
        gradients.set(base + i, slope.rounded(dtype));
    });
    let loss = k.variable("loss", k.float(f32::NAN));
    k.when(inside, || loss.set(sum.function("log_") - (logits.at(base + label) - largest)));
    losses.set(n, loss.rounded(dtype));
    k.finish(batch)
}
