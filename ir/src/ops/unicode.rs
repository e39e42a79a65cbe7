//! Text as code points.

use super::sets::*;
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

const ERRORS: AttrDef =
    one_of("errors", &["strict", "replace", "ignore"]).or(AttrDefault::String("replace"));

const ENCODINGS: &[&str] = &["UTF-8", "UTF-16-BE", "UTF-32-BE"];

/// Strings become their code points.
const DECODE: OpDef = OpDef {
    inputs: &[arg_of("input", DType::String)],
    outputs: &[arg("row_splits", "Tsplits"), arg_of("char_values", DType::I32)],
    attrs: &[
        string("input_encoding"),
        ERRORS,
        int_or("replacement_char", 65533),
        flag("replace_control_characters", false),
        ty_or("Tsplits", INDEX, DType::I64),
    ],
    infer: decode,
    lowering: Lowering::HostKernel(HostReason::Text),
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "UnicodeDecode",
        summary: "Gives the code points of strings as a ragged tensor.",
        ..DECODE
    },
    OpDef {
        name: "UnicodeDecodeWithOffsets",
        summary: "Gives the code points of strings, and the byte at which each begins.",
        outputs: &[
            arg("row_splits", "Tsplits"),
            arg_of("char_values", DType::I32),
            arg_of("char_to_byte_starts", DType::I64),
        ],
        ..DECODE
    },
    OpDef {
        name: "UnicodeEncode",
        summary: "Makes strings of the rows of a ragged tensor of code points.",
        inputs: &[arg_of("input_values", DType::I32), arg("input_splits", "Tsplits")],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[
            one_of("errors", &["ignore", "replace", "strict"]).or(AttrDefault::String("replace")),
            one_of("output_encoding", ENCODINGS),
            int_or("replacement_char", 65533),
            ty_or("Tsplits", INDEX, DType::I64),
        ],
        infer: encode,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "UnicodeScript",
        summary: "Gives the number that ICU has for the script of each code point; -1 for others.",
        inputs: &[arg_of("input", DType::I32)],
        outputs: &[arg_of("output", DType::I32)],
        infer: infer::unchanged,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "UnicodeTranscode",
        summary: "Writes strings in another encoding.",
        inputs: &[arg_of("input", DType::String)],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[
            string("input_encoding"),
            one_of("output_encoding", ENCODINGS),
            ERRORS,
            int_or("replacement_char", 65533),
            flag("replace_control_characters", false),
        ],
        infer: transcode,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
];

fn check_replacement(context: &OpContext<'_>) -> Result<()> {
    let replacement = context.attrs.int("replacement_char")?;
    match u32::try_from(replacement).ok().and_then(char::from_u32) {
        Some(_) => Ok(()),
        None => Err(context.wrong_attr("replacement_char", "a code point", replacement)),
    }
}

fn decode(context: &mut OpContext<'_>) -> Result<()> {
    check_replacement(context)?;
    let n = context.shape(0).known().map(|shape| shape.num_elements() + 1);
    context.set_all(&PartialShape::vector(None));
    context.set(0, PartialShape::vector(n));
    Ok(())
}

fn encode(context: &mut OpContext<'_>) -> Result<()> {
    check_replacement(context)?;
    context.check_rank(0, 1)?;
    let [n] = context.dims(1)?;
    if n == Some(0) {
        return Err(context.wrong(1, "not empty", context.shape(1)));
    }
    context.set(0, PartialShape::vector(n.map(|n| n - 1)));
    Ok(())
}

fn transcode(context: &mut OpContext<'_>) -> Result<()> {
    check_replacement(context)?;
    infer::unchanged(context)
}
