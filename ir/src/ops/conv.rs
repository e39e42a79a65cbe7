//! Convolutions and their gradients.

use super::{conv_general as general, sets::*};
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call_with},
    error::{Error, Result},
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape, Shape},
    window::{ImageLayout, WindowSteps, convolution_steps},
    work,
};
use smallvec::SmallVec;

const WITH_I32: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32];

const CONV_2D: &[AttrDef] = &[
    ty("T", WITH_I32),
    ints("strides"),
    flag("use_cudnn_on_gpu", true),
    one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
    ints_or("explicit_paddings", &[]),
    one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
    ints_or("dilations", &[1, 1, 1, 1]),
];

const CONV_2D_FLOATS: &[AttrDef] = &[
    ty("T", FLOATS),
    ints("strides"),
    flag("use_cudnn_on_gpu", true),
    one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
    ints_or("explicit_paddings", &[]),
    one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
    ints_or("dilations", &[1, 1, 1, 1]),
];

const DEPTHWISE: &[AttrDef] = &[
    ty("T", FLOATS),
    ints("strides"),
    one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
    ints_or("explicit_paddings", &[]),
    one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC")),
    ints_or("dilations", &[1, 1, 1, 1]),
];

const CONV_3D: &[AttrDef] = &[
    ty("T", FLOATS),
    ints("strides").at_least(5),
    one_of("padding", &["SAME", "VALID"]),
    one_of("data_format", &["NDHWC", "NCDHW"]).or(AttrDefault::String("NDHWC")),
    ints_or("dilations", &[1, 1, 1, 1, 1]),
];

const MIRROR: AttrDef = one_of("mode", &["REFLECT", "SYMMETRIC"]);

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Conv",
        summary: "Convolves images or volumes behind any number of batch dimensions.",
        inputs: &[arg("input", "T"), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", WITH_I32),
            ints("strides"),
            one_of("padding", &["SAME", "VALID", "EXPLICIT"]),
            ints_or("explicit_paddings", &[]),
            one_of("data_format", &["CHANNELS_FIRST", "CHANNELS_LAST"])
                .or(AttrDefault::String("CHANNELS_LAST")),
            ints_or("dilations", &[]),
            int_or("batch_dims", 1),
            int_or("groups", 1),
        ],
        infer: general::convolution,
        lowering: Lowering::Composite(general::formula),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv2D",
        summary: "Convolves images with filters `[height, width, channels in, channels out]`.",
        inputs: &[arg("input", "T"), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: CONV_2D,
        infer: convolution::<2>,
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.output(0), c.shape(1), 1)),
        gradient: Gradient::Rule(gradient::conv::conv2d),
        sharding: Some(ShardingRule::Conv),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv2DBackpropFilter",
        summary: "Gradient of `Conv2D` by its filter.",
        inputs: &[
            arg("input", "T"),
            arg_of("filter_sizes", DType::I32).host(),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: CONV_2D_FLOATS,
        infer: |context| {
            refuse_dilation(context)?;
            backprop_filter::<2>(context)
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.output(0), 1)),
        gradient: Gradient::Rule(gradient::conv::conv2d_filter),
        sharding: Some(ShardingRule::FilterGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv2DBackpropFilterV2",
        summary: "Gradient of `Conv2D` by its filter, whose shape is that of input 1.",
        inputs: &[arg("input", "T"), arg("filter", "T"), arg("out_backprop", "T")],
        outputs: &[arg("output", "T")],
        attrs: CONV_2D_FLOATS,
        infer: |context| {
            let filter = context.shape(1).clone();
            check_gradient(context, Kind::Dense(2), context.shape(0), &filter)?;
            context.set(0, filter);
            Ok(())
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.output(0), 1)),
        gradient: Gradient::Rule(gradient::conv::conv2d_filter),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv2DBackpropInput",
        summary: "Gradient of `Conv2D` by its input: a transposed convolution.",
        inputs: &[
            arg_of("input_sizes", DType::I32).host(),
            arg("filter", "T"),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: CONV_2D,
        infer: |context| {
            refuse_dilation(context)?;
            backprop_input::<2>(context)
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.shape(1), 1)),
        gradient: Gradient::Rule(gradient::conv::conv2d_input),
        sharding: Some(ShardingRule::InputGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv2DBackpropInputV2",
        summary: "Gradient of `Conv2D` by its input, whose shape is that of input 0.",
        inputs: &[arg("input", "T"), arg("filter", "T"), arg("out_backprop", "T")],
        outputs: &[arg("output", "T")],
        attrs: CONV_2D,
        infer: |context| {
            let input = context.shape(0).clone();
            check_gradient(context, Kind::Dense(2), &input, context.shape(1))?;
            context.set(0, input);
            Ok(())
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.shape(1), 1)),
        gradient: Gradient::Rule(gradient::conv::conv2d_input),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv3D",
        summary: "Convolves volumes with filters `[depth, height, width, in, out]`.",
        inputs: &[arg("input", "T"), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: CONV_3D,
        infer: convolution::<3>,
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.output(0), c.shape(1), 1)),
        gradient: Gradient::Rule(gradient::conv::conv3d),
        sharding: Some(ShardingRule::Conv),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv3DBackpropFilterV2",
        summary: "Gradient of `Conv3D` by its filter.",
        inputs: &[
            arg("input", "T"),
            arg_of("filter_sizes", DType::I32).host(),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: CONV_3D,
        infer: backprop_filter::<3>,
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.output(0), 1)),
        gradient: Gradient::Rule(gradient::conv::conv3d_filter),
        ..OpDef::PURE
    },
    OpDef {
        name: "Conv3DBackpropInputV2",
        summary: "Gradient of `Conv3D` by its input.",
        inputs: &[
            arg("input_sizes", "Tshape").host(),
            arg("filter", "T"),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", FLOATS),
            ints("strides").at_least(5),
            one_of("padding", &["SAME", "VALID"]),
            one_of("data_format", &["NDHWC", "NCDHW"]).or(AttrDefault::String("NDHWC")),
            ints_or("dilations", &[1, 1, 1, 1, 1]),
            ty_or("Tshape", INDEX, DType::I32),
        ],
        infer: backprop_input::<3>,
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.shape(1), 1)),
        gradient: Gradient::Rule(gradient::conv::conv3d_input),
        ..OpDef::PURE
    },
    OpDef {
        name: "DepthwiseConv2dNative",
        summary: "Convolves each channel with filters of its own `[height, width, channel, n]`.",
        inputs: &[arg("input", "T"), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: DEPTHWISE,
        infer: depthwise,
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.output(0), c.shape(1), 2)),
        gradient: Gradient::Rule(gradient::conv::depthwise),
        sharding: Some(ShardingRule::Conv),
        ..OpDef::PURE
    },
    OpDef {
        name: "DepthwiseConv2dNativeBackpropFilter",
        summary: "Gradient of `DepthwiseConv2dNative` by its filter.",
        inputs: &[
            arg("input", "T"),
            arg_of("filter_sizes", DType::I32).host(),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: DEPTHWISE,
        infer: |context| {
            let filter = sizes(context, 1, 4)?;
            check_gradient(context, Kind::Depthwise, context.shape(0), &filter)?;
            context.set(0, filter);
            Ok(())
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.output(0), 2)),
        gradient: Gradient::Rule(gradient::conv::depthwise_filter),
        sharding: Some(ShardingRule::FilterGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "DepthwiseConv2dNativeBackpropInput",
        summary: "Gradient of `DepthwiseConv2dNative` by its input.",
        inputs: &[
            arg_of("input_sizes", DType::I32).host(),
            arg("filter", "T"),
            arg("out_backprop", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: DEPTHWISE,
        infer: |context| {
            let input = sizes(context, 0, 4)?;
            check_gradient(context, Kind::Depthwise, &input, context.shape(1))?;
            context.set(0, input);
            Ok(())
        },
        lowering: Lowering::Kernel,
        multiply_adds: Some(|c| work::windows(c.shape(2), c.shape(1), 2)),
        gradient: Gradient::Rule(gradient::conv::depthwise_input),
        sharding: Some(ShardingRule::InputGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "FusedPadConv2D",
        summary: "Convolves images with their mirror images around them.",
        inputs: &[arg("input", "T"), arg_of("paddings", DType::I32).host(), arg("filter", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", FLOATS), MIRROR, ints("strides"), one_of("padding", &["SAME", "VALID"])],
        infer: |context| fused(context, 2),
        lowering: Lowering::Composite(|c| vec![mirrored(c, c.x(0), c.x(1), c.x(2))]),
        ..OpDef::PURE
    },
    OpDef {
        name: "FusedResizeAndPadConv2D",
        summary: "Convolves resized images with their mirror images around them.",
        inputs: &[
            arg("input", "T"),
            arg_of("size", DType::I32).host(),
            arg_of("paddings", DType::I32).host(),
            arg("filter", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("T", IEEE_FLOATS),
            flag("resize_align_corners", false),
            MIRROR,
            ints("strides"),
            one_of("padding", &["SAME", "VALID"]),
        ],
        infer: |context| fused(context, 3),
        lowering: Lowering::Composite(|c| {
            let attrs = Attrs::new().with("align_corners", c.flag("resize_align_corners"));
            let resized = call_with("ResizeBilinear", attrs, [c.x(0), c.x(1)]).cast(c.dtype(0));
            vec![mirrored(c, resized, c.x(2), c.x(3))]
        }),
        ..OpDef::PURE
    },
];

/// Channels that a filter sums over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All channels, or all of a group, over so many spatial dimensions.
    Dense(usize),
    /// A single channel.
    Depthwise,
}

/// The shape of the output of a convolution.
fn output_shape(
    context: &OpContext<'_>,
    kind: Kind,
    input: &PartialShape,
    filter: &PartialShape,
) -> Result<PartialShape> {
    shape_by(context, context.attrs, kind, [input, filter])
}

/// The shape of the output of a convolution over two or three dimensions with these attributes.
pub(super) fn shape_of_dense(
    context: &OpContext<'_>,
    attrs: &Attrs,
    spatial: usize,
    input: &PartialShape,
) -> Result<PartialShape> {
    shape_by(context, attrs, Kind::Dense(spatial), [input, context.shape(1)])
}

fn shape_by(
    context: &OpContext<'_>,
    attrs: &Attrs,
    kind: Kind,
    [input, filter]: [&PartialShape; 2],
) -> Result<PartialShape> {
    let spatial = match kind {
        Kind::Dense(spatial) => spatial,
        Kind::Depthwise => 2,
    };
    let (op, layout) = (context.op.name, ImageLayout::read(attrs, spatial)?);
    let steps = convolution_steps(op, attrs, layout)?;
    for (name, shape) in [("input", input), ("filter", filter)] {
        if shape.rank().is_some_and(|rank| rank != layout.rank()) {
            return Err(Error::argument(op, name, format!("of rank {}", layout.rank()), shape));
        }
    }
    let channels = input.dim(layout.channels() as isize);
    let (filter_in, filter_out) = (filter.dim(spatial as isize), filter.dim(-1));
    let filters = match kind {
        Kind::Dense(_) => {
            check_groups(op, channels, filter_in, filter_out)?;
            filter_out
        }
        Kind::Depthwise => {
            let multiplied = context.same("channels of input and filter", channels, filter_in)?;
            if steps[0].stride != steps[1].stride {
                let found = format!("{:?}", context.attrs.ints("strides")?);
                return Err(context.wrong_attr("strides", "equal along rows and columns", found));
            }
            multiplied.zip(filter_out).map(|(n, multiplier)| n.saturating_mul(multiplier))
        }
    };
    let sizes: Result<SmallVec<[Dim; 3]>> = windows(layout, &steps, input, filter).collect();
    Ok(layout.shape(input.dim(0), &sizes?, filters))
}

fn windows<'a>(
    layout: ImageLayout,
    steps: &'a WindowSteps,
    input: &'a PartialShape,
    filter: &'a PartialShape,
) -> impl Iterator<Item = Result<Dim>> + 'a {
    steps.iter().enumerate().map(move |(index, step)| {
        step.output(input.dim(layout.at(index) as isize), filter.dim(index as isize))
    })
}

/// The channels of the input form groups of as many as the filter has; each group has its own
/// share of the filters.
fn check_groups(op: &'static str, channels: Dim, filter_in: Dim, filter_out: Dim) -> Result<()> {
    let Some(own) = filter_in else { return Ok(()) };
    if own == 0 {
        return Err(Error::argument(op, "filter", "of at least one channel", own));
    }
    let Some(channels) = channels else { return Ok(()) };
    if !channels.is_multiple_of(own) {
        let expected = format!("with channels in multiples of {own}, as the filter has");
        return Err(Error::argument(op, "input", expected, channels));
    }
    let groups = channels / own;
    match filter_out {
        Some(filters) if groups > 0 && !filters.is_multiple_of(groups) => {
            let expected = format!("with filters in multiples of {groups} groups");
            Err(Error::argument(op, "filter", expected, filters))
        }
        _ => Ok(()),
    }
}

/// The shape of a convolution of each channel by itself.
pub(super) fn depthwise(context: &mut OpContext<'_>) -> Result<()> {
    let (input, filter) = (context.shape(0), context.shape(1));
    let shape = output_shape(context, Kind::Depthwise, input, filter)?;
    context.set(0, shape);
    Ok(())
}

pub(super) fn convolution<const SPATIAL: usize>(context: &mut OpContext<'_>) -> Result<()> {
    let (input, filter) = (context.shape(0), context.shape(1));
    let shape = output_shape(context, Kind::Dense(SPATIAL), input, filter)?;
    context.set(0, shape);
    Ok(())
}

/// The shape that the sizes in input `index` say.
fn sizes(context: &OpContext<'_>, index: usize, rank: usize) -> Result<PartialShape> {
    context.check_rank(index, 1)?;
    let Some(sizes) = context.ints(index)? else { return Ok(PartialShape::of_rank(rank)) };
    if sizes.len() != rank {
        return Err(context.wrong(index, format!("{rank} sizes"), format!("{sizes:?}")));
    }
    Ok((&Shape::from_i64(&sizes)?).into())
}

/// Checks that the last input has the shape of a convolution's output.
fn check_gradient(
    context: &OpContext<'_>,
    kind: Kind,
    input: &PartialShape,
    filter: &PartialShape,
) -> Result<()> {
    let last = context.n_inputs() - 1;
    let (expected, found) = (output_shape(context, kind, input, filter)?, context.shape(last));
    if expected.is_compatible_with(found) {
        return Ok(());
    }
    Err(context.wrong(last, format!("of shape {expected}"), found))
}

fn backprop_filter<const SPATIAL: usize>(context: &mut OpContext<'_>) -> Result<()> {
    let filter = sizes(context, 1, SPATIAL + 2)?;
    check_gradient(context, Kind::Dense(SPATIAL), context.shape(0), &filter)?;
    context.set(0, filter);
    Ok(())
}

/// Sizes of two dimensions only are the height and the width.
fn backprop_input<const SPATIAL: usize>(context: &mut OpContext<'_>) -> Result<()> {
    let input = match context.ints(0)? {
        Some(sizes) if sizes.len() == SPATIAL && SPATIAL == 2 => {
            let layout = ImageLayout::read(context.attrs, SPATIAL)?;
            let spatial = Shape::from_i64(&sizes)?;
            let spatial: SmallVec<[Dim; 3]> = spatial.iter().copied().map(Some).collect();
            layout.shape(context.shape(2).dim(0), &spatial, context.shape(1).dim(-2))
        }
        _ => sizes(context, 0, SPATIAL + 2)?,
    };
    check_gradient(context, Kind::Dense(SPATIAL), &input, context.shape(1))?;
    context.set(0, input);
    Ok(())
}

/// TensorFlow's own kernels for CPUs have no gradients of dilated convolutions under these names, unlike
/// those of oneDNN; the `V2` ops have them, and nodes of files become those.
fn refuse_dilation(context: &OpContext<'_>) -> Result<()> {
    let dilations = context.attrs.ints("dilations")?;
    if dilations.iter().any(|&dilation| dilation > 1) {
        return Err(context.wrong_attr("dilations", "1", format!("{dilations:?}")));
    }
    Ok(())
}

/// Checks images and filters, and sets what is known of the result.
fn fused(context: &mut OpContext<'_>, filter: usize) -> Result<()> {
    let ([batch, _, _, own], [_, _, inputs, outputs]) =
        (context.dims::<4>(0)?, context.dims::<4>(filter)?);
    context.same("the channels of input and filter", own, inputs)?;
    context.check_rank(filter - 1, 2)?;
    if context.attrs.ints("strides")?.len() != 4 {
        let strides = format!("{:?}", context.attrs.ints("strides")?);
        return Err(context.wrong_attr("strides", "4 numbers", strides));
    }
    context.set(0, PartialShape::ranked([batch, None, None, outputs]));
    Ok(())
}

fn mirrored<'e>(
    c: &Composite<'e>,
    x: Value<'e>,
    paddings: Value<'e>,
    filter: Value<'e>,
) -> Value<'e> {
    let padded = call_with("MirrorPad", c.attrs.clone(), [x, paddings]);
    call_with("Conv2D", c.attrs.clone(), [padded, filter])
}
