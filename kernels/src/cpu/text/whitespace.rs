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
pub(super) struct Spaces<'a> {
    bits: &'a [u8],
    /// The white space of ASCII: the first character of a range, and how many come after it.
    ascii: Vec<(u8, u8)>,
}

impl<'a> Spaces<'a> {
    pub(super) fn new(bits: &'a [u8]) -> Spaces<'a> {
        let (mut spaces, mut ascii) = (Spaces { bits, ascii: Vec::new() }, Vec::<(u8, u8)>::new());
        for code in (0..128).filter(|code| spaces.has(Some(char::from(*code)))) {
            match ascii.last_mut() {
                Some((first, more)) if *first + *more + 1 == code => *more += 1,
                _ => ascii.push((code, 0)),
            }
        }
        spaces.ascii = ascii;
        spaces
    }

    fn has(&self, character: Option<char>) -> bool {
        let Some(code) = character.map(u32::from) else { return false };
        self.bits.get(code as usize / 8).is_some_and(|bits| bits >> (code % 8) & 1 == 1)
    }

    /// The window of a text from a byte on.
    #[inline]
    fn window(&self, text: &[u8], start: usize) -> Window {
        let len = (text.len() - start).min(WINDOW);
        let mut bytes = [0; WINDOW];
        bytes[..len].copy_from_slice(&text[start..start + len]);
        // In vectors: ranges are few.
        let mut is_space = [0; WINDOW];
        for &(first, more) in &self.ascii {
            for (is_space, byte) in is_space.iter_mut().zip(bytes) {
                *is_space |= u8::from(byte.wrapping_sub(first) <= more);
            }
        }
        let ends = mask(&is_space) & low(len);
        let mut window = Window { start, len, ends, inside: !ends & low(len) };
        let other = mask(&bytes.map(|byte| byte >> 7));
        if other != 0 {
            self.look_at_characters(text, other, &mut window);
        }
        window
    }

    /// Corrects a window for characters that are not ASCII; a mask has all of their bytes.
    fn look_at_characters(&self, text: &[u8], mut other: u64, window: &mut Window) {
        while other != 0 {
            let first = other.trailing_zeros() as usize;
            let (character, next) = utf8::next(text, window.start + first);
            let end = next - window.start;
            if end > WINDOW {
                // It is one of the next window.
                window.len = first;
                window.inside &= low(first);
                return;
            }
            if self.has(character) {
                window.ends |= 1 << (end - 1);
                window.inside &= !low(end) | low(first);
            }
            other &= !low(end);
        }
    }
}

/// Bits of bytes that are 0 or 1.
fn mask(bytes: &[u8; WINDOW]) -> u64 {
    // The factor moves the lowest bit of each byte of eight to one of the highest byte.
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().rev().fold(0, |mask, word| {
        let bits = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask << 8 | bits
    })
}

/// The most bytes of a window.
const WINDOW: usize = 64;

/// The lowest `n` bits, of which there are at most 64.
fn low(n: usize) -> u64 {
    u64::MAX.checked_shr((WINDOW - n) as u32).unwrap_or(0)
}

/// A stretch of whole characters of a text, a bit for each byte.
struct Window {
    start: usize,
    len: usize,
    /// The last bytes of white space.
    ends: u64,
    /// The bytes of other characters.
    inside: u64,
}

impl Window {
    /// The first byte at or after `at` that a mask has.
    #[inline]
    fn first(&self, mask: u64, at: usize) -> Option<usize> {
        let offset = (at - self.start) as u32;
        let rest = mask.checked_shr(offset).unwrap_or(0);
        (rest != 0).then(|| at + rest.trailing_zeros() as usize)
    }
}

/// Words of a text between white space.
struct Words<'a> {
    text: &'a [u8],
    spaces: &'a Spaces<'a>,
    window: Window,
    at: usize,
}

impl Words<'_> {
    /// The first byte from `at` on that a mask of windows has.
    #[inline]
    fn find(&mut self, mask: impl Fn(&Window) -> u64) -> Option<usize> {
        loop {
            if let Some(found) = self.window.first(mask(&self.window), self.at) {
                return Some(found);
            }
            self.at = self.window.start + self.window.len;
            if self.at == self.text.len() {
                return None;
            }
            self.window = self.spaces.window(self.text, self.at);
        }
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.find(|window| window.inside)?;
        self.at = start;
        // A word ends one byte before the character after the white space, so that it has
        // the first bytes of white space of several.
        let Some(end) = self.find(|window| window.ends) else {
            return Some(start..self.text.len());
        };
        self.at = end + 1;
        Some(start..end)
    }
}

/// The words of a text between white space.
pub(super) fn words<'a>(
    text: &'a [u8],
    spaces: &'a Spaces<'a>,
) -> impl Iterator<Item = Range<usize>> {
    let window = Window { start: 0, len: 0, ends: 0, inside: 0 };
    Words { text, spaces, window, at: 0 }
}

fn tokenize_texts(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(Some(Arc::new(|io: &mut Io<'_>| {
        let (texts, spaces) = (io.strings(0)?, Spaces::new(&io.strings(1)?[0]));
        let outputs = TokenOutputs { texts: 0, starts: 2, ends: 3, dtype: DType::I32 };
        let (mut tokens, mut splits) = (Tokens::<i32>::of(io, texts, outputs)?, vec![0]);
        for text in texts {
            for word in words(text, &spaces) {
                tokens.push(word.clone(), || text.slice(word));
            }
            splits.push(tokens.len());
        }
        put_splits(io, 1, DType::I64, &splits)?;
        tokens.put(io)
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// White space of ASCII, and two characters of two and of three bytes.
    fn table() -> Vec<u8> {
        let mut bits = vec![0u8; 0x3001 / 8 + 1];
        for code in [0x9, 0xa, 0x20, 0xa0, 0x3000] {
            bits[code / 8] |= 1 << (code % 8);
        }
        bits
    }

    /// The words, a character at a time.
    fn expected(text: &[u8], spaces: &Spaces<'_>) -> Vec<Range<usize>> {
        let (mut words, mut begun) = (Vec::new(), None);
        for (character, bytes) in utf8::characters(text) {
            match (spaces.has(character), begun) {
                (true, Some(start)) => {
                    words.push(start..bytes.end - 1);
                    begun = None;
                }
                (false, None) => begun = Some(bytes.start),
                (true, None) | (false, Some(_)) => {}
            }
        }
        words.extend(begun.map(|start| start..text.len()));
        words
    }

    proptest! {
        #[test]
        fn words_are_those_of_a_character_at_a_time(
            pieces in proptest::collection::vec(
                prop_oneof![
                    6 => "[ab \t]{1,30}",
                    2 => "[\u{a0}\u{3000}é東 ]{1,4}",
                    1 => "\u{3000}{20,30}",
                ],
                0..12,
            ),
            cut in 0usize..4,
        ) {
            let (table, text) = (table(), pieces.concat());
            let (spaces, text) = (Spaces::new(&table), &text.as_bytes()[..text.len().saturating_sub(cut)]);
            let found: Vec<_> = words(text, &spaces).collect();
            prop_assert_eq!(found, expected(text, &spaces));
        }
    }
}
