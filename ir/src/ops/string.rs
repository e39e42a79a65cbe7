//! Text: strings taken apart, joined, searched, hashed, and numbers written and read.

use super::sets::*;
use crate::{
    dtype::DType,
    error::{Code, Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// A string becomes another one.
const MAP: OpDef = OpDef {
    inputs: &[arg_of("input", DType::String)],
    outputs: &[arg_of("output", DType::String)],
    infer: infer::unchanged,
    lowering: Lowering::HostKernel(HostReason::Text),
    ..OpDef::PURE
};

/// A string becomes an integer below `num_buckets`.
const HASH: OpDef = OpDef {
    outputs: &[arg_of("output", DType::I64)],
    attrs: &[int("num_buckets").at_least(1)],
    ..MAP
};

/// A vector of strings becomes the pieces of each, as a sparse matrix.
const SPLIT: OpDef = OpDef {
    outputs: &[
        arg_of("indices", DType::I64),
        arg_of("values", DType::String),
        arg_of("shape", DType::I64),
    ],
    infer: split,
    ..MAP
};

const UNIT: AttrDef = one_of("unit", &["BYTE", "UTF8_CHAR"]).or(AttrDefault::String("BYTE"));

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AsString",
        summary: "Writes numbers as text, as `printf` does.",
        inputs: &[arg("input", "T")],
        attrs: &[
            ty(
                "T",
                &[
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::I64,
                    DType::BF16,
                    DType::U16,
                    DType::F16,
                    DType::U32,
                    DType::U64,
                    DType::C64,
                    DType::C128,
                    DType::Bool,
                    DType::Variant,
                    DType::String,
                ],
            ),
            int_or("precision", -1),
            flag("scientific", false),
            flag("shortest", false),
            int_or("width", -1),
            string_or("fill", ""),
        ],
        infer: as_string,
        ..MAP
    },
    OpDef {
        name: "DecodeBase64",
        summary: "Reads bytes written in the web-safe Base64 alphabet.",
        ..MAP
    },
    OpDef {
        name: "EditDistance",
        summary: "Counts the changes that make one sequence another.",
        inputs: &[
            arg_of("hypothesis_indices", DType::I64),
            arg("hypothesis_values", "T"),
            arg_of("hypothesis_shape", DType::I64),
            arg_of("truth_indices", DType::I64),
            arg("truth_values", "T"),
            arg_of("truth_shape", DType::I64),
        ],
        outputs: &[arg_of("output", DType::F32)],
        attrs: &[flag("normalize", true), any_ty("T")],
        infer: edit_distance,
        lowering: Lowering::HostKernel(HostReason::Sequential),
        ..MAP
    },
    OpDef {
        name: "EncodeBase64",
        summary: "Writes bytes in the web-safe Base64 alphabet.",
        attrs: &[flag("pad", false)],
        ..MAP
    },
    OpDef {
        name: "Fingerprint",
        summary: "Hashes each row to eight bytes.",
        inputs: &[arg("data", "T"), arg_of("method", DType::String)],
        outputs: &[arg_of("fingerprint", DType::U8)],
        attrs: &[any_ty("T")],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            context.check_rank(1, 0)?;
            let rows = context.shape(0).dim(0);
            context.set(0, PartialShape::ranked([rows, Some(8)]));
            Ok(())
        },
        ..MAP
    },
    OpDef {
        name: "ReduceJoin",
        summary: "Joins strings along axes; the first axis named changes fastest.",
        inputs: &[arg_of("inputs", DType::String), arg_of("reduction_indices", DType::I32).host()],
        attrs: &[flag("keep_dims", false), string_or("separator", "")],
        infer: reduce_join,
        ..MAP
    },
    OpDef {
        name: "RegexFullMatch",
        summary: "Tells whether a regular expression matches all of a string.",
        inputs: &[arg_of("input", DType::String), arg_of("pattern", DType::String)],
        outputs: &[arg_of("output", DType::Bool)],
        infer: with_scalars,
        ..MAP
    },
    OpDef {
        name: "RegexReplace",
        summary: "Replaces what a regular expression matches.",
        inputs: &[
            arg_of("input", DType::String),
            arg_of("pattern", DType::String),
            arg_of("rewrite", DType::String),
        ],
        attrs: &[flag("replace_global", true)],
        infer: with_scalars,
        ..MAP
    },
    OpDef {
        name: "SdcaFprint",
        summary: "Gives the fingerprint of each string in two numbers.",
        inputs: &[arg_of("input", DType::String)],
        outputs: &[arg_of("output", DType::I64)],
        infer: |context| {
            let [n] = context.dims::<1>(0)?;
            context.set(0, PartialShape::ranked([n, Some(2)]));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "StaticRegexFullMatch",
        summary: "Tells whether a regular expression matches all of a string.",
        outputs: &[arg_of("output", DType::Bool)],
        attrs: &[string("pattern")],
        ..MAP
    },
    OpDef {
        name: "StaticRegexReplace",
        summary: "Replaces what a regular expression matches.",
        attrs: &[string("pattern"), string("rewrite"), flag("replace_global", true)],
        ..MAP
    },
    OpDef {
        name: "StringFormat",
        summary: "Puts tensors as text into a template.",
        inputs: &[args_list("inputs", "T")],
        attrs: &[
            types("T").at_least(0),
            string_or("template", "%s"),
            string_or("placeholder", "%s"),
            int_or("summarize", 3),
        ],
        infer: infer::scalar,
        ..MAP
    },
    OpDef {
        name: "StringJoin",
        summary: "Joins strings element-wise; scalars go with every element.",
        inputs: &[args_of("inputs", "N", DType::String)],
        attrs: &[int("N").at_least(0), string_or("separator", "")],
        infer: join,
        ..MAP
    },
    OpDef {
        name: "StringLength",
        summary: "Counts the bytes or the UTF-8 characters of strings.",
        outputs: &[arg_of("output", DType::I32)],
        attrs: &[UNIT],
        ..MAP
    },
    OpDef {
        name: "StringLower",
        summary: "Writes strings in lower case, only ASCII unless they are UTF-8.",
        attrs: &[string_or("encoding", "")],
        infer: case,
        ..MAP
    },
    OpDef {
        name: "StringNGrams",
        summary: "Joins neighbours in the rows of a ragged tensor of strings.",
        inputs: &[arg_of("data", DType::String), arg("data_splits", "Tsplits")],
        outputs: &[arg_of("ngrams", DType::String), arg("ngrams_splits", "Tsplits")],
        attrs: &[
            string("separator"),
            ints("ngram_widths").at_least(0),
            string("left_pad"),
            string("right_pad"),
            int("pad_width"),
            required_flag("preserve_short_sequences"),
            ty_or("Tsplits", INDEX, DType::I64),
        ],
        infer: ngrams,
        ..MAP
    },
    OpDef {
        name: "StringSplit",
        summary: "Splits strings at any of the bytes of `delimiter`, or between all bytes.",
        inputs: &[arg_of("input", DType::String), arg_of("delimiter", DType::String)],
        attrs: &[flag("skip_empty", true)],
        ..SPLIT
    },
    OpDef {
        name: "StringSplitV2",
        summary: "Splits strings at a separator, or at white space.",
        inputs: &[arg_of("input", DType::String), arg_of("sep", DType::String)],
        attrs: &[int_or("maxsplit", -1)],
        ..SPLIT
    },
    OpDef { name: "StringStrip", summary: "Takes white space away from both ends.", ..MAP },
    OpDef {
        name: "StringToHashBucket",
        summary: "Hashes strings to integers below `num_buckets`.",
        inputs: &[arg_of("string_tensor", DType::String)],
        ..HASH
    },
    OpDef {
        name: "StringToHashBucketFast",
        summary: "Hashes strings to integers below `num_buckets` by their fingerprints.",
        ..HASH
    },
    OpDef {
        name: "StringToHashBucketStrong",
        summary: "Hashes strings to integers below `num_buckets` under a key.",
        attrs: &[int("num_buckets").at_least(1), ints("key")],
        infer: strong_hash,
        ..HASH
    },
    OpDef {
        name: "StringToNumber",
        summary: "Reads numbers from text.",
        inputs: &[arg_of("string_tensor", DType::String)],
        outputs: &[arg("output", "out_type")],
        attrs: &[ty_or(
            "out_type",
            &[DType::F32, DType::F64, DType::I32, DType::I64, DType::U32, DType::U64],
            DType::F32,
        )],
        ..MAP
    },
    OpDef {
        name: "StringUpper",
        summary: "Writes strings in upper case, only ASCII unless they are UTF-8.",
        attrs: &[string_or("encoding", "")],
        infer: case,
        ..MAP
    },
    OpDef {
        name: "Substr",
        summary: "Takes a part of each string, counted in bytes or UTF-8 characters.",
        inputs: &[arg_of("input", DType::String), arg("pos", "T"), arg("len", "T")],
        attrs: &[ty("T", INDEX), UNIT],
        infer: substr,
        ..MAP
    },
];

fn as_string(context: &mut OpContext<'_>) -> Result<()> {
    let fill = context.attrs.string("fill")?;
    if !["", " ", "+", "-", "0", "#"].contains(&fill) {
        return Err(context.wrong_attr("fill", "one of the flags of printf", fill));
    }
    let scientific = context.attrs.bool("scientific")?;
    let shortest = context.attrs.bool("shortest")?;
    if scientific && shortest {
        return Err(context.wrong_attr("shortest", "false, as `scientific` is not", shortest));
    }
    let dtype = context.dtype(0);
    if !dtype.is_float() && !dtype.is_complex() {
        let precision = context.attrs.int("precision")?;
        if precision >= 0 {
            return Err(context.wrong_attr("precision", format!("-1 for {dtype}"), precision));
        }
        if scientific || shortest {
            return Err(context.wrong_attr("scientific", format!("false for {dtype}"), "true"));
        }
    }
    infer::unchanged(context)
}

/// Ranks of the outer dimensions of the two sparse tensors are the same.
fn edit_distance(context: &mut OpContext<'_>) -> Result<()> {
    let mut rank = None;
    for first in [0, 3] {
        let [n, own_rank] = context.dims(first)?;
        let ([n_values], [shape_rank]) = (context.dims(first + 1)?, context.dims(first + 2)?);
        context.same("numbers of coordinates and elements", n, n_values)?;
        let own_rank = context.same("coordinates of an element and rank", own_rank, shape_rank)?;
        rank = context.same("ranks", rank, own_rank)?;
    }
    if let Some(rank) = rank
        && rank < 2
    {
        return Err(context.wrong(2, "of rank 2 or more", rank));
    }
    let (Some(first), Some(second)) = (context.ints(2)?, context.ints(5)?) else {
        let shape = rank.map_or(PartialShape::Unknown, |rank| PartialShape::of_rank(rank - 1));
        context.set(0, shape);
        return Ok(());
    };
    let outer = first.iter().zip(&second).take(first.len() - 1);
    let sizes = outer.map(|(a, b)| usize::try_from(*a.max(b)).ok());
    context.set(0, PartialShape::ranked(sizes.collect::<Vec<_>>()));
    Ok(())
}

fn reduce_join(context: &mut OpContext<'_>) -> Result<()> {
    let axes_shape = context.shape(1);
    if axes_shape.rank().is_some_and(|rank| rank > 1) {
        return Err(context.wrong(1, "a scalar or a vector", axes_shape));
    }
    let (Some(dims), Some(axes)) = (context.shape(0).dims(), context.ints(1)?) else {
        return Ok(());
    };
    let rank = dims.len() as i64;
    if let Some(axis) = axes.iter().find(|axis| !(-rank..rank).contains(axis)) {
        let detail = format!("there is no dimension {axis} among {rank}");
        return Err(Error::Status { code: Code::OutOfRange, op: "ReduceJoin".into(), detail });
    }
    infer::reduction(context)
}

/// The first input is mapped, the others are scalars.
fn with_scalars(context: &mut OpContext<'_>) -> Result<()> {
    for index in 1..context.n_inputs() {
        context.check_rank(index, 0)?;
    }
    infer::unchanged(context)
}

fn join(context: &mut OpContext<'_>) -> Result<()> {
    let mut joined = PartialShape::scalar();
    for index in 0..context.n_inputs() {
        let shape = context.shape(index);
        if shape.rank() == Some(0) {
            continue;
        }
        joined = match joined.rank() {
            Some(0) => shape.clone(),
            _ => joined.merge(shape).ok_or_else(|| {
                context.wrong(index, format!("a scalar or of shape {joined}"), shape)
            })?,
        };
    }
    context.set(0, joined);
    Ok(())
}

fn case(context: &mut OpContext<'_>) -> Result<()> {
    let encoding = context.attrs.string("encoding")?;
    if !["", "utf-8"].contains(&encoding) {
        return Err(context.wrong_attr("encoding", "empty or utf-8", encoding));
    }
    infer::unchanged(context)
}

fn ngrams(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.check_rank(1, 1)?;
    if let Some(width) = context.attrs.ints("ngram_widths")?.iter().find(|&&width| width <= 0) {
        return Err(context.wrong_attr("ngram_widths", "positive", width));
    }
    context.set(0, PartialShape::vector(None));
    context.set(1, context.shape(1).clone());
    Ok(())
}

fn split(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.check_rank(1, 0)?;
    context.set(0, PartialShape::ranked([None, Some(2)]));
    context.set(1, PartialShape::vector(None));
    context.set(2, PartialShape::vector(Some(2)));
    Ok(())
}

fn strong_hash(context: &mut OpContext<'_>) -> Result<()> {
    let key = context.attrs.ints("key")?;
    if key.len() != 2 {
        return Err(context.wrong_attr("key", "2 integers", key.len()));
    }
    infer::unchanged(context)
}

fn substr(context: &mut OpContext<'_>) -> Result<()> {
    let position = context.merged(1, 2)?;
    let input = context.shape(0);
    let shape =
        if position.rank() == Some(0) { input.clone() } else { input.broadcast(&position)? };
    if shape.rank().is_some_and(|rank| rank > 2) && *input != position && position.rank() != Some(0)
    {
        let what = format!("broadcasting to {shape}").into();
        return Err(Error::Unsupported { op: "Substr".into(), what });
    }
    context.set(0, shape);
    Ok(())
}
