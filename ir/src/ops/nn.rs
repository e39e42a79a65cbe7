//! Biases, and isotonic regression.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BiasAdd",
        summary: "Adds a number per channel.",
        inputs: &[arg("value", "T"), arg("bias", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", NUMBERS),
            one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
        ],
        infer: bias_add,
        lowering: Lowering::Composite(biased),
        gradient: Gradient::Rule(gradient::matmul::bias_add),
        ..OpDef::PURE
    },
    OpDef {
        name: "BiasAddGrad",
        summary: "Gradient of `BiasAdd` by the bias: the sum over all but the channels.",
        inputs: &[arg("out_backprop", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", NUMBERS),
            one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
        ],
        infer: |context| {
            context.check_rank_at_least(0, 2)?;
            let channels = context.shape(0).dim(channel_axis(context.attrs));
            context.set(0, PartialShape::vector(channels));
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let rank = c.x(0).shape().rank() as i64;
            let channels = (channel_axis(c.attrs) as i64).rem_euclid(rank);
            let axes: Vec<i64> = (0..rank).filter(|&axis| axis != channels).collect();
            vec![c.x(0).sum(&axes, false)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "BiasAddV1",
        summary: "Adds a number per element of the last dimension.",
        inputs: &[arg("value", "T"), arg("bias", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBERS)],
        infer: bias_add,
        lowering: Lowering::Composite(biased),
        gradient: Gradient::Rule(gradient::matmul::bias_add_v1),
        ..OpDef::PURE
    },
    OpDef {
        name: "IsotonicRegression",
        summary: "Fits numbers that never rise to each row.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "output_dtype"), arg_of("segments", DType::I32)],
        attrs: &[ty("T", REALS), ty_or("output_dtype", FLOATS, DType::F32)],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::Sequential),
        gradient: Gradient::Rule(gradient::nn::isotonic),
        ..OpDef::PURE
    },
];

/// The dimension of the channels.
fn channel_axis(attrs: &Attrs) -> isize {
    if attrs.string("data_format").is_ok_and(|format| format == "NCHW") { 1 } else { -1 }
}

fn bias_add(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 2)?;
    let [bias] = context.dims::<1>(1)?;
    context.same("channels", context.shape(0).dim(channel_axis(context.attrs)), bias)?;
    context.set(0, context.shape(0).clone());
    Ok(())
}

fn biased<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (value, bias) = (c.x(0), c.x(1));
    if channel_axis(c.attrs) == -1 {
        return vec![value + bias];
    }
    let mut sizes = vec![1; value.shape().rank()];
    sizes[1] = bias.shape()[0] as i64;
    vec![value + bias.reshape(&sizes)]
}
