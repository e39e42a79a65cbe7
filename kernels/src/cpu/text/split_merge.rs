//! Tokens by a decision for each character: `SplitMergeTokenizeWithOffsets`,
//! `TokenizerFromLogits`.

use super::{failed, put_splits, put_texts, put_vector, utf8};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error};
use std::{ops::Range, sync::Arc};

const FROM_LOGITS: &str = "TokenizerFromLogits";
const SPLIT_MERGE: &str = "SplitMergeTokenizeWithOffsets";

pub(crate) const KERNELS: &[(&str, Build)] = &[(SPLIT_MERGE, by_labels), (FROM_LOGITS, by_logits)];

/// The characters of a text by the number of bytes that their first bytes promise.
fn characters(text: &[u8]) -> Vec<Range<usize>> {
    let (mut characters, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        let length = match text[at] {
            0..0xc0 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        let end = (at + length).min(text.len());
        characters.push(at..end);
        at = end;
    }
    characters
}

/// Tokens, with the bytes they begin and end at.
#[derive(Default)]
struct Tokens {
    texts: Vec<Bytes>,
    starts: Vec<i64>,
    limits: Vec<i64>,
}

impl Tokens {
    /// Adds the tokens of a text: a new one begins at a character where `splits` says so, at the
    /// first one, and, with `force`, after white space. White space is part of no token.
    fn add(
        &mut self,
        text: &Bytes,
        characters: &[Range<usize>],
        force: bool,
        splits: impl Fn(usize) -> bool,
    ) {
        // Parts of the token so far that white space separates.
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut was_space = false;
        for (place, character) in characters.iter().enumerate() {
            let first = utf8::next(&text[character.clone()], 0).0;
            let space = first.is_some_and(char::is_whitespace);
            if !space {
                if splits(place) || parts.is_empty() || (was_space && force) {
                    self.push(text, &parts);
                    parts = vec![character.clone()];
                } else if let Some(last) = parts.last_mut().filter(|_| !was_space) {
                    last.end = character.end;
                } else {
                    parts.push(character.clone());
                }
            }
            was_space = space;
        }
        self.push(text, &parts);
    }

    fn push(&mut self, text: &Bytes, parts: &[Range<usize>]) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return };
        self.starts.push(first.start as i64);
        self.limits.push(last.end as i64);
        self.texts.push(match parts {
            [only] => text.slice(only.clone()),
            _ => parts.iter().flat_map(|part| &text[part.clone()]).copied().collect(),
        });
    }

    fn put(self, io: &mut Io<'_>, splits: &[usize]) -> Result<()> {
        put_texts(io, 0, self.texts)?;
        put_splits(io, 1, DType::I64, splits)?;
        put_vector(io, 2, DType::I64, &self.starts)?;
        put_vector(io, 3, DType::I64, &self.limits)
    }
}

fn too_few(op: &'static str, what: &'static str, needed: usize, found: usize) -> crate::Error {
    Error::argument(op, what, format!("one for each of {needed} characters"), found).into()
}

fn by_labels(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let force = call.attrs.bool("force_split_at_break_character")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (texts, labels) = (io.strings(0)?, io.input::<i32>(1));
        let row_splits: Vec<i64> = io.input::<i32>(2).iter().map(|&split| split.into()).collect();
        let rows = super::rows(SPLIT_MERGE, &row_splits, labels.len())?;
        if rows.len() != texts.len() {
            let (expected, found) = (format!("{} splits", texts.len() + 1), row_splits.len());
            return Err(Error::argument(SPLIT_MERGE, "row_splits", expected, found).into());
        }
        let (mut tokens, mut splits) = (Tokens::default(), vec![0]);
        for (text, row) in texts.iter().zip(rows) {
            let (characters, labels) = (characters(text), &labels[row]);
            if characters.len() > labels.len() {
                return Err(too_few(SPLIT_MERGE, "labels", characters.len(), labels.len()));
            }
            tokens.add(text, &characters, force, |place| labels[place] == 0);
            splits.push(tokens.texts.len());
        }
        tokens.put(io, &splits)
    })))
}

fn by_logits(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (n, logits) = (call.shape(0)[0], call.shape(1));
    if logits[0] != n {
        return Err(call.wrong("logits", format!("{n} rows"), logits));
    }
    if logits[2] != 2 {
        let detail = format!("the logits are of shape {logits}, not two for each character");
        return Err(failed(FROM_LOGITS, Code::Internal, detail));
    }
    let length = logits[1];
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (texts, logits) = (io.strings(0)?, io.input::<[f32; 2]>(1));
        let force = io.scalar::<u8>(2) != 0;
        let (mut tokens, mut splits) = (Tokens::default(), vec![0]);
        for (place, text) in texts.iter().enumerate() {
            let (characters, logits) = (characters(text), &logits[place * length..][..length]);
            if characters.len() > length {
                return Err(too_few(FROM_LOGITS, "logits", characters.len(), length));
            }
            tokens.add(text, &characters, force, |place| logits[place][0] > logits[place][1]);
            splits.push(tokens.texts.len());
        }
        tokens.put(io, &splits)
    })))
}
