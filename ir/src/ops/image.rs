//! Images: `[batch, height, width, channels]`.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    emit::{Composite, Value},
    error::{Code, Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape, counted},
};

const F32: DType = DType::F32;

const I32: DType = DType::I32;

/// The types that images are resized from.
const PIXELS: &[DType] = &[
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
];

const TRANSFORMED: &[DType] =
    &[DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];

/// The types that are cropped from.
const CROPPED: &[DType] = &[
    DType::U8,
    DType::U16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
];

const ALIGN: AttrDef = flag("align_corners", false);

const CENTRES: AttrDef = flag("half_pixel_centers", false);

const RESIZE: OpDef = OpDef {
    inputs: &[arg("images", "T"), arg_of("size", I32).host()],
    outputs: &[arg_of("resized_images", F32)],
    attrs: &[ty("T", PIXELS), ALIGN, CENTRES],
    infer: |context| {
        check_centres(context)?;
        resized(context)
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

const RESIZE_GRADIENT: OpDef = OpDef {
    inputs: &[arg_of("grads", F32), arg("original_image", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[ty("T", FLOATS), ALIGN, CENTRES],
    infer: |context| {
        context.check_rank(0, 4)?;
        context.check_rank(1, 4)?;
        let (grads, image) = (context.shape(0), context.shape(1));
        context.same("the batch", grads.dim(0), image.dim(0))?;
        context.same("the channels", grads.dim(3), image.dim(3))?;
        has_pixels(context, 0)?;
        has_pixels(context, 1)?;
        context.set(0, image.clone());
        Ok(())
    },
    ..RESIZE
};

const METHODS: AttrDef =
    one_of("method", &["bilinear", "nearest"]).or(AttrDefault::String("bilinear"));

/// A change of colours, by a number.
const ADJUST: OpDef = OpDef {
    inputs: &[arg("images", "T"), arg_of("delta", F32)],
    outputs: &[arg("output", "T")],
    attrs: &[ty_or("T", F16_F32, F32)],
    infer: |context| {
        context.check_rank_at_least(0, 3)?;
        context.check_rank(1, 0)?;
        context.same("the channels", context.shape(0).dim(-1), Some(3))?;
        infer::unchanged(context)
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

const COLOURS: OpDef = OpDef {
    inputs: &[arg("images", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[ty_or("T", FLOATS, F32)],
    infer: |context| {
        context.check_rank_at_least(0, 1)?;
        match context.shape(0).dim(-1) {
            None | Some(3) => infer::unchanged(context),
            Some(channels) => {
                let detail = format!("3 channels are expected, the images have {channels}");
                let op = context.op.name.into();
                Err(Error::Status { code: Code::FailedPrecondition, op, detail })
            }
        }
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

const GLIMPSE: OpDef = OpDef {
    inputs: &[arg_of("input", F32), arg_of("size", I32).host(), arg_of("offsets", F32)],
    outputs: &[arg_of("glimpse", F32)],
    attrs: &[
        flag("centered", true),
        flag("normalized", true),
        flag("uniform_noise", true),
        string_or("noise", "uniform"),
    ],
    infer: |context| {
        let [batch, _, _, channels] = context.dims::<4>(0)?;
        let [offsets, two] = context.dims::<2>(2)?;
        context.same("the offsets of a glimpse", two, Some(2))?;
        let batch = context.same("the batch of offsets", batch, offsets)?;
        let [height, width] = size(context, 1)?;
        context.set(0, PartialShape::ranked([batch, height, width, channels]));
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

const TRANSFORM: OpDef = OpDef {
    inputs: &[
        arg("images", "dtype"),
        arg_of("transforms", F32),
        arg_of("output_shape", I32).host(),
    ],
    outputs: &[arg("transformed_images", "dtype")],
    attrs: &[ty("dtype", TRANSFORMED), string("interpolation"), string_or("fill_mode", "CONSTANT")],
    infer: |context| {
        let [batch, _, _, channels] = context.dims::<4>(0)?;
        let [count, eight] = context.dims::<2>(1)?;
        context.same("the numbers of a transform", eight, Some(8))?;
        if let (Some(batch), Some(count)) = (batch, count)
            && count != 1
            && count != batch
        {
            return Err(context.wrong(1, format!("1 or {batch} transforms"), count));
        }
        if context.n_inputs() == 4 {
            context.check_rank(3, 0)?;
        }
        let [height, width] = size(context, 2)?;
        context.set(0, PartialShape::ranked([batch, height, width, channels]));
        Ok(())
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// The choice of boxes that do not overlap, by a threshold in an input.
const SUPPRESS: OpDef = OpDef {
    inputs: &[
        arg("boxes", "T"),
        arg("scores", "T"),
        arg_of("max_output_size", I32),
        arg("iou_threshold", "T_threshold"),
        arg("score_threshold", "T_threshold"),
    ],
    outputs: &[arg_of("selected_indices", I32)],
    attrs: &[ty_or("T", F16_F32, F32), ty_or("T_threshold", F16_F32, F32)],
    infer: |context| {
        let ([boxes, four], [scores]) = (context.dims::<2>(0)?, context.dims::<1>(1)?);
        context.same("the coordinates of a box", four, Some(4))?;
        context.same("the number of boxes and scores", boxes, scores)?;
        (2..context.n_inputs()).try_for_each(|index| context.check_rank(index, 0))?;
        let last = context.n_outputs() - 1;
        (0..=last).for_each(|index| context.set(index, PartialShape::vector(None)));
        if last > 0 {
            context.set(last, PartialShape::scalar());
        }
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::Sequential),
    ..OpDef::PURE
};

const DRAW: OpDef = OpDef {
    inputs: &[arg("images", "T"), arg_of("boxes", F32)],
    outputs: &[arg("output", "T")],
    attrs: &[ty_or("T", F16_F32, F32)],
    infer: |context| {
        let [batch, _, _, channels] = context.dims::<4>(0)?;
        let [boxes, _, four] = context.dims::<3>(1)?;
        context.same("the batch of boxes", batch, boxes)?;
        context.same("the coordinates of a box", four, Some(4))?;
        if channels.is_some_and(|channels| !matches!(channels, 1 | 3 | 4)) {
            return Err(context.wrong(0, "images of 1, 3 or 4 channels", context.shape(0)));
        }
        if context.n_inputs() == 3 {
            let [count, depth] = context.dims::<2>(2)?;
            if let (Some(count), Some(depth), Some(channels)) = (count, depth, channels)
                && count > 0
                && depth < channels
            {
                return Err(context.wrong(2, format!("colours of {channels} channels"), depth));
            }
        }
        infer::unchanged(context)
    },
    lowering: Lowering::HostKernel(HostReason::NotWritten),
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AdjustContrastv2",
        summary: "Moves the elements of each channel away from their mean, or towards it.",
        inputs: &[arg("images", "T"), arg_of("contrast_factor", F32)],
        infer: |context| {
            context.check_rank_at_least(0, 3)?;
            context.check_rank(1, 0)?;
            infer::unchanged(context)
        },
        lowering: Lowering::Composite(adjust_contrast),
        ..ADJUST
    },
    OpDef { name: "AdjustHue", summary: "Turns the hue of each pixel.", ..ADJUST },
    OpDef {
        name: "AdjustSaturation",
        summary: "Scales the saturation of each pixel.",
        inputs: &[arg("images", "T"), arg_of("scale", F32)],
        ..ADJUST
    },
    OpDef {
        name: "CombinedNonMaxSuppression",
        summary: "Chooses boxes that do not overlap, class by class.",
        inputs: &[
            arg_of("boxes", F32),
            arg_of("scores", F32),
            arg_of("max_output_size_per_class", I32).host(),
            arg_of("max_total_size", I32).host(),
            arg_of("iou_threshold", F32),
            arg_of("score_threshold", F32),
        ],
        outputs: &[
            arg_of("nmsed_boxes", F32),
            arg_of("nmsed_scores", F32),
            arg_of("nmsed_classes", F32),
            arg_of("valid_detections", I32),
        ],
        attrs: &[flag("pad_per_class", false), flag("clip_boxes", true)],
        infer: combined,
        lowering: Lowering::HostKernel(HostReason::Sequential),
        ..OpDef::PURE
    },
    OpDef {
        name: "CropAndResize",
        summary: "Cuts boxes out of images and gives them one size.",
        inputs: &[
            arg("image", "T"),
            arg_of("boxes", F32),
            arg_of("box_ind", I32),
            arg_of("crop_size", I32).host(),
        ],
        outputs: &[arg_of("crops", F32)],
        attrs: &[ty("T", CROPPED), METHODS, float_or("extrapolation_value", 0.0)],
        infer: |context| {
            let [_, _, _, channels] = context.dims::<4>(0)?;
            has_pixels(context, 0)?;
            let boxes = boxes(context, 1)?;
            let [height, width] = size(context, 3)?;
            context.set(0, PartialShape::ranked([boxes, height, width, channels]));
            Ok(())
        },
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::nn::crop_and_resize),
        ..OpDef::PURE
    },
    OpDef {
        name: "CropAndResizeGradBoxes",
        summary: "Gradient of `CropAndResize` by the boxes.",
        inputs: &[
            arg_of("grads", F32),
            arg("image", "T"),
            arg_of("boxes", F32),
            arg_of("box_ind", I32),
        ],
        outputs: &[arg_of("output", F32)],
        attrs: &[
            ty("T", CROPPED),
            one_of("method", &["bilinear"]).or(AttrDefault::String("bilinear")),
        ],
        infer: |context| {
            let [crops, _, _, depth] = context.dims::<4>(0)?;
            let [_, _, _, channels] = context.dims::<4>(1)?;
            context.same("the channels", depth, channels)?;
            has_pixels(context, 0)?;
            has_pixels(context, 1)?;
            let boxes = boxes(context, 2)?;
            let boxes = context.same("the number of boxes", crops, boxes)?;
            context.set(0, PartialShape::ranked([boxes, Some(4)]));
            Ok(())
        },
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "CropAndResizeGradImage",
        summary: "Gradient of `CropAndResize` by the images.",
        inputs: &[
            arg_of("grads", F32),
            arg_of("boxes", F32),
            arg_of("box_ind", I32),
            arg_of("image_size", I32).host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", IEEE_FLOATS), METHODS],
        infer: |context| {
            let [crops, _, _, depth] = context.dims::<4>(0)?;
            has_pixels(context, 0)?;
            let boxes = boxes(context, 1)?;
            context.same("the number of boxes", crops, boxes)?;
            let shape = context.shape_value(3)?;
            if shape.rank().is_some_and(|rank| rank != 4) {
                return Err(context.wrong(3, "the sizes of images", shape));
            }
            if shape.dim(1) == Some(0) || shape.dim(2) == Some(0) {
                return Err(context.wrong(3, "positive", shape));
            }
            context.same("the channels", depth, shape.dim(3))?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef { name: "DrawBoundingBoxes", summary: "Draws the edges of boxes into images.", ..DRAW },
    OpDef {
        name: "DrawBoundingBoxesV2",
        summary: "Draws the edges of boxes into images, in given colours.",
        inputs: &[arg("images", "T"), arg_of("boxes", F32), arg_of("colors", F32)],
        ..DRAW
    },
    OpDef { name: "ExtractGlimpse", summary: "Cuts a window out of each image.", ..GLIMPSE },
    OpDef {
        name: "ExtractGlimpseV2",
        summary: "As `ExtractGlimpse`, with other meanings of offsets.",
        ..GLIMPSE
    },
    OpDef {
        name: "HSVToRGB",
        summary: "Gives red, green and blue of hue, saturation and value.",
        ..COLOURS
    },
    OpDef {
        name: "ImageProjectiveTransformV2",
        summary: "Takes each pixel from where a projection puts it.",
        gradient: Gradient::Rule(gradient::nn::project),
        ..TRANSFORM
    },
    OpDef {
        name: "ImageProjectiveTransformV3",
        summary: "As `ImageProjectiveTransformV2`, with a value for what lies outside.",
        inputs: &[
            arg("images", "dtype"),
            arg_of("transforms", F32),
            arg_of("output_shape", I32).host(),
            arg_of("fill_value", F32),
        ],
        gradient: Gradient::Rule(gradient::nn::project),
        ..TRANSFORM
    },
    OpDef {
        name: "NonMaxSuppression",
        summary: "Chooses boxes that do not overlap, best score first.",
        inputs: &[arg_of("boxes", F32), arg_of("scores", F32), arg_of("max_output_size", I32)],
        attrs: &[float_or("iou_threshold", 0.5)],
        ..SUPPRESS
    },
    OpDef {
        name: "NonMaxSuppressionV2",
        summary: "As `NonMaxSuppression`, with the threshold as an input.",
        inputs: &[
            arg("boxes", "T"),
            arg("scores", "T"),
            arg_of("max_output_size", I32),
            arg("iou_threshold", "T_threshold"),
        ],
        ..SUPPRESS
    },
    OpDef {
        name: "NonMaxSuppressionV3",
        summary: "As `NonMaxSuppressionV2`, of boxes with a high score alone.",
        ..SUPPRESS
    },
    OpDef {
        name: "NonMaxSuppressionV4",
        summary: "As `NonMaxSuppressionV3`, if wanted filled up with zeros.",
        outputs: &[arg_of("selected_indices", I32), arg_of("valid_outputs", I32)],
        attrs: &[
            ty_or("T", F16_F32, F32),
            ty_or("T_threshold", F16_F32, F32),
            flag("pad_to_max_output_size", false),
        ],
        ..SUPPRESS
    },
    OpDef {
        name: "NonMaxSuppressionV5",
        summary: "As `NonMaxSuppressionV4`; overlap may lower scores instead.",
        inputs: &[
            arg("boxes", "T"),
            arg("scores", "T"),
            arg_of("max_output_size", I32),
            arg("iou_threshold", "T"),
            arg("score_threshold", "T"),
            arg("soft_nms_sigma", "T"),
        ],
        outputs: &[
            arg_of("selected_indices", I32),
            arg("selected_scores", "T"),
            arg_of("valid_outputs", I32),
        ],
        attrs: &[ty_or("T", F16_F32, F32), flag("pad_to_max_output_size", false)],
        ..SUPPRESS
    },
    OpDef {
        name: "NonMaxSuppressionWithOverlaps",
        summary: "Chooses boxes with the highest scores that do not overlap, by given overlaps.",
        inputs: &[
            arg_of("overlaps", F32),
            arg_of("scores", F32),
            arg_of("max_output_size", I32),
            arg_of("overlap_threshold", F32),
            arg_of("score_threshold", F32),
        ],
        attrs: &[],
        infer: |context| {
            let ([rows, columns], [scores]) = (context.dims::<2>(0)?, context.dims::<1>(1)?);
            context.same("the boxes of rows and columns", rows, columns)?;
            context.same("the number of boxes and scores", rows, scores)?;
            (2..5).try_for_each(|index| context.check_rank(index, 0))?;
            context.set(0, PartialShape::vector(None));
            Ok(())
        },
        ..SUPPRESS
    },
    OpDef {
        name: "RGBToHSV",
        summary: "Gives hue, saturation and value of red, green and blue.",
        gradient: Gradient::Rule(gradient::nn::rgb_to_hsv),
        ..COLOURS
    },
    OpDef {
        name: "ResizeArea",
        summary: "Resizes images by the mean of the area of each pixel.",
        attrs: &[ty("T", PIXELS), ALIGN],
        infer: resized,
        ..RESIZE
    },
    OpDef {
        name: "ResizeBicubic",
        summary: "Resizes images by cubic interpolation.",
        gradient: Gradient::Rule(gradient::nn::resize_bicubic),
        ..RESIZE
    },
    OpDef {
        name: "ResizeBicubicGrad",
        summary: "Gradient of `ResizeBicubic`.",
        attrs: &[ty("T", F32_F64), ALIGN, CENTRES],
        gradient: Gradient::Rule(gradient::nn::resize_bicubic_grad),
        ..RESIZE_GRADIENT
    },
    OpDef {
        name: "ResizeBilinear",
        summary: "Resizes images by linear interpolation.",
        gradient: Gradient::Rule(gradient::nn::resize_bilinear),
        ..RESIZE
    },
    OpDef {
        name: "ResizeBilinearGrad",
        summary: "Gradient of `ResizeBilinear`.",
        gradient: Gradient::Rule(gradient::nn::resize_bilinear_grad),
        ..RESIZE_GRADIENT
    },
    OpDef {
        name: "ResizeNearestNeighbor",
        summary: "Resizes images by the nearest pixel.",
        outputs: &[arg("resized_images", "T")],
        gradient: Gradient::Rule(gradient::nn::resize_nearest),
        ..RESIZE
    },
    OpDef {
        name: "ResizeNearestNeighborGrad",
        summary: "Gradient of `ResizeNearestNeighbor`.",
        inputs: &[arg("grads", "T"), arg_of("size", I32).host()],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty(
                "T",
                &[
                    DType::U8,
                    DType::I8,
                    DType::I32,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::BF16,
                ],
            ),
            ALIGN,
            CENTRES,
        ],
        ..RESIZE
    },
    OpDef {
        name: "ScaleAndTranslate",
        summary: "Scales and moves images, by a choice of filters.",
        inputs: &[
            arg("images", "T"),
            arg_of("size", I32).host(),
            arg_of("scale", F32),
            arg_of("translation", F32),
        ],
        attrs: &[ty("T", PIXELS), string_or("kernel_type", "lanczos3"), flag("antialias", true)],
        infer: |context| {
            for index in 2..4 {
                let [two] = context.dims::<1>(index)?;
                context.same("the size of scale and translation", two, Some(2))?;
            }
            resized(context)
        },
        gradient: Gradient::Rule(gradient::nn::scale_and_translate),
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..RESIZE
    },
    OpDef {
        name: "ScaleAndTranslateGrad",
        summary: "Gradient of `ScaleAndTranslate`.",
        inputs: &[
            arg("grads", "T"),
            arg("original_image", "T"),
            arg_of("scale", F32),
            arg_of("translation", F32),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", &[F32]), string_or("kernel_type", "lanczos3"), flag("antialias", true)],
        infer: |context| {
            for index in 2..4 {
                let [two] = context.dims::<1>(index)?;
                context.same("the size of scale and translation", two, Some(2))?;
            }
            let [grads, _, _, depth] = context.dims::<4>(0)?;
            let [images, .., channels] = context.dims::<4>(1)?;
            context.same("the batch", grads, images)?;
            context.same("the channels", depth, channels)?;
            context.set(0, context.shape(1).clone());
            Ok(())
        },
        lowering: Lowering::Composite(gradient::nn::scale_and_translate_grad),
        ..OpDef::PURE
    },
];

/// The positive height and width in an input.
fn size(context: &OpContext<'_>, index: usize) -> Result<[Dim; 2]> {
    let [two] = context.dims::<1>(index)?;
    context.same("the numbers of a size", two, Some(2))?;
    let Some(size) = context.ints(index)? else { return Ok([None, None]) };
    match size[..] {
        [height, width] if height > 0 && width > 0 => {
            Ok([Some(counted(height)), Some(counted(width))])
        }
        _ => Err(context.wrong(index, "a positive height and width", format!("{size:?}"))),
    }
}

fn has_pixels(context: &OpContext<'_>, index: usize) -> Result<()> {
    let shape = context.shape(index);
    match shape.dim(1) == Some(0) || shape.dim(2) == Some(0) {
        true => Err(context.wrong(index, "an image with pixels", shape)),
        false => Ok(()),
    }
}

/// Checks that pixels with centres are not aligned by their corners.
pub(super) fn check_centres(context: &OpContext<'_>) -> Result<()> {
    let centres = context.attrs.bool("half_pixel_centers")?;
    match centres && context.attrs.bool("align_corners")? {
        true => Err(context.wrong_attr("align_corners", "false where pixels have centres", true)),
        false => Ok(()),
    }
}

/// Images of the size in input 1.
fn resized(context: &mut OpContext<'_>) -> Result<()> {
    let [batch, _, _, channels] = context.dims::<4>(0)?;
    let [height, width] = size(context, 1)?;
    has_pixels(context, 0)?;
    context.set(0, PartialShape::ranked([batch, height, width, channels]));
    Ok(())
}

/// The number of boxes in an input; the next one says which image each is in.
fn boxes(context: &OpContext<'_>, index: usize) -> Result<Dim> {
    let ([boxes, four], [images]) = (context.dims::<2>(index)?, context.dims::<1>(index + 1)?);
    context.same("the coordinates of a box", four, Some(4))?;
    context.same("the number of boxes", boxes, images)
}

fn combined(context: &mut OpContext<'_>) -> Result<()> {
    let [batch, n, own, four] = context.dims::<4>(0)?;
    let [scored, scores, classes] = context.dims::<3>(1)?;
    context.same("the coordinates of a box", four, Some(4))?;
    context.same("the number of boxes and scores", n, scores)?;
    let batch = context.same("the batch", batch, scored)?;
    if let (Some(own), Some(classes)) = (own, classes)
        && own != 1
        && own != classes
    {
        return Err(context.wrong(0, format!("boxes for 1 or {classes} classes"), own));
    }
    (2..6).try_for_each(|index| context.check_rank(index, 0))?;
    let (per_class, total) = (context.int(2)?, context.int(3)?);
    for (index, size) in [(2, per_class), (3, total)] {
        if size.is_some_and(|size| size <= 0) {
            return Err(context.wrong(index, "positive", size.unwrap_or_default()));
        }
    }
    let whole = total.map(counted);
    let chosen = match context.attrs.bool("pad_per_class")? {
        false => whole,
        true => per_class
            .zip(classes)
            .zip(whole)
            .map(|((own, classes), total)| total.min(counted(own).saturating_mul(classes))),
    };
    context.set(0, PartialShape::ranked([batch, chosen, Some(4)]));
    context.set(1, PartialShape::ranked([batch, chosen]));
    context.set(2, PartialShape::ranked([batch, chosen]));
    context.set(3, PartialShape::vector(batch));
    Ok(())
}

fn adjust_contrast<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let x = c.x(0).cast(F32);
    let mean = x.mean(&[-3, -2], true);
    vec![((x - mean) * c.x(1) + mean).cast(c.dtype(0))]
}
