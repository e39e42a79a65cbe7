//! The ops of the tensorflow_text library: normal forms, tokenizers, trimming, tags, metrics.
//!
//! Ragged arguments and results are pairs of values and row splits.

use super::sets::*;
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// Strings mapped one by one.
const MAP: OpDef = OpDef {
    inputs: &[arg_of("input", DType::String)],
    outputs: &[arg_of("output", DType::String)],
    infer: infer::unchanged,
    lowering: Lowering::HostKernel(HostReason::Text),
    ..OpDef::PURE
};

/// Vectors in, vectors of unknown length out.
const VECTORS: OpDef = OpDef { infer: vectors, ..MAP };

const FORM: AttrDef = string("normalization_form");

const FORCE_SPLIT: &str = "force_split_at_break_character";

/// Code points of several texts, split into tokens.
const CODE_POINTS: OpDef = OpDef {
    inputs: &[arg_of("input_values", DType::I32), arg("input_splits", "Tsplits")],
    outputs: &[
        arg_of("output_values", DType::I32),
        arg("output_values_inner_splits", "Tsplits"),
        arg_of("output_offset_starts", DType::I64),
        arg_of("output_offset_limits", DType::I64),
        arg("output_outer_splits", "Tsplits"),
    ],
    ..VECTORS
};

const TSPLITS: AttrDef = ty_or("Tsplits", INDEX, DType::I64);

/// Several ragged tensors cut to one budget.
const ROUND_ROBIN: OpDef = OpDef {
    inputs: &[
        arg_of("max_sequence_length", DType::I32),
        args("input_values", "N", "T"),
        args("input_row_splits", "N", "Tsplits"),
    ],
    attrs: &[int("N").at_least(1), any_ty("T"), ty("Tsplits", INDEX)],
    ..VECTORS
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "CaseFoldUTF8",
        summary: "Folds case and compatibility forms (`NFKC_Casefold`).",
        ..MAP
    },
    OpDef {
        name: "ConstrainedSequence",
        summary: "Finds the best sequence of states that the allowed transitions permit.",
        inputs: &[
            arg_of("scores", DType::F32),
            arg("sequence_lengths", "Tin"),
            arg_of("allowed_transitions", DType::Bool),
            arg_of("transition_weights", DType::F32),
        ],
        outputs: &[arg_of("states", DType::I32), arg("states_splits", "Tsplits")],
        attrs: &[
            ty("Tin", INDEX),
            TSPLITS,
            required_flag("use_viterbi"),
            required_flag("use_log_space"),
            required_flag("use_start_and_end_states"),
        ],
        infer: |context| {
            context.set_all(&PartialShape::vector(None));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..MAP
    },
    OpDef {
        name: "FastBertNormalize",
        summary: "Normalizes text character by character, by a model's table.",
        inputs: &[
            arg_of("input_values", DType::String),
            arg_of("fast_bert_normalizer_model", DType::U8),
        ],
        outputs: &[
            arg_of("output_values", DType::String),
            arg_of("output_offsets", DType::I64),
            arg_of("output_row_splits", DType::I64),
        ],
        attrs: &[flag("get_offsets", false)],
        infer: |context| {
            vectors(context)?;
            context.set(0, context.shape(0).clone());
            rows(context, 2)
        },
        ..MAP
    },
    OpDef {
        name: "FastWordpieceTokenizeWithOffsets",
        summary: "Splits text or words into the longest pieces that a model's vocabulary has.",
        inputs: &[arg_of("input_values", DType::String), arg_of("wp_model", DType::U8)],
        outputs: &[
            arg_of("output_subwords", DType::String),
            arg_of("output_ids", DType::I64),
            arg_of("output_row_splits", DType::I64),
            arg_of("start_values", DType::I64),
            arg_of("end_values", DType::I64),
        ],
        infer: |context| {
            vectors(context)?;
            rows(context, 2)
        },
        ..MAP
    },
    OpDef {
        name: "FindSourceOffsets",
        summary: "Maps byte offsets in normalized text to those in the text before.",
        inputs: &[
            arg_of("offsets_map", DType::Variant),
            arg_of("input_offsets_values", DType::I64),
            arg("input_offsets_splits", "Tsplits"),
        ],
        outputs: &[arg_of("output_offsets_values", DType::I64)],
        attrs: &[TSPLITS],
        infer: |context| {
            (0..3).try_for_each(|index| context.check_rank(index, 1))?;
            context.set(0, context.shape(1).clone());
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "MaxSpanningTree",
        summary: "Finds the spanning tree of the highest score in each directed graph.",
        inputs: &[arg_of("num_nodes", DType::I32), arg("scores", "T")],
        outputs: &[arg("max_scores", "T"), arg_of("argmax_sources", DType::I32)],
        attrs: &[ty("T", &[DType::I32, DType::F32, DType::F64]), flag("forest", false)],
        infer: spanning_tree,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..MAP
    },
    OpDef {
        name: "NormalizeUTF8",
        summary: "Brings text into a Unicode normal form.",
        attrs: &[FORM],
        ..MAP
    },
    OpDef {
        name: "NormalizeUTF8WithOffsetsMap",
        summary: "Brings text into a Unicode normal form, and keeps what was changed where.",
        outputs: &[arg_of("output", DType::String), arg_of("offsets_map", DType::Variant)],
        attrs: &[FORM],
        infer: |context| {
            context.set_all(&context.shape(0).clone());
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "PhraseTokenize",
        summary: "Splits text into the longest phrases that a model's vocabulary has.",
        inputs: &[arg_of("input_values", DType::String), arg_of("phrase_model", DType::U8)],
        outputs: &[
            arg_of("output_subwords", DType::String),
            arg_of("output_ids", DType::I64),
            arg_of("output_row_splits", DType::I64),
        ],
        infer: |context| {
            vectors(context)?;
            rows(context, 2)
        },
        ..MAP
    },
    OpDef {
        name: "RegexSplitWithOffsets",
        summary: "Splits text where a regular expression matches.",
        inputs: &[
            arg_of("input", DType::String),
            arg_of("delim_regex_pattern", DType::String),
            arg_of("keep_delim_regex_pattern", DType::String),
        ],
        outputs: &[
            arg_of("tokens", DType::String),
            arg_of("begin_offsets", DType::I64),
            arg_of("end_offsets", DType::I64),
            arg_of("row_splits", DType::I64),
        ],
        infer: |context| {
            context.check_rank(1, 0)?;
            context.check_rank(2, 0)?;
            context.set_all(&PartialShape::vector(None));
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "RougeL",
        summary: "Scores hypotheses by the longest common subsequence with a reference.",
        inputs: &[
            arg("hyp_values", "Tvalues"),
            arg("hyp_splits", "Tsplits"),
            arg("ref_values", "Tvalues"),
            arg("ref_splits", "Tsplits"),
            arg_of("alpha", DType::F32),
        ],
        outputs: &[
            arg_of("f_measure", DType::F32),
            arg_of("p_measure", DType::F32),
            arg_of("r_measure", DType::F32),
        ],
        attrs: &[TSPLITS, any_ty("Tvalues")],
        infer: |context| {
            (0..4).try_for_each(|index| context.check_rank(index, 1))?;
            context.check_rank(4, 0)?;
            context.merged(1, 3)?;
            let [n] = context.dims(1)?;
            context.set_all(&PartialShape::vector(n.map(|n| n.saturating_sub(1))));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..MAP
    },
    OpDef {
        name: "SentenceFragments",
        summary: "Splits token sequences into sentence fragments.",
        inputs: &[
            arg_of("row_lengths", DType::I64),
            arg_of("token_start", DType::I64),
            arg_of("token_end", DType::I64),
            arg_of("token_word", DType::String),
            arg_of("token_properties", DType::I64),
        ],
        outputs: FRAGMENTS,
        attrs: &[
            string("input_encoding"),
            one_of("errors", &["strict", "replace", "ignore"]).or(AttrDefault::String("replace")),
            int_or("replacement_char", 65533),
            flag("replace_control_characters", false),
        ],
        ..VECTORS
    },
    OpDef {
        name: "SentenceFragmentsV2",
        summary: "Splits text into sentence fragments by terminal punctuation.",
        inputs: &[arg_of("doc", DType::String)],
        outputs: FRAGMENTS,
        ..VECTORS
    },
    OpDef {
        name: "SplitMergeTokenizeWithOffsets",
        summary: "Splits text into tokens by a label for each character.",
        inputs: &[
            arg_of("input_values", DType::String),
            arg_of("labels", DType::I32),
            arg_of("row_splits", DType::I32),
        ],
        outputs: &[
            arg_of("output_values", DType::String),
            arg_of("output_row_splits", DType::I64),
            arg_of("start_values", DType::I64),
            arg_of("limit_values", DType::I64),
        ],
        attrs: &[flag(FORCE_SPLIT, true)],
        infer: |context| {
            vectors(context)?;
            rows(context, 1)
        },
        ..MAP
    },
    OpDef {
        name: "TFText>BoiseTagsToOffsets",
        summary: "Turns tags of tokens into the spans they mark.",
        inputs: &[
            arg_of("input_token_begin_offsets", DType::I32),
            arg_of("input_token_end_offsets", DType::I32),
            arg_of("input_boise_tags", DType::String),
            arg_of("input_token_begin_row_splits", DType::I64),
            arg_of("input_token_end_row_splits", DType::I64),
            arg_of("input_boise_tags_row_splits", DType::I64),
        ],
        outputs: &[
            arg_of("output_span_begin_offsets", DType::I32),
            arg_of("output_span_end_offsets", DType::I32),
            arg_of("output_span_type", DType::String),
            arg_of("output_row_splits", DType::I64),
        ],
        ..VECTORS
    },
    OpDef {
        name: "TFText>ByteSplitByOffsets",
        summary: "Cuts byte ranges out of strings.",
        inputs: &[
            arg_of("input_values", DType::String),
            arg_of("input_start_offsets", DType::I32),
            arg_of("input_end_offsets", DType::I32),
            arg_of("input_row_splits", DType::I64),
        ],
        outputs: &[arg_of("output_values", DType::String), arg_of("output_row_splits", DType::I64)],
        infer: |context| {
            vectors(context)?;
            context.set(1, context.shape(3).clone());
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "TFText>ByteSplitWithOffsets",
        summary: "Splits strings into bytes.",
        inputs: &[arg_of("input_values", DType::String)],
        outputs: &[
            arg_of("output_bytes", DType::U8),
            arg_of("output_row_splits", DType::I64),
            arg_of("output_start_offsets", DType::I32),
            arg_of("output_end_offsets", DType::I32),
        ],
        infer: |context| {
            vectors(context)?;
            rows(context, 1)
        },
        ..MAP
    },
    OpDef {
        name: "TFText>FastWordpieceDetokenize",
        summary: "Joins word pieces of a model's vocabulary to text.",
        inputs: &[
            arg_of("input_values", DType::I32),
            arg_of("input_row_splits", DType::I64),
            arg_of("wp_model", DType::U8),
        ],
        outputs: &[arg_of("output_words", DType::String)],
        ..VECTORS
    },
    OpDef {
        name: "TFText>NgramsStringJoin",
        summary: "Joins each window of neighbouring strings.",
        inputs: &[
            arg_of("input_values", DType::String),
            args("input_row_splits", "RAGGED_RANK", "Tsplits"),
        ],
        outputs: &[
            arg_of("output_values", DType::String),
            args("output_row_splits", "RAGGED_RANK", "Tsplits"),
        ],
        attrs: &[
            int("width"),
            int("axis"),
            string("string_separator"),
            int("RAGGED_RANK").at_least(0),
            ty_or("Tsplits", &[DType::I64], DType::I64),
        ],
        infer: ngrams,
        ..MAP
    },
    OpDef {
        name: "TFText>OffsetsToBoiseTags",
        summary: "Tags tokens by their place in spans: beginning, inside, end, singleton, outside.",
        inputs: &[
            arg_of("input_token_begin_offsets", DType::I32),
            arg_of("input_token_end_offsets", DType::I32),
            arg_of("input_span_begin_offsets", DType::I32),
            arg_of("input_span_end_offsets", DType::I32),
            arg_of("input_span_type", DType::String),
            arg_of("input_token_begin_row_splits", DType::I64),
            arg_of("input_token_end_row_splits", DType::I64),
            arg_of("input_span_begin_row_splits", DType::I64),
            arg_of("input_span_end_row_splits", DType::I64),
            arg_of("input_span_type_row_splits", DType::I64),
            arg_of("input_use_strict_boundary_mode", DType::Bool),
        ],
        outputs: &[arg_of("output_boise_tags", DType::String)],
        infer: |context| {
            (0..10).try_for_each(|index| context.check_rank(index, 1))?;
            context.set(0, PartialShape::vector(None));
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "TFText>PhraseDetokenize",
        summary: "Joins phrases of a model's vocabulary to text.",
        inputs: &[
            arg_of("input_values", DType::I32),
            arg_of("input_row_splits", DType::I64),
            arg_of("phrase_model", DType::U8),
        ],
        outputs: &[arg_of("output_words", DType::String)],
        ..VECTORS
    },
    OpDef {
        name: "TFText>RoundRobinGenerateMasks",
        summary: "Marks the values that round-robin trimming keeps.",
        outputs: &[args_of("masks", "N", DType::Bool)],
        infer: |context| {
            let n = round_robin(context)?;
            (0..n).for_each(|index| context.set(index, context.shape(1 + index).clone()));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..ROUND_ROBIN
    },
    OpDef {
        name: "TFText>RoundRobinTrim",
        summary: "Trims segments to a budget, which they get value by value in turn.",
        outputs: &[args("values", "N", "T"), args("row_splits", "N", "Tsplits")],
        infer: |context| {
            let n = round_robin(context)?;
            for index in 0..n {
                context.set(index, PartialShape::vector(None));
                context.set(n + index, context.shape(1 + n + index).clone());
            }
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        ..ROUND_ROBIN
    },
    OpDef {
        name: "TFText>Utf8Binarize",
        summary: "Writes the bits of the first characters of each word as numbers 0 and 1.",
        inputs: &[arg_of("input_tokens", DType::String)],
        outputs: &[arg_of("output_binarizations", DType::F32)],
        attrs: &[int("word_length"), int("bits_per_char"), int("replacement_char")],
        infer: binarize,
        ..MAP
    },
    OpDef {
        name: "TFText>WhitespaceTokenizeWithOffsetsV2",
        summary: "Splits text at the white space that a table names.",
        inputs: &[arg_of("input_values", DType::String), arg_of("input_config", DType::String)],
        outputs: &[
            arg_of("output_tokens", DType::String),
            arg_of("output_row_splits", DType::I64),
            arg_of("output_start_offsets", DType::I32),
            arg_of("output_end_offsets", DType::I32),
        ],
        infer: |context| {
            context.check_rank(0, 1)?;
            context.check_rank(1, 0)?;
            context.set_all(&PartialShape::vector(None));
            rows(context, 1)
        },
        ..MAP
    },
    OpDef {
        name: "TokenizerFromLogits",
        summary: "Splits text into tokens where a character's split score is the higher one.",
        inputs: &[
            arg_of("strings", DType::String),
            arg_of("logits", DType::F32),
            arg_of(FORCE_SPLIT, DType::Bool),
        ],
        outputs: &[
            arg_of("output_values", DType::String),
            arg_of("row_splits", DType::I64),
            arg_of("start_values", DType::I64),
            arg_of("limit_values", DType::I64),
        ],
        infer: |context| {
            context.check_rank(0, 1)?;
            context.check_rank(1, 3)?;
            context.check_rank(2, 0)?;
            context.set_all(&PartialShape::vector(None));
            rows(context, 1)
        },
        ..MAP
    },
    OpDef {
        name: "UnicodeScriptTokenizeWithOffsets",
        summary: "Splits text where the script changes.",
        attrs: &[TSPLITS, flag("keep_whitespace", false)],
        ..CODE_POINTS
    },
    OpDef {
        name: "WhitespaceTokenizeWithOffsets",
        summary: "Splits text at white space.",
        attrs: &[TSPLITS],
        ..CODE_POINTS
    },
    OpDef {
        name: "WordpieceTokenizeWithOffsets",
        summary: "Splits words into the longest pieces that a lookup table has.",
        inputs: &[
            arg_of("input_values", DType::String),
            arg_of("vocab_lookup_table", DType::Resource),
        ],
        outputs: &[
            arg_of("output_values", DType::String),
            arg_of("output_row_lengths", DType::I64),
            arg_of("start_values", DType::I64),
            arg_of("limit_values", DType::I64),
        ],
        attrs: &[
            string("suffix_indicator"),
            int("max_bytes_per_word"),
            int_or("max_chars_per_token", 0),
            required_flag("use_unknown_token"),
            string("unknown_token"),
            flag("split_unknown_characters", false),
            one_of("output_row_partition_type", &["row_lengths", "row_splits"])
                .or(AttrDefault::String("row_lengths")),
        ],
        infer: wordpiece,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
];

const FRAGMENTS: &[ArgDef] = &[
    arg_of("fragment_start", DType::I64),
    arg_of("fragment_end", DType::I64),
    arg_of("fragment_properties", DType::I64),
    arg_of("terminal_punc_token", DType::I64),
    arg_of("output_row_lengths", DType::I64),
];

/// Vectors in, vectors of unknown length out.
fn vectors(context: &mut OpContext<'_>) -> Result<()> {
    (0..context.n_inputs()).try_for_each(|index| context.check_rank(index, 1))?;
    context.set_all(&PartialShape::vector(None));
    Ok(())
}

/// Sets an output to row splits for the elements of input 0.
fn rows(context: &mut OpContext<'_>, output: usize) -> Result<()> {
    let [n] = context.dims(0)?;
    context.set(output, PartialShape::vector(n.map(|n| n + 1)));
    Ok(())
}

fn spanning_tree(context: &mut OpContext<'_>) -> Result<()> {
    let ([n], [batch, rows, columns]) = (context.dims(0)?, context.dims(1)?);
    let batch = context.same("num_nodes", n, batch)?;
    let nodes = context.same("scores", rows, columns)?;
    context.set(0, PartialShape::vector(batch));
    context.set(1, PartialShape::ranked([batch, nodes]));
    Ok(())
}

fn ngrams(context: &mut OpContext<'_>) -> Result<()> {
    let n_splits = context.n_inputs() - 1;
    for index in 1..=n_splits {
        context.check_rank(index, 1)?;
        context.set(index, context.shape(index).clone());
    }
    context.check_rank_at_least(0, 1)?;
    let width = context.attrs.int("width")?;
    let width = usize::try_from(width).ok().filter(|width| *width > 0);
    let Some(width) = width else {
        let found = context.attrs.int("width")?;
        return Err(context.wrong_attr("width", "at least 1", found));
    };
    if n_splits > 0 {
        context.check_rank(0, 1)?;
        context.set(0, PartialShape::vector(None));
        return Ok(());
    }
    let windows = |last: usize| (last + 1).saturating_sub(width);
    let dims = context.shape(0).dims().map(|dims| {
        let (last, outer) = dims.split_last().expect("the rank is checked");
        outer.iter().copied().chain([last.map(windows)]).collect::<Vec<_>>()
    });
    context.set(0, dims.map_or(PartialShape::Unknown, PartialShape::ranked));
    Ok(())
}

/// Checks the segments, and tells how many there are.
fn round_robin(context: &mut OpContext<'_>) -> Result<usize> {
    context.check_rank(0, 0)?;
    (1..context.n_inputs()).try_for_each(|index| context.check_rank(index, 1))?;
    Ok((context.n_inputs() - 1) / 2)
}

fn binarize(context: &mut OpContext<'_>) -> Result<()> {
    let [n] = context.dims(0)?;
    let (length, bits) = (context.attrs.int("word_length")?, context.attrs.int("bits_per_char")?);
    let count = |value: i64| usize::try_from(value).ok().filter(|value| *value <= 1 << 20);
    match (count(length), count(bits)) {
        (Some(length), Some(bits)) if bits <= 32 => {
            context.set(0, PartialShape::ranked([n, Some(length * bits)]));
            Ok(())
        }
        (Some(_), _) => Err(context.wrong_attr("bits_per_char", "from 0 to 32", bits)),
        (None, _) => Err(context.wrong_attr("word_length", "a count of characters", length)),
    }
}

fn wordpiece(context: &mut OpContext<'_>) -> Result<()> {
    let [n] = context.dims(0)?;
    context.check_rank(1, 0)?;
    context.set_all(&PartialShape::vector(None));
    let extra = usize::from(context.attrs.string("output_row_partition_type")? == "row_splits");
    context.set(1, PartialShape::vector(n.map(|n| n + extra)));
    Ok(())
}
