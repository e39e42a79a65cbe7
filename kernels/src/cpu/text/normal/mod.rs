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

/// Brings a text into a normal form; `None` if it is in that form already. With `edits`, tells
/// what was changed.
pub(super) fn normalize(
    form: NormalForm,
    text: &[u8],
    edits: Option<&mut Edits>,
) -> Option<Vec<u8>> {
    let mut output = EditedText::new(text, edits);
    for chunk in text.utf8_chunks() {
        match form {
            NormalForm::Nfd | NormalForm::Nfkd => decompose::run(form, chunk.valid(), &mut output),
            NormalForm::Nfc | NormalForm::Nfkc | NormalForm::Fold => {
                compose::run(form, chunk.valid(), &mut output)
            }
        }
        output.keep(chunk.invalid());
    }
    output.finish()
}
