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
    if form != NormalForm::Fold && text.is_ascii() {
        output.keep(text);
        return output.finish();
    }
    if let Ok(characters) = str::from_utf8(text) {
        run(form, characters, &mut output);
        return output.finish();
    }
    for chunk in text.utf8_chunks() {
        run(form, chunk.valid(), &mut output);
        output.keep(chunk.invalid());
    }
    output.finish()
}

fn run(form: NormalForm, text: &str, output: &mut EditedText<'_>) {
    match form {
        NormalForm::Nfd | NormalForm::Nfkd => decompose::run(form, text, output),
        NormalForm::Nfc | NormalForm::Nfkc | NormalForm::Fold => compose::run(form, text, output),
    }
}
