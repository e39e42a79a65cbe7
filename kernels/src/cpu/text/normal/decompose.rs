//! Decomposed forms.

use super::{
    super::utf8::ascii_prefix,
    class::{BEFORE, NormalForm, PLAIN, class},
    edits::EditedText,
};
use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

/// Normalizes text in which everything is a character.
pub(super) fn run(form: NormalForm, text: &str, output: &mut EditedText<'_>) {
    let mut run = Run { form, text, kept: 0, at: 0, order: 0, output };
    while run.skip_plain() {
        run.step();
    }
    run.keep_to(text.len());
}

struct Run<'a, 'b> {
    form: NormalForm,
    text: &'a str,
    /// End of the characters that have been passed on.
    kept: usize,
    at: usize,
    /// The combining class of the character before, if it is a mark that stays.
    order: u8,
    output: &'a mut EditedText<'b>,
}

impl Run<'_, '_> {
    fn first(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    fn keep_to(&mut self, end: usize) {
        self.output.keep(&self.text.as_bytes()[self.kept..end]);
        self.kept = end;
    }

    /// Moves to the next character that is not plain, if there is one.
    fn skip_plain(&mut self) -> bool {
        let start = self.at;
        let found = loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.at += ascii_prefix(rest);
            match self.first(self.at) {
                Some(next) if class(self.form, next) & PLAIN != 0 => self.at += next.len_utf8(),
                next => break next.is_some(),
            }
        };
        if self.at != start {
            self.keep_to(self.at);
            self.order = 0;
        }
        found
    }

    /// Deals with the character here, which is not plain.
    fn step(&mut self) {
        let Some(character) = self.first(self.at) else { return };
        let mut parts = Vec::new();
        self.form.decompose(character, &mut parts);
        let end = self.at + character.len_utf8();
        let stays = parts == [character];
        let combining = canonical_combining_class(character);
        if stays && self.order <= combining {
            self.order = combining;
            self.at = end;
            if combining <= 1 {
                self.keep_to(end);
            }
            return;
        }
        if class(self.form, character) & BEFORE != 0 {
            self.keep_to(self.at);
        }
        self.reorder(end, stays);
    }

    /// Decomposes all from what was passed on last to the next boundary after `end`.
    fn reorder(&mut self, mut end: usize, stays: bool) {
        let mut parts = Vec::new();
        for character in self.text[self.kept..end].chars() {
            self.form.decompose(character, &mut parts);
        }
        let last = |parts: &[char]| {
            parts.iter().rev().map(|part| canonical_combining_class(*part)).next().unwrap_or(0)
        };
        if highest(&parts).max(last(&parts)) > 1 {
            while let Some(next) = self.first(end)
                && class(self.form, next) & BEFORE == 0
            {
                self.form.decompose(next, &mut parts);
                end += next.len_utf8();
            }
        }
        let ordered: String = parts.into_iter().nfd().collect();
        if stays && ordered == self.text[self.kept..end] {
            self.keep_to(end);
        } else {
            self.output.replace(end - self.kept, &ordered);
            self.kept = end;
        }
        (self.at, self.order) = (end, 0);
    }
}

/// The combining class of the last part once the parts are in order.
fn highest(parts: &[char]) -> u8 {
    let classes = parts.iter().rev().map(|part| canonical_combining_class(*part));
    classes.take_while(|class| *class != 0).max().unwrap_or(0)
}
