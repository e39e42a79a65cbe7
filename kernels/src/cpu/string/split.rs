//! Strings in pieces: `StringSplit`, `StringSplitV2`.

use super::{is_space, put_strings};
use crate::{
    cpu::{Build, cell::Cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("StringSplit", split), ("StringSplitV2", split_v2)];

fn split(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let skip_empty = call.attrs.bool("skip_empty")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let delimiters = io.strings(1)?[0].clone();
        put_pieces(io, |text| at_any(text, &delimiters, skip_empty))
    })))
}

fn split_v2(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let most = match call.attrs.int("maxsplit")? {
        ..0 => usize::MAX,
        most => usize::try_from(most).unwrap_or(usize::MAX),
    };
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let separator = io.strings(1)?[0].clone();
        put_pieces(io, |text| {
            if most == 0 {
                vec![text]
            } else if separator.is_empty() {
                at_space(text, most)
            } else {
                at_separator(text, &separator, most)
            }
        })
    })))
}

/// Writes the pieces of each string as rows of a sparse matrix.
fn put_pieces(io: &mut Io<'_>, split: impl Fn(&[u8]) -> Vec<&[u8]>) -> Result<()> {
    let texts = io.strings(0)?;
    let (mut coordinates, mut pieces): (Vec<i64>, Vec<Bytes>) = (Vec::new(), Vec::new());
    let mut most = 0;
    for (row, text) in texts.iter().enumerate() {
        let own = split(text);
        most = most.max(own.len());
        coordinates.extend((0..own.len()).flat_map(|column| [row as i64, column as i64]));
        pieces.extend(own.into_iter().map(|piece| text.slice_ref(piece)));
    }
    let n = pieces.len();
    i64::write(io, 0, DType::I64, &Shape::new([n, 2])?, |out| {
        out.copy_from_slice(&coordinates);
        Ok(())
    })?;
    put_strings(io, 1, &Shape::new([n])?, pieces)?;
    i64::write(io, 2, DType::I64, &Shape::new([2])?, |out| {
        out.copy_from_slice(&[texts.len() as i64, most as i64]);
        Ok(())
    })
}

/// Pieces between any of the delimiters; single bytes if there are none.
fn at_any<'a>(text: &'a [u8], delimiters: &[u8], skip_empty: bool) -> Vec<&'a [u8]> {
    if text.is_empty() {
        return Vec::new();
    }
    if delimiters.is_empty() {
        return text.chunks(1).collect();
    }
    let pieces = text.split(|byte| delimiters.contains(byte));
    pieces.filter(|piece| !skip_empty || !piece.is_empty()).collect()
}

/// Pieces between runs of white space; the rest in one piece after the first `most`.
fn at_space(text: &[u8], most: usize) -> Vec<&[u8]> {
    let skip = |text: &[u8]| text.iter().take_while(|&&byte| is_space(byte)).count();
    let mut rest = &text[skip(text)..];
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
        pieces.push(&rest[..end]);
        rest = &rest[end..];
        rest = &rest[skip(rest)..];
        if pieces.len() == most {
            pieces.push(rest);
            break;
        }
    }
    pieces
}

/// Pieces between separators; the rest in one piece after the first `most`.
fn at_separator<'a>(mut text: &'a [u8], separator: &[u8], most: usize) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while pieces.len() < most {
        let found = text.windows(separator.len()).position(|window| window == separator);
        let Some(end) = found else { break };
        pieces.push(&text[..end]);
        text = &text[end + separator.len()..];
    }
    pieces.push(text);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: Vec<&[u8]>, expected: &[&str]) {
        assert_eq!(pieces, expected.iter().map(|text| text.as_bytes()).collect::<Vec<_>>());
    }

    #[test]
    fn pieces_of_text() {
        check(at_any(b"a,b;,c", b",;", false), &["a", "b", "", "c"]);
        check(at_any(b"a,b;,c", b",;", true), &["a", "b", "c"]);
        check(at_any(b"ab", b"", true), &["a", "b"]);
        check(at_space(b" a  b ", usize::MAX), &["a", "b"]);
        check(at_space(b"a b ", 1), &["a", "b "]);
        check(at_space(b"  ", 1), &[]);
        check(at_separator(b"a<>b<>", b"<>", usize::MAX), &["a", "b", ""]);
        check(at_separator(b"a<>b<>", b"<>", 1), &["a", "b<>"]);
        check(at_separator(b"", b",", usize::MAX), &[""]);
    }
}
