//! Biases, and what TensorFlow's optimiser makes of products and convolutions with them.

use super::{conv, matmul, sets::*};
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::{Error, Result},
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
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::isotonic),
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedConv2D",
        summary: "Convolves, then does what `fused_ops` lists.",
        inputs: &[
            arg("input", "T"),
            arg("filter", "T"),
            args_list("args", "TArgs"),
            args_of("host_args", "num_host_args", DType::F32),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", &[DType::F16, DType::F32, DType::F64, DType::I8, DType::QI8]),
            types("TArgs").at_least(1),
            int("num_args").at_least(0),
            int_or("num_host_args", 0).at_least(0),
            ints("strides"),
            one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
            ints_or("explicit_paddings", &[]),
            one_of("data_format", &["NHWC", "NCHW", "NCHW_VECT_C"]).or(AttrDefault::String("NHWC")),
            one_of("filter_format", &["HWIO", "OIHW", "OIHW_VECT_I"])
                .or(AttrDefault::String("HWIO")),
            ints_or("dilations", &[1, 1, 1, 1]),
            flag("use_cudnn_on_gpu", true),
            strings("fused_ops").or(AttrDefault::Strings(&[])),
            float_or("epsilon", 0.0001),
            float_or("leakyrelu_alpha", 0.2),
        ],
        infer: conv::convolution::<2>,
        lowering: Lowering::Composite(|c| {
            let names = ["strides", "padding", "explicit_paddings", "data_format", "dilations"];
            let attrs = names.into_iter().filter_map(|name| Some((name, c.attrs.get(name)?)));
            let attrs: Attrs = attrs.map(|(name, value)| (name, value.clone())).collect();
            let attrs = attrs.with("T", c.dtype(0));
            vec![epilogue(c, c.call1("Conv2D", attrs, &c.inputs()[..2]))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedMatMul",
        summary: "Multiplies two matrices, then does what `fused_ops` lists.",
        inputs: &[arg("a", "T"), arg("b", "T"), args("args", "num_args", "T")],
        outputs: &[arg("product", "T")],
        attrs: &[
            flag("transpose_a", false),
            flag("transpose_b", false),
            ty("T", UP_TO_F32),
            int("num_args").at_least(0),
            strings("fused_ops").or(AttrDefault::Strings(&[])),
            float_or("epsilon", 0.0001),
            float_or("leakyrelu_alpha", 0.2),
        ],
        infer: matmul::matmul,
        lowering: Lowering::Composite(|c| {
            let product = c.x(0).matmul(c.x(1), c.flag("transpose_a"), c.flag("transpose_b"));
            vec![epilogue(c, product)]
        }),
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

/// What follows a product: the ops in `fused_ops`, with the arguments from input 2 on.
fn epilogue<'e>(c: &Composite<'e>, product: Value<'e>) -> Value<'e> {
    let Ok(names) = c.attrs.strings("fused_ops") else { return product };
    let mut args = c.inputs()[2..].iter().copied();
    let mut missing = || {
        let what = format!("{} arguments", c.n_inputs() - 2);
        let expected = "a list of ops that have their arguments";
        c.fail(Error::argument(c.op.name, "fused_ops", expected, what))
    };
    let mut y = product;
    for name in names {
        let activation = |name| c.call1(name, Attrs::new().with("T", y.dtype()), &[y]);
        y = match &name[..] {
            b"BiasAdd" => y + args.next().unwrap_or_else(&mut missing),
            b"FusedBatchNorm" => {
                let [scale, offset, mean, variance] =
                    [(); 4].map(|()| args.next().unwrap_or_else(&mut missing));
                let scale = scale * (variance + f64::from(c.float("epsilon"))).rsqrt();
                (y - mean) * scale + offset
            }
            b"Relu" => activation("Relu"),
            b"Relu6" => activation("Relu6"),
            b"Elu" => activation("Elu"),
            b"Tanh" => activation("Tanh"),
            b"Sigmoid" => activation("Sigmoid"),
            b"LeakyRelu" => {
                let attrs = Attrs::new().with("T", y.dtype());
                c.call1("LeakyRelu", attrs.with("alpha", c.float("leakyrelu_alpha")), &[y])
            }
            other => {
                let what = format!("fused op {}", String::from_utf8_lossy(other)).into();
                c.fail(Error::Unsupported { op: c.op.name.into(), what })
            }
        };
    }
    y
}
