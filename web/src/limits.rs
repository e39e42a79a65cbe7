//! Bounds of a call.

use crate::error::WebError;
use ferroflow_ir::clock::Instant;
use ferroflow_runtime::CallOptions;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;

/// The most that a call may take of time, memory, rounds of loops, and printed text.
#[wasm_bindgen]
#[derive(Debug, Clone, Default)]
pub struct WebLimits {
    milliseconds: Option<f64>,
    bytes: Option<f64>,
    rounds: Option<f64>,
    printed: Option<f64>,
}

#[wasm_bindgen]
impl WebLimits {
    /// Bounds; what is left out is not bounded.
    #[wasm_bindgen(constructor)]
    pub fn new(
        milliseconds: Option<f64>,
        bytes: Option<f64>,
        rounds: Option<f64>,
        printed: Option<f64>,
    ) -> WebLimits {
        WebLimits { milliseconds, bytes, rounds, printed }
    }
}

impl WebLimits {
    /// The bounds of a call that begins now.
    pub(crate) fn start(&self) -> Result<CallOptions, WebError> {
        let time = self.milliseconds.map(duration).transpose()?;
        let count =
            |what, number: Option<f64>| number.map(|number| whole(what, number)).transpose();
        Ok(CallOptions {
            // A time that no clock reaches bounds nothing.
            deadline: time.and_then(|time| Instant::now().checked_add(time)),
            cancellation: None,
            loop_rounds: count("the rounds of loops", self.rounds)?,
            memory: count("the bytes of memory", self.bytes)?.map(addressable),
            printed_bytes: count("the bytes of printed text", self.printed)?,
        })
    }
}

fn duration(milliseconds: f64) -> Result<Duration, WebError> {
    let (what, expected) = ("the milliseconds of a call", "a number of 0 or more");
    Duration::try_from_secs_f64(milliseconds / 1e3).map_err(|_| WebError::Number {
        what,
        expected,
        found: milliseconds,
    })
}

/// A whole number that JavaScript holds exactly.
pub(crate) fn whole(what: &'static str, number: f64) -> Result<u64, WebError> {
    const MOST: f64 = (1u64 << 53) as f64;
    match number.fract() == 0.0 && (0.0..MOST).contains(&number) {
        true => Ok(number as u64),
        false => Err(WebError::Number { what, expected: "a whole number", found: number }),
    }
}

/// So many bytes, or as many as there are addresses for.
pub(crate) fn addressable(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
