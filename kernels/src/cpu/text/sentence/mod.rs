//! Sentence fragments: `SentenceFragments` of tokens, `SentenceFragmentsV2` of text.
//!
//! A fragment ends after terminal punctuation and the closing marks behind it, or with its text.

mod marks;
mod text;
mod tokens;

use super::put_vector;
use crate::{cpu::Build, error::Result, kernel::Io};
use ferroflow_ir::DType;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("SentenceFragments", tokens::fragments), ("SentenceFragmentsV2", text::fragments)];

/// It ends with terminal punctuation.
const TERMINAL: i64 = 1;
/// It ends with several terminal marks.
const SEVERAL_TERMINAL: i64 = 2;
/// A closing parenthesis comes after the terminal punctuation.
const CLOSES: i64 = 4;
/// The parenthesis that is closed began the fragment it is in.
const CLOSES_SENTENCE: i64 = 8;

/// Progress of matching the end of a fragment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Before terminal punctuation.
    Initial,
    Terminal,
    Closing,
}

/// An end of a fragment: where its terminal punctuation and its closing marks begin, and where it
/// ends.
#[derive(Debug, Clone, Copy)]
struct End {
    state: State,
    terminal: usize,
    closing: usize,
    limit: usize,
}

impl End {
    fn new() -> End {
        End { state: State::Initial, terminal: 0, closing: 0, limit: 0 }
    }

    fn has_terminal(&self) -> bool {
        self.state != State::Initial
    }
}

/// The fragments found so far.
#[derive(Default)]
struct Fragments {
    starts: Vec<i64>,
    ends: Vec<i64>,
    properties: Vec<i64>,
    terminals: Vec<i64>,
    n_of_rows: Vec<i64>,
}

impl Fragments {
    fn add(&mut self, start: usize, end: usize, properties: i64, terminal: Option<usize>) {
        self.starts.push(start as i64);
        self.ends.push(end as i64);
        self.properties.push(properties);
        self.terminals.push(terminal.map_or(-1, |terminal| terminal as i64));
    }

    fn put(self, io: &mut Io<'_>) -> Result<()> {
        let all = [self.starts, self.ends, self.properties, self.terminals, self.n_of_rows];
        all.iter()
            .enumerate()
            .try_for_each(|(index, values)| put_vector(io, index, DType::I64, values))
    }
}
