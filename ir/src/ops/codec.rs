//! Encoded images and sound.

use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

/// An image out of a file's bytes.
const DECODE: OpDef = OpDef {
    inputs: &[arg_of("contents", DType::String)],
    outputs: &[arg("image", "dtype")],
    infer: |context| {
        context.check_rank(0, 0)?;
        let channels = channels(context)?;
        context.set(0, PartialShape::ranked([None, None, channels]));
        Ok(())
    },
    lowering: Lowering::HostKernel(HostReason::Text),
    ..OpDef::PURE
};

/// Options of the decoding of JPEG images.
const JPEG_ATTRS: &[AttrDef] = &[
    int_or("channels", 0),
    int_or("ratio", 1),
    flag("fancy_upscaling", true),
    flag("try_recover_truncated", false),
    float_or("acceptable_fraction", 1.0),
    string_or("dct_method", ""),
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DecodeAndCropJpeg",
        summary: "Decodes a part of an image in JPEG format.",
        inputs: &[arg_of("contents", DType::String), arg_of("crop_window", DType::I32).host()],
        outputs: &[arg_of("image", DType::U8)],
        attrs: JPEG_ATTRS,
        infer: |context| {
            context.check_rank(0, 0)?;
            let channels = jpeg_channels(context)?;
            context.check_rank(1, 1)?;
            let shape = context.shape(1);
            if shape.dim(0).is_some_and(|sizes| sizes != 4) {
                return Err(context.wrong(1, "a vector of 4", shape));
            }
            let size = |value: i64| usize::try_from(value).ok();
            let sizes = match context.ints(1)? {
                Some(window) => [size(window[2]), size(window[3])],
                None => [None, None],
            };
            context.set(0, PartialShape::ranked([sizes[0], sizes[1], channels]));
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "DecodeBmp",
        summary: "Decodes an image in BMP format.",
        outputs: &[arg_of("image", DType::U8)],
        attrs: &[int_or("channels", 0)],
        ..DECODE
    },
    OpDef {
        name: "DecodeGif",
        summary: "Decodes all frames of an animation in GIF format.",
        outputs: &[arg_of("image", DType::U8)],
        infer: |context| {
            context.check_rank(0, 0)?;
            context.set(0, PartialShape::ranked([None, None, None, Some(3)]));
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "DecodeImage",
        summary: "Decodes an image in BMP, GIF, JPEG, PNG or WebP format.",
        attrs: &[
            int_or("channels", 0),
            ty_or("dtype", &[DType::U8, DType::U16, DType::F32], DType::U8),
            flag("expand_animations", true),
        ],
        infer: |context| {
            context.check_rank(0, 0)?;
            let channels = channels(context)?;
            let shape = match context.attrs.bool("expand_animations")? {
                true => PartialShape::Unknown,
                false => PartialShape::ranked([None, None, channels]),
            };
            context.set(0, shape);
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "DecodeJpeg",
        summary: "Decodes an image in JPEG format.",
        outputs: &[arg_of("image", DType::U8)],
        attrs: JPEG_ATTRS,
        infer: |context| {
            context.check_rank(0, 0)?;
            let channels = jpeg_channels(context)?;
            context.set(0, PartialShape::ranked([None, None, channels]));
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "DecodePng",
        summary: "Decodes an image in PNG format.",
        attrs: &[int_or("channels", 0), ty_or("dtype", &[DType::U8, DType::U16], DType::U8)],
        ..DECODE
    },
    OpDef {
        name: "DecodeWav",
        summary: "Decodes sound of 16 bits per sample in WAV format.",
        inputs: &[arg_of("contents", DType::String)],
        outputs: &[arg_of("audio", DType::F32), arg_of("sample_rate", DType::I32)],
        attrs: &[int_or("desired_channels", -1), int_or("desired_samples", -1)],
        infer: |context| {
            context.check_rank(0, 0)?;
            let samples = wanted(context, "desired_samples")?;
            let channels = wanted(context, "desired_channels")?;
            context.set(0, PartialShape::ranked([samples, channels]));
            context.set(1, PartialShape::scalar());
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "DecodeWebP",
        summary: "Decodes all frames of an image or animation in WebP format.",
        attrs: &[int_or("channels", 0), ty_or("dtype", &[DType::U8], DType::U8)],
        infer: |context| {
            context.check_rank(0, 0)?;
            channels(context)?;
            context.set(0, PartialShape::Unknown);
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "EncodeJpeg",
        summary: "Encodes an image in JPEG format.",
        inputs: &[arg_of("image", DType::U8)],
        outputs: &[arg_of("contents", DType::String)],
        attrs: &[
            one_of("format", &["", "grayscale", "rgb"]).or(AttrDefault::String("")),
            int_or("quality", 95),
            flag("progressive", false),
            flag("optimize_size", false),
            flag("chroma_downsampling", true),
            one_of("density_unit", &["in", "cm"]).or(AttrDefault::String("in")),
            int_or("x_density", 300),
            int_or("y_density", 300),
            string_or("xmp_metadata", ""),
        ],
        infer: |context| {
            context.check_rank(0, 3)?;
            let quality = context.attrs.int("quality")?;
            if !(0..=100).contains(&quality) {
                return Err(context.wrong_attr("quality", "from 0 to 100", quality));
            }
            context.set(0, PartialShape::scalar());
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "EncodeJpegVariableQuality",
        summary: "Encodes an image in JPEG format, with a quality from 0 to 100.",
        inputs: &[arg_of("images", DType::U8), arg_of("quality", DType::I32)],
        outputs: &[arg_of("contents", DType::String)],
        infer: |context| {
            context.check_rank(0, 3)?;
            context.check_rank(1, 0)?;
            context.set(0, PartialShape::scalar());
            Ok(())
        },
        ..DECODE
    },
    OpDef {
        name: "EncodePng",
        summary: "Encodes images in PNG format.",
        inputs: &[arg("image", "T")],
        outputs: &[arg_of("contents", DType::String)],
        attrs: &[int_or("compression", -1), ty_or("T", &[DType::U8, DType::U16], DType::U8)],
        infer: |context| {
            context.check_rank_at_least(0, 3)?;
            let level = context.attrs.int("compression")?;
            if !(-1..=9).contains(&level) {
                return Err(context.wrong_attr("compression", "between -1 and 9", level));
            }
            let shape = context.shape(0);
            if shape.dim(-1).is_some_and(|channels| !(1..=4).contains(&channels)) {
                return Err(context.wrong(0, "an image of 1 to 4 channels", shape));
            }
            let batch = match shape.dims() {
                Some(dims) => PartialShape::ranked(dims[..dims.len() - 3].iter().copied()),
                None => PartialShape::Unknown,
            };
            context.set(0, batch);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "EncodeWav",
        summary: "Encodes sound in WAV format, with 16 bits per sample.",
        inputs: &[arg_of("audio", DType::F32), arg_of("sample_rate", DType::I32)],
        outputs: &[arg_of("contents", DType::String)],
        infer: |context| {
            context.check_rank(0, 2)?;
            context.check_rank(1, 0)?;
            context.set(0, PartialShape::scalar());
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ExtractJpegShape",
        summary: "Height, width and components of an image in JPEG format, without decoding it.",
        outputs: &[arg("image_shape", "output_type")],
        attrs: &[ty_or("output_type", &[DType::I32, DType::I64], DType::I32)],
        infer: |context| {
            context.check_rank(0, 0)?;
            context.set(0, PartialShape::ranked([Some(3)]));
            Ok(())
        },
        ..DECODE
    },
];

/// The number of channels that the attribute asks for; none for what there is.
fn channels(context: &OpContext<'_>) -> Result<Option<usize>> {
    match context.attrs.int("channels")? {
        0 => Ok(None),
        channels @ (1 | 3 | 4) => Ok(usize::try_from(channels).ok()),
        channels => Err(context.wrong_attr("channels", "0, 1, 3 or 4", channels)),
    }
}

/// The same, for attributes that say how JPEG files are decoded.
fn jpeg_channels(context: &OpContext<'_>) -> Result<Option<usize>> {
    let ratio = context.attrs.int("ratio")?;
    if !matches!(ratio, 1 | 2 | 4 | 8) {
        return Err(context.wrong_attr("ratio", "1, 2, 4 or 8", ratio));
    }
    let method = context.attrs.string("dct_method")?;
    if !matches!(method, "" | "INTEGER_FAST" | "INTEGER_ACCURATE") {
        return Err(context.wrong_attr("dct_method", "INTEGER_FAST or INTEGER_ACCURATE", method));
    }
    channels(context)
}

/// A size that an attribute asks for; -1 asks for none.
fn wanted(context: &OpContext<'_>, name: &'static str) -> Result<Option<usize>> {
    match context.attrs.int(name)? {
        -1 => Ok(None),
        size => match usize::try_from(size) {
            Ok(size) => Ok(Some(size)),
            Err(_) => Err(context.wrong_attr(name, "-1 or a size", size)),
        },
    }
}
