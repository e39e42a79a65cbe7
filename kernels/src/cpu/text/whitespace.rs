//! Tokens between white space: `WhitespaceTokenizeWithOffsets` and its second version.

use super::{
    put_splits, rows,
    tokens::{TokenOutputs, Tokens},
    utf8,
};
use crate::{
    cpu::{Build, growing::GrowingVector, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::DType;
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("TFText>WhitespaceTokenizeWithOffsetsV2", tokenize_texts),
    ("WhitespaceTokenizeWithOffsets", tokenize_code_points),
];

/// Tokens of code points, and where they are in each text.
pub(super) struct CodePointTokens {
    pub(super) values: GrowingVector<i32>,
    /// Where the tokens begin in `values`.
    pub(super) inner: Vec<usize>,
    pub(super) starts: GrowingVector<i64>,
    pub(super) limits: GrowingVector<i64>,
    /// Where the texts begin among the tokens.
    pub(super) outer: Vec<usize>,
}

impl CodePointTokens {
    /// No tokens yet, with room for those of so many code points.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory, or the budget of the call.
    pub(super) fn with_room(n_codes: usize) -> Result<CodePointTokens> {
        // Most tokens have more characters.
        let offsets = || GrowingVector::with_room(DType::I64, n_codes / 4);
        let values = GrowingVector::with_room(DType::I32, n_codes)?;
        let (starts, limits) = (offsets()?, offsets()?);
        Ok(CodePointTokens { values, inner: Vec::new(), starts, limits, outer: Vec::new() })
    }

    pub(super) fn put(mut self, io: &mut Io<'_>, splits: DType) -> Result<()> {
        self.outer.push(self.starts.len());
        self.inner.push(self.values.len());
        self.values.put(io, 0)?;
        put_splits(io, 1, splits, &self.inner)?;
        self.starts.put(io, 2)?;
        self.limits.put(io, 3)?;
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
        let mut tokens = CodePointTokens::with_room(codes.len())?;
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
pub(super) struct Spaces<'a> {
    bits: &'a [u8],
    /// The bits of ASCII.
    ascii: [u8; 16],
}

impl<'a> Spaces<'a> {
    pub(super) fn new(bits: &'a [u8]) -> Spaces<'a> {
        let mut ascii = [0; 16];
        ascii.iter_mut().zip(bits).for_each(|(out, bits)| *out = *bits);
        Spaces { bits, ascii }
    }

    /// Whether the character is white space that begins at byte `at`, and where the next one begins.
    fn next(&self, text: &[u8], at: usize) -> (bool, usize) {
        let byte = text[at];
        if byte < 0x80 {
            return (self.ascii[usize::from(byte / 8)] >> (byte % 8) & 1 == 1, at + 1);
        }
        let (character, next) = utf8::next(text, at);
        let Some(code) = character.map(u32::from) else { return (false, next) };
        let bits = self.bits.get(code as usize / 8);
        (bits.is_some_and(|bits| bits >> (code % 8) & 1 == 1), next)
    }
}

/// The words of a text between white space.
pub(super) fn words<'a>(text: &'a [u8], spaces: Spaces<'a>) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let mut begun = None;
        while at < text.len() {
            let (is_space, next) = spaces.next(text, at);
            let here = std::mem::replace(&mut at, next);
            match (is_space, begun) {
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
        let (texts, spaces) = (io.strings(0)?, Spaces::new(&io.strings(1)?[0]));
        let outputs = TokenOutputs { texts: 0, starts: 2, ends: 3, dtype: DType::I32 };
        let (mut tokens, mut splits) = (Tokens::<i32>::of(io, texts, outputs)?, vec![0]);
        for text in texts {
            for word in words(text, spaces) {
                tokens.push(word.clone(), || text.slice(word));
            }
            splits.push(tokens.len());
        }
        put_splits(io, 1, DType::I64, &splits)?;
        tokens.put(io)
    })))
}
