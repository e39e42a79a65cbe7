//! Unicode normal forms of text that need not be UTF-8.
//!
//! Bytes that are no characters pass unchanged, and nothing combines across them. What is changed
//! together is told as ICU's `Normalizer2` tells it, as offsets into the source depend on that.

mod class;
mod compose;
mod decompose;
mod edits;
mod fold;

pub(super) use class::NormalForm;
pub(super) use edits::Edits;

use super::utf8::{ascii_prefix, without_ascii_suffix};
use edits::EditedText;

/// Brings a text into a normal form, which is written to the end of `out`; false if it is in that form
/// already. With `edits`, tells what was changed.
pub(super) fn normalize(
    form: NormalForm,
    text: &[u8],
    out: &mut Vec<u8>,
    edits: Option<&mut Edits>,
) -> bool {
    let mut output = EditedText::new(text, out, edits);
    if form == NormalForm::Fold {
        normalize_chunks(form, text, &mut output);
        return output.finish();
    }
    // ASCII stays, but what comes after a character may combine with it.
    let first = ascii_prefix(text);
    let start = if first == text.len() { first } else { first.saturating_sub(1) };
    let end = without_ascii_suffix(&text[start..]) + start;
    output.keep(&text[..start]);
    normalize_chunks(form, &text[start..end], &mut output);
    output.keep(&text[end..]);
    output.finish()
}

fn normalize_chunks(form: NormalForm, text: &[u8], output: &mut EditedText<'_>) {
    if let Ok(characters) = str::from_utf8(text) {
        return run(form, characters, output);
    }
    for chunk in text.utf8_chunks() {
        run(form, chunk.valid(), output);
        output.keep(chunk.invalid());
    }
}

fn run(form: NormalForm, text: &str, output: &mut EditedText<'_>) {
    match form {
        NormalForm::Nfd | NormalForm::Nfkd => decompose::run(form, text, output),
        NormalForm::Nfc | NormalForm::Nfkc | NormalForm::Fold => compose::run(form, text, output),
    }
}
