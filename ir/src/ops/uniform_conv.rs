//! Convolutions of integers with scales and zero points.
//!
//! Source of the arithmetic: TensorFlow's `uniform_quantized_convolution_ops.cc` and
//! `math_utils.h` beside it. Sums of products are exact; their conversion to the scale of the
//! result multiplies by 31 bits and rounds a shift to the nearest, halves up.

use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::Error,
    op::*,
    xla::{
        MessageNumbers,
        conv::{ConvAxes, ConvWindow, convolution},
        size::{Size, rank},
    },
};

const STRIDES: AttrDef = ints_or("window_strides", &[]);
const PADDING: AttrDef = string("padding");
const EXPLICIT: AttrDef = ints_or("explicit_padding", &[]);
const LHS_DILATION: AttrDef = ints_or("lhs_dilation", &[]);
const RHS_DILATION: AttrDef = ints_or("rhs_dilation", &[]);
const BATCHES: AttrDef = int_or("batch_group_count", 1);
const FEATURES: AttrDef = int_or("feature_group_count", 1);
const NUMBERS: AttrDef = string_or("dimension_numbers", "");

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "UniformQuantizedConvolution",
        summary: "Convolves integers with scales and zero points.",
        inputs: &[
            arg("lhs", "Tin"),
            arg("rhs", "Tin"),
            arg_of("lhs_scales", DType::F32),
            arg_of("lhs_zero_points", DType::I32),
            arg_of("rhs_scales", DType::F32),
            arg_of("rhs_zero_points", DType::I32),
            arg_of("output_scales", DType::F32),
            arg_of("output_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tin", &[DType::QI8]),
            ty("Tout", &[DType::QI32]),
            STRIDES,
            PADDING,
            EXPLICIT,
            LHS_DILATION,
            RHS_DILATION,
            BATCHES,
            FEATURES,
            NUMBERS,
            int_or("lhs_quantization_axis", -1),
            int("lhs_quantization_min_val"),
            int("lhs_quantization_max_val"),
            int_or("rhs_quantization_axis", -1),
            int("rhs_quantization_min_val"),
            int("rhs_quantization_max_val"),
            int_or("output_quantization_axis", -1),
            int("output_quantization_min_val"),
            int("output_quantization_max_val"),
        ],
        lowering: Lowering::Composite(|c| vec![quantized(c)]),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantizedConvolutionHybrid",
        summary: "Convolves reals with integers that have scales and zero points.",
        inputs: &[
            arg("lhs", "Tlhs"),
            arg("rhs", "Trhs"),
            arg_of("rhs_scales", DType::F32),
            arg_of("rhs_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tlhs", &[DType::F32]),
            ty("Trhs", &[DType::QI8]),
            ty("Tout", &[DType::F32]),
            STRIDES,
            PADDING,
            EXPLICIT,
            LHS_DILATION,
            RHS_DILATION,
            BATCHES,
            FEATURES,
            NUMBERS,
            int_or("rhs_quantization_axis", -1),
            int("rhs_quantization_min_val"),
            int("rhs_quantization_max_val"),
        ],
        lowering: Lowering::Composite(|c| vec![hybrid(c)]),
        ..OpDef::PURE
    },
];

/// `qint8 × qint8 → qint32`.
fn quantized<'e>(c: &Composite<'e>) -> Value<'e> {
    let Some(axes) = axes(c) else { return wrong(c, "dimension_numbers", "axes of the operands") };
    let lhs = integers(c.x(0)) - c.x(3);
    let kernel = integers(c.x(1)) - of_axis(c, c.x(5), axes.kernel[1]);
    let Some(sums) = convolved(c, lhs, kernel, &axes) else {
        return wrong(c, "padding", "a window of as many axes as the operands");
    };
    let wide = |index: usize| of_axis(c, c.x(index), axes.output[1]).cast(DType::F64);
    let factor = c.x(2).cast(DType::F64) * wide(4) / wide(6);
    let zero = of_axis(c, c.x(7), axes.output[1]).cast(DType::I64);
    let scaled = scaled(sums, factor) + zero;
    let limit = |name: &str| scaled.literal(c.int(name));
    let result = scaled
        .minimum(limit("output_quantization_max_val"))
        .maximum(limit("output_quantization_min_val"))
        .cast(DType::I32);
    call_with("Bitcast", Attrs::new().with("type", DType::QI32), [result])
}

/// `float32 × qint8 → float32`: every image is quantized with a scale of its own.
fn hybrid<'e>(c: &Composite<'e>) -> Value<'e> {
    let Some(axes) = axes(c) else { return wrong(c, "dimension_numbers", "axes of the operands") };
    let kernel = integers(c.x(1)) - of_axis(c, c.x(3), axes.kernel[1]);
    let [image, scale] = quantized_images(c.x(0), axes.input[0]);
    let Some(sums) = convolved(c, image, kernel, &axes) else {
        return wrong(c, "padding", "a window of as many axes as the operands");
    };
    let sums = sums.cast(DType::F32) * scale_of_sums(c, scale, &axes);
    sums * of_axis(c, c.x(2), axes.output[1])
}

/// The scales of images, in the axes of the sums. A group of images makes its own part of the features.
fn scale_of_sums<'e>(c: &Composite<'e>, scale: Value<'e>, axes: &ConvAxes) -> Value<'e> {
    let [batch, features] = [axes.output[0], axes.output[1]];
    let mut shape = vec![1; rank(c.x(0))];
    shape[batch] = -1;
    let groups = c.int("batch_group_count");
    let n_features = c.x(1).dims().map_or(0, |dims| dims[axes.kernel[1]]);
    if groups <= 1 || n_features < groups {
        return scale.reshape(&shape);
    }
    let by_image = scale.reshape(&[groups, -1]).transpose(&[1, 0]).reshape(&[-1, groups, 1]);
    let of_group = scale.like(1.0).broadcast_to(&[1, 1, n_features / groups]);
    let by_feature = (by_image * of_group).reshape(&[-1, n_features]);
    shape[features] = n_features;
    let ordered = if batch < features { by_feature } else { by_feature.transpose(&[1, 0]) };
    ordered.reshape(&shape)
}

fn wrong<'e>(c: &Composite<'e>, argument: &'static str, expected: &'static str) -> Value<'e> {
    c.fail(Error::argument(c.op.name, argument, expected, "something else"))
}

/// `qint8` as `int32`.
fn integers<'e>(x: Value<'e>) -> Value<'e> {
    call_with("Bitcast", Attrs::new().with("type", DType::I8), [x]).cast(DType::I32)
}

/// A scalar, or a vector along an axis of the operands.
fn of_axis<'e>(c: &Composite<'e>, x: Value<'e>, axis: usize) -> Value<'e> {
    if x.rank() == Some(0) {
        return x;
    }
    let mut shape = vec![1; rank(c.x(0))];
    shape[axis] = -1;
    x.reshape(&shape)
}

/// The axes in the message of a call; without one, batch, features, and the rest in order.
fn axes(c: &Composite<'_>) -> Option<ConvAxes> {
    let n = rank(c.x(0));
    let bytes = match c.attrs.get("dimension_numbers") {
        Some(crate::AttrValue::String(bytes)) => bytes.clone(),
        _ => bytes::Bytes::new(),
    };
    let axes = match bytes.is_empty() {
        true => {
            let spatial = || (2..n).collect();
            ConvAxes {
                input: [0, 1],
                input_spatial: spatial(),
                kernel: [1, 0],
                kernel_spatial: spatial(),
                output: [0, 1],
                output_spatial: spatial(),
            }
        }
        false => MessageNumbers::read(c.op.name, &bytes).ok()?.uniform_conv(),
    };
    (axes.fits(n) && rank(c.x(1)) == n).then_some(axes)
}

/// Exact sums of products; `None` when the window does not fit.
fn convolved<'e>(
    c: &Composite<'e>,
    lhs: Value<'e>,
    rhs: Value<'e>,
    axes: &ConvAxes,
) -> Option<Value<'e>> {
    let n = axes.input_spatial.len();
    let list = |name: &str| -> Vec<i64> {
        let told = c.attrs.ints(name).map(<[i64]>::to_vec).unwrap_or_default();
        if told.is_empty() { vec![1; n] } else { told }
    };
    let [stride, lhs_dilation, rhs_dilation] =
        ["window_strides", "lhs_dilation", "rhs_dilation"].map(list);
    if [&stride, &lhs_dilation, &rhs_dilation].iter().any(|list| list.len() != n) {
        return None;
    }
    let (image, kernel) = (lhs.dims()?, rhs.dims()?);
    let same = |axis: usize| {
        let spread = |size: i64, step: i64| if size == 0 { 0 } else { (size - 1) * step + 1 };
        let size = spread(image[axes.input_spatial[axis]], lhs_dilation[axis]);
        let window = spread(kernel[axes.kernel_spatial[axis]], rhs_dilation[axis]);
        let windows = (size + stride[axis] - 1) / stride[axis].max(1);
        let all = ((windows - 1) * stride[axis] + window - size).max(0);
        (Size::Known(all / 2), Size::Known(all - all / 2))
    };
    let padding = match c.string("padding") {
        "SAME" => (0..n).map(same).collect(),
        "VALID" => vec![(Size::Known(0), Size::Known(0)); n],
        _ => {
            let told = c.attrs.ints("explicit_padding").ok()?;
            told.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].into())).collect()
        }
    };
    let window = ConvWindow {
        stride,
        padding,
        lhs_dilation,
        rhs_dilation,
        reversal: vec![false; n],
        feature_groups: c.int("feature_group_count"),
        batch_groups: c.int("batch_group_count"),
    };
    if !window.fits(n) {
        return None;
    }
    convolution(lhs, rhs, axes, &window, DType::I32)
}

/// The nearest integers, halves up, to products of `int32` and positive factors of 31 bits.
fn scaled<'e>(x: Value<'e>, factor: Value<'e>) -> Value<'e> {
    let bits = call_with("Bitcast", Attrs::new().with("type", DType::I64), [factor]);
    let right = |x: Value<'e>, by: Value<'e>| call("RightShift", [x, by]);
    let and = |x: Value<'e>, mask: i64| call("BitwiseAnd", [x, x.literal(mask)]);
    let exponent = right(bits, bits.literal(52i64)) - bits.literal(1022i64);
    let fraction = and(bits, (1 << 52) - 1) + bits.literal(1i64 << 52);
    let mantissa = right(fraction + bits.literal(1i64 << 21), bits.literal(22i64));
    // A fraction that rounds up to 1 is half of the next power.
    let over = mantissa.equal(bits.literal(1i64 << 31));
    let mantissa = over.select(bits.literal(1i64 << 30), mantissa);
    let exponent = over.select(exponent + bits.literal(1i64), exponent);
    let large = exponent.greater(bits.literal(30i64));
    let small = exponent.less(bits.literal(-31i64));
    let mantissa = large.select(bits.literal(i64::from(i32::MAX)), mantissa);
    let mantissa = small.select(bits.literal(0i64), mantissa);
    let exponent = exponent.minimum(bits.literal(30i64)).maximum(bits.literal(-31i64));
    let shift = bits.literal(31i64) - exponent;
    let half = call("LeftShift", [bits.literal(1i64), shift - bits.literal(1i64)]);
    let product = x.cast(DType::I64) * mantissa + half;
    let number = right(product, shift);
    let whole = |limit: i32| number.literal(i64::from(limit));
    number.minimum(whole(i32::MAX)).maximum(whole(i32::MIN))
}

/// Images as integers of 8 bits less the number of 0, and the scale of each.
///
/// 0 is a number of its own (`AsymmetricQuantize`).
fn quantized_images<'e>(x: Value<'e>, batch: usize) -> [Value<'e>; 2] {
    let (least, most) = (-128.0, 127.0);
    let others: Vec<i64> =
        (0..rank(x)).filter(|&axis| axis != batch).map(|axis| axis as i64).collect();
    let extreme = |x: Value<'e>| {
        let most = x.reduce_max(&others, true);
        most.maximum(most.like(0.0)).cast(DType::F64)
    };
    let (low, high) = (-extreme(-x), extreme(x));
    let range = high - low;
    let is_flat = range.equal(range.like(0.0));
    let scale = is_flat.select(range.like(1.0), range / (most - least));
    let (from_low, from_high) = ((low / scale) * -1.0 + least, (high / scale) * -1.0 + most);
    let errors = [low / scale, high / scale].map(|x| call("Abs", [x]));
    let nearer = (errors[0] + -least).less(errors[1] + most);
    let zero = call("Rint", [nearer.select(from_low, from_high)]);
    let zero = zero.maximum(zero.like(least)).minimum(zero.like(most)).cast(DType::F32);
    let narrow = scale.cast(DType::F32);
    let quantized = call("Floor", [x * (narrow.ones_like() / narrow) + 0.5]) + zero;
    let quantized = quantized.minimum(quantized.like(most)).maximum(quantized.like(least)) - zero;
    let flat = is_flat.cast(DType::F32);
    let scale = narrow * (flat.ones_like() - flat);
    [quantized.cast(DType::I32), scale]
}
