//! Tokens between white space: `WhitespaceTokenizeWithOffsets` and its second version.

use super::{put_splits, put_texts, put_vector, rows, utf8};
use crate::{
    cpu::{Build, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::DType;
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("TFText>WhitespaceTokenizeWithOffsetsV2", tokenize_texts),
    ("WhitespaceTokenizeWithOffsets", tokenize_code_points),
];

/// Tokens of code points, and where they are in each text.
#[derive(Default)]
pub(super) struct CodePointTokens {
    pub(super) values: Vec<i32>,
    /// Where the tokens begin in `values`.
    pub(super) inner: Vec<usize>,
    pub(super) starts: Vec<i64>,
    pub(super) limits: Vec<i64>,
    /// Where the texts begin among the tokens.
    pub(super) outer: Vec<usize>,
}

impl CodePointTokens {
    pub(super) fn put(mut self, io: &mut Io<'_>, splits: DType) -> Result<()> {
        self.outer.push(self.starts.len());
        self.inner.push(self.values.len());
        put_vector(io, 0, DType::I32, &self.values)?;
        put_splits(io, 1, splits, &self.inner)?;
        put_vector(io, 2, DType::I64, &self.starts)?;
        put_vector(io, 3, DType::I64, &self.limits)?;
        put_splits(io, 4, splits, &self.outer)
    }

    /// Begins a token at a position in its text.
    pub(super) fn begin(&mut self, place: usize) {
        self.starts.push(place as i64);
        self.inner.push(self.values.len());
    }
}

/// Whether a code point is white space.
pub(super) fn is_white_space(code: i32) -> bool {
    u32::try_from(code).ok().and_then(char::from_u32).is_some_and(char::is_whitespace)
}

fn tokenize_code_points(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(1);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (codes, splits) = (io.input::<i32>(0), integers(io, 1, dtype));
        let mut tokens = CodePointTokens::default();
        for row in rows("WhitespaceTokenizeWithOffsets", &splits, codes.len())? {
            tokens.outer.push(tokens.starts.len());
            let mut inside = false;
            for (place, &code) in codes[row.clone()].iter().enumerate() {
                let space = is_white_space(code);
                match (inside, space) {
                    (false, false) => tokens.begin(place),
                    (true, true) => tokens.limits.push(place as i64),
                    (true, false) | (false, true) => {}
                }
                inside = !space;
                if inside {
                    tokens.values.push(code);
                }
            }
            if inside {
                tokens.limits.push(row.len() as i64);
            }
        }
        tokens.put(io, dtype)
    })))
}

/// The white space that a table names, a bit for each code point.
#[derive(Clone, Copy)]
pub(super) struct Spaces<'a>(pub(super) &'a [u8]);

impl Spaces<'_> {
    fn has(&self, character: Option<char>) -> bool {
        let Some(code) = character.map(u32::from) else { return false };
        self.0.get(code as usize / 8).is_some_and(|bits| bits >> (code % 8) & 1 == 1)
    }
}

/// The words of a text between white space.
pub(super) fn words<'a>(text: &'a [u8], spaces: Spaces<'a>) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut begun = None;
        while at < text.len() {
            let (character, next) = utf8::next(text, at);
            let here = std::mem::replace(&mut at, next);
            match (spaces.has(character), begun) {
                // A word ends one byte before the character after the white space, so that it has
                // the first bytes of white space of several.
                (true, Some(start)) => return Some(start..next - 1),
                (false, None) => begun = Some(here),
                (true, None) | (false, Some(_)) => {}
            }
        }
        begun.map(|start| start..text.len())
    })
}

fn tokenize_texts(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (texts, spaces) = (io.strings(0)?, Spaces(&io.strings(1)?[0]));
        let (mut tokens, mut splits) = (Vec::<Bytes>::new(), vec![0]);
        let (mut starts, mut ends) = (Vec::<i32>::new(), Vec::<i32>::new());
        for text in texts {
            for word in words(text, spaces) {
                starts.push(word.start as i32);
                ends.push(word.end as i32);
                tokens.push(text.slice(word));
            }
            splits.push(tokens.len());
        }
        put_texts(io, 0, tokens)?;
        put_splits(io, 1, DType::I64, &splits)?;
        put_vector(io, 2, DType::I32, &starts)?;
        put_vector(io, 3, DType::I32, &ends)
    })))
}
