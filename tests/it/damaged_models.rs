//! Models of tokenizers in tensors and attributes, with bytes changed at random: an answer or an
//! error, never a panic.

#[path = "../../conformance/ops/value.rs"]
mod value;

use ferroflow::{
    ir::{AttrValue, Attrs, HostTensor, Shape},
    runtime::{Context, EagerTensor, execute},
};
use flate2::read::GzDecoder;
use serde_json::Value;
use std::{error::Error, fs::File, path::Path};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Damaged versions of each model.
const ROUNDS: u64 = 60;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    /// The bytes with some of them changed, or the end cut off.
    fn damaged(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            // Headers and tables of contents are at the beginning or at the end.
            let near = self.below(64).min(bytes.len().saturating_sub(1));
            let place = match self.below(3) {
                0 => near,
                1 => bytes.len().saturating_sub(1 + near),
                _ => self.below(bytes.len()),
            };
            match self.below(5) {
                0 => bytes.truncate(place),
                1 => {
                    let word = [0, 1, 0x7fff_ffff, u32::MAX][self.below(4)].to_le_bytes();
                    bytes.iter_mut().skip(place).zip(word).for_each(|(byte, new)| *byte = new);
                }
                2 => bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= 1),
                _ => {
                    let new = self.below(256) as u8;
                    bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte = new);
                }
            }
        }
        bytes
    }
}

fn recorded(op: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ops/{op}.json.gz"));
    Ok(serde_json::from_reader(GzDecoder::new(File::open(path)?))?)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Texts of every kind, so that the parts of a model are looked at.
fn texts() -> HostTensor {
    let texts = ["", "the quick brown fox", "unbelievable's ##s", "  a  ", "東京é🎉\u{1}", "zzzz"];
    HostTensor::from_strings(
        Shape::new([texts.len()]).unwrap(),
        texts.iter().map(|text| text.as_bytes().into()).collect(),
    )
    .unwrap()
}

/// Runs the cases of an op with its input `model` damaged.
fn check(op: &str, model: usize, text: Option<usize>) -> Result<()> {
    let context = Context::new();
    let file = recorded(&op.replace('>', "_"))?;
    let record = context.registry().find(op).ok_or("a record")?;
    let mut random = Random(op.len() as u64);
    let mut n = 0;
    for case in list(&file, "cases").iter().take(6) {
        let attrs = value::attrs(record, &case["attrs"])?;
        let inputs: Vec<HostTensor> =
            list(case, "inputs").iter().map(value::tensor).collect::<Result<_, _>>()?;
        for _ in 0..ROUNDS {
            let mut inputs = inputs.clone();
            inputs[model] = HostTensor::vector(&random.damaged(inputs[model].bytes()))?;
            if let Some(text) = text {
                inputs[text] = texts();
            }
            let inputs: Vec<EagerTensor> = inputs.into_iter().map(EagerTensor::from).collect();
            // The call ends, and does no more than that.
            let _ = execute(&context, op, attrs.clone(), &inputs);
            n += 1;
        }
    }
    assert!(n > 0, "{op} has no cases");
    Ok(())
}

#[test]
fn damaged_wordpiece_models_are_errors() -> Result<()> {
    check("FastWordpieceTokenizeWithOffsets", 1, Some(0))?;
    check("TFText>FastWordpieceDetokenize", 2, None)
}

#[test]
fn damaged_phrase_models_are_errors() -> Result<()> {
    check("PhraseTokenize", 1, Some(0))?;
    check("TFText>PhraseDetokenize", 2, None)
}

#[test]
fn damaged_whitespace_tables_are_errors() -> Result<()> {
    check("TFText>WhitespaceTokenizeWithOffsetsV2", 1, Some(0))
}

#[test]
fn damaged_converted_sentencepiece_models_are_errors() -> Result<()> {
    check("TFText>FastSentencepieceTokenize", 0, Some(1))
}

#[test]
fn damaged_sentencepiece_models_are_errors() -> Result<()> {
    let context = Context::new();
    let file = recorded("SentencepieceTokenizeOp")?;
    let record = context.registry().find("SentencepieceOp").ok_or("a record")?;
    let mut random = Random(7);
    let mut n = 0;
    for sequence in list(&file, "sequences") {
        let attrs = value::attrs(record, &list(sequence, "steps")[0]["attrs"])?;
        let model = attrs.bytes("model")?.clone();
        for _ in 0..ROUNDS {
            let damaged = random.damaged(&model);
            n += usize::from(split_and_join(&context, damaged).is_ok());
        }
    }
    assert!(n > 0, "no damaged model can be read");
    Ok(())
}

/// Splits texts by a model in all ways, and joins the pieces.
fn split_and_join(context: &Context, model: Vec<u8>) -> Result<()> {
    let attrs = Attrs::new().with("model", AttrValue::String(model.into()));
    let handle = execute(context, "SentencepieceOp", attrs, &[])?.remove(0);
    let flag = |flag| EagerTensor::from(HostTensor::scalar_bool(flag));
    for (n, each) in [(0, false), (3, true), (3, false), (-1, false)] {
        for ends in [false, true] {
            let inputs = [
                handle.clone(),
                texts().into(),
                EagerTensor::scalar(n),
                EagerTensor::scalar(0.5f32),
                flag(ends),
                flag(ends),
                flag(false),
            ];
            let attrs = Attrs::new().with("return_nbest", AttrValue::Bool(each));
            let Ok(found) = execute(context, "SentencepieceTokenizeOp", attrs, &inputs) else {
                continue;
            };
            let inputs = [
                handle.clone(),
                found[0].clone(),
                found[1].clone(),
                flag(ends),
                flag(false),
                flag(false),
            ];
            let _ = execute(context, "SentencepieceDetokenizeOp", Attrs::new(), &inputs);
        }
    }
    Ok(())
}
