//! Encoded images and sound.

use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

/// An image out of a file's bytes.
const DECODE: OpDef = OpDef {
    inputs: &[arg_of("contents", DType::String)],
    outputs: &[arg("image", "dtype")],
    infer: |context| {
        context.check_rank(0, 0)?;
        let channels = context.attrs.int("channels")?;
        if !matches!(channels, 0 | 1 | 3 | 4) {
            return Err(context.wrong_attr("channels", "0, 1, 3 or 4", channels));
        }
        let channels = usize::try_from(channels).ok().filter(|&channels| channels > 0);
        context.set(0, PartialShape::ranked([None, None, channels]));
        Ok(())
    },
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DecodeBmp",
        summary: "Decodes an image in BMP format.",
        outputs: &[arg_of("image", DType::U8)],
        attrs: &[int_or("channels", 0)],
        ..DECODE
    },
    OpDef {
        name: "DecodeImage",
        summary: "Decodes an image in BMP or PNG format.",
        attrs: &[
            int_or("channels", 0),
            ty_or("dtype", &[DType::U8, DType::U16, DType::F32], DType::U8),
            flag("expand_animations", true),
        ],
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
        lowering: Lowering::Kernel,
        ..OpDef::PURE
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
        lowering: Lowering::Kernel,
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
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
];

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
