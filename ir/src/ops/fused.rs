//! Ops that TensorFlow's graph optimiser makes of a product, a convolution or a normalisation and
//! the ops after it. Graphs that were saved after optimisation have them.
//!
//! Source: TensorFlow's `remapper.cc` for the ops in `fused_ops` and the order of their arguments,
//! `nn_ops.cc` for the interfaces.

use super::{conv, matmul, norm, sets::*};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value},
    error::Error,
    op::*,
};

const FUSED_OPS: AttrDef = strings("fused_ops").or(AttrDefault::Strings(&[]));
const EPSILON: AttrDef = float_or("epsilon", 0.0001);
const LEAK: AttrDef = float_or("leakyrelu_alpha", 0.2);

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "_FusedBatchNormEx",
        summary: "Normalises each channel over a batch, adds `side_input`, then applies an activation.",
        inputs: &[
            arg("x", "T"),
            arg("scale", "U"),
            arg("offset", "U"),
            arg("mean", "U"),
            arg("variance", "U"),
            args("side_input", "num_side_inputs", "T"),
        ],
        outputs: &[
            arg("y", "T"),
            arg("batch_mean", "U"),
            arg("batch_variance", "U"),
            arg("reserve_space_1", "U"),
            arg("reserve_space_2", "U"),
            arg("reserve_space_3", "U"),
        ],
        attrs: &[
            ty("T", &[DType::F16, DType::F32, DType::BF16]),
            ty("U", &[DType::F32]),
            EPSILON,
            float_or("exponential_avg_factor", 1.0),
            int_or("num_side_inputs", 0).at_least(0),
            string("activation_mode").or(AttrDefault::String("Identity")),
            one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
            flag("is_training", true),
        ],
        infer: norm::batch_norm,
        lowering: Lowering::Composite(batch_norm_ex),
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
            FUSED_OPS,
            EPSILON,
            LEAK,
        ],
        infer: |context| {
            let attrs = context.attrs;
            if attrs.string("filter_format")? != "HWIO" {
                let found = attrs.string("filter_format")?.to_string();
                return Err(context.wrong_attr(
                    "filter_format",
                    "HWIO, as for all but some GPUs",
                    found,
                ));
            }
            if attrs.int("num_host_args")? != 0 {
                let found = attrs.int("num_host_args")?;
                return Err(context.wrong_attr(
                    "num_host_args",
                    "0, as for all but integers",
                    found,
                ));
            }
            conv::convolution::<2>(context)
        },
        lowering: Lowering::Composite(|c| {
            let names = ["strides", "padding", "explicit_paddings", "data_format", "dilations"];
            vec![epilogue(c, c.call1("Conv2D", copied(c, &names), &c.inputs()[..2]))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedConv3D",
        summary: "Convolves volumes, then does what `fused_ops` lists.",
        inputs: &[arg("input", "T"), arg("filter", "T"), args("args", "num_args", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", &[DType::BF16, DType::F32, DType::F16]),
            int("num_args").at_least(0),
            ints("strides").at_least(5),
            one_of("padding", &["SAME", "VALID"]),
            one_of("data_format", &["NDHWC", "NCDHW"]).or(AttrDefault::String("NDHWC")),
            ints_or("dilations", &[1, 1, 1, 1, 1]),
            ints_or("padding_list", &[]),
            FUSED_OPS,
            EPSILON,
            LEAK,
        ],
        infer: |context| {
            if !context.attrs.ints("padding_list")?.is_empty() {
                let found = format!("{:?}", context.attrs.ints("padding_list")?);
                return Err(context.wrong_attr("padding_list", "an empty list", found));
            }
            conv::convolution::<3>(context)
        },
        lowering: Lowering::Composite(|c| {
            let names = ["strides", "padding", "data_format", "dilations"];
            vec![epilogue(c, c.call1("Conv3D", copied(c, &names), &c.inputs()[..2]))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedDepthwiseConv2dNative",
        summary: "Convolves each channel by itself, then does what `fused_ops` lists.",
        inputs: &[arg("input", "T"), arg("filter", "T"), args("args", "num_args", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", &[DType::F16, DType::BF16, DType::F32, DType::F64]),
            int("num_args").at_least(0),
            ints("strides"),
            one_of("padding", &["SAME", "VALID"]),
            one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
            ints_or("dilations", &[1, 1, 1, 1]),
            FUSED_OPS,
            EPSILON,
            LEAK,
        ],
        infer: conv::depthwise,
        lowering: Lowering::Composite(|c| {
            let names = ["strides", "padding", "data_format", "dilations"];
            let y = c.call1("DepthwiseConv2dNative", copied(c, &names), &c.inputs()[..2]);
            vec![epilogue(c, y)]
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
            FUSED_OPS,
            EPSILON,
            LEAK,
        ],
        infer: matmul::matmul,
        lowering: Lowering::Composite(|c| {
            let matmul = c.x(0).matmul(c.x(1), c.flag("transpose_a"), c.flag("transpose_b"));
            vec![epilogue(c, matmul)]
        }),
        ..OpDef::PURE
    },
];

/// The attributes of these names, and the dtype of the first input.
fn copied(c: &Composite<'_>, names: &[&str]) -> Attrs {
    let attrs = names.iter().filter_map(|name| Some((*name, c.attrs.get(name)?.clone())));
    attrs.collect::<Attrs>().with("T", c.dtype(0))
}

fn batch_norm_ex<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let names = ["epsilon", "exponential_avg_factor", "data_format", "is_training"];
    let attrs = copied(c, &names).with("U", c.dtype(1));
    let mut results = c.call("FusedBatchNormV3", attrs, &c.inputs()[..5]);
    let Some(y) = results.first_mut() else { return results };
    for side in &c.inputs()[5..] {
        *y = *y + *side;
    }
    *y = match c.string("activation_mode") {
        "Identity" => *y,
        "Relu" => y.relu(),
        other => {
            let what = format!("activation {other}").into();
            c.fail(Error::Unsupported { op: c.op.name.into(), what })
        }
    };
    results
}

/// The ops in `fused_ops` one after the other, with the arguments from input 2 on.
fn epilogue<'e>(c: &Composite<'e>, product: Value<'e>) -> Value<'e> {
    let names = c.attrs.strings("fused_ops").unwrap_or_default();
    let args = &c.inputs()[2..];
    let wrong = |found: usize| {
        let expected = format!("a list of ops that take {} arguments", args.len());
        c.fail(Error::argument(c.op.name, "fused_ops", expected, format!("one that takes {found}")))
    };
    let (mut y, mut used) = (product, 0);
    for name in names {
        let n_args = match &name[..] {
            b"BiasAdd" | b"Add" => 1,
            b"FusedBatchNorm" => 4,
            _ => 0,
        };
        let Some(own) = args.get(used..used + n_args) else { return wrong(used + n_args) };
        used += n_args;
        y = fused(c, name, y, own);
    }
    if used == args.len() { y } else { wrong(used) }
}

/// Result of one of the ops in `fused_ops`.
fn fused<'e>(c: &Composite<'e>, name: &[u8], y: Value<'e>, args: &[Value<'e>]) -> Value<'e> {
    let attrs = Attrs::new().with("T", y.dtype());
    match (name, args) {
        (b"BiasAdd", [bias]) => {
            let format = if channels_first(c) { "NCHW" } else { "NHWC" };
            c.call1("BiasAdd", attrs.with("data_format", format), &[y, *bias])
        }
        (b"Add", [other]) => y + *other,
        (b"FusedBatchNorm", &[scale, offset, mean, variance]) => {
            let [scale, offset, mean, variance] =
                [scale, offset, mean, variance].map(|arg| per_channel(c, y, arg));
            let scale = scale * (variance + f64::from(c.float("epsilon"))).rsqrt();
            (y - mean) * scale + offset
        }
        (b"Relu", _) => y.relu(),
        (b"Tanh", _) => y.tanh(),
        (b"Sigmoid", _) => y.sigmoid(),
        (b"Relu6", _) => c.call1("Relu6", attrs, &[y]),
        (b"Elu", _) => c.call1("Elu", attrs, &[y]),
        (b"LeakyRelu", _) => {
            c.call1("LeakyRelu", attrs.with("alpha", c.float("leakyrelu_alpha")), &[y])
        }
        (b"GeluExact", _) => {
            let scaled = y * std::f64::consts::FRAC_1_SQRT_2;
            y * 0.5 * (c.call1("Erf", attrs, &[scaled]) + 1.0)
        }
        (b"GeluApproximate", _) => {
            let inner = (y + y * y * y * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
            y * 0.5 * (inner.tanh() + 1.0)
        }
        (b"_FusedHardSwish", _) => y * c.call1("Relu6", attrs, &[y + 3.0]) * (1.0 / 6.0),
        (other, _) => {
            let what = format!("fused op {}", String::from_utf8_lossy(other)).into();
            c.fail(Error::Unsupported { op: c.op.name.into(), what })
        }
    }
}

/// Whether channels are dimension 1.
fn channels_first(c: &Composite<'_>) -> bool {
    c.attrs.string("data_format").is_ok_and(|format| format.starts_with("NC"))
}

/// A vector with a number per channel, as it is broadcast to `y`.
fn per_channel<'e>(c: &Composite<'e>, y: Value<'e>, arg: Value<'e>) -> Value<'e> {
    let (rank, axis) = (y.shape().rank(), if channels_first(c) { 1 } else { y.shape().rank() - 1 });
    if arg.shape().rank() != 1 || arg.shape()[0] != y.shape()[axis] {
        let expected = format!("a vector of {} elements", y.shape()[axis]);
        return c.fail(Error::argument(c.op.name, "args", expected, arg.shape()));
    }
    let mut dims = vec![1; rank];
    dims[axis] = arg.shape()[0] as i64;
    arg.reshape(&dims)
}
