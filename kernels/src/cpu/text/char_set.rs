//! Sets of characters by Unicode property.
//!
//! tensorflow_text asks ICU, which knows Unicode 16 there; the tables are those of the
//! `regex-syntax` crate, cut down to the characters of that version.

use regex_syntax::hir::{Class, HirKind};

/// A set of characters.
pub(super) struct CharSet(Box<[u64]>);

impl CharSet {
    /// The characters of a class, as in `\p{P}`, that Unicode 16 has.
    ///
    /// # Panics
    ///
    /// When it is no class.
    pub(super) fn of_class(class: &str) -> CharSet {
        let mut words = vec![0u64; 0x11_0000 / 64].into_boxed_slice();
        for (first, last) in ranges(class) {
            for code in first..=last {
                words[code as usize / 64] |= 1 << (code % 64);
            }
        }
        CharSet(words)
    }

    /// Whether a character is in the set.
    pub(super) fn has(&self, character: char) -> bool {
        let code = u32::from(character);
        self.0[code as usize / 64] >> (code % 64) & 1 == 1
    }
}

/// The ranges of code points in a class that Unicode 16 has, first and last.
///
/// # Panics
///
/// When it is no class.
pub(super) fn ranges(class: &str) -> Vec<(u32, u32)> {
    let own = format!(r"[{class}&&\p{{age=16.0}}]");
    let hir = regex_syntax::parse(&own).expect("callers name classes");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        // A class of one character is that character.
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0)
            .ok()
            .and_then(|text| text.chars().next())
            .map(|only| vec![(only.into(), only.into())])
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_sets() {
        let punctuation = CharSet::of_class(r"\p{P}");
        assert!(punctuation.has('!') && punctuation.has('\u{3002}'));
        assert!(!punctuation.has('a') && !punctuation.has('$'));
    }
}
