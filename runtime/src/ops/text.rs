//! Tokenizers that keep their vocabulary in a resource: word pieces by a lookup table,
//! SentencePiece.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    resource::Resource,
    table::LookupTable,
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape, workspace};
use ferroflow_kernels::{
    check_size,
    sentencepiece::{Pieces, Sampling, SentencepieceModel, SpecialPieces},
    wordpiece::{WordpieceRule, Wordpieces},
};
use smallvec::SmallVec;
use std::sync::Arc;

fn wrong(call: &RuntimeCall<'_>, argument: &'static str, expected: &'static str) -> Error {
    IrError::argument(call.op.name, argument, expected, "something else").into()
}

/// A vector of strings.
fn texts(call: &RuntimeCall<'_>, texts: Vec<Bytes>) -> Result<HostTensor> {
    let shape = Shape::new([texts.len()])?;
    check_size(DType::String, &shape, call.context().limits().tensor_bytes)?;
    Ok(HostTensor::from_strings(shape, texts)?)
}

/// A vector of integers of 64 bits.
fn integers(call: &RuntimeCall<'_>, values: &[i64]) -> Result<HostTensor> {
    let shape = Shape::new([values.len()])?;
    check_size(DType::I64, &shape, call.context().limits().tensor_bytes)?;
    Ok(HostTensor::from_slice(shape, values)?)
}

/// A vector of positions, of the index type of an attribute.
fn splits(call: &RuntimeCall<'_>, attr: &str, values: &[usize]) -> Result<HostTensor> {
    let shape = Shape::new([values.len()])?;
    Ok(match call.attrs.dtype(attr)? {
        DType::I32 => {
            let values: Vec<i32> = values.iter().map(|value| *value as i32).collect();
            HostTensor::from_slice(shape, &values)?
        }
        _ => {
            let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
            HostTensor::from_slice(shape, &values)?
        }
    })
}

fn wordpieces(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let attrs = call.attrs;
    let use_unknown = attrs.bool("use_unknown_token")?;
    let size = |name| Ok::<_, Error>(usize::try_from(attrs.int(name)?).unwrap_or(0));
    let rule = WordpieceRule {
        suffix_indicator: attrs.bytes("suffix_indicator")?.clone(),
        max_bytes_per_word: size("max_bytes_per_word")?,
        max_chars_per_token: size("max_chars_per_token")?,
        unknown_token: use_unknown.then(|| attrs.bytes("unknown_token").cloned()).transpose()?,
        split_unknown_characters: attrs.bool("split_unknown_characters")?,
    };
    let table: Arc<LookupTable> = call.resource(1, "a lookup table")?;
    let (mut pieces, mut ends) = (Wordpieces::default(), vec![0]);
    table.look_up(|find| {
        // Words of the vocabulary stand for any number but this one.
        let has = |key: &[u8]| Ok::<_, Error>(find(key).is_some_and(|number| number != -1));
        call.host(0)?.strings()?.iter().try_for_each(|word| {
            rule.tokenize(word, has, &mut pieces)?;
            ends.push(pieces.texts.len() as i64);
            Ok::<_, Error>(())
        })
    })??;
    if attrs.string("output_row_partition_type")? == "row_lengths" {
        ends = ends.windows(2).map(|ends| ends[1] - ends[0]).collect();
    }
    Ok(SmallVec::from_iter([
        texts(call, pieces.texts)?.into(),
        integers(call, &ends)?.into(),
        integers(call, &pieces.starts)?.into(),
        integers(call, &pieces.limits)?.into(),
    ]))
}

/// A SentencePiece model behind a handle.
#[derive(Debug)]
struct Sentencepiece(Arc<SentencepieceModel>);

impl Resource for Sentencepiece {
    fn kind(&self) -> &'static str {
        "a SentencePiece model"
    }
}

fn model(call: &RuntimeCall<'_>) -> Result<Arc<SentencepieceModel>> {
    let resource: Arc<Sentencepiece> = call.resource(0, "a SentencePiece model")?;
    Ok(resource.0.clone())
}

/// A model behind a handle, or the one of the name that the call returns.
fn create(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let attrs = call.attrs;
    let make = || -> Result<Arc<dyn Resource>> {
        let proto = attrs.bytes("model")?;
        if proto.is_empty() {
            return Err(wrong(call, "model", "a serialized model"));
        }
        Ok(Arc::new(Sentencepiece(SentencepieceModel::shared(proto)?)))
    };
    one(call.named_resource(make)?.to_tensor())
}

/// The only element of an input, or the one of each text.
fn per_text<T: Copy>(
    call: &RuntimeCall<'_>,
    input: usize,
    values: &[T],
    n: usize,
) -> Result<Vec<T>> {
    match values {
        [only] => Ok(workspace::filled(*only, n)?),
        _ if values.len() == n => Ok(values.to_vec()),
        _ => Err(wrong(call, call.op.inputs[input].name, "a scalar")),
    }
}

fn ends(call: &RuntimeCall<'_>, first: usize) -> Result<SpecialPieces> {
    let flag = |input: usize| -> Result<bool> {
        let tensor = call.host(input)?;
        match tensor.bytes() {
            [flag] => Ok(*flag != 0),
            _ => Err(wrong(call, call.op.inputs[input].name, "a scalar")),
        }
    };
    Ok(SpecialPieces { bos: flag(first)?, eos: flag(first + 1)?, reverse: flag(first + 2)? })
}

/// Sampling of each text.
fn samplings(call: &RuntimeCall<'_>, n: usize) -> Result<Vec<Sampling>> {
    let sizes = per_text(call, 2, &call.host(2)?.to_i64s()?, n)?;
    let alphas: &[f32] = call.host(3)?.as_slice()?;
    let alphas = per_text(call, 3, alphas, n)?;
    let each = call.attrs.bool("return_nbest")?;
    let sampling = |(size, alpha): (i64, f32)| match (each, usize::try_from(size)) {
        (true, Ok(n @ 1..)) => Ok(Sampling::Each { n }),
        (true, _) => Err(wrong(call, "nbest_size", "at least 1 with `return_nbest`")),
        (false, Ok(0 | 1)) => Ok(Sampling::Best),
        (false, n) => Ok(Sampling::Random { n: n.ok(), alpha }),
    };
    sizes.into_iter().zip(alphas).map(sampling).collect()
}

fn tokenize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (model, ends) = (model(call)?, ends(call, 4)?);
    let input = call.host(1)?.strings()?;
    let with_texts = call.attrs.dtype("out_type")? == DType::String;
    let mut pieces = Pieces::new(with_texts);
    for (text, sampling) in input.iter().zip(samplings(call, input.len())?) {
        model.encode(text, sampling, ends, &mut pieces)?;
    }
    let shape = Shape::new([pieces.ids.len()])?;
    check_size(DType::I32, &shape, call.context().limits().tensor_bytes)?;
    let values = match pieces.texts.take() {
        Some(pieces) => texts(call, pieces)?,
        None => HostTensor::from_slice(shape, &pieces.ids)?,
    };
    let mut results =
        Results::from_iter([values.into(), splits(call, "Tsplits", &pieces.splits)?.into()]);
    if call.op.outputs.len() > 2 {
        results.push(integers(call, &pieces.starts)?.into());
        results.push(integers(call, &pieces.limits)?.into());
    }
    Ok(results)
}

fn detokenize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (model, ends) = (model(call)?, ends(call, 3)?);
    let (values, splits) = (call.host(1)?, call.host(2)?.to_i64s()?);
    let split_index = |split: i64| match usize::try_from(split) {
        Ok(place) if place <= values.len() => Ok(place),
        _ => {
            let expected = format!("from 0 to {}", values.len());
            Err(Error::from(IrError::argument(call.op.name, "input_splits", expected, split)))
        }
    };
    if splits.is_empty() {
        return Err(wrong(call, "input_splits", "not empty"));
    }
    let row = |ends: &[i64]| -> Result<std::ops::Range<usize>> {
        let (start, end) = (split_index(ends[0])?, split_index(ends[1])?);
        Ok(start..end.max(start))
    };
    let rows = splits.windows(2).map(row).collect::<Result<Vec<_>>>()?;
    // As in the library, nothing is put around pieces where there are none at all.
    let nothing = values.is_empty();
    let text = |row: std::ops::Range<usize>| -> Result<Bytes> {
        Ok(match values.dtype() {
            _ if nothing => Bytes::new(),
            DType::String => model.decode(&values.strings()?[row], ends)?,
            _ => model.decode_ids(&values.as_slice::<i32>()?[row], ends)?,
        })
    };
    let joined = rows.into_iter().map(text).collect::<Result<_>>()?;
    one(texts(call, joined)?)
}

fn id_to_string(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (model, ids) = (model(call)?, call.host(1)?);
    let pieces = ids.as_slice::<i32>()?.iter().map(|id| Ok(model.piece(*id)?));
    let pieces = pieces.collect::<Result<_>>()?;
    one(HostTensor::from_strings(ids.shape().clone(), pieces)?)
}

fn string_to_id(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (model, pieces) = (model(call)?, call.host(1)?);
    let ids: Vec<i32> = pieces.strings()?.iter().map(|piece| model.id(piece) as i32).collect();
    one(HostTensor::from_slice(pieces.shape().clone(), &ids)?)
}

fn vocab_size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(model(call)?.len() as i32))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("SentencepieceDetokenizeOp", detokenize),
    ("SentencepieceIdToStringOp", id_to_string),
    ("SentencepieceOp", create),
    ("SentencepieceStringToIdOp", string_to_id),
    ("SentencepieceTokenizeOp", tokenize),
    ("SentencepieceTokenizeWithOffsetsOp", tokenize),
    ("SentencepieceVocabSizeOp", vocab_size),
    ("WordpieceTokenizeWithOffsets", wordpieces),
];
