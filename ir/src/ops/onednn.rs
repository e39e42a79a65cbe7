//! Ops that TensorFlow's graph optimiser makes of several others, for oneDNN.
//!
//! Those that it makes of one other op are read as that op when a graph is loaded. Source: TensorFlow's
//! `nn_ops.cc` and `mkl_graph_util.h`; what they compute was found by running them.

use super::{conv, sets::*};
use crate::{
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    infer,
    op::*,
    shape::PartialShape,
};

const DATA_FORMAT: AttrDef =
    one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC"));

/// An activation.
const ACTIVATION: OpDef = OpDef {
    inputs: &[arg("features", "T")],
    outputs: &[arg("activations", "T")],
    infer: infer::unchanged,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "_MklFusedMish",
        summary: "Computes `x * tanh(softplus(x))`.",
        attrs: &[ty("T", UP_TO_F32)],
        lowering: Lowering::Composite(|c| single(c, |x| x * call("Softplus", [x]).tanh())),
        ..ACTIVATION
    },
    OpDef {
        name: "_MklLayerNorm",
        summary: "Normalises along the last dimension, then scales and shifts.",
        inputs: &[arg("x", "T"), arg("scale", "T"), arg("offset", "T")],
        outputs: &[arg("y", "T")],
        attrs: &[ty("T", UP_TO_F32), float_or("epsilon", 0.001)],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            for index in 1..3 {
                let [n] = context.dims::<1>(index)?;
                context.same("the last dimension", context.shape(0).dim(-1), n)?;
            }
            infer::unchanged(context)
        },
        lowering: Lowering::Composite(layer_norm),
        ..OpDef::PURE
    },
    OpDef {
        name: "_MklNativeConv2DWithBias",
        summary: "Convolves images and adds a bias.",
        inputs: &[arg("input", "T"), arg("filter", "T"), arg("bias", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", UP_TO_F32),
            ints("strides"),
            flag("use_cudnn_on_gpu", true),
            flag("is_filter_const", false),
            one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
            DATA_FORMAT,
            ints_or("explicit_paddings", &[]),
            ints_or("dilations", &[1, 1, 1, 1]),
        ],
        infer: conv::convolution::<2>,
        lowering: Lowering::Composite(|c| {
            let y = call_with("Conv2D", c.attrs.clone(), [c.x(0), c.x(1)]);
            vec![call_with("BiasAdd", c.attrs.clone(), [y, c.x(2)])]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "_MklNativePadWithConv2D",
        summary: "Pads images with zeros, then convolves them.",
        inputs: &[arg("input", "T"), arg("filter", "T"), arg("paddings", "Tpaddings").host()],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", UP_TO_F32),
            ints("strides"),
            flag("use_cudnn_on_gpu", true),
            one_of("padding", &["SAME", "VALID"]),
            DATA_FORMAT,
            flag("is_filter_const", false),
            ints_or("dilations", &[1, 1, 1, 1]),
            ty_or("Tpaddings", INDEX, DType::I32),
        ],
        infer: |context| {
            // Source: oneDNN's kernel ends the process where there is padding besides the paddings.
            if context.attrs.string("padding")? != "VALID" {
                let found = context.attrs.string("padding")?.to_string();
                return Err(context.wrong_attr("padding", "VALID, as paddings are given", found));
            }
            (0..2).try_for_each(|index| context.check_rank(index, 4))?;
            context.check_rank(2, 2)?;
            context.set(0, PartialShape::of_rank(4));
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let padded = call("Pad", [c.x(0), c.x(2)]);
            vec![call_with("Conv2D", c.attrs.clone(), [padded, c.x(1)])]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "_MklSwish",
        summary: "Computes `x * sigmoid(x)`.",
        attrs: &[ty_or("T", UP_TO_F32, DType::F32)],
        lowering: Lowering::Composite(|c| single(c, |x| x * call("Sigmoid", [x]))),
        ..ACTIVATION
    },
];

/// A formula of input 0 in single precision.
fn single<'e>(c: &Composite<'e>, formula: impl Fn(Value<'e>) -> Value<'e>) -> Vec<Value<'e>> {
    vec![formula(c.x(0).cast(DType::F32)).cast(c.dtype(0))]
}

fn layer_norm<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let [x, scale, offset] = [0, 1, 2].map(|index| c.x(index).cast(DType::F32));
    let centred = x - x.mean(&[-1], true);
    let variance = centred.square().mean(&[-1], true);
    let slope = (variance + f64::from(c.float("epsilon"))).rsqrt() * scale;
    vec![(centred * slope + offset).cast(c.dtype(0))]
}
