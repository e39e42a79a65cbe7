//! Convolutions and matmuls of quantised numbers with their bias, ReLU and requantisation.
//!
//! TensorFlow's graph tools make them of other ops, for oneDNN. Operands are taken as integers
//! times a scale: the end of the range with the larger magnitude belongs to the largest integer.
//!
//! Source: `mkl_conv_ops.cc`, `mkl_qmatmul_op.cc` and `mkl_quantized_conv_ops.h` of TensorFlow for
//! scales and ranges; what it computes of ranges that do not begin at 0 was found by running it.

use super::{conv, matmul, sets::*};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::Result,
    gradient::Gradient,
    infer::OpContext,
    op::*,
    shape::PartialShape,
};

const F32: DType = DType::F32;

const PADDING: AttrDef = one_of("padding", &["SAME", "VALID"]);
const DILATIONS: AttrDef = ints_or("dilations", &[1, 1, 1, 1]);
const PADDING_LIST: AttrDef = ints_or("padding_list", &[]);
const BIAS_TYPES: AttrDef = ty("Tbias", &[F32, DType::QI32]);
const MODE: AttrDef =
    one_of("input_quant_mode", &["MIN_FIRST", "SCALED"]).or(AttrDefault::String("MIN_FIRST"));

const INPUT: ArgDef = arg("input", "Tinput");
const FILTER: ArgDef = arg("filter", "Tfilter");
const MIN_INPUT: ArgDef = arg_of("min_input", F32);
const MAX_INPUT: ArgDef = arg_of("max_input", F32);
const MIN_FILTER: ArgDef = arg_of("min_filter", F32);
const MAX_FILTER: ArgDef = arg_of("max_filter", F32);
const MIN_FREEZED: ArgDef = arg_of("min_freezed_output", F32);
const MAX_FREEZED: ArgDef = arg_of("max_freezed_output", F32);

const CONV_OUTPUTS: &[ArgDef] =
    &[arg("output", "out_type"), arg_of("min_output", F32), arg_of("max_output", F32)];

/// A convolution to 32-bit integers.
const TO_WIDE: OpDef = OpDef {
    inputs: &[INPUT, FILTER, MIN_INPUT, MAX_INPUT, MIN_FILTER, MAX_FILTER],
    outputs: CONV_OUTPUTS,
    attrs: &[
        ty("Tinput", QUANTIZED),
        ty("Tfilter", QUANTIZED),
        ty_or("out_type", QUANTIZED, DType::QI32),
        ints("strides"),
        PADDING,
        DILATIONS,
        PADDING_LIST,
    ],
    infer: dense_shape,
    lowering: Lowering::Composite(|c| finished(c, dense(c), false)),
    gradient: Gradient::Zero,
    ..OpDef::PURE
};

/// A convolution to 32-bit integers, without a list of paddings.
const TO_WIDE_PLAIN: OpDef = OpDef {
    attrs: &[
        ty("Tinput", QUANTIZED),
        ty("Tfilter", QUANTIZED),
        ty_or("out_type", QUANTIZED, DType::QI32),
        ints("strides"),
        PADDING,
        DILATIONS,
    ],
    ..TO_WIDE
};

const WITH_BIAS: OpDef = OpDef {
    inputs: &[INPUT, FILTER, arg_of("bias", F32), MIN_INPUT, MAX_INPUT, MIN_FILTER, MAX_FILTER],
    ..TO_WIDE
};

/// A convolution to bytes of a specified range.
const TO_BYTES: OpDef = OpDef {
    inputs: &[
        INPUT,
        FILTER,
        MIN_INPUT,
        MAX_INPUT,
        MIN_FILTER,
        MAX_FILTER,
        MIN_FREEZED,
        MAX_FREEZED,
    ],
    attrs: &[
        ty("Tinput", QUANTIZED),
        ty("Tfilter", QUANTIZED),
        ty_or("out_type", QUANTIZED, DType::QU8),
        ints("strides"),
        PADDING,
        DILATIONS,
        PADDING_LIST,
    ],
    ..TO_WIDE
};

const TO_BYTES_WITH_BIAS: OpDef = OpDef {
    inputs: &[
        INPUT,
        FILTER,
        arg("bias", "Tbias"),
        MIN_INPUT,
        MAX_INPUT,
        MIN_FILTER,
        MAX_FILTER,
        MIN_FREEZED,
        MAX_FREEZED,
    ],
    attrs: &[
        ty("Tinput", QUANTIZED),
        ty("Tfilter", QUANTIZED),
        BIAS_TYPES,
        ty_or("out_type", QUANTIZED, DType::QU8),
        ints("strides"),
        PADDING,
        DILATIONS,
        PADDING_LIST,
    ],
    ..TO_WIDE
};

const MATMUL: OpDef = OpDef {
    inputs: &[
        arg("a", "T1"),
        arg("b", "T2"),
        arg("bias", "Tbias"),
        arg_of("min_a", F32),
        arg_of("max_a", F32),
        arg_of("min_b", F32),
        arg_of("max_b", F32),
    ],
    outputs: &[arg("out", "Toutput"), arg_of("min_out", F32), arg_of("max_out", F32)],
    attrs: &[
        ty("T1", QUANTIZED),
        ty("T2", QUANTIZED),
        BIAS_TYPES,
        ty_or("Toutput", QUANTIZED, DType::QI32),
        flag("transpose_a", false),
        flag("transpose_b", false),
        MODE,
    ],
    infer: matmul_shape,
    lowering: Lowering::Composite(|c| multiplied(c, false)),
    gradient: Gradient::Zero,
    ..OpDef::PURE
};

const MATMUL_TO_BYTES: OpDef = OpDef {
    inputs: &[
        MATMUL.inputs[0],
        MATMUL.inputs[1],
        MATMUL.inputs[2],
        MATMUL.inputs[3],
        MATMUL.inputs[4],
        MATMUL.inputs[5],
        MATMUL.inputs[6],
        MIN_FREEZED,
        MAX_FREEZED,
    ],
    attrs: &[
        ty("T1", QUANTIZED),
        ty("T2", QUANTIZED),
        BIAS_TYPES,
        ty_or("Toutput", QUANTIZED, DType::QU8),
        flag("transpose_a", false),
        flag("transpose_b", false),
        MODE,
    ],
    ..MATMUL
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "QuantizedConv2DAndRelu",
        summary: "Convolves images of quantised numbers, then applies ReLU.",
        lowering: Lowering::Composite(|c| finished(c, dense(c), true)),
        ..TO_WIDE
    },
    OpDef {
        name: "QuantizedConv2DAndReluAndRequantize",
        summary: "Convolves images of quantised numbers, applies ReLU and converts to bytes.",
        lowering: Lowering::Composite(|c| finished(c, dense(c), true)),
        ..TO_BYTES
    },
    OpDef {
        name: "QuantizedConv2DAndRequantize",
        summary: "Convolves images of quantised numbers and converts to bytes.",
        attrs: &[
            ty("Tinput", QUANTIZED),
            ty("Tfilter", QUANTIZED),
            ty_or("out_type", QUANTIZED, DType::QI8),
            ints("strides"),
            PADDING,
            DILATIONS,
            PADDING_LIST,
        ],
        ..TO_BYTES
    },
    OpDef {
        name: "QuantizedConv2DPerChannel",
        summary: "Convolves images of quantised numbers by filters with a range for each channel.",
        ..TO_WIDE_PLAIN
    },
    OpDef {
        name: "QuantizedConv2DWithBias",
        summary: "Convolves images of quantised numbers and adds a bias.",
        ..WITH_BIAS
    },
    OpDef {
        name: "QuantizedConv2DWithBiasAndRelu",
        summary: "Convolves images of quantised numbers, adds a bias and applies ReLU.",
        lowering: Lowering::Composite(|c| finished(c, dense(c), true)),
        ..WITH_BIAS
    },
    OpDef {
        name: "QuantizedConv2DWithBiasAndReluAndRequantize",
        summary: "Convolves quantised images, adds a bias, applies ReLU and converts to bytes.",
        lowering: Lowering::Composite(|c| finished(c, dense(c), true)),
        ..TO_BYTES_WITH_BIAS
    },
    OpDef {
        name: "QuantizedConv2DWithBiasAndRequantize",
        summary: "Convolves images of quantised numbers, adds a bias and converts to bytes.",
        attrs: &[
            ty("Tinput", QUANTIZED),
            ty("Tfilter", QUANTIZED),
            BIAS_TYPES,
            ty_or("out_type", QUANTIZED, DType::QI8),
            ints("strides"),
            PADDING,
            DILATIONS,
            PADDING_LIST,
        ],
        ..TO_BYTES_WITH_BIAS
    },
    OpDef {
        name: "QuantizedDepthwiseConv2D",
        summary: "Convolves each channel of images of quantised numbers by itself.",
        infer: depthwise_shape,
        lowering: Lowering::Composite(|c| finished(c, depthwise(c), false)),
        ..TO_WIDE_PLAIN
    },
    OpDef {
        name: "QuantizedDepthwiseConv2DWithBias",
        summary: "Convolves each channel of quantised images by itself and adds a bias.",
        attrs: TO_WIDE_PLAIN.attrs,
        infer: depthwise_shape,
        lowering: Lowering::Composite(|c| finished(c, depthwise(c), false)),
        ..WITH_BIAS
    },
    OpDef {
        name: "QuantizedDepthwiseConv2DWithBiasAndRelu",
        summary: "Convolves each channel of quantised images, adds a bias and applies ReLU.",
        infer: depthwise_shape,
        lowering: Lowering::Composite(|c| finished(c, depthwise(c), true)),
        ..WITH_BIAS
    },
    OpDef {
        name: "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
        summary: "Convolves each channel, adds a bias, applies ReLU and converts to bytes.",
        infer: depthwise_shape,
        lowering: Lowering::Composite(|c| finished(c, depthwise(c), true)),
        ..TO_BYTES_WITH_BIAS
    },
    OpDef {
        name: "QuantizedMatMulWithBias",
        summary: "Multiplies matrices of quantised numbers and adds a bias.",
        ..MATMUL
    },
    OpDef {
        name: "QuantizedMatMulWithBiasAndDequantize",
        summary: "Multiplies matrices of quantised numbers and adds a bias; gives reals.",
        outputs: &[arg("out", "Toutput")],
        attrs: &[
            ty("T1", QUANTIZED),
            ty("T2", QUANTIZED),
            BIAS_TYPES,
            ty("Toutput", &[F32]),
            flag("transpose_a", false),
            flag("transpose_b", false),
            MODE,
        ],
        lowering: Lowering::Composite(dequantised),
        ..MATMUL_TO_BYTES
    },
    OpDef {
        name: "QuantizedMatMulWithBiasAndRelu",
        summary: "Multiplies matrices of quantised numbers, adds a bias and applies ReLU.",
        inputs: &[
            MATMUL.inputs[0],
            MATMUL.inputs[1],
            arg_of("bias", F32),
            MATMUL.inputs[3],
            MATMUL.inputs[4],
            MATMUL.inputs[5],
            MATMUL.inputs[6],
        ],
        attrs: &[
            ty("T1", QUANTIZED),
            ty("T2", QUANTIZED),
            ty_or("Toutput", QUANTIZED, DType::QI32),
            flag("transpose_a", false),
            flag("transpose_b", false),
            MODE,
        ],
        lowering: Lowering::Composite(|c| multiplied(c, true)),
        ..MATMUL
    },
    OpDef {
        name: "QuantizedMatMulWithBiasAndReluAndRequantize",
        summary: "Multiplies quantised matrices, adds a bias, applies ReLU, converts to bytes.",
        lowering: Lowering::Composite(|c| multiplied(c, true)),
        ..MATMUL_TO_BYTES
    },
    OpDef {
        name: "QuantizedMatMulWithBiasAndRequantize",
        summary: "Multiplies matrices of quantised numbers, adds a bias and converts to bytes.",
        ..MATMUL_TO_BYTES
    },
];

/// The index of an argument, if the op has it.
fn position(op: &OpDef, name: &str) -> Option<usize> {
    op.inputs.iter().position(|arg| arg.name == name)
}

/// Checks the type of a byte operand.
fn check_bytes(context: &OpContext<'_>, index: usize, types: &[DType]) -> Result<()> {
    match types.contains(&context.dtype(index)) {
        true => Ok(()),
        false => {
            Err(context.wrong_attr(context.op.inputs[index].name, "of bytes", context.dtype(index)))
        }
    }
}

/// Checks a bias of an element for each column of output 0, and sets the shapes of the range.
fn check_rest(context: &mut OpContext<'_>, range: PartialShape) -> Result<()> {
    check_bytes(context, 0, &[DType::QI8, DType::QU8])?;
    check_bytes(context, 1, &[DType::QI8])?;
    let out = context.output(0).clone();
    let ends = ["min_input", "max_input", "min_a", "max_a", "min_b", "max_b"];
    for name in ends.into_iter().chain([MIN_FREEZED.name, MAX_FREEZED.name]) {
        if let Some(index) = position(context.op, name) {
            context.check_rank(index, 0)?;
        }
    }
    if let Some(index) = position(context.op, "bias") {
        let [bias] = context.dims::<1>(index)?;
        context.same("the channels and the bias", out.dim(-1), bias)?;
    }
    context.set_all(&range);
    context.set(0, out);
    Ok(())
}

fn conv_rest(context: &mut OpContext<'_>) -> Result<()> {
    if context.op.attr("padding_list").is_some() {
        let list = context.attrs.ints("padding_list")?;
        if !list.is_empty() {
            return Err(context.wrong_attr("padding_list", "an empty list", format!("{list:?}")));
        }
    }
    let channels = context.output(0).dim(-1);
    let mut range = PartialShape::scalar();
    for index in [MIN_FILTER, MAX_FILTER].iter().filter_map(|arg| position(context.op, arg.name)) {
        if context.shape(index).rank() == Some(0) {
            continue;
        }
        let [own] = context.dims::<1>(index)?;
        if own != Some(1) {
            context.same("the channels and ranges", channels, own)?;
        }
        range = PartialShape::vector(own);
    }
    let is_frozen = position(context.op, MIN_FREEZED.name).is_some();
    check_rest(context, if is_frozen { PartialShape::scalar() } else { range })
}

fn dense_shape(context: &mut OpContext<'_>) -> Result<()> {
    conv::convolution::<2>(context)?;
    conv_rest(context)
}

fn depthwise_shape(context: &mut OpContext<'_>) -> Result<()> {
    conv::depthwise(context)?;
    conv_rest(context)
}

fn matmul_shape(context: &mut OpContext<'_>) -> Result<()> {
    matmul::matmul(context)?;
    check_rest(context, PartialShape::scalar())
}

/// An input by its name.
fn named<'e>(c: &Composite<'e>, name: &str) -> Option<Value<'e>> {
    position(c.op, name).map(|index| c.x(index))
}

/// The two ends of a range.
fn ends<'e>(c: &Composite<'e>, low: &str, high: &str) -> Option<[Value<'e>; 2]> {
    Some([named(c, low)?, named(c, high)?])
}

/// The larger of the magnitudes of two ends.
fn magnitude<'e>([low, high]: [Value<'e>; 2]) -> Value<'e> {
    low.abs().maximum(high.abs())
}

/// The largest integer of bytes.
fn largest(dtype: DType) -> f64 {
    if dtype == DType::QU8 { 255.0 } else { 127.0 }
}

/// Difference of neighbouring integers of a range, where ranges of signed bytes are symmetric.
fn level<'e>([low, high]: [Value<'e>; 2], dtype: DType) -> Value<'e> {
    (high - low) / if dtype == DType::QU8 { 255.0 } else { 254.0 }
}

/// The ends of a range in which bytes are their own values.
fn own_range<'e>(c: &Composite<'e>, dtype: DType) -> [Value<'e>; 2] {
    match dtype {
        DType::QU8 => [c.scalar(0f32), c.scalar(255f32)],
        _ => [c.scalar(-128f32), c.scalar(127f32)],
    }
}

/// Sums of products of integers by an op on quantised numbers.
fn sums<'e>(c: &Composite<'e>, op: &str, attrs: Attrs) -> Value<'e> {
    let [low_a, high_a] = own_range(c, c.dtype(0));
    let [low_b, high_b] = own_range(c, c.dtype(1));
    let inputs = [c.x(0), c.x(1), low_a, high_a, low_b, high_b];
    plain(call_with(op, attrs, inputs), DType::I32)
}

/// Quantised numbers as integers, or the reverse.
fn plain(x: Value<'_>, dtype: DType) -> Value<'_> {
    call_with("Bitcast", Attrs::new().with("type", dtype), [x])
}

fn dense<'e>(c: &Composite<'e>) -> Value<'e> {
    sums(c, "QuantizedConv2D", c.attrs.clone().with("out_type", DType::QI32))
}

/// Sums in double precision, which holds them exactly.
fn depthwise<'e>(c: &Composite<'e>) -> Value<'e> {
    let bytes = |x: Value<'e>| {
        let dtype = if x.dtype() == DType::QU8 { DType::U8 } else { DType::I8 };
        plain(x, dtype).cast(DType::F64)
    };
    let attrs = c.attrs.clone().with("T", DType::F64);
    call_with("DepthwiseConv2dNative", attrs, [bytes(c.x(0)), bytes(c.x(1))]).cast(DType::I32)
}

/// Reals rounded to the nearest integers, even ones first, of a quantised type.
fn rounded(x: Value<'_>, out: DType) -> Value<'_> {
    let (dtype, [low, high]) = match out {
        DType::QU8 => (DType::U8, [0.0, 255.0]),
        DType::QI8 => (DType::I8, [-128.0, 127.0]),
        _ => (DType::I32, [-2_147_483_648.0, 2_147_483_520.0]),
    };
    plain(call("Round", [x]).maximum(low).minimum(high).cast(dtype), out)
}

fn rectified(x: Value<'_>, relu: bool) -> Value<'_> {
    if relu { x.maximum(0.0) } else { x }
}

/// The results of a convolution, of its sums.
fn finished<'e>(c: &Composite<'e>, sums: Value<'e>, relu: bool) -> Vec<Value<'e>> {
    let input = ends(c, MIN_INPUT.name, MAX_INPUT.name);
    let filter = ends(c, MIN_FILTER.name, MAX_FILTER.name);
    let (Some(input), Some(filter)) = (input, filter) else { return Vec::new() };
    let largest_product = largest(c.dtype(0)) * 127.0;
    let product = magnitude(input) * magnitude(filter);
    let bias = named(c, "bias");
    if let Some(freezed) = ends(c, MIN_FREEZED.name, MAX_FREEZED.name) {
        let out = c.dtype_attr("out_type");
        let scale = magnitude(freezed) / largest(out);
        let factor = product / largest_product / scale;
        return requantised(sums, bias, [factor, scale], (relu, out), freezed);
    }
    let channels = filter[0].shape().num_elements();
    let scaled = |x: Value<'e>| match channels {
        0 | 1 => x,
        _ => x * (magnitude(filter) / magnitude(filter).reduce_max(&[0], false)),
    };
    let wide = match bias {
        None if channels <= 1 => plain(rectified(sums, relu), DType::QI32),
        None => rounded(rectified(scaled(sums.cast(F32)), relu), DType::QI32),
        Some(bias) => {
            let y = scaled(sums.cast(F32)) + scaled(bias * (largest_product / product));
            rounded(rectified(y, relu), DType::QI32)
        }
    };
    let range = level(input, c.dtype(0)) * level(filter, c.dtype(1)) * HALF_RANGE;
    vec![wide, -range, range]
}

/// The numbers that 32 bits have on one side of zero.
const HALF_RANGE: f64 = (1u64 << 31) as f64;

/// Bytes of sums and a bias, which is in units of the sums or real.
fn requantised<'e>(
    sums: Value<'e>,
    bias: Option<Value<'e>>,
    [factor, scale]: [Value<'e>; 2],
    (relu, out): (bool, DType),
    [low, high]: [Value<'e>; 2],
) -> Vec<Value<'e>> {
    let y = match bias {
        None => sums.cast(F32) * factor,
        Some(bias) if bias.dtype() == F32 => sums.cast(F32) * factor + bias / scale,
        Some(bias) => (sums + plain(bias, DType::I32)).cast(F32) * factor,
    };
    vec![rounded(rectified(y, relu), out), low, high]
}

/// The ranges of both operands of a matmul.
fn operands<'e>(c: &Composite<'e>) -> [[Value<'e>; 2]; 2] {
    [[c.x(3), c.x(4)], [c.x(5), c.x(6)]]
}

fn matmul_sums<'e>(c: &Composite<'e>) -> Value<'e> {
    sums(c, "QuantizedMatMul", c.attrs.clone().with("Toutput", DType::QI32))
}

/// A bias; a real one with what a range of `a` that does not begin at 0 adds, in units of `a`.
fn offset<'e>(c: &Composite<'e>) -> Value<'e> {
    let (bias, [[low, high], _]) = (c.x(2), operands(c));
    if bias.dtype() != F32 {
        return bias;
    }
    let rows = i64::from(c.flag("transpose_b"));
    let columns = plain(c.x(1), DType::I8).cast(F32).sum(&[rows], false);
    bias + columns * (low * 255.0 / (high - low))
}

fn multiplied<'e>(c: &Composite<'e>, relu: bool) -> Vec<Value<'e>> {
    let (sums, [a, b], bias) = (matmul_sums(c), operands(c), offset(c));
    let scale = level(a, c.dtype(0)) * (magnitude(b) / 127.0);
    if let Some(freezed) = ends(c, MIN_FREEZED.name, MAX_FREEZED.name) {
        let out = c.dtype_attr("Toutput");
        let bytes = magnitude(freezed) / largest(out);
        return requantised(sums, Some(bias), [scale / bytes, bytes], (relu, out), freezed);
    }
    let wide = match bias.dtype() {
        F32 => rounded(rectified(sums.cast(F32) + bias * (1.0 / scale), relu), DType::QI32),
        _ => plain(rectified(sums + plain(bias, DType::I32), relu), DType::QI32),
    };
    let range = level(a, c.dtype(0)) * level(b, c.dtype(1)) * HALF_RANGE;
    vec![wide, -range, range]
}

/// Where operands are taken as scaled, a range of `a` adds nothing to a bias, and an integer bias
/// is in units of the upper end alone.
fn dequantised<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (sums, [a, b]) = (matmul_sums(c).cast(F32), operands(c));
    let is_scaled = c.string("input_quant_mode") == "SCALED";
    let bias = if is_scaled { c.x(2) } else { offset(c) };
    let [of_sums, of_bias] = match is_scaled {
        true => [magnitude(a), a[1]].map(|end| end / largest(c.dtype(0))),
        false => [level(a, c.dtype(0)); 2],
    };
    let unit = magnitude(b) / 127.0;
    let bias = match bias.dtype() {
        F32 => bias,
        _ => plain(bias, DType::I32).cast(F32) * (of_bias * unit),
    };
    vec![sums * (of_sums * unit) + bias]
}
