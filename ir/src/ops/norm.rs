//! Normalisation: batches, and neighbouring channels.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    emit::{Composite, Value, call},
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
    window::ImageLayout,
};

const FORMATS_2D: AttrDef =
    one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC"));

const FORMATS: AttrDef =
    one_of("data_format", &["NHWC", "NCHW", "NDHWC", "NCDHW"]).or(AttrDefault::String("NHWC"));

/// Batch normalisation (Ioffe and Szegedy 2015) with statistics of type `U`.
const NORM: OpDef = OpDef {
    inputs: &[
        arg("x", "T"),
        arg("scale", "U"),
        arg("offset", "U"),
        arg("mean", "U"),
        arg("variance", "U"),
    ],
    outputs: &[
        arg("y", "T"),
        arg("batch_mean", "U"),
        arg("batch_variance", "U"),
        arg("reserve_space_1", "U"),
        arg("reserve_space_2", "U"),
    ],
    attrs: &[
        ty("T", UP_TO_F32),
        ty("U", &[DType::F32]),
        float_or("epsilon", 0.0001),
        float_or("exponential_avg_factor", 1.0),
        FORMATS_2D,
        flag("is_training", true),
    ],
    infer: batch_norm,
    lowering: Lowering::Composite(normalized),
    ..OpDef::PURE
};

const NORM_GRAD: OpDef = OpDef {
    inputs: &[
        arg("y_backprop", "T"),
        arg("x", "T"),
        arg_of("scale", DType::F32),
        arg("reserve_space_1", "U"),
        arg("reserve_space_2", "U"),
    ],
    outputs: &[
        arg("x_backprop", "T"),
        arg("scale_backprop", "U"),
        arg("offset_backprop", "U"),
        arg("reserve_space_3", "U"),
        arg("reserve_space_4", "U"),
    ],
    attrs: &[
        ty("T", UP_TO_F32),
        ty("U", &[DType::F32]),
        float_or("epsilon", 0.0001),
        FORMATS_2D,
        flag("is_training", true),
    ],
    infer: batch_norm_grad,
    lowering: Lowering::Composite(normalized_grad),
    ..OpDef::PURE
};

const NEIGHBOURS: &[AttrDef] = &[
    int_or("depth_radius", 5),
    float_or("bias", 1.0),
    float_or("alpha", 1.0),
    float_or("beta", 0.5),
    ty_or("T", UP_TO_F32, DType::F32),
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "FusedBatchNorm",
        summary: "Normalises each channel over the batch, or with given statistics.",
        inputs: &[
            arg("x", "T"),
            arg("scale", "T"),
            arg("offset", "T"),
            arg("mean", "T"),
            arg("variance", "T"),
        ],
        outputs: &[
            arg("y", "T"),
            arg("batch_mean", "T"),
            arg("batch_variance", "T"),
            arg("reserve_space_1", "T"),
            arg("reserve_space_2", "T"),
        ],
        attrs: &[
            ty("T", &[DType::F32]),
            float_or("epsilon", 0.0001),
            float_or("exponential_avg_factor", 1.0),
            FORMATS_2D,
            flag("is_training", true),
        ],
        gradient: Gradient::Rule(gradient::nn::batch_norm_v1),
        ..NORM
    },
    OpDef {
        name: "FusedBatchNormGrad",
        summary: "Gradient of `FusedBatchNorm`.",
        inputs: &[
            arg("y_backprop", "T"),
            arg("x", "T"),
            arg("scale", "T"),
            arg("reserve_space_1", "T"),
            arg("reserve_space_2", "T"),
        ],
        outputs: &[
            arg("x_backprop", "T"),
            arg("scale_backprop", "T"),
            arg("offset_backprop", "T"),
            arg("reserve_space_3", "T"),
            arg("reserve_space_4", "T"),
        ],
        attrs: &[
            ty("T", &[DType::F32]),
            float_or("epsilon", 0.0001),
            FORMATS_2D,
            flag("is_training", true),
        ],
        gradient: Gradient::Through(gradient::nn::batch_norm_grad),
        ..NORM_GRAD
    },
    OpDef {
        name: "FusedBatchNormGradV2",
        summary: "Gradient of `FusedBatchNormV2`.",
        gradient: Gradient::Through(gradient::nn::batch_norm_grad),
        ..NORM_GRAD
    },
    OpDef {
        name: "FusedBatchNormGradV3",
        summary: "Gradient of `FusedBatchNormV3`.",
        inputs: &[
            arg("y_backprop", "T"),
            arg("x", "T"),
            arg_of("scale", DType::F32),
            arg("reserve_space_1", "U"),
            arg("reserve_space_2", "U"),
            arg("reserve_space_3", "U"),
        ],
        outputs: &[
            arg("x_backprop", "T"),
            arg("scale_backprop", "U"),
            arg("offset_backprop", "U"),
            arg("reserve_space_4", "U"),
            arg("reserve_space_5", "U"),
        ],
        attrs: &[
            ty("T", UP_TO_F32),
            ty("U", &[DType::F32]),
            float_or("epsilon", 0.0001),
            FORMATS,
            flag("is_training", true),
        ],
        gradient: Gradient::Through(gradient::nn::batch_norm_grad),
        ..NORM_GRAD
    },
    OpDef {
        name: "FusedBatchNormV2",
        summary: "Normalises each channel over the batch; statistics are kept in `U`.",
        gradient: Gradient::Rule(gradient::nn::batch_norm_v2),
        ..NORM
    },
    OpDef {
        name: "FusedBatchNormV3",
        summary: "Normalises each channel over a batch of images or volumes.",
        outputs: &[
            arg("y", "T"),
            arg("batch_mean", "U"),
            arg("batch_variance", "U"),
            arg("reserve_space_1", "U"),
            arg("reserve_space_2", "U"),
            arg("reserve_space_3", "U"),
        ],
        attrs: &[
            ty("T", UP_TO_F32),
            ty("U", &[DType::BF16, DType::F32]),
            float_or("epsilon", 0.0001),
            float_or("exponential_avg_factor", 1.0),
            FORMATS,
            flag("is_training", true),
        ],
        gradient: Gradient::Rule(gradient::nn::batch_norm_v3),
        ..NORM
    },
    OpDef {
        name: "LRN",
        summary: "Divides by a power of the squares of neighbouring channels.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: NEIGHBOURS,
        infer: |context| {
            context.check_rank(0, 4)?;
            infer::unchanged(context)
        },
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::lrn),
        ..OpDef::PURE
    },
    OpDef {
        name: "LRNGrad",
        summary: "Gradient of `LRN`.",
        inputs: &[arg("input_grads", "T"), arg("input_image", "T"), arg("output_image", "T")],
        outputs: &[arg("output", "T")],
        attrs: NEIGHBOURS,
        infer: |context| {
            context.check_rank(0, 4)?;
            infer::all_same(context)
        },
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
];

/// The layout of a batch: the format's name has a letter for each dimension.
fn layout(attrs: &crate::attr::Attrs) -> Result<ImageLayout> {
    let rank = attrs.string("data_format")?.len();
    ImageLayout::read(attrs, rank - 2)
}

/// Checks that the vectors in the inputs from `first` on have an element per channel; those that
/// are not read may be empty.
fn check_channels(
    context: &OpContext<'_>,
    inputs: std::ops::Range<usize>,
    mut channels: Dim,
    may_be_empty: bool,
) -> Result<Dim> {
    for index in inputs {
        context.check_rank(index, 1)?;
        let size = context.shape(index).dim(0);
        if !(may_be_empty && size == Some(0)) {
            channels = context.same("channels", channels, size)?;
        }
    }
    Ok(channels)
}

pub(super) fn batch_norm(context: &mut OpContext<'_>) -> Result<()> {
    let layout = layout(context.attrs)?;
    context.check_rank(0, layout.rank())?;
    let channels = context.shape(0).dim(layout.channels() as isize);
    let channels = check_channels(context, 1..3, channels, false)?;
    let own =
        context.attrs.bool("is_training")? && context.attrs.float("exponential_avg_factor")? == 1.0;
    let channels = check_channels(context, 3..5, channels, own)?;
    context.set_all(&PartialShape::vector(channels));
    context.set(0, context.shape(0).clone());
    if context.n_outputs() == 6 {
        context.set(5, PartialShape::scalar());
    }
    Ok(())
}

fn batch_norm_grad(context: &mut OpContext<'_>) -> Result<()> {
    let layout = layout(context.attrs)?;
    context.check_rank(0, layout.rank())?;
    let shape = context.merged(0, 1)?;
    let channels = shape.dim(layout.channels() as isize);
    let channels = check_channels(context, 2..5, channels, false)?;
    context.set_all(&PartialShape::vector(channels));
    context.set(0, shape);
    context.set(3, PartialShape::vector(Some(0)));
    context.set(4, PartialShape::vector(Some(0)));
    Ok(())
}

/// Layout of vectors of an element per channel along a batch.
struct Channels {
    axes: Vec<i64>,
    vector: Vec<i64>,
    /// Elements per channel.
    count: f64,
}

impl Channels {
    fn new(c: &Composite<'_>, x: Value<'_>) -> Channels {
        let shape = x.shape();
        let first = c.string("data_format").starts_with("NC");
        let channels = if first { 1 } else { shape.rank() - 1 };
        let axes = (0..shape.rank()).filter(|&axis| axis != channels).map(|axis| axis as i64);
        let mut vector = vec![1; shape.rank()];
        vector[channels] = shape[channels] as i64;
        let others = shape.iter().enumerate().filter(|(axis, _)| *axis != channels);
        let count = others.map(|(_, &size)| size).product::<usize>() as f64;
        Channels { axes: axes.collect(), vector, count }
    }

    fn spread<'e>(&self, vector: Value<'e>) -> Value<'e> {
        if self.vector[..self.vector.len() - 1].iter().all(|&size| size == 1) {
            return vector; // Channels come last, where vectors broadcast as they are.
        }
        vector.reshape(&self.vector)
    }
}

fn normalized<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (own, kept) = (c.dtype(0), c.dtype(1));
    let x = c.x(0).cast(DType::F32);
    let channels = Channels::new(c, c.x(0));
    let factor = f64::from(c.float("exponential_avg_factor"));
    let (mean, variance, new_mean, new_variance) = if c.flag("is_training") {
        let mean = x.mean(&channels.axes, false);
        // Not the distance that `y` is made of: the sum evaluates its own on the fly.
        let squares = call("SquaredDifference", [x, channels.spread(mean)]);
        let variance = squares.mean(&channels.axes, false);
        let unbiased = variance * (channels.count / (channels.count - 1.0).max(1.0));
        let moved = |old: Value<'e>, new: Value<'e>| match factor {
            1.0 => new,
            factor => old.cast(DType::F32) * (1.0 - factor) + new * factor,
        };
        (mean, variance, moved(c.x(3), mean), moved(c.x(4), unbiased))
    } else {
        let (mean, variance) = (c.x(3).cast(DType::F32), c.x(4).cast(DType::F32));
        (mean, variance, mean, variance)
    };
    let (scale, offset) = (c.x(1).cast(DType::F32), c.x(2).cast(DType::F32));
    let scale = scale * (variance + f64::from(c.float("epsilon"))).rsqrt();
    let y = (x - channels.spread(mean)) * channels.spread(scale) + channels.spread(offset);
    let mut outputs = vec![y.cast(own)];
    outputs.extend([new_mean, new_variance, mean, variance].map(|value| value.cast(kept)));
    if c.op.outputs.len() == 6 {
        outputs.push(mean.like(0.0).cast(kept));
    }
    outputs
}

/// Inputs 3 and 4 are the mean and the variance that the batch was normalised with.
fn normalized_grad<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (own, kept) = (c.dtype(0), c.dtype(3));
    let channels = Channels::new(c, c.x(0));
    if c.x(0).shape().num_elements() == 0 {
        let (none, nothing) = (c.x(2).zeros_like(), c.vector::<f32>(&[]).cast(kept));
        return vec![c.x(1).zeros_like(), none, none, nothing, nothing];
    }
    let (dy, x) = (c.x(0).cast(DType::F32), c.x(1).cast(DType::F32));
    let (mean, variance) = (c.x(3).cast(DType::F32), c.x(4).cast(DType::F32));
    let scale = c.x(2).cast(DType::F32);
    let inverse = (variance + f64::from(c.float("epsilon"))).rsqrt();
    let distance = x - channels.spread(mean);
    let d_offset = dy.sum(&channels.axes, false);
    let product = (dy * distance).sum(&channels.axes, false);
    let d_scale = product * inverse;
    let centred = if c.flag("is_training") {
        let slope = product * inverse.square() / channels.count;
        dy - channels.spread(d_offset / channels.count) - distance * channels.spread(slope)
    } else {
        dy
    };
    let dx = centred * channels.spread(scale * inverse);
    let nothing = c.vector::<f32>(&[]).cast(kept);
    vec![dx.cast(own), d_scale.cast(kept), d_offset.cast(kept), nothing, nothing]
}
