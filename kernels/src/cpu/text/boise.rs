//! Tags of tokens and spans of text: `TFText>OffsetsToBoiseTags`, `TFText>BoiseTagsToOffsets`.
//!
//! A tag is `O` outside of spans, else a letter, `-` and the type of the span: `B` at its beginning,
//! `I` inside, `E` at its end, `S` for a token that is a span by itself.

use super::{put_splits, put_texts, put_vector, rows};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error};
use std::{ops::Range, sync::Arc};

const TO_OFFSETS: &str = "TFText>BoiseTagsToOffsets";
const TO_TAGS: &str = "TFText>OffsetsToBoiseTags";

pub(crate) const KERNELS: &[(&str, Build)] = &[(TO_OFFSETS, to_offsets), (TO_TAGS, to_tags)];

/// The rows that several arguments share.
fn shared_rows(
    io: &Io<'_>,
    op: &'static str,
    inputs: &[usize],
    n: usize,
) -> Result<Vec<Range<usize>>> {
    let splits: &[i64] = io.input(inputs[0]);
    for &other in &inputs[1..] {
        let others: &[i64] = io.input(other);
        // The last split is not compared, as the library does not.
        let same = others.len() == splits.len()
            && others.split_last().map(|(_, rest)| rest)
                == splits.split_last().map(|(_, rest)| rest);
        if !same {
            let found = format!("others in input {other}");
            return Err(Error::argument(op, "row splits", "the same for all", found).into());
        }
    }
    rows(op, splits, n)
}

fn same_length(op: &'static str, what: &'static str, lengths: &[usize]) -> Result<usize> {
    if lengths.iter().any(|length| *length != lengths[0]) {
        let found = format!("{lengths:?}");
        return Err(Error::argument(op, what, "of the same length", found).into());
    }
    Ok(lengths[0])
}

fn tag(letter: &str, kind: &[u8]) -> Bytes {
    [letter.as_bytes(), b"-", kind].concat().into()
}

/// Spans of bytes with their types.
struct Spans<'a> {
    starts: &'a [i32],
    ends: &'a [i32],
    kinds: &'a [Bytes],
    /// Whether a token must begin or end exactly where the span does.
    strict: bool,
}

impl Spans<'_> {
    /// The tag of a token, which no span before number `at` has to do with; moves `at` on.
    fn tag(&self, start: i32, end: i32, at: &mut usize) -> Bytes {
        let outside = Bytes::from_static(b"O");
        let mut likely = outside.clone();
        while *at < self.kinds.len() {
            let (first, last, kind) = (self.starts[*at], self.ends[*at], &self.kinds[*at]);
            let begins = start <= first && end > first && end <= last;
            let finishes = start < last && end >= last && start >= first;
            if end <= first {
                return likely;
            } else if start >= last {
                *at += 1;
            } else if begins && finishes {
                *at += 1;
                return tag("S", kind);
            } else if begins {
                let fits = !self.strict || start == first;
                return if fits { tag("B", kind) } else { likely };
            } else if finishes {
                *at += 1;
                if self.strict && end != last {
                    return likely;
                }
                likely = tag("E", kind);
            } else if start >= first && end <= last {
                return tag("I", kind);
            } else {
                *at += 1;
                likely = tag("B", kind);
            }
        }
        likely
    }
}

fn to_tags(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (starts, ends): (&[i32], &[i32]) = (io.input(0), io.input(1));
        let (firsts, lasts): (&[i32], &[i32]) = (io.input(2), io.input(3));
        let kinds = io.strings(4)?;
        let n_tokens = same_length(TO_TAGS, "the tokens", &[starts.len(), ends.len()])?;
        let lengths = [firsts.len(), lasts.len(), kinds.len()];
        let n_spans = same_length(TO_TAGS, "the spans", &lengths)?;
        let tokens = shared_rows(io, TO_TAGS, &[5, 6], n_tokens)?;
        let spans = shared_rows(io, TO_TAGS, &[7, 8, 9], n_spans)?;
        same_length(TO_TAGS, "the rows of tokens and spans", &[tokens.len(), spans.len()])?;
        let strict = io.scalar::<u8>(10) != 0;
        let mut tags = Vec::new();
        for (tokens, spans) in tokens.into_iter().zip(spans) {
            let spans = Spans {
                starts: &firsts[spans.clone()],
                ends: &lasts[spans.clone()],
                kinds: &kinds[spans],
                strict,
            };
            let mut at = 0;
            tags.extend(tokens.map(|token| spans.tag(starts[token], ends[token], &mut at)));
        }
        put_texts(io, 0, tags)
    })))
}

/// The spans found so far.
#[derive(Default)]
struct Found {
    starts: Vec<i32>,
    ends: Vec<i32>,
    kinds: Vec<Bytes>,
}

impl Found {
    fn add(&mut self, start: i32, end: i32, kind: Bytes) {
        self.starts.push(start);
        self.ends.push(end);
        self.kinds.push(kind);
    }

    /// Adds the spans of a row of tokens.
    fn read(&mut self, starts: &[i32], ends: &[i32], tags: &[Bytes]) {
        let mut open: Option<(i32, Bytes)> = None;
        for (place, tag) in tags.iter().enumerate() {
            match (&tag[..], open.take()) {
                ([b'B' | b'I', b'-', ..], None) => open = Some((starts[place], kind(tag))),
                ([b'B' | b'I', b'-', ..], Some((start, _))) => open = Some((start, kind(tag))),
                ([b'E' | b'S', b'-', ..], open) => {
                    let start = open.map_or(starts[place], |(start, _)| start);
                    self.add(start, ends[place], kind(tag));
                }
                // An open span has a token before this one.
                ([b'O', ..], Some((start, kind))) => self.add(start, ends[place - 1], kind),
                (_, before) => open = before,
            }
        }
        if let (Some((start, kind)), Some(&end)) = (open, ends.last()) {
            self.add(start, end, kind);
        }
    }
}

/// The type in a tag, up to the first NUL.
fn kind(tag: &Bytes) -> Bytes {
    let length = tag[2..].iter().position(|byte| *byte == 0).unwrap_or(tag.len() - 2);
    tag.slice(2..2 + length)
}

fn to_offsets(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (starts, ends): (&[i32], &[i32]) = (io.input(0), io.input(1));
        let tags = io.strings(2)?;
        let lengths = [starts.len(), ends.len(), tags.len()];
        let n = same_length(TO_OFFSETS, "tokens and tags", &lengths)?;
        let (mut found, mut splits) = (Found::default(), vec![0]);
        for row in shared_rows(io, TO_OFFSETS, &[3, 4, 5], n)? {
            found.read(&starts[row.clone()], &ends[row.clone()], &tags[row]);
            splits.push(found.starts.len());
        }
        put_vector(io, 0, DType::I32, &found.starts)?;
        put_vector(io, 1, DType::I32, &found.ends)?;
        put_texts(io, 2, found.kinds)?;
        put_splits(io, 3, DType::I64, &splits)
    })))
}
