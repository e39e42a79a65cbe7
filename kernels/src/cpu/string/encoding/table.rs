//! Encodings that are tables: one byte a character, or two.

use super::listing::{Listing, whatwg};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// Marks that stand in tables where no character does.
pub(super) mod mark {
    /// The first byte of several.
    pub(in super::super) const LEAD: u32 = 0x11_0000;
    /// Malformed, all of it.
    pub(in super::super) const MALFORMED: u32 = 0x11_0001;
    /// Malformed, but only the first byte: a character may begin at the second one.
    pub(in super::super) const MALFORMED_FIRST: u32 = 0x11_0002;
    /// Two characters, the first in bits 16 to 30.
    pub(in super::super) const TWO: u32 = 0x8000_0000;
}

/// Encoding as a table.
#[derive(Debug)]
pub(in crate::cpu) struct Table {
    /// By byte: the character it is, or a mark.
    pub(super) singles: [u32; 256],
    /// By two bytes, if there are leading ones.
    pub(super) pairs: Vec<u32>,
    /// The byte that leads three, and the table of the other two.
    pub(super) triples: Option<(u8, Vec<u32>)>,
    /// Whether a digit after a leading byte makes it four, as in GB 18030.
    pub(super) quads: bool,
}

impl Table {
    /// The table of an encoding that has one, by ICU's own name.
    pub(super) fn find(name: &'static str) -> Option<Arc<Table>> {
        /// Tables that were used are kept: those of two bytes take milliseconds to make.
        static MADE: Mutex<BTreeMap<&str, Arc<Table>>> = Mutex::new(BTreeMap::new());
        if let Some(made) = MADE.lock().get(name) {
            return Some(made.clone());
        }
        let table = Arc::new(Listing::find(name)?.table(name)?);
        MADE.lock().insert(name, table.clone());
        Some(table)
    }

    /// The characters of a text and the bytes they begin at; `None` for what is none.
    pub(super) fn decode(&self, text: &[u8]) -> Vec<(usize, Option<char>)> {
        let mut characters = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&first) = text.get(at) {
            let (code, len) = self.code(first, &text[at + 1..]);
            if code & mark::TWO == 0 {
                characters.push((at, char::from_u32(code)));
            } else {
                characters.push((at, char::from_u32((code & !mark::TWO) >> 16)));
                characters.push((at + len, char::from_u32(code & 0xffff)));
            }
            at += len;
        }
        characters
    }

    /// Character or mark that a text with this first byte begins with, and its length.
    fn code(&self, first: u8, rest: &[u8]) -> (u32, usize) {
        let code = self.singles[usize::from(first)];
        let (mark::LEAD, Some((&second, rest))) = (code, rest.split_first()) else {
            return (code, 1);
        };
        match (self.pairs[usize::from(first) << 8 | usize::from(second)], &self.triples) {
            _ if self.quads && second.is_ascii_digit() => quad([first, second], rest),
            (mark::MALFORMED_FIRST, _) => (mark::MALFORMED, 1),
            (mark::MALFORMED, Some((lead, table)))
                if *lead == first && matches!(second, 0xa1..=0xfe) =>
            {
                match rest.first() {
                    Some(&third @ 0xa1..=0xfe) => {
                        (table[usize::from(second) << 8 | usize::from(third)], 3)
                    }
                    Some(_) => (mark::MALFORMED, 1),
                    None => (mark::MALFORMED, 2),
                }
            }
            (code, _) => (code, 2),
        }
    }
}

/// Character of four bytes of GB 18030, and its length.
fn quad([first, second]: [u8; 2], rest: &[u8]) -> (u32, usize) {
    match *rest {
        [third @ 0x81..=0xfe, fourth @ b'0'..=b'9', ..] => {
            (whatwg(encoding_rs::GB18030, &[first, second, third, fourth]), 4)
        }
        [] => (mark::MALFORMED, 2),
        [0x81..=0xfe] => (mark::MALFORMED, 3),
        _ => (mark::MALFORMED, 1),
    }
}
