//! Messages as text, where the feature `text` is off: an error that names it.

use crate::error::{Error, Result};
use prost::{Message, Name};
use std::path::Path;

/// The message in the text of a file.
pub(crate) fn parse<M: Message + Name + Default>(path: &Path, _: &[u8]) -> Result<M> {
    Err(absent::<M>(path))
}

/// The content of the text file of a message.
pub(crate) fn encode<M: Message + Name>(path: &Path, _: &M) -> Result<Vec<u8>> {
    Err(absent::<M>(path))
}

fn absent<M: Name>(path: &Path) -> Error {
    let what = format!("{} as text, as the feature `text` of ferroflow-format is off", M::NAME);
    Error::Unsupported { path: path.into(), what: what.into() }
}
