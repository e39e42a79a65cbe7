//! Texts that a call writes into blocks of memory.

use bytes::Bytes;
use ferroflow_ir::{Error, string_room};
use std::mem;

/// Bytes after which a block ends. A text that is kept holds on to all of its block, so blocks are small; and
/// they are taken from what the allocator has, not from fresh pages.
const BLOCK: usize = 32 << 10;

/// Texts, some of which are written one after the other.
#[derive(Debug)]
pub(super) struct SharedTexts {
    /// The block that is being written.
    pub(super) buffer: Vec<u8>,
    /// The texts before the first of that block.
    texts: Vec<Bytes>,
    /// The texts from there on.
    pending: Vec<Pending>,
}

/// A text that waits for its block.
#[derive(Debug)]
enum Pending {
    /// It exists.
    Made(Bytes),
    /// It begins where the last one of the block ends, and ends here.
    Written(usize),
}

impl SharedTexts {
    /// No texts yet, with room for `n`.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory, or the budget of the call.
    pub(super) fn with_room(n: usize) -> Result<SharedTexts, Error> {
        Ok(SharedTexts { buffer: Vec::new(), texts: string_room(n)?, pending: Vec::new() })
    }

    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.texts.len() + self.pending.len()
    }

    /// Adds a text that exists.
    pub(super) fn push(&mut self, text: Bytes) {
        match self.pending.is_empty() {
            true => self.texts.push(text),
            false => self.pending.push(Pending::Made(text)),
        }
    }

    /// Adds the text that was written to the buffer after the last one.
    pub(super) fn push_written(&mut self) {
        self.pending.push(Pending::Written(self.buffer.len()));
        if self.buffer.len() >= BLOCK {
            self.end_block();
            self.buffer.reserve(BLOCK + BLOCK / 8);
        }
    }

    fn end_block(&mut self) {
        let block = Bytes::from(mem::take(&mut self.buffer));
        let mut start = 0;
        self.texts.extend(self.pending.drain(..).map(|text| match text {
            Pending::Made(text) => text,
            Pending::Written(end) => block.slice(mem::replace(&mut start, end)..end),
        }));
    }

    /// All texts, in the order in which they were added.
    pub(super) fn finish(mut self) -> Vec<Bytes> {
        self.end_block();
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_in_order_in_several_blocks() {
        let mut texts = SharedTexts::with_room(0).unwrap();
        let mut expected: Vec<Bytes> = Vec::new();
        for number in 0..9000u32 {
            let text = format!("{number} ").repeat(number as usize % 9);
            if number % 3 == 0 {
                texts.push(text.clone().into());
            } else {
                texts.buffer.extend_from_slice(text.as_bytes());
                texts.push_written();
            }
            expected.push(text.into());
            assert_eq!(texts.len(), expected.len());
        }
        assert!(expected.iter().map(Bytes::len).sum::<usize>() > 2 * BLOCK);
        assert_eq!(texts.finish(), expected);
    }
}
