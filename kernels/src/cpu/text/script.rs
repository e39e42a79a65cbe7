//! Tokens of one script: `UnicodeScriptTokenizeWithOffsets`.

use super::{
    rows,
    whitespace::{CodePointTokens, is_white_space},
};
use crate::{
    cpu::{Build, index::integers, string::script::script_in_16},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("UnicodeScriptTokenizeWithOffsets", tokenize)];

/// The script of a code point; what is none has a script of its own.
fn script(code: i32) -> Option<u8> {
    match u32::try_from(code) {
        // Surrogates have none of the scripts, like characters that are not assigned.
        Ok(code @ 0..=0x10_ffff) => Some(char::from_u32(code).map_or(0, script_in_16)),
        Ok(_) | Err(_) => None,
    }
}

/// The token that is being collected.
#[derive(Default)]
struct State {
    /// The script of the code point before, and whether that is white space.
    before: Option<Option<u8>>,
    was_space: bool,
    begun: bool,
    /// White space at the end of the token, which is not part of it.
    n_spaces: usize,
}

impl State {
    fn take(&mut self, tokens: &mut CodePointTokens, keep: bool, place: usize, code: i32) {
        let (space, script) = (is_white_space(code), script(code));
        if self.before.unwrap_or(None) != script || (keep && space != self.was_space) {
            self.end(tokens, place);
        }
        self.before = Some(script);
        if keep || !space {
            if !self.begun {
                tokens.begin(place);
                self.begun = true;
            }
            tokens.values.push(code);
        }
        self.n_spaces = if space && !keep { self.n_spaces + 1 } else { 0 };
        self.was_space = space;
    }

    fn end(&mut self, tokens: &mut CodePointTokens, place: usize) {
        if std::mem::take(&mut self.begun) {
            tokens.limits.push((place - self.n_spaces) as i64);
        }
    }
}

fn tokenize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, keep) = (call.dtype(1), call.attrs.bool("keep_whitespace")?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (codes, splits) = (io.input::<i32>(0), integers(io, 1, dtype));
        let mut tokens = CodePointTokens::with_room(codes.len())?;
        for row in rows("UnicodeScriptTokenizeWithOffsets", &splits, codes.len())? {
            tokens.outer.push(tokens.starts.len());
            let mut state = State::default();
            for (place, &code) in codes[row.clone()].iter().enumerate() {
                state.take(&mut tokens, keep, place, code);
            }
            state.end(&mut tokens, row.len());
        }
        tokens.put(io, dtype)
    })))
}
