//! SentencePiece: text to pieces of a learned vocabulary and back.

use super::sets::*;
use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

const PIECES: &[DType] = &[DType::I32, DType::String];

const MODEL: ArgDef = arg_of("sp_handle", DType::Resource);

const ENDS: [ArgDef; 3] = [
    arg_of("add_bos", DType::Bool),
    arg_of("add_eos", DType::Bool),
    arg_of("reverse", DType::Bool),
];

/// Text becomes pieces.
const TOKENIZE: OpDef = OpDef {
    inputs: &[
        MODEL,
        arg_of("input", DType::String),
        arg_of("nbest_size", DType::I32),
        arg_of("alpha", DType::F32),
        ENDS[0],
        ENDS[1],
        ENDS[2],
    ],
    attrs: &[
        ty_or("out_type", PIECES, DType::I32),
        ty_or("Tsplits", INDEX, DType::I64),
        flag("return_nbest", false),
    ],
    infer: tokenize,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// Pieces are looked up.
const LOOK_UP: OpDef = OpDef {
    infer: |context| {
        context.check_rank(0, 0)?;
        context.check_rank(1, 1)?;
        context.set(0, context.shape(1).clone());
        Ok(())
    },
    lowering: Lowering::Runtime,
    ..OpDef::READS
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "SentencepieceDetokenizeOp",
        summary: "Joins pieces to text.",
        inputs: &[
            MODEL,
            arg("input_values", "T"),
            arg("input_splits", "Tsplits"),
            ENDS[0],
            ENDS[1],
            ENDS[2],
        ],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[ty_or("T", PIECES, DType::I32), ty_or("Tsplits", INDEX, DType::I64)],
        infer: |context| {
            [3, 4, 5].into_iter().try_for_each(|index| context.check_rank(index, 0))?;
            detokenize(context)
        },
        ..LOOK_UP
    },
    OpDef {
        name: "SentencepieceIdToStringOp",
        summary: "Gives the pieces that numbers stand for.",
        inputs: &[MODEL, arg_of("input", DType::I32)],
        outputs: &[arg_of("values", DType::String)],
        ..LOOK_UP
    },
    OpDef {
        name: "SentencepieceOp",
        summary: "Makes a SentencePiece model of its serialized form, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            string_or("model", ""),
            string_or("container", ""),
            string_or("shared_name", ""),
            flag("use_node_name_sharing", false),
        ],
        infer: crate::infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SentencepieceStringToIdOp",
        summary: "Gives the numbers of pieces.",
        inputs: &[MODEL, arg_of("input", DType::String)],
        outputs: &[arg_of("values", DType::I32)],
        ..LOOK_UP
    },
    OpDef {
        name: "SentencepieceTokenizeOp",
        summary: "Splits text into pieces: the best split, a random one, or the n best.",
        outputs: &[arg("output_values", "out_type"), arg("output_splits", "Tsplits")],
        ..TOKENIZE
    },
    OpDef {
        name: "SentencepieceTokenizeWithOffsetsOp",
        summary: "Splits text into pieces, and tells the bytes each stands for.",
        outputs: &[
            arg("output_values", "out_type"),
            arg("output_splits", "Tsplits"),
            arg_of("output_offset_starts", DType::I64),
            arg_of("output_offset_limits", DType::I64),
        ],
        ..TOKENIZE
    },
    OpDef {
        name: "SentencepieceVocabSizeOp",
        summary: "Counts the pieces of a model.",
        inputs: &[MODEL],
        outputs: &[arg_of("vocab_size", DType::I32)],
        infer: crate::infer::scalar,
        ..LOOK_UP
    },
    OpDef {
        name: "TFText>FastSentencepieceDetokenize",
        summary: "Joins pieces of a converted SentencePiece model to text.",
        inputs: &[
            arg_of("sp_model", DType::U8),
            arg_of("input_values", DType::I32),
            arg("input_splits", "Tsplits"),
        ],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[ty_or("Tsplits", INDEX, DType::I64)],
        infer: detokenize,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "TFText>FastSentencepieceTokenize",
        summary: "Splits text into pieces of a converted SentencePiece model.",
        inputs: &[
            arg_of("sp_model", DType::U8),
            arg_of("input", DType::String),
            arg_of("nbest_size", DType::I32),
            arg_of("alpha", DType::F32),
            ENDS[0],
            ENDS[1],
            ENDS[2],
        ],
        outputs: &[arg("output_values", "out_type"), arg("output_splits", "Tsplits")],
        attrs: &[ty_or("out_type", PIECES, DType::I32), ty_or("Tsplits", INDEX, DType::I32)],
        infer: tokenize,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
];

fn tokenize(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    (2..7).try_for_each(|index| context.check_rank(index, 0))?;
    context.set_all(&PartialShape::vector(None));
    let n_best =
        context.attrs.get("return_nbest").is_some() && context.attrs.bool("return_nbest")?;
    if !n_best {
        let [n] = context.dims(1)?;
        context.set(1, PartialShape::vector(n.map(|n| n + 1)));
    }
    Ok(())
}

fn detokenize(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let [n] = context.dims(2)?;
    context.set(0, PartialShape::vector(n.map(|n| n.saturating_sub(1))));
    Ok(())
}
