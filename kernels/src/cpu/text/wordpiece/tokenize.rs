//! Splitting words, and texts of words, into pieces.

use super::{
    super::{
        char_set::CharSet,
        flatbuffer::DamagedBuffer,
        tokens::{self, TokenOutputs, Tokens},
        trie::TrieNode,
        utf8,
    },
    model::{NOWHERE, VocabularyPiece, WordpieceModel},
};
use crate::{Error, cpu::growing::GrowingVector, kernel::Io};
use bytes::Bytes;
use ferroflow_ir::DType;
use std::{collections::HashMap, ops::Range, sync::OnceLock};

/// The pieces found so far.
pub(super) struct FoundPieces {
    pub(super) ids: GrowingVector<i64>,
    pub(super) tokens: Tokens<i64>,
    made: MadeTexts,
}

/// Texts of pieces that are no parts of the input, by piece: those of a model are few.
#[derive(Default)]
struct MadeTexts(HashMap<u32, Bytes>);

impl FoundPieces {
    /// None of these texts yet.
    ///
    /// # Errors
    ///
    /// When the system refuses the memory, or the budget of the call.
    pub(super) fn of(io: &Io<'_>, texts: &[Bytes]) -> Result<FoundPieces, Error> {
        let outputs = TokenOutputs { texts: 0, starts: 3, ends: 4, dtype: DType::I64 };
        let ids = GrowingVector::with_room(DType::I64, tokens::room(texts))?;
        let tokens = Tokens::of(io, texts, outputs)?;
        Ok(FoundPieces { ids, tokens, made: MadeTexts::default() })
    }

    fn push(&mut self, id: i64, range: Range<usize>, text: impl FnOnce(&mut MadeTexts) -> Bytes) {
        self.ids.push(id);
        let made = &mut self.made;
        self.tokens.push(range, || text(made));
    }

    fn truncate(&mut self, n: usize) {
        self.ids.truncate(n);
        self.tokens.truncate(n);
    }
}

impl MadeTexts {
    /// The text of a piece that is made of two parts.
    fn text(&mut self, piece: u32, [first, second]: [&[u8]; 2]) -> Bytes {
        let is_it = |text: &Bytes| {
            text.len() == first.len() + second.len()
                && text.starts_with(first)
                && text.ends_with(second)
        };
        match self.0.get(&piece) {
            Some(text) if is_it(text) => text.clone(),
            _ => {
                let text = Bytes::from([first, second].concat());
                self.0.insert(piece, text.clone());
                text
            }
        }
    }
}

/// The key of the text of an unknown word among those that are made: pieces have no bit 31.
const UNKNOWN: u32 = 1 << 31;

/// A word that is being split.
struct Word<'a> {
    model: &'a WordpieceModel,
    text: &'a Bytes,
    /// Where the word begins in the text.
    start: usize,
    /// The bytes of the word that have their pieces.
    split: usize,
    node: TrieNode,
    /// The number of pieces that words before have.
    n_before: usize,
    /// Links that may still be taken; a damaged model may have circles of them.
    links_left: usize,
}

impl WordpieceModel {
    /// Adds the pieces of a text, or of a word.
    pub(super) fn tokenize(
        &self,
        text: &Bytes,
        pieces: &mut FoundPieces,
    ) -> Result<(), DamagedBuffer> {
        match (text.is_empty(), self.takes_texts) {
            (true, _) => Ok(()),
            (false, true) => self.split_text(text, pieces),
            (false, false) => self.split_word(text, pieces),
        }
    }

    fn unknown(&self, range: Range<usize>, n_before: usize, pieces: &mut FoundPieces) {
        pieces.truncate(n_before);
        let text = |made: &mut MadeTexts| made.text(UNKNOWN, [&self.unknown[..], &[]]);
        pieces.push(self.unknown_id, range, text);
    }

    fn word<'a>(
        &'a self,
        text: &'a Bytes,
        start: usize,
        n: usize,
    ) -> Result<Word<'a>, DamagedBuffer> {
        let node = self.trie.root().ok_or(DamagedBuffer)?;
        let links_left = 2 * (text.len() - start) + 16;
        Ok(Word { model: self, text, start, split: 0, node, n_before: n, links_left })
    }

    fn split_word(&self, text: &Bytes, pieces: &mut FoundPieces) -> Result<(), DamagedBuffer> {
        let n_before = pieces.ids.len();
        if text.len() > self.max_bytes {
            self.unknown(0..text.len(), n_before, pieces);
            return Ok(());
        }
        let mut word = self.word(text, 0, n_before)?;
        if word.advance(text, pieces)? {
            return word.finish(text.len(), pieces);
        }
        self.unknown(0..text.len(), n_before, pieces);
        Ok(())
    }

    fn split_text(&self, text: &Bytes, pieces: &mut FoundPieces) -> Result<(), DamagedBuffer> {
        let (mut before, mut now) = (None, None);
        let mut at = 0;
        while at < text.len() {
            let (start, mut next) = (at, at);
            let mut word = self.word(text, start, pieces.ids.len())?;
            while at < text.len() {
                let passed = word.pass_ascii(at);
                if passed > at {
                    (at, next, now) = (passed, passed, Some(char::from(text[passed - 1])));
                    if at == text.len() {
                        break;
                    }
                }
                before = now;
                let first = text[at];
                let goes_on = if first.is_ascii() {
                    (now, next) = (Some(char::from(first)), at + 1);
                    next - start <= self.max_bytes && word.advance_byte(first, pieces)?
                } else {
                    (now, next) = utf8::next(text, at);
                    next - start <= self.max_bytes && word.advance(&text[at..next], pieces)?
                };
                if !goes_on {
                    break;
                }
                at = next;
            }
            if at >= text.len() {
                return word.finish(text.len(), pieces);
            }
            let is_space = now.is_some_and(char::is_whitespace);
            if is_space || stands_alone(now) || (at > 0 && stands_alone(before)) {
                word.finish(at, pieces)?;
                if is_space {
                    at = next;
                } else if at == start {
                    at = next;
                    self.unknown(start..at, word.n_before, pieces);
                }
                continue;
            }
            let end;
            (end, at) = rest_of_word(text, next);
            self.unknown(start..end, word.n_before, pieces);
        }
        Ok(())
    }
}

impl Word<'_> {
    /// Walks down the trie by bytes, and links where they do not lead on; whether that goes.
    /// The bytes of a character lead on together or not at all.
    #[inline]
    fn advance(&mut self, bytes: &[u8], pieces: &mut FoundPieces) -> Result<bool, DamagedBuffer> {
        if !self.model.takes_texts {
            for byte in bytes {
                if !self.advance_byte(*byte, pieces)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        loop {
            if let Some(node) = self.model.trie.descend(self.node, bytes) {
                self.node = node;
                return Ok(true);
            }
            if !self.take_link(pieces)? {
                return Ok(false);
            }
        }
    }

    /// Walks down the trie by characters of ASCII from a byte of the text on, and returns where that ends: where
    /// there is another character, a link is to be taken, or the word becomes too long.
    #[inline]
    fn pass_ascii(&mut self, at: usize) -> usize {
        let trie = &self.model.trie;
        let longest = self.start.saturating_add(self.model.max_bytes).max(at);
        let (mut node, mut end) = (self.node, at);
        for &byte in &self.text[at..longest.min(self.text.len())] {
            match trie.child(node, byte) {
                Some(child) if byte.is_ascii() => node = child,
                _ => break,
            }
            end += 1;
        }
        self.node = node;
        end
    }

    /// As `advance`, by one byte.
    #[inline]
    fn advance_byte(&mut self, byte: u8, pieces: &mut FoundPieces) -> Result<bool, DamagedBuffer> {
        loop {
            if let Some(node) = self.model.trie.child(self.node, byte) {
                self.node = node;
                return Ok(true);
            }
            if !self.take_link(pieces)? {
                return Ok(false);
            }
        }
    }

    /// Takes the link of the node, and returns out pieces; false if there is no link.
    fn take_link(&mut self, pieces: &mut FoundPieces) -> Result<bool, DamagedBuffer> {
        let model = self.model;
        self.links_left = self.links_left.checked_sub(1).ok_or(DamagedBuffer)?;
        let (link, pops) = model.link(self.node.id)?;
        if let Some(piece) = model.trie.value(self.node) {
            self.push_piece(VocabularyPiece(piece), pieces)?;
        } else if link == NOWHERE {
            return Ok(false);
        } else {
            for &piece in model.pops(pops)? {
                self.push_piece(VocabularyPiece(piece), pieces)?;
            }
        }
        self.node = model.trie.node(link).ok_or(DamagedBuffer)?;
        Ok(true)
    }

    /// Adds a piece of the word.
    fn push_piece(
        &mut self,
        piece: VocabularyPiece,
        pieces: &mut FoundPieces,
    ) -> Result<(), DamagedBuffer> {
        let model = self.model;
        let mut length = piece.length();
        if self.split == 0 && piece.is_suffix() {
            length += model.suffix_indicator.len();
        }
        let start = self.start + self.split;
        let range = start..start + length;
        if range.end > self.text.len() {
            return Err(DamagedBuffer);
        }
        let is_unknown = piece.id() == model.unknown_id;
        let suffix = &model.suffix_indicator[..];
        let (split, of) = (self.split, range.clone());
        let text = |made: &mut MadeTexts| match (split, is_unknown) {
            (0, false) => self.text.slice(of),
            (0, true) => made.text(UNKNOWN, [&model.unknown[..], &[]]),
            (_, false) => made.text(piece.0, [suffix, &self.text[of]]),
            (_, true) => made.text(UNKNOWN | 1, [suffix, &model.unknown[..]]),
        };
        pieces.push(piece.id(), range, text);
        self.split += length;
        Ok(())
    }

    /// Emits the pieces of what is left of the word, which ends at a byte of the text.
    fn finish(&mut self, end: usize, pieces: &mut FoundPieces) -> Result<(), DamagedBuffer> {
        let model = self.model;
        if self.node.id == 0 {
            return Ok(());
        }
        if self.node.id == model.suffix_root && pieces.ids.len() == self.n_before {
            return self.finish_indicator(end, pieces);
        }
        while self.node.id != model.suffix_root && self.node.id != model.punctuation_link {
            if !self.take_link(pieces)? {
                model.unknown(self.start..end, self.n_before, pieces);
                break;
            }
        }
        self.n_before = pieces.ids.len();
        Ok(())
    }

    /// Emits the pieces of a word that is the suffix indicator itself.
    fn finish_indicator(
        &mut self,
        end: usize,
        pieces: &mut FoundPieces,
    ) -> Result<(), DamagedBuffer> {
        let model = self.model;
        match &model.indicator_pieces[..] {
            [only] if only.id() == model.unknown_id => {
                model.unknown(self.start..end, self.n_before, pieces);
            }
            all => all.iter().try_for_each(|piece| self.push_piece(*piece, pieces))?,
        }
        self.n_before = pieces.ids.len();
        Ok(())
    }
}

/// The end of the word that goes on at a byte, and where the next one may begin.
fn rest_of_word(text: &[u8], mut at: usize) -> (usize, usize) {
    let mut end = at;
    while at < text.len() {
        let (character, next) = utf8::next(text, at);
        if character.is_some_and(char::is_whitespace) {
            at = next;
            break;
        }
        if stands_alone(character) {
            break;
        }
        (end, at) = (next, next);
    }
    (end, at)
}

/// Whether a character is a word by itself: punctuation, ASCII symbols, and the Chinese characters
/// of BERT's tokenizer.
fn stands_alone(character: Option<char>) -> bool {
    static PUNCTUATION: OnceLock<CharSet> = OnceLock::new();
    let Some(character) = character else { return false };
    if character.is_ascii() {
        return character.is_ascii_punctuation();
    }
    matches!(
        character,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b820}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    ) || PUNCTUATION.get_or_init(|| CharSet::of_class(r"\p{P}")).has(character)
}
