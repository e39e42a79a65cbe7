//! Tokens of a call, and the bytes that they begin and end at; what nothing reads is left out.

use super::put_texts;
use crate::{
    cpu::{growing::GrowingVector, index::PositionElement},
    error::Result,
    kernel::Io,
};
use bytes::Bytes;
use ferroflow_ir::{DType, string_room};
use std::ops::Range;

/// The outputs that tokens become.
#[derive(Clone, Copy)]
pub(super) struct TokenOutputs {
    pub(super) texts: usize,
    pub(super) starts: usize,
    pub(super) ends: usize,
    /// The type of starts and ends.
    pub(super) dtype: DType,
}

/// Tokens found so far.
pub(super) struct Tokens<I> {
    outputs: TokenOutputs,
    n: usize,
    texts: Option<Vec<Bytes>>,
    ranges: Option<[GrowingVector<I>; 2]>,
}

impl<I: PositionElement> Tokens<I> {
    /// No tokens of these texts yet, with room for as many as they may have.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory, or the budget of the call.
    pub(super) fn of(io: &Io<'_>, texts: &[Bytes], outputs: TokenOutputs) -> Result<Tokens<I>> {
        let room = room(texts);
        let vector = || GrowingVector::with_room(outputs.dtype, room);
        let texts = io.is_read(outputs.texts).then(|| string_room(room)).transpose()?;
        let has_ranges = io.is_read(outputs.starts) || io.is_read(outputs.ends);
        let ranges = if has_ranges { Some([vector()?, vector()?]) } else { None };
        Ok(Tokens { outputs, n: 0, texts, ranges })
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// Adds a token of these bytes, whose text is made if it is read.
    #[inline]
    pub(super) fn push(&mut self, range: Range<usize>, text: impl FnOnce() -> Bytes) {
        self.n += 1;
        if let Some([starts, ends]) = &mut self.ranges {
            starts.push(I::from_position(range.start));
            ends.push(I::from_position(range.end));
        }
        if let Some(texts) = &mut self.texts {
            texts.push(text());
        }
    }

    /// Leaves the first `n` tokens, if there are more.
    pub(super) fn truncate(&mut self, n: usize) {
        self.n = self.n.min(n);
        if let Some(ranges) = &mut self.ranges {
            ranges.iter_mut().for_each(|offsets| offsets.truncate(n));
        }
        if let Some(texts) = &mut self.texts {
            texts.truncate(n);
        }
    }

    /// Sets the outputs.
    ///
    /// # Errors
    ///
    /// When one is larger than an output may be.
    pub(super) fn put(self, io: &mut Io<'_>) -> Result<()> {
        if let Some(texts) = self.texts {
            put_texts(io, self.outputs.texts, texts)?;
        }
        if let Some([starts, ends]) = self.ranges {
            starts.put(io, self.outputs.starts)?;
            ends.put(io, self.outputs.ends)?;
        }
        Ok(())
    }
}

/// As many tokens as texts mostly have no more of; beyond this, room is made as it is needed.
pub(super) fn room(texts: &[Bytes]) -> usize {
    (texts.iter().map(Bytes::len).sum::<usize>() / 4).min(1 << 18)
}
