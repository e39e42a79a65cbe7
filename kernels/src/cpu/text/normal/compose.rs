//! Composed forms.

use super::{
    super::utf8::ascii_prefix,
    class::{AFTER, BEFORE, NormalForm, PLAIN, class, composed_alone},
    edits::EditedText,
};
use unicode_normalization::{
    UnicodeNormalization,
    char::{canonical_combining_class, compose},
};

/// Normalizes text in which everything is a character.
pub(super) fn run(form: NormalForm, text: &str, output: &mut EditedText<'_>) {
    let mut run = Run { form, text, kept: 0, at: 0, output };
    while run.skip_plain() {
        run.step();
    }
    run.keep_to(text.len());
}

struct Run<'a, 'b> {
    form: NormalForm,
    text: &'a str,
    /// End of the characters that have been passed on; it ends at a boundary.
    kept: usize,
    at: usize,
    output: &'a mut EditedText<'b>,
}

/// A character that may change, and where it is.
struct Found {
    character: char,
    start: usize,
    end: usize,
    class: u8,
}

impl Run<'_, '_> {
    fn class(&self, character: char) -> u8 {
        class(self.form, character)
    }

    fn first(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// Whether there is a boundary at a byte.
    fn bounded(&self, at: usize) -> bool {
        self.first(at).is_none_or(|next| self.class(next) & BEFORE != 0)
    }

    fn keep_to(&mut self, end: usize) {
        self.output.keep(&self.text.as_bytes()[self.kept..end]);
        self.kept = end;
    }

    fn replace(&mut self, range: std::ops::Range<usize>, new: &str) {
        self.keep_to(range.start);
        self.output.replace(range.len(), new);
        self.kept = range.end;
        self.at = range.end;
    }

    /// Moves to the next character that is not plain, if there is one.
    fn skip_plain(&mut self) -> bool {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.skip_ascii(ascii_prefix(rest));
            match self.first(self.at) {
                Some(next) if self.class(next) & PLAIN != 0 => self.at += next.len_utf8(),
                next => return next.is_some(),
            }
        }
    }

    /// Moves over the next `length` characters, which are ASCII.
    fn skip_ascii(&mut self, length: usize) {
        if self.form != NormalForm::Fold || length == 0 {
            self.at += length;
            return;
        }
        // The last one may combine with what follows.
        let end = self.at + length;
        let sure = if end == self.text.len() { end } else { end - 1 };
        let part = &self.text.as_bytes()[self.at..sure];
        // No exit before the end, so that it is done in vectors.
        if part.iter().fold(false, |any, byte| any | byte.is_ascii_uppercase()) {
            self.keep_to(self.at);
            self.output.replace_by_lowercase(part);
            self.kept = sure;
        }
        self.at = sure;
        if sure < end && !self.text.as_bytes()[sure].is_ascii_uppercase() {
            self.at = end;
        }
    }

    /// Deals with the character here, which is not plain.
    fn step(&mut self) {
        let Some(character) = self.first(self.at) else { return };
        let (start, end) = (self.at, self.at + character.len_utf8());
        let found = Found { character, start, end, class: self.class(character) };
        if self.alone(&found) || self.jamo(&found) || self.in_order(&found) {
            return;
        }
        self.recompose(&found);
    }

    /// Replaces a character that nothing combines with.
    fn alone(&mut self, found: &Found) -> bool {
        let closed = found.class & AFTER != 0 || self.bounded(found.end);
        if closed && let Some(composed) = composed_alone(self.form, found.character) {
            self.replace(found.start..found.end, composed);
            return true;
        }
        if self.form != NormalForm::Fold || found.class != 0 {
            return false;
        }
        let mut parts = Vec::new();
        self.form.decompose(found.character, &mut parts);
        let before = self.text[self.kept..found.start].chars().next_back();
        let opened = before.is_none_or(|before| self.class(before) & AFTER != 0);
        if parts.is_empty() && (self.bounded(found.end) || opened) {
            self.replace(found.start..found.end, "");
            return true;
        }
        false
    }

    /// Composes parts of a Hangul syllable.
    fn jamo(&mut self, found: &Found) -> bool {
        let Some(before) = self.text[self.kept..found.start].chars().next_back() else {
            return false;
        };
        let Some(syllable) = compose(before, found.character) else { return false };
        let start = found.start - before.len_utf8();
        match found.character {
            '\u{11a8}'..='\u{11c2}' => {
                self.replace(start..found.end, syllable.encode_utf8(&mut [0; 4]));
                true
            }
            '\u{1161}'..='\u{1175}' => match self.first(found.end) {
                Some(last @ '\u{11a8}'..='\u{11c2}') => {
                    let all = compose(syllable, last).unwrap_or(syllable);
                    self.replace(start..found.end + 3, all.encode_utf8(&mut [0; 4]));
                    true
                }
                _ if self.bounded(found.end) => {
                    self.replace(start..found.end, syllable.encode_utf8(&mut [0; 4]));
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Passes marks that combine with nothing and are in order.
    fn in_order(&mut self, found: &Found) -> bool {
        let mut class = self.inert_mark(found.character);
        if class == 0 {
            return false;
        }
        let mut at = found.end;
        loop {
            let Some(next) = self.first(at) else {
                self.at = at;
                return true;
            };
            let next_class = self.inert_mark(next);
            if next_class == 0 {
                break;
            }
            if class > next_class {
                return false;
            }
            class = next_class;
            at += next.len_utf8();
        }
        if self.bounded(at) {
            self.at = at;
            return true;
        }
        false
    }

    /// The combining class of a mark that stays and never combines with what is before it; else 0.
    fn inert_mark(&self, character: char) -> u8 {
        let combining = canonical_combining_class(character);
        if combining == 0 {
            return 0;
        }
        let mut parts = Vec::new();
        self.form.decompose(character, &mut parts);
        if parts == [character] && !super::class::combines(character) { combining } else { 0 }
    }

    /// Decomposes and composes all between two boundaries.
    fn recompose(&mut self, found: &Found) {
        let mut start = found.start;
        if found.class & BEFORE == 0
            && let Some(before) = self.text[self.kept..start].chars().next_back()
            && self.class(before) & AFTER == 0
        {
            start -= before.len_utf8();
        }
        let mut end = found.end;
        while let Some(next) = self.first(end) {
            let class = self.class(next);
            if class & BEFORE != 0 {
                break;
            }
            end += next.len_utf8();
            if class & AFTER != 0 {
                break;
            }
        }
        let mut parts = Vec::new();
        for character in self.text[start..end].chars() {
            self.form.decompose(character, &mut parts);
        }
        let composed: String = parts.into_iter().nfc().collect();
        if composed == self.text[start..end] {
            self.at = end;
        } else {
            self.replace(start..end, &composed);
        }
    }
}
