//! Pools and their gradients.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::{Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape, Shape},
    window::{Pool, pool},
};
use smallvec::SmallVec;

const PADDINGS: AttrDef = one_of("padding", &["SAME", "VALID"]);
const EXPLICIT: AttrDef = one_of("padding", &["SAME", "VALID", "EXPLICIT"]);
const FORMATS: AttrDef = one_of("data_format", &["NHWC", "NCHW"]).or(AttrDefault::String("NHWC"));
const FORMATS_3D: AttrDef =
    one_of("data_format", &["NDHWC", "NCDHW"]).or(AttrDefault::String("NDHWC"));
const FORMATS_MAX: AttrDef =
    one_of("data_format", &["NHWC", "NCHW", "NCHW_VECT_C"]).or(AttrDefault::String("NHWC"));

const MAX_TYPES: &[DType] = &[
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::U16,
    DType::QI8,
];

const POOL_2D: &[AttrDef] =
    &[ints("ksize").at_least(4), ints("strides").at_least(4), PADDINGS, FORMATS, ty("T", FLOATS)];

const POOL_3D: &[AttrDef] = &[
    ints("ksize").at_least(5),
    ints("strides").at_least(5),
    PADDINGS,
    FORMATS_3D,
    ty("T", FLOATS),
];

const MAX_GRAD_GRAD: OpDef = OpDef {
    inputs: &[arg("orig_input", "T"), arg("orig_output", "T"), arg("grad", "T")],
    outputs: &[arg("output", "T")],
    infer: |context| {
        let output = check_gradient(context, 0, 1)?;
        context.merged(0, 2)?;
        context.set(0, output);
        Ok(())
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

const MAX_GRAD: OpDef = OpDef {
    infer: |context| {
        check_gradient(context, 0, 1)?;
        check_gradient(context, 0, 2)?;
        infer::unchanged(context)
    },
    ..MAX_GRAD_GRAD
};

/// A pool of images by factors that need not be whole.
const FRACTIONAL: OpDef = OpDef {
    inputs: &[arg("value", "T")],
    outputs: &[
        arg("output", "T"),
        arg_of("row_pooling_sequence", DType::I64),
        arg_of("col_pooling_sequence", DType::I64),
    ],
    attrs: &[
        floats("pooling_ratio").at_least(4),
        flag("pseudo_random", false),
        flag("overlapping", false),
        flag("deterministic", false),
        int_or("seed", 0),
        int_or("seed2", 0),
        ty("T", &[DType::F32, DType::F64, DType::I32, DType::I64]),
    ],
    infer: fractional,
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::STATEFUL
};

const FRACTIONAL_GRAD: &[AttrDef] =
    &[flag("overlapping", false), ty("T", &[DType::F32, DType::F64, DType::I32, DType::I64])];

const FRACTIONAL_BACK: OpDef = OpDef { outputs: &[arg("output", "T")], ..OpDef::PURE };

const ARGMAX_GRAD: &[AttrDef] = &[
    ints("ksize").at_least(4),
    ints("strides").at_least(4),
    PADDINGS,
    flag("include_batch_in_index", false),
    ty("Targmax", INDEX),
    ty("T", REALS),
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AvgPool",
        summary: "Takes the mean of each window of an image; padding does not count.",
        inputs: &[arg("value", "T")],
        outputs: &[arg("output", "T")],
        attrs: POOL_2D,
        infer: pooled,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::avg_pool),
        sharding: Some(ShardingRule::Batch),
        ..OpDef::PURE
    },
    OpDef {
        name: "AvgPool3D",
        summary: "Takes the mean of each window of a volume; padding does not count.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: POOL_3D,
        infer: pooled,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::avg_pool_3d),
        ..OpDef::PURE
    },
    OpDef {
        name: "AvgPool3DGrad",
        summary: "Gradient of `AvgPool3D`.",
        inputs: &[arg_of("orig_input_shape", DType::I32).host(), arg("grad", "T")],
        outputs: &[arg("output", "T")],
        attrs: POOL_3D,
        infer: average_grad,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::avg_pool_3d_grad),
        ..OpDef::PURE
    },
    OpDef {
        name: "AvgPoolGrad",
        summary: "Gradient of `AvgPool`.",
        inputs: &[arg_of("orig_input_shape", DType::I32).host(), arg("grad", "T")],
        outputs: &[arg("output", "T")],
        attrs: POOL_2D,
        infer: average_grad,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::avg_pool_grad),
        sharding: Some(ShardingRule::PoolGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "FractionalAvgPool",
        summary: "Takes the mean of windows with random borders.",
        gradient: Gradient::Rule(gradient::pool::fractional_avg),
        ..FRACTIONAL
    },
    OpDef {
        name: "FractionalAvgPoolGrad",
        summary: "Gradient of `FractionalAvgPool`: each element gets its share of its windows.",
        inputs: &[
            arg_of("orig_input_tensor_shape", DType::I64).host(),
            arg("out_backprop", "T"),
            arg_of("row_pooling_sequence", DType::I64),
            arg_of("col_pooling_sequence", DType::I64),
        ],
        attrs: FRACTIONAL_GRAD,
        infer: |context| {
            let shape = context.shape_value(0)?;
            fractional_gradient(context, 1, shape)
        },
        lowering: Lowering::Composite(|c| {
            let (dims, overlap) = (c.ints(0), c.flag("overlapping"));
            vec![gradient::pool::to_shares(c.x(1), [c.x(2), c.x(3)], &dims, overlap)]
        }),
        ..FRACTIONAL_BACK
    },
    OpDef {
        name: "FractionalMaxPool",
        summary: "Takes the largest element of windows with random borders.",
        gradient: Gradient::Rule(gradient::pool::fractional_max),
        ..FRACTIONAL
    },
    OpDef {
        name: "FractionalMaxPoolGrad",
        summary: "Gradient of `FractionalMaxPool`: the first largest element of a window gets it.",
        inputs: &[
            arg("orig_input", "T"),
            arg("orig_output", "T"),
            arg("out_backprop", "T"),
            arg_of("row_pooling_sequence", DType::I64),
            arg_of("col_pooling_sequence", DType::I64),
        ],
        attrs: FRACTIONAL_GRAD,
        infer: |context| {
            context.merged(1, 2)?;
            let shape = context.shape(0).clone();
            fractional_gradient(context, 2, shape)
        },
        lowering: Lowering::Composite(|c| {
            let (borders, overlap) = ([c.x(3), c.x(4)], c.flag("overlapping"));
            vec![gradient::pool::to_largest(c.x(0), c.x(1), c.x(2), borders, overlap)]
        }),
        ..FRACTIONAL_BACK
    },
    OpDef {
        name: "MaxPool",
        summary: "Takes the largest element of each window of an image.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty_or("T", MAX_TYPES, DType::F32),
            ints("ksize").at_least(4),
            ints("strides").at_least(4),
            EXPLICIT,
            ints_or("explicit_paddings", &[]),
            FORMATS_MAX,
        ],
        infer: pooled,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::max_pool),
        sharding: Some(ShardingRule::Batch),
        ..OpDef::PURE
    },
    OpDef {
        name: "MaxPool3D",
        summary: "Takes the largest element of each window of a volume.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ints("ksize").at_least(5),
            ints("strides").at_least(5),
            PADDINGS,
            FORMATS_3D,
            ty("T", UP_TO_F32),
        ],
        infer: pooled,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::max_pool_3d),
        ..OpDef::PURE
    },
    OpDef {
        name: "MaxPool3DGrad",
        summary: "Gradient of `MaxPool3D`: every largest element of a window gets it.",
        inputs: &[arg("orig_input", "TInput"), arg("orig_output", "TInput"), arg("grad", "T")],
        attrs: &[
            ints("ksize").at_least(5),
            ints("strides").at_least(5),
            PADDINGS,
            FORMATS_3D,
            ty_or("T", UP_TO_F32, DType::F32),
            ty_or("TInput", UP_TO_F32, DType::F32),
        ],
        gradient: Gradient::Rule(gradient::pool::max_pool_3d_grad),
        ..MAX_GRAD
    },
    OpDef {
        name: "MaxPool3DGradGrad",
        summary: "Gradient of `MaxPool3DGrad`: takes the element where the window is largest.",
        attrs: &[
            ints("ksize").at_least(5),
            ints("strides").at_least(5),
            PADDINGS,
            FORMATS_3D,
            ty("T", REALS),
        ],
        gradient: Gradient::Rule(gradient::pool::max_pool_3d_grad_grad),
        ..MAX_GRAD_GRAD
    },
    OpDef {
        name: "MaxPoolGrad",
        summary: "Gradient of `MaxPool`: the first largest element of a window gets it.",
        attrs: &[
            ints("ksize").at_least(4),
            ints("strides").at_least(4),
            EXPLICIT,
            ints_or("explicit_paddings", &[]),
            FORMATS,
            ty_or("T", REALS, DType::F32),
        ],
        gradient: Gradient::Rule(gradient::pool::max_pool_grad),
        sharding: Some(ShardingRule::BatchOfAll),
        ..MAX_GRAD
    },
    OpDef {
        name: "MaxPoolGradGrad",
        summary: "Gradient of `MaxPoolGrad`: takes the element where the window is largest.",
        attrs: &[
            ints("ksize").at_least(4),
            ints("strides").at_least(4),
            PADDINGS,
            FORMATS,
            ty("T", REALS),
        ],
        gradient: Gradient::Rule(gradient::pool::max_pool_grad_grad),
        ..MAX_GRAD_GRAD
    },
    OpDef {
        name: "MaxPoolGradGradWithArgmax",
        summary: "Gradient of `MaxPoolGradWithArgmax`: takes the elements at the places.",
        inputs: &[arg("input", "T"), arg("grad", "T"), arg("argmax", "Targmax")],
        outputs: &[arg("output", "T")],
        attrs: ARGMAX_GRAD,
        infer: |context| {
            context.merged(0, 1)?;
            context.check_rank(1, 4)?;
            context.check_rank(2, 4)?;
            context.set(0, context.shape(2).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let has_batch = c.flag("include_batch_in_index");
            vec![gradient::pool::gathered_at(c.x(1), c.x(2), has_batch)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "MaxPoolGradGradV2",
        summary: "As `MaxPoolGradGrad`, with window sizes and strides as inputs.",
        inputs: &[
            arg("orig_input", "T"),
            arg("orig_output", "T"),
            arg("grad", "T"),
            arg_of("ksize", DType::I32).host(),
            arg_of("strides", DType::I32).host(),
        ],
        attrs: &[PADDINGS, FORMATS, ty("T", REALS)],
        gradient: Gradient::Rule(gradient::pool::max_pool_grad_grad_v2),
        ..MAX_GRAD_GRAD
    },
    OpDef {
        name: "MaxPoolGradV2",
        summary: "As `MaxPoolGrad`, with window sizes and strides as inputs.",
        inputs: &[
            arg("orig_input", "T"),
            arg("orig_output", "T"),
            arg("grad", "T"),
            arg_of("ksize", DType::I32).host(),
            arg_of("strides", DType::I32).host(),
        ],
        attrs: &[PADDINGS, FORMATS, ty_or("T", REALS, DType::F32)],
        gradient: Gradient::Rule(gradient::pool::max_pool_grad_v2),
        ..MAX_GRAD
    },
    OpDef {
        name: "MaxPoolV2",
        summary: "As `MaxPool`, with window sizes and strides as inputs.",
        inputs: &[
            arg("input", "T"),
            arg_of("ksize", DType::I32).host(),
            arg_of("strides", DType::I32).host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty_or("T", MAX_TYPES, DType::F32), PADDINGS, FORMATS_MAX],
        infer: pooled,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::max_pool_v2),
        ..OpDef::PURE
    },
    OpDef {
        name: "MaxPoolGradWithArgmax",
        summary: "Gradient of `MaxPoolWithArgmax`.",
        inputs: &[arg("input", "T"), arg("grad", "T"), arg("argmax", "Targmax")],
        outputs: &[arg("output", "T")],
        attrs: ARGMAX_GRAD,
        infer: |context| {
            context.check_rank(0, 4)?;
            context.merged(1, 2)?;
            context.set(0, context.shape(0).clone());
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let has_batch = c.flag("include_batch_in_index");
            vec![gradient::pool::scattered_to(c.x(0), c.x(1), c.x(2), has_batch)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "MaxPoolWithArgmax",
        summary: "Takes the largest element of each window, and where it is.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T"), arg("argmax", "Targmax")],
        attrs: &[
            ints("ksize").at_least(4),
            ints("strides").at_least(4),
            ty_or("Targmax", INDEX, DType::I64),
            PADDINGS,
            flag("include_batch_in_index", false),
            ty("T", REALS),
        ],
        infer: |context| {
            pooled(context)?;
            context.set(1, context.output(0).clone());
            Ok(())
        },
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::pool::max_pool_with_argmax),
        ..OpDef::PURE
    },
];

/// Steps of the windows of a call; `None` while an input that says so is not known.
fn windows(context: &OpContext<'_>) -> Result<Option<Pool>> {
    let n = context.n_inputs();
    let lists = match context.attrs.get("ksize") {
        Some(_) => (context.attrs.ints("ksize")?.to_vec(), context.attrs.ints("strides")?.to_vec()),
        None => match (context.ints(n - 2)?, context.ints(n - 1)?) {
            (Some(sizes), Some(strides)) => (sizes, strides),
            _ => return Ok(None),
        },
    };
    pool(context.op.name, context.attrs, &lists.0, &lists.1).map(Some)
}

/// The shape of the pool of a tensor of shape `input`.
pub(super) fn pooled_shape(context: &OpContext<'_>, input: &PartialShape) -> Result<PartialShape> {
    let rank = match context.attrs.get("ksize") {
        Some(_) => context.attrs.ints("ksize")?.len(),
        None => 4,
    };
    if input.rank().is_some_and(|found| found != rank) {
        let expected = format!("of rank {rank}");
        return Err(Error::argument(context.op.name, "input", expected, input));
    }
    let Some(pool) = windows(context)? else { return Ok(PartialShape::of_rank(rank)) };
    let layout = pool.layout;
    let channels = input.dim(layout.channels() as isize);
    let channels = match channels {
        Some(n) if !n.is_multiple_of(pool.depth) => {
            let what = format!("windows of {} channels over {n}", pool.depth).into();
            return Err(Error::Unsupported { op: context.op.name.into(), what });
        }
        channels => channels.map(|n| n / pool.depth),
    };
    let sizes: Result<SmallVec<[Dim; 3]>> = pool
        .steps
        .iter()
        .zip(&pool.sizes)
        .enumerate()
        .map(|(at, (step, &size))| step.output(input.dim(layout.at(at) as isize), Some(size)))
        .collect();
    Ok(layout.shape(input.dim(0), &sizes?, channels))
}

fn pooled(context: &mut OpContext<'_>) -> Result<()> {
    let shape = pooled_shape(context, context.shape(0))?;
    context.set(0, shape);
    Ok(())
}

/// Checks that input `output` has the shape of the pool of input `input`.
fn check_gradient(context: &OpContext<'_>, input: usize, output: usize) -> Result<PartialShape> {
    let expected = pooled_shape(context, context.shape(input))?;
    let found = context.shape(output);
    expected
        .merge(found)
        .ok_or_else(|| context.wrong(output, format!("of shape {expected}"), found))
}

fn average_grad(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    let Some(sizes) = context.ints(0)? else {
        context
            .set(0, context.shape(0).dim(0).map_or(PartialShape::Unknown, PartialShape::of_rank));
        return Ok(());
    };
    let input: PartialShape = (&Shape::from_i64(&sizes)?).into();
    let (expected, found) = (pooled_shape(context, &input)?, context.shape(1));
    if !expected.is_compatible_with(found) {
        return Err(context.wrong(1, format!("of shape {expected}"), found));
    }
    context.set(0, input);
    Ok(())
}

fn fractional(context: &mut OpContext<'_>) -> Result<()> {
    let seeds = [context.attrs.int("seed")?, context.attrs.int("seed2")?];
    if !context.attrs.bool("deterministic")? && seeds != [0, 0] {
        return Err(context.wrong_attr("seed", "0 unless deterministic", format!("{seeds:?}")));
    }
    let ratios = context.attrs.floats("pooling_ratio")?;
    if ratios.len() != 4 || !ratios.iter().all(|&ratio| ratio >= 1.0) {
        let expected = "four numbers of 1 or more";
        return Err(context.wrong_attr("pooling_ratio", expected, format!("{ratios:?}")));
    }
    if ratios[0] != 1.0 || ratios[3] != 1.0 {
        let what = "windows over batch or channels".into();
        return Err(Error::Unsupported { op: context.op.name.into(), what });
    }
    let [batch, height, width, channels] = context.dims::<4>(0)?;
    let pooled = |size: Dim, ratio: f32| match size.map(|size| (size as f32 / ratio) as usize) {
        Some(0) => Err(context.wrong(0, "larger than the ratio", context.shape(0))),
        size => Ok(size),
    };
    let (rows, columns) = (pooled(height, ratios[1])?, pooled(width, ratios[2])?);
    context.set(0, PartialShape::ranked([batch, rows, columns, channels]));
    context.set(1, PartialShape::vector(rows.map(|rows| rows + 1)));
    context.set(2, PartialShape::vector(columns.map(|columns| columns + 1)));
    Ok(())
}

/// The gradient of a fractional pool has the shape of what was pooled; input `output` has that of
/// the pool, whose borders are the inputs after it.
fn fractional_gradient(
    context: &mut OpContext<'_>,
    output: usize,
    input: PartialShape,
) -> Result<()> {
    context.check_rank(output, 4)?;
    if input.rank().is_some_and(|rank| rank != 4) {
        return Err(context.wrong(0, "of rank 4", input));
    }
    for axis in [1, 2] {
        let [borders] = context.dims::<1>(output + axis)?;
        let windows = context.shape(output).dim(axis as isize);
        context.same("the number of borders", borders, windows.map(|windows| windows + 1))?;
    }
    for axis in [0, 3] {
        context.same("the outer sizes", input.dim(axis), context.shape(output).dim(axis))?;
    }
    context.set(0, input);
    Ok(())
}
