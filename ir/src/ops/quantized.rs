//! Quantised numbers: integers that stand for an even division of a range of reals.

use super::{array, conv, image, matmul, pool, sets::*, shape};
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::{Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::{PartialShape, counted},
};

const F32: DType = DType::F32;

const ROUND_MODES: AttrDef =
    one_of("round_mode", &["HALF_TO_EVEN", "HALF_UP"]).or(AttrDefault::String("HALF_TO_EVEN"));

const MODES: AttrDef = one_of("mode", &["MIN_COMBINED", "MIN_FIRST", "SCALED"])
    .or(AttrDefault::String("MIN_COMBINED"));

/// A function of quantised numbers and their range; returns numbers and their range.
const ON_RANGE: OpDef = OpDef {
    inputs: &[arg("input", "Tinput"), arg_of("input_min", F32), arg_of("input_max", F32)],
    outputs: &[arg("output", "out_type"), arg_of("output_min", F32), arg_of("output_max", F32)],
    attrs: &[ty("Tinput", QUANTIZED), ty("out_type", QUANTIZED)],
    infer: |context| {
        scalars(context, 1..context.n_inputs())?;
        shape_and_range(context, context.shape(0).clone())
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

const ACTIVATION: OpDef = OpDef {
    inputs: &[arg("features", "Tinput"), arg_of("min_features", F32), arg_of("max_features", F32)],
    outputs: &[
        arg("activations", "out_type"),
        arg_of("min_activations", F32),
        arg_of("max_activations", F32),
    ],
    attrs: &[ty("Tinput", QUANTIZED), ty_or("out_type", QUANTIZED, DType::QU8)],
    ..ON_RANGE
};

const POOL: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg_of("min_input", F32), arg_of("max_input", F32)],
    outputs: &[arg("output", "T"), arg_of("min_output", F32), arg_of("max_output", F32)],
    attrs: &[
        ty("T", QUANTIZED),
        ints("ksize"),
        ints("strides"),
        one_of("padding", &["SAME", "VALID"]),
    ],
    infer: |context| {
        scalars(context, 1..3)?;
        let shape = pool::pooled_shape(context, context.shape(0))?;
        shape_and_range(context, shape)
    },
    ..ON_RANGE
};

/// An operation on numbers of two ranges that broadcast.
const BINARY: OpDef = OpDef {
    inputs: &[
        arg("x", "T1"),
        arg("y", "T2"),
        arg_of("min_x", F32),
        arg_of("max_x", F32),
        arg_of("min_y", F32),
        arg_of("max_y", F32),
    ],
    outputs: &[arg("z", "Toutput"), arg_of("min_z", F32), arg_of("max_z", F32)],
    attrs: &[ty("T1", QUANTIZED), ty("T2", QUANTIZED), ty_or("Toutput", QUANTIZED, DType::QI32)],
    infer: |context| {
        scalars(context, 2..6)?;
        let shape = context.shape(0).broadcast(context.shape(1))?;
        shape_and_range(context, shape)
    },
    ..ON_RANGE
};

const FAKE: OpDef = OpDef {
    inputs: &[arg_of("inputs", F32), arg_of("min", F32), arg_of("max", F32)],
    outputs: &[arg_of("outputs", F32)],
    attrs: &[int_or("num_bits", 8), flag("narrow_range", false)],
    infer: |context| {
        scalars(context, 1..3)?;
        infer::unchanged(context)
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

const FAKE_GRADIENT: OpDef = OpDef {
    inputs: &[
        arg_of("gradients", F32),
        arg_of("inputs", F32),
        arg_of("min", F32),
        arg_of("max", F32),
    ],
    outputs: &[
        arg_of("backprops_wrt_input", F32),
        arg_of("backprop_wrt_min", F32),
        arg_of("backprop_wrt_max", F32),
    ],
    infer: |context| {
        scalars(context, 2..4)?;
        let shape = context.merged(0, 1)?;
        shape_and_range(context, shape)
    },
    ..FAKE
};

const FAKE_ARGS: &[AttrDef] = &[
    float_or("min", -6.0),
    float_or("max", 6.0),
    int_or("num_bits", 8),
    flag("narrow_range", false),
];

/// Rounds reals to what integers of a range could hold.
const ROUND_TRIP: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("input_min", "T"), arg("input_max", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[
        flag("signed_input", true),
        int_or("num_bits", 8),
        flag("range_given", false),
        ty("T", FLOATS),
        ROUND_MODES,
        flag("narrow_range", false),
        int_or("axis", -1),
    ],
    infer: |context| {
        let slices = slices(context, "axis")?;
        if context.attrs.bool("range_given")? {
            // TensorFlow reads one range here, and asks for one per slice where there is an axis.
            scalars(context, 1..3)?;
            one_per_slice(context, 1..3, slices)?;
        }
        infer::unchanged(context)
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Dequantize",
        summary: "Gives the reals that quantised numbers stand for.",
        inputs: &[arg("input", "T"), arg_of("min_range", F32), arg_of("max_range", F32)],
        outputs: &[arg("output", "dtype")],
        attrs: &[
            ty("T", QUANTIZED),
            MODES,
            flag("narrow_range", false),
            int_or("axis", -1),
            ty_or("dtype", &[DType::BF16, F32], F32),
        ],
        infer: |context| {
            let slices = slices(context, "axis")?;
            one_per_slice(context, 1..3, slices)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "FakeQuantWithMinMaxArgs",
        summary: "Rounds to what a quantised type with a fixed range could hold.",
        inputs: &[arg_of("inputs", F32)],
        outputs: &[arg_of("outputs", F32)],
        attrs: FAKE_ARGS,
        infer: infer::unchanged,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::fake_quant_args),
        ..OpDef::PURE
    },
    OpDef {
        name: "FakeQuantWithMinMaxArgsGradient",
        summary: "Gradient of `FakeQuantWithMinMaxArgs`: passes inside the range.",
        inputs: &[arg_of("gradients", F32), arg_of("inputs", F32)],
        outputs: &[arg_of("backprops", F32)],
        attrs: FAKE_ARGS,
        infer: infer::all_same,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVars",
        summary: "Rounds to what a quantised type with a given range could hold.",
        gradient: Gradient::Rule(gradient::nn::fake_quant_vars),
        ..FAKE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsGradient",
        summary: "Gradient of `FakeQuantWithMinMaxVars` by the input and the range.",
        ..FAKE_GRADIENT
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsPerChannel",
        summary: "Rounds to what quantised types with a range per channel could hold.",
        infer: |context| {
            per_channel(context, 0, 1..3)?;
            infer::unchanged(context)
        },
        gradient: Gradient::Rule(gradient::nn::fake_quant_per_channel),
        ..FAKE
    },
    OpDef {
        name: "FakeQuantWithMinMaxVarsPerChannelGradient",
        summary: "Gradient of `FakeQuantWithMinMaxVarsPerChannel` by the input and the ranges.",
        infer: |context| {
            let channels = per_channel(context, 0, 2..4)?;
            let shape = context.merged(0, 1)?;
            context.set_all(&channels);
            context.set(0, shape);
            Ok(())
        },
        ..FAKE_GRADIENT
    },
    OpDef {
        name: "QuantizeAndDequantizeV2",
        summary: "Rounds to what integers of a range around 0 could hold.",
        gradient: Gradient::Rule(gradient::array::same),
        ..ROUND_TRIP
    },
    OpDef {
        name: "QuantizeAndDequantizeV3",
        summary: "As `QuantizeAndDequantizeV2`, with the number of bits as an input.",
        inputs: &[
            arg("input", "T"),
            arg("input_min", "T"),
            arg("input_max", "T"),
            arg_of("num_bits", DType::I32),
        ],
        attrs: &[
            flag("signed_input", true),
            flag("range_given", true),
            ty("T", FLOATS),
            flag("narrow_range", false),
            int_or("axis", -1),
        ],
        infer: |context| {
            scalars(context, 3..4)?;
            let slices = slices(context, "axis")?;
            if context.attrs.bool("range_given")? {
                one_per_slice(context, 1..3, slices)?;
            }
            infer::unchanged(context)
        },
        gradient: Gradient::Rule(gradient::array::same),
        ..ROUND_TRIP
    },
    OpDef {
        name: "QuantizeAndDequantizeV4",
        summary: "As `QuantizeAndDequantizeV2`, with a gradient of its own.",
        gradient: Gradient::Rule(gradient::nn::quantize_v4),
        ..ROUND_TRIP
    },
    OpDef {
        name: "QuantizeAndDequantizeV4Grad",
        summary: "Computes the gradient of `QuantizeAndDequantizeV4`.",
        inputs: &[
            arg("gradients", "T"),
            arg("input", "T"),
            arg("input_min", "T"),
            arg("input_max", "T"),
        ],
        outputs: &[
            arg("input_backprop", "T"),
            arg("input_min_backprop", "T"),
            arg("input_max_backprop", "T"),
        ],
        attrs: &[ty("T", FLOATS), int_or("axis", -1)],
        infer: |context| {
            let shape = context.merged(0, 1)?;
            let slices = slices(context, "axis")?;
            one_per_slice(context, 2..4, slices)?;
            context.set(0, shape);
            context.set(1, context.shape(2).clone());
            context.set(2, context.shape(3).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let (low, high) = (c.x(2), c.x(3));
            let dx = gradient::nn::inside_range(c.x(0), [c.x(1), low, high], c.int("axis"));
            vec![dx, low.zeros_like(), high.zeros_like()]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "QuantizeDownAndShrinkRange",
        summary: "Converts to a smaller type, using the range that occurs.",
        ..ON_RANGE
    },
    OpDef {
        name: "QuantizeV2",
        summary: "Gives the quantised numbers nearest to reals, and their range.",
        inputs: &[arg_of("input", F32), arg_of("min_range", F32), arg_of("max_range", F32)],
        outputs: &[arg("output", "T"), arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[
            ty("T", QUANTIZED),
            MODES,
            one_of("round_mode", &["HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"])
                .or(AttrDefault::String("HALF_AWAY_FROM_ZERO")),
            flag("narrow_range", false),
            int_or("axis", -1),
            float_or("ensure_minimum_range", 0.01),
        ],
        infer: |context| {
            let slices = slices(context, "axis")?;
            one_per_slice(context, 1..3, slices.clone())?;
            context.set_all(&slices.unwrap_or_else(PartialShape::scalar));
            context.set(0, context.shape(0).clone());
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef { name: "QuantizedAdd", summary: "Adds quantised numbers of two ranges.", ..BINARY },
    OpDef {
        name: "QuantizedAvgPool",
        summary: "Takes the mean of each window of an image of quantised numbers.",
        ..POOL
    },
    OpDef {
        name: "QuantizedBatchNormWithGlobalNormalization",
        summary: "Normalises the channels of quantised images by a mean and a variance.",
        inputs: &[
            arg("t", "Tinput"),
            arg_of("t_min", F32),
            arg_of("t_max", F32),
            arg("m", "Tinput"),
            arg_of("m_min", F32),
            arg_of("m_max", F32),
            arg("v", "Tinput"),
            arg_of("v_min", F32),
            arg_of("v_max", F32),
            arg("beta", "Tinput"),
            arg_of("beta_min", F32),
            arg_of("beta_max", F32),
            arg("gamma", "Tinput"),
            arg_of("gamma_min", F32),
            arg_of("gamma_max", F32),
        ],
        outputs: &[arg("result", "out_type"), arg_of("result_min", F32), arg_of("result_max", F32)],
        attrs: &[
            ty("Tinput", QUANTIZED),
            ty("out_type", QUANTIZED),
            float("variance_epsilon"),
            required_flag("scale_after_normalization"),
        ],
        infer: |context| {
            context.check_rank(0, 4)?;
            for index in [1, 4, 7, 10, 13] {
                scalars(context, index..index + 2)?;
            }
            let mut channels = context.shape(0).dim(3);
            for index in [3, 6, 9, 12] {
                let [own] = context.dims::<1>(index)?;
                channels = context.same("the channels", channels, own)?;
            }
            shape_and_range(context, context.shape(0).clone())
        },
        ..ON_RANGE
    },
    OpDef {
        name: "QuantizedBiasAdd",
        summary: "Adds a quantised number per element of the last dimension.",
        inputs: &[
            arg("input", "T1"),
            arg("bias", "T2"),
            arg_of("min_input", F32),
            arg_of("max_input", F32),
            arg_of("min_bias", F32),
            arg_of("max_bias", F32),
        ],
        outputs: &[arg("output", "out_type"), arg_of("min_out", F32), arg_of("max_out", F32)],
        attrs: &[ty("T1", QUANTIZED), ty("T2", QUANTIZED), ty("out_type", QUANTIZED)],
        infer: |context| {
            context.check_rank_at_least(0, 2)?;
            let [bias] = context.dims::<1>(1)?;
            context.same("channels", context.shape(0).dim(-1), bias)?;
            scalars(context, 2..6)?;
            shape_and_range(context, context.shape(0).clone())
        },
        ..BINARY
    },
    OpDef {
        name: "QuantizedConcat",
        summary: "Joins tensors of quantised numbers, in the range that holds all of theirs.",
        inputs: &[
            arg_of("concat_dim", DType::I32).host(),
            args("values", "N", "T"),
            args_of("input_mins", "N", F32),
            args_of("input_maxes", "N", F32),
        ],
        outputs: &[arg("output", "T"), arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[int("N").at_least(2), any_ty("T")],
        infer: |context| {
            let n = (context.n_inputs() - 1) / 3;
            scalars(context, n + 1..3 * n + 1)?;
            let axis = context.int(0)?;
            if let Some(axis) = axis.filter(|&axis| axis < 0) {
                let (what, high) = ("concat_dim".into(), i64::MAX);
                return Err(Error::Index { what, index: axis, low: 0, high });
            }
            let shape = array::concatenated(context, 1..n + 1, axis)?;
            shape_and_range(context, shape)
        },
        ..ON_RANGE
    },
    OpDef {
        name: "QuantizedConv2D",
        summary: "Convolves images of quantised numbers.",
        inputs: &[
            arg("input", "Tinput"),
            arg("filter", "Tfilter"),
            arg_of("min_input", F32),
            arg_of("max_input", F32),
            arg_of("min_filter", F32),
            arg_of("max_filter", F32),
        ],
        outputs: &[arg("output", "out_type"), arg_of("min_output", F32), arg_of("max_output", F32)],
        attrs: &[
            ty("Tinput", QUANTIZED),
            ty("Tfilter", QUANTIZED),
            ty_or("out_type", QUANTIZED, DType::QI32),
            ints("strides"),
            one_of("padding", &["SAME", "VALID"]),
            ints_or("dilations", &[1, 1, 1, 1]),
        ],
        infer: |context| {
            scalars(context, 2..6)?;
            conv::convolution::<2>(context)?;
            shape_and_range(context, context.output(0).clone())
        },
        ..BINARY
    },
    OpDef {
        name: "QuantizedInstanceNorm",
        summary: "Normalises each channel of each image of quantised numbers.",
        inputs: &[arg("x", "T"), arg_of("x_min", F32), arg_of("x_max", F32)],
        outputs: &[arg("y", "T"), arg_of("y_min", F32), arg_of("y_max", F32)],
        attrs: &[
            ty("T", QUANTIZED),
            flag("output_range_given", false),
            float_or("given_y_min", 0.0),
            float_or("given_y_max", 0.0),
            float_or("variance_epsilon", 1e-05),
            float_or("min_separation", 0.001),
        ],
        infer: |context| {
            context.check_rank(0, 4)?;
            scalars(context, 1..3)?;
            shape_and_range(context, context.shape(0).clone())
        },
        ..ON_RANGE
    },
    OpDef {
        name: "QuantizedMatMul",
        summary: "Multiplies matrices of quantised numbers.",
        inputs: &[
            arg("a", "T1"),
            arg("b", "T2"),
            arg_of("min_a", F32),
            arg_of("max_a", F32),
            arg_of("min_b", F32),
            arg_of("max_b", F32),
        ],
        outputs: &[arg("out", "Toutput"), arg_of("min_out", F32), arg_of("max_out", F32)],
        attrs: &[
            ty("T1", QUANTIZED),
            ty("T2", QUANTIZED),
            ty_or("Toutput", QUANTIZED, DType::QI32),
            flag("transpose_a", false),
            flag("transpose_b", false),
            ty_or("Tactivation", QUANTIZED, DType::QU8),
        ],
        infer: |context| {
            scalars(context, 2..6)?;
            matmul::matmul(context)?;
            shape_and_range(context, context.output(0).clone())
        },
        ..BINARY
    },
    OpDef {
        name: "QuantizedMaxPool",
        summary: "Takes the largest element of each window of an image of quantised numbers.",
        ..POOL
    },
    OpDef {
        name: "QuantizedMul",
        summary: "Multiplies quantised numbers of two ranges.",
        ..BINARY
    },
    OpDef { name: "QuantizedRelu", summary: "`Relu` of quantised numbers.", ..ACTIVATION },
    OpDef { name: "QuantizedRelu6", summary: "`Relu6` of quantised numbers.", ..ACTIVATION },
    OpDef {
        name: "QuantizedReshape",
        summary: "Gives a tensor of quantised numbers another shape.",
        inputs: &[
            arg("tensor", "T"),
            arg("shape", "Tshape").host(),
            arg_of("input_min", F32),
            arg_of("input_max", F32),
        ],
        outputs: &[arg("output", "T"), arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[any_ty("T"), ty_or("Tshape", INDEX, DType::I32)],
        infer: |context| {
            shape::reshape(context)?;
            context.set(1, context.shape(2).clone());
            context.set(2, context.shape(3).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| vec![call("Reshape", [c.x(0), c.x(1)]), c.x(2), c.x(3)]),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "QuantizedResizeBilinear",
        summary: "Resizes images of quantised numbers by bilinear interpolation.",
        inputs: &[
            arg("images", "T"),
            arg_of("size", DType::I32).host(),
            arg_of("min", F32),
            arg_of("max", F32),
        ],
        outputs: &[arg("resized_images", "T"), arg_of("out_min", F32), arg_of("out_max", F32)],
        attrs: &[
            ty("T", &[DType::QU8, DType::QI32, F32]),
            flag("align_corners", false),
            flag("half_pixel_centers", false),
        ],
        infer: |context| {
            image::check_centres(context)?;
            let [batch, height, width, channels] = context.dims::<4>(0)?;
            if height == Some(0) || width == Some(0) {
                return Err(context.wrong(0, "an image with elements", context.shape(0)));
            }
            scalars(context, 2..4)?;
            let size = match context.ints(1)? {
                None => [None, None],
                Some(size) => match size[..] {
                    [height, width] if height > 0 && width > 0 => {
                        [Some(counted(height)), Some(counted(width))]
                    }
                    _ => {
                        let expected = "a positive height and width";
                        return Err(context.wrong(1, expected, format!("{size:?}")));
                    }
                },
            };
            shape_and_range(context, PartialShape::ranked([batch, size[0], size[1], channels]))
        },
        ..ON_RANGE
    },
    OpDef {
        name: "RequantizationRange",
        summary: "Gives the range of the reals that occur.",
        outputs: &[arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[ty("Tinput", QUANTIZED)],
        infer: |context| {
            scalars(context, 1..3)?;
            infer::scalar(context)
        },
        ..ON_RANGE
    },
    OpDef {
        name: "RequantizationRangePerChannel",
        summary: "Gives the range of the reals that occur, of which channels have ranges of their own.",
        inputs: &[arg("input", "T"), arg_of("input_min", F32), arg_of("input_max", F32)],
        outputs: &[arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[ty_or("T", QUANTIZED, DType::QI32), float("clip_value_max")],
        infer: |context| {
            channel_ranges(context)?;
            infer::scalar(context)
        },
        lowering: Lowering::Composite(channel_range),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Requantize",
        summary: "Converts quantised numbers to another type and range.",
        inputs: &[
            arg("input", "Tinput"),
            arg_of("input_min", F32),
            arg_of("input_max", F32),
            arg_of("requested_output_min", F32),
            arg_of("requested_output_max", F32),
        ],
        ..ON_RANGE
    },
    OpDef {
        name: "RequantizePerChannel",
        summary: "Converts quantised numbers, of which channels have ranges, to another type and range.",
        inputs: &[
            arg("input", "T"),
            arg_of("input_min", F32),
            arg_of("input_max", F32),
            arg_of("requested_output_min", F32),
            arg_of("requested_output_max", F32),
        ],
        outputs: &[arg("output", "out_type"), arg_of("output_min", F32), arg_of("output_max", F32)],
        attrs: &[ty_or("T", QUANTIZED, DType::QI32), ty_or("out_type", QUANTIZED, DType::QU8)],
        infer: |context| {
            channel_ranges(context)?;
            scalars(context, 3..5)?;
            if !matches!(context.output_dtype(0), DType::QI8 | DType::QU8) {
                let found = context.output_dtype(0);
                return Err(context.wrong_attr("out_type", "qint8 or quint8", found));
            }
            shape_and_range(context, context.shape(0).clone())
        },
        lowering: Lowering::Composite(requantize_channels),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformDequantize",
        summary: "Gives the reals that integers with scales and zero points stand for.",
        inputs: &[arg("input", "Tin"), arg_of("scales", F32), arg_of("zero_points", DType::I32)],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tin", &[DType::QI8, DType::QU8, DType::QI32]),
            ty("Tout", &[F32]),
            int_or("quantization_axis", -1),
            int("quantization_min_val"),
            int("quantization_max_val"),
        ],
        infer: |context| {
            let slices = slices(context, "quantization_axis")?;
            one_per_slice(context, 1..3, slices)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantize",
        summary: "Gives the integers nearest to reals, by scales and zero points.",
        inputs: &[arg("input", "Tin"), arg_of("scales", F32), arg_of("zero_points", DType::I32)],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tin", &[F32]),
            ty("Tout", &[DType::QI8, DType::QU8, DType::QI32]),
            int_or("quantization_axis", -1),
            int("quantization_min_val"),
            int("quantization_max_val"),
        ],
        infer: |context| {
            let slices = slices(context, "quantization_axis")?;
            one_per_slice(context, 1..3, slices)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantizedAdd",
        summary: "Adds integers with scales and zero points of their own.",
        inputs: &[
            arg("lhs", "T"),
            arg("rhs", "T"),
            arg_of("lhs_scales", F32),
            arg_of("lhs_zero_points", DType::I32),
            arg_of("rhs_scales", F32),
            arg_of("rhs_zero_points", DType::I32),
            arg_of("output_scales", F32),
            arg_of("output_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            int_or("lhs_quantization_axis", -1),
            int("lhs_quantization_min_val"),
            int("lhs_quantization_max_val"),
            int_or("rhs_quantization_axis", -1),
            int("rhs_quantization_min_val"),
            int("rhs_quantization_max_val"),
            int_or("output_quantization_axis", -1),
            int("output_quantization_min_val"),
            int("output_quantization_max_val"),
            ty("T", &[DType::QI32]),
        ],
        infer: |context| {
            let shape = context.shape(0).broadcast(context.shape(1))?;
            let of = [context.shape(0).clone(), context.shape(1).clone(), shape.clone()];
            let axes =
                ["lhs_quantization_axis", "rhs_quantization_axis", "output_quantization_axis"];
            for (index, (of, axis)) in of.iter().zip(axes).enumerate() {
                let slices = slices_of(context, of, axis)?;
                one_per_slice(context, 2 + 2 * index..4 + 2 * index, slices)?;
            }
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantizedClipByValue",
        summary: "Limits integers with scales and zero points.",
        inputs: &[
            arg("operand", "T"),
            arg("min", "T"),
            arg("max", "T"),
            arg_of("scales", F32),
            arg_of("zero_points", DType::I32),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", &[DType::QI32]),
            int_or("quantization_axis", -1),
            int("quantization_min_val"),
            int("quantization_max_val"),
        ],
        infer: |context| {
            let slices = slices(context, "quantization_axis")?;
            one_per_slice(context, 1..5, slices)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantizedDot",
        summary: "Multiplies matrices of integers with scales and zero points.",
        inputs: &[
            arg("lhs", "Tin"),
            arg("rhs", "Tin"),
            arg_of("lhs_scales", F32),
            arg_of("lhs_zero_points", DType::I32),
            arg_of("rhs_scales", F32),
            arg_of("rhs_zero_points", DType::I32),
            arg_of("output_scales", F32),
            arg_of("output_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tin", &[DType::QI8]),
            ty("Tout", &[DType::QI32]),
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
        infer: |context| {
            let axis = |name: &'static str| context.attrs.int(name);
            if axis("lhs_quantization_axis")? != -1 {
                return Err(context.wrong_attr("lhs_quantization_axis", "-1", "an axis"));
            }
            one_per_slice(context, 2..4, None)?;
            let columns = columns(context, "rhs_quantization_axis")?;
            one_per_slice(context, 4..6, columns.clone())?;
            let to = self::columns(context, "output_quantization_axis")?;
            if to.is_some() && columns.is_none() {
                let (attr, expected) = ("output_quantization_axis", "-1, as that of `rhs`");
                return Err(context.wrong_attr(attr, expected, "an axis"));
            }
            one_per_slice(context, 6..8, to)?;
            uniform_matmul(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformQuantizedDotHybrid",
        summary: "Multiplies a matrix of reals by one of integers with scales and zero points.",
        inputs: &[
            arg("lhs", "Tlhs"),
            arg("rhs", "Trhs"),
            arg_of("rhs_scales", F32),
            arg_of("rhs_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tlhs", &[F32]),
            ty("Trhs", &[DType::QI8]),
            ty("Tout", &[F32]),
            int_or("rhs_quantization_axis", -1),
            int("rhs_quantization_min_val"),
            int("rhs_quantization_max_val"),
        ],
        infer: |context| {
            let columns = columns(context, "rhs_quantization_axis")?;
            one_per_slice(context, 2..4, columns)?;
            uniform_matmul(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
    OpDef {
        name: "UniformRequantize",
        summary: "Converts integers to other scales and zero points.",
        inputs: &[
            arg("input", "Tin"),
            arg_of("input_scales", F32),
            arg_of("input_zero_points", DType::I32),
            arg_of("output_scales", F32),
            arg_of("output_zero_points", DType::I32),
        ],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Tin", &[DType::QI8, DType::QI32]),
            ty("Tout", &[DType::QI8, DType::QI32]),
            int_or("input_quantization_axis", -1),
            int("input_quantization_min_val"),
            int("input_quantization_max_val"),
            int_or("output_quantization_axis", -1),
            int("output_quantization_min_val"),
            int("output_quantization_max_val"),
        ],
        infer: |context| {
            let from = slices(context, "input_quantization_axis")?;
            one_per_slice(context, 1..3, from)?;
            let to = slices(context, "output_quantization_axis")?;
            one_per_slice(context, 3..5, to)?;
            infer::unchanged(context)
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..OpDef::PURE
    },
];

/// Checks that 32-bit numbers have a range for each channel, the last dimension, or one for all.
fn channel_ranges(context: &OpContext<'_>) -> Result<()> {
    if context.dtype(0) != DType::QI32 {
        return Err(context.wrong_attr("T", "qint32", context.dtype(0)));
    }
    context.check_rank_at_least(0, 1)?;
    let channels = context.shape(0).dim(-1);
    for index in [1, 2] {
        let [own] = context.dims::<1>(index)?;
        if own != Some(1) {
            context.same("the channels and ranges", channels, own)?;
        }
    }
    Ok(())
}

/// The larger of the magnitudes of two ends.
fn larger<'e>(low: Value<'e>, high: Value<'e>) -> Value<'e> {
    low.abs().maximum(high.abs())
}

/// 32-bit numbers as integers.
fn integers<'e>(c: &Composite<'e>) -> Value<'e> {
    call_with("Bitcast", Attrs::new().with("type", DType::I32), [c.x(0)])
}

/// The numbers that 32 bits have on one side of zero.
const HALF_RANGE: f64 = (1u64 << 31) as f64;

/// Source: `mkl_requantization_range_per_channel_op.cc` of TensorFlow.
fn channel_range<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, scale) = (integers(c), larger(c.x(1), c.x(2)));
    let rank = x.shape().rank() as i64;
    let images: Vec<i64> = (0..rank - 1).collect();
    let least = -(-x.cast(DType::F64)).reduce_max(&images, false);
    let most = x.cast(DType::F64).reduce_max(&images, false);
    let reals = scale * larger(least, most).cast(F32) / HALF_RANGE;
    let limit = f64::from(c.float("clip_value_max"));
    let largest = reals.reduce_max(&[0], false).maximum(f64::from(f32::MIN_POSITIVE));
    let largest = largest.minimum(limit);
    let is_negative = (-least).reduce_max(&[0], false).greater(0.0);
    vec![is_negative.select(-largest, largest.zeros_like()), largest]
}

/// Source: `mkl_requantize_per_channel_op.cc` of TensorFlow.
fn requantize_channels<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let out = c.dtype_attr("out_type");
    let (plain, factor, [low, high]) = match out {
        DType::QI8 => (DType::I8, 127.0, [-128.0, 127.0]),
        _ => (DType::U8, 255.0, [0.0, 255.0]),
    };
    let scale = larger(c.x(1), c.x(2)) / larger(c.x(3), c.x(4)) / HALF_RANGE * factor;
    let scaled = call("Round", [integers(c).cast(F32) * scale]);
    let bounded = scaled.maximum(low).minimum(high).cast(plain);
    let attrs = Attrs::new().with("type", out);
    vec![call_with("Bitcast", attrs, [bounded]), c.x(3), c.x(4)]
}

/// Checks that inputs are scalars.
fn scalars(context: &OpContext<'_>, mut inputs: std::ops::Range<usize>) -> Result<()> {
    inputs.try_for_each(|index| context.check_rank(index, 0))
}

/// Output 0 has this shape, the others are scalars.
fn shape_and_range(context: &mut OpContext<'_>, shape: PartialShape) -> Result<()> {
    infer::scalar(context)?;
    context.set(0, shape);
    Ok(())
}

/// The shape of one element per index of the axis in an attribute; `None` where that is -1.
fn slices(context: &OpContext<'_>, axis: &'static str) -> Result<Option<PartialShape>> {
    slices_of(context, context.shape(0), axis)
}

/// As [`slices`], of a tensor of this shape.
fn slices_of(
    context: &OpContext<'_>,
    shape: &PartialShape,
    axis: &'static str,
) -> Result<Option<PartialShape>> {
    match context.attrs.int(axis)? {
        -1 => Ok(None),
        index @ 0.. => {
            if shape.rank().is_some_and(|rank| counted(index) >= rank) {
                return Err(context.wrong_attr(axis, format!("an axis of {shape}"), index));
            }
            Ok(Some(PartialShape::vector(shape.dim(index as isize))))
        }
        index => Err(context.wrong_attr(axis, "-1 or an axis", index)),
    }
}

/// The shape of a vector with an element for each column of input 1, if `axis` asks for one.
fn columns(context: &OpContext<'_>, axis: &'static str) -> Result<Option<PartialShape>> {
    match context.attrs.int(axis)? {
        -1 => Ok(None),
        1 => Ok(Some(PartialShape::vector(context.shape(1).dim(1)))),
        other => Err(context.wrong_attr(axis, "-1 or 1", other)),
    }
}

/// The result of a product of two matrices has the rows of the first and the columns of the second.
fn uniform_matmul(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 2)?;
    context.check_rank(1, 2)?;
    let (inner, rows) = (context.shape(0).dim(1), context.shape(1).dim(0));
    if inner.zip(rows).is_some_and(|(inner, rows)| inner != rows) {
        let expected = format!("of {} rows", inner.unwrap_or(0));
        return Err(context.wrong(1, expected, context.shape(1)));
    }
    context.set(0, PartialShape::ranked([context.shape(0).dim(0), context.shape(1).dim(1)]));
    Ok(())
}

/// Checks that inputs are scalars, or vectors of one element per slice.
fn one_per_slice(
    context: &OpContext<'_>,
    mut inputs: std::ops::Range<usize>,
    slices: Option<PartialShape>,
) -> Result<()> {
    let expected = slices.unwrap_or_else(PartialShape::scalar);
    inputs.try_for_each(|index| match context.shape(index).is_compatible_with(&expected) {
        true => Ok(()),
        false => Err(context.wrong(index, format!("of shape {expected}"), context.shape(index))),
    })
}

/// Checks that inputs have an element for each of the last dimension of input `of`.
fn per_channel(
    context: &OpContext<'_>,
    of: usize,
    inputs: std::ops::Range<usize>,
) -> Result<PartialShape> {
    context.check_rank_at_least(of, 1)?;
    let channels = PartialShape::vector(context.shape(of).dim(-1));
    one_per_slice(context, inputs, Some(channels.clone()))?;
    Ok(channels)
}
