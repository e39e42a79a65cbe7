//! Text as a model wants it: characters replaced by rule, white space in its own character.

use super::{
    super::{trie::Trie, utf8},
    proto::NormalizerSpec,
    trie::PieceTrie,
};
use bytes::Bytes;

/// The character that stands for a space.
pub(super) const SPACE: &[u8] = "\u{2581}".as_bytes();

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Rules that characters are replaced by.
#[derive(Debug)]
pub(super) struct Normalizer {
    spec: NormalizerSpec,
    /// From sequences of characters to positions in `replacements`.
    rules: Trie,
    /// Texts, each with a NUL behind it.
    replacements: Bytes,
    /// Texts that are never changed.
    kept: Option<PieceTrie>,
}

/// A text after normalization.
#[derive(Debug, Default)]
pub(super) struct Normalized {
    pub(super) text: Vec<u8>,
    /// For each byte of it, and its end: the byte of the text before that it comes from.
    pub(super) origins: Vec<u32>,
}

impl Normalizer {
    /// The normalizer of a model; `None` when its table of characters is broken.
    pub(super) fn new(spec: NormalizerSpec, kept: Option<PieceTrie>) -> Option<Normalizer> {
        let (mut rules, mut replacements) = (Trie::default(), Bytes::new());
        if !spec.characters.is_empty() {
            // The size of the trie, the trie, and the replacements.
            let size = u32::from_le_bytes(*spec.characters.first_chunk()?) as usize;
            if spec.characters.len() <= 4 || size >= spec.characters.len() {
                return None;
            }
            let units = spec.characters.get(4..4 + size)?;
            rules = Trie::new(units.as_chunks().0);
            replacements = spec.characters.slice(4 + size..);
        }
        Some(Normalizer { spec, rules, replacements, kept })
    }

    /// Normalizes a text.
    pub(super) fn normalize(&self, text: &[u8], out: &mut Normalized) {
        out.text.clear();
        out.origins.clear();
        let mut at = self.leading_spaces(text);
        if at >= text.len() {
            return;
        }
        let spec = &self.spec;
        if !spec.whitespace_as_suffix && spec.add_dummy_prefix {
            self.push_space(at, out);
        }
        let mut after_space = spec.remove_extra_whitespaces;
        while at < text.len() {
            let (mut piece, length) = self.first(&text[at..]);
            while after_space && let [b' ', rest @ ..] = piece {
                piece = rest;
            }
            self.push(piece, at, out);
            if let Some(last) = piece.last() {
                after_space = *last == b' ';
            }
            at += length;
            after_space &= spec.remove_extra_whitespaces;
        }
        self.finish(at, out);
    }

    /// The bytes of white space before the text, if that is to be removed.
    fn leading_spaces(&self, text: &[u8]) -> usize {
        let mut at = 0;
        while self.spec.remove_extra_whitespaces && at < text.len() {
            let (piece, length) = self.first(&text[at..]);
            if piece != b" " {
                break;
            }
            at += length;
        }
        at
    }

    fn push_space(&self, at: usize, out: &mut Normalized) {
        let space = if self.spec.escape_whitespaces { SPACE } else { b" " };
        out.text.extend_from_slice(space);
        out.origins.extend(space.iter().map(|_| at as u32));
    }

    #[inline]
    fn push(&self, piece: &[u8], at: usize, out: &mut Normalized) {
        for &byte in piece {
            if byte == b' ' {
                self.push_space(at, out);
            } else {
                out.text.push(byte);
                out.origins.push(at as u32);
            }
        }
    }

    fn finish(&self, mut end: usize, out: &mut Normalized) {
        if self.spec.remove_extra_whitespaces {
            let space = if self.spec.escape_whitespaces { SPACE } else { b" " };
            while out.text.ends_with(space) {
                let length = out.text.len() - space.len();
                end = out.origins[length] as usize;
                out.text.truncate(length);
                out.origins.truncate(length);
            }
        }
        if self.spec.whitespace_as_suffix && self.spec.add_dummy_prefix {
            self.push_space(end, out);
        }
        out.origins.push(end as u32);
    }

    /// Replacement of the first characters of a text, and the number of bytes it stands for.
    #[inline]
    fn first<'a>(&'a self, text: &'a [u8]) -> (&'a [u8], usize) {
        if let Some(kept) = &self.kept {
            let mut longest = 0;
            kept.prefixes(text, |length, _| longest = length);
            if longest > 0 {
                return (&text[..longest], longest);
            }
        }
        if let Some((length, place)) = self.rules.longest(text) {
            let replacement = self.replacements.get(place as usize..).unwrap_or_default();
            let end = replacement.iter().position(|byte| *byte == 0);
            return (&replacement[..end.unwrap_or(replacement.len())], length);
        }
        match utf8::next(text, 0) {
            (Some(_), end) => (&text[..end], end),
            (None, _) => (REPLACEMENT, 1),
        }
    }
}
