//! Text.

pub(super) mod as_string;
pub(super) mod base64;
pub(super) mod case;
pub(super) mod edit_distance;
pub(super) mod encoding;
pub(super) mod format;
pub(super) mod hash;
pub(super) mod join;
pub(super) mod ngrams;
mod printf;
#[cfg(feature = "text")]
pub(super) mod regex;
#[cfg(feature = "text")]
pub(super) mod script;
pub(super) mod split;
pub(super) mod substr;
pub(crate) mod summary;
pub(super) mod to_number;
pub(super) mod unicode;

use super::cell::Cell;
use crate::{device::OpCall, error::Result, kernel::Io};
use bytes::Bytes;
use ferroflow_ir::{DType, Shape, budget};

/// Sets output 0 to what `map` makes of each string of input 0.
fn put_mapped<T: Cell>(
    io: &mut Io<'_>,
    call: &Mapped,
    mut map: impl FnMut(&Bytes) -> Result<T>,
) -> Result<()> {
    let texts = io.strings(0)?;
    T::write(io, 0, call.dtype, &call.shape, |out| {
        for (out, text) in out.iter_mut().zip(texts) {
            *out = map(text)?;
        }
        Ok(())
    })
}

/// The result of a call that maps strings one by one.
#[derive(Debug, Clone)]
struct Mapped {
    dtype: DType,
    shape: Shape,
}

impl Mapped {
    fn new(call: &OpCall<'_>) -> Mapped {
        Mapped { dtype: call.outputs[0].dtype, shape: call.shape(0).clone() }
    }
}

/// Strings between two looks at the budget of the call.
const STRINGS_BETWEEN_LOOKS: usize = 1 << 12;

/// Sets an output to as many strings as its shape has elements.
fn put_strings(
    io: &mut Io<'_>,
    output: usize,
    shape: &Shape,
    strings: impl IntoIterator<Item = Bytes>,
) -> Result<()> {
    Bytes::write(io, output, DType::String, shape, |out| {
        let mut strings = strings.into_iter();
        for part in out.chunks_mut(STRINGS_BETWEEN_LOOKS) {
            budget::tick();
            for element in part {
                *element = strings.next().expect("a string for each element of the shape");
            }
        }
        Ok(())
    })
}

/// Whether a byte of UTF-8 text goes on with a character instead of beginning one.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Whether a byte is white space, as C has it.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Text without white space at both ends.
fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_space(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_space(*last)
    {
        text = rest;
    }
    text
}
