//! Text split by a regular expression: `RegexSplitWithOffsets`.

use super::{
    put_splits,
    tokens::{TokenOutputs, Tokens},
};
use crate::{
    cpu::{Build, string::regex::Latest},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{DType, Error};
use regex::bytes::Regex;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("RegexSplitWithOffsets", regex_split)];

fn regex_split(_: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (delimiters, kept) = (Latest::default(), Latest::default());
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let delimiter = delimiters.get(&io.strings(1)?[0], false)?;
        let keep = &io.strings(2)?[0];
        let keep_any = !keep.is_empty();
        let keep = kept.get(keep, true)?;
        let outputs = TokenOutputs { texts: 0, starts: 1, ends: 2, dtype: DType::I64 };
        let mut tokens = Tokens::<i64>::of(io, io.strings(0)?, outputs)?;
        let mut splits = vec![0];
        for text in io.strings(0)? {
            // A text ends at its first NUL.
            let length = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            split(&text.slice(..length), &delimiter, keep_any.then_some(&keep), &mut tokens)?;
            splits.push(tokens.len());
        }
        tokens.put(io)?;
        put_splits(io, 3, DType::I64, &splits)
    })))
}

/// Splits a text at the first group of each match; an expression without groups splits nothing.
/// Each match is looked for in what the one before has left, as if that were a whole text.
fn split(
    text: &Bytes,
    delimiter: &Regex,
    keep: Option<&Regex>,
    tokens: &mut Tokens<i64>,
) -> Result<()> {
    let mut left = 0;
    if delimiter.captures_len() > 1 {
        let mut captures = delimiter.capture_locations();
        while delimiter.captures_read(&mut captures, &text[left..]).is_some() {
            let (Some((_, consumed)), Some((start, end))) = (captures.get(0), captures.get(1))
            else {
                return Err(wrong("whose first group takes part in every match", "one without"));
            };
            let (start, end) = (left + start, left + end);
            if start > left {
                tokens.push(left..start, || text.slice(left..start));
            }
            if keep.is_some_and(|keep| keep.is_match(&text[start..end])) {
                tokens.push(start..end, || text.slice(start..end));
            }
            if consumed == 0 {
                return Err(wrong("that matches no empty text", "an empty match"));
            }
            left += consumed;
        }
    }
    if left < text.len() {
        tokens.push(left..text.len(), || text.slice(left..text.len()));
    }
    Ok(())
}

fn wrong(expected: &'static str, found: &'static str) -> crate::Error {
    Error::argument("RegexSplitWithOffsets", "delim_regex_pattern", expected, found).into()
}
