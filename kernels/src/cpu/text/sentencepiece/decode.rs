//! Pieces back to text.

use super::{SentencepieceModel, SpecialPieces, normalizer::SPACE, proto::PieceKind};
use crate::{
    cpu::text::{failed, utf8},
    error::Result,
};
use bytes::Bytes;
use ferroflow_ir::Code;

/// The byte that a piece such as `<0x0A>` stands for.
pub(super) fn byte_of(piece: &[u8]) -> Option<u8> {
    let digits = piece.strip_prefix(b"<0x")?.strip_suffix(b">")?;
    let upper = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'));
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.len() == 2 && upper)?;
    u8::from_str_radix(digits, 16).ok()
}

/// A text that is being put together.
struct Text<'a> {
    model: &'a SentencepieceModel,
    text: Vec<u8>,
    /// Bytes that are to become characters.
    bytes: Vec<u8>,
}

impl SentencepieceModel {
    /// The text of pieces.
    ///
    /// # Errors
    ///
    /// When an end is asked for that the model does not have, or a piece for a byte is none.
    pub(super) fn joined(
        &self,
        mut pieces: Vec<(u32, Bytes)>,
        ends: SpecialPieces,
    ) -> Result<Bytes> {
        let [bos, eos] = self.ends(ends)?;
        if let Some(bos) = bos {
            pieces.insert(0, bos);
        }
        pieces.extend(eos);
        if ends.reverse {
            pieces.reverse();
        }
        let mut text = Text { model: self, text: Vec::new(), bytes: Vec::new() };
        for (id, piece) in pieces {
            text.push(id, &piece)?;
        }
        text.flush();
        Ok(match &self.denormalizer {
            None => text.text.into(),
            Some(denormalizer) => {
                let mut normalized = super::normalizer::Normalized::default();
                denormalizer.normalize(&text.text, &mut normalized);
                normalized.text.into()
            }
        })
    }
}

impl Text<'_> {
    fn push(&mut self, id: u32, piece: &[u8]) -> Result<()> {
        let kind = self.model.kinds[id as usize];
        if kind == PieceKind::Byte {
            let byte = byte_of(piece);
            let wrong = || failed(super::DETOKENIZE, Code::Internal, "a piece of a byte is none");
            self.bytes.push(byte.ok_or_else(wrong)?);
            return Ok(());
        }
        self.flush();
        match kind {
            PieceKind::Control => {}
            PieceKind::Unknown if *piece == *self.model.pieces[id as usize].text => {
                self.text.extend_from_slice(&self.model.unknown_surface);
            }
            PieceKind::Unknown => self.text.extend_from_slice(piece),
            _ => {
                let mut rest = piece;
                if self.text.is_empty() && self.model.hides_first_space {
                    rest = rest.strip_prefix(SPACE).unwrap_or(rest);
                }
                self.unescape(rest);
            }
        }
        Ok(())
    }

    /// Adds a piece, with spaces for what stands for them.
    fn unescape(&mut self, mut piece: &[u8]) {
        while let Some((&first, rest)) = piece.split_first() {
            if let Some(rest) = piece.strip_prefix(SPACE) {
                self.text.push(b' ');
                piece = rest;
            } else {
                self.text.push(first);
                piece = rest;
            }
        }
    }

    /// Adds the characters that the bytes seen last make; bytes that make none are replaced.
    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut at = 0;
        while at < bytes.len() {
            at = match utf8::next(&bytes, at) {
                (Some(_), end) => {
                    self.text.extend_from_slice(&bytes[at..end]);
                    end
                }
                (None, _) => {
                    self.text.extend_from_slice("\u{fffd}".as_bytes());
                    at + 1
                }
            };
        }
    }
}
