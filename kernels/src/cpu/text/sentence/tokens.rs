//! Fragments of sequences of tokens: `SentenceFragments`.

use super::{
    super::failed,
    CLOSES, CLOSES_SENTENCE, End, Fragments, SEVERAL_TERMINAL, State, TERMINAL,
    marks::{ELLIPSIS, is_closing, is_opening, is_punctuation, is_terminal},
};
use crate::{
    cpu::string::encoding::Encoding,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::{Code, Error};
use std::sync::Arc;

const OP: &str = "SentenceFragments";

/// The property of tokens that are emoticons.
const EMOTICON: i64 = 0x80;
/// The property of tokens that are acronyms.
const ACRONYM: i64 = 0x100;

/// Token at the end of a fragment.
struct Token {
    terminal: bool,
    ellipsis: bool,
    closing: bool,
    opening: bool,
    punctuation: bool,
    emoticon: bool,
    /// Whether it is an acronym that ends with a full stop.
    acronym: bool,
}

impl Token {
    fn new(encoding: &Encoding, word: &Bytes, properties: i64) -> Result<Token> {
        let characters = encoding.decode(word);
        let only = match characters[..] {
            [(_, only)] => only,
            [] => return Err(failed(OP, Code::Internal, "an empty token")),
            _ => None,
        };
        let ellipsis = &word[..] == b"..." || only == Some(ELLIPSIS);
        Ok(Token {
            terminal: ellipsis || is_terminal(only),
            ellipsis,
            closing: is_closing(only),
            opening: is_opening(only),
            punctuation: is_punctuation(only),
            emoticon: properties & EMOTICON != 0,
            acronym: properties & ACRONYM != 0 && word.ends_with(b"."),
        })
    }
}

pub(super) fn fragments(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let name = call.attrs.string("input_encoding")?;
    let encoding = Encoding::find(name)
        .ok_or_else(|| call.wrong("input_encoding", "a known encoding", name))?;
    let replacement = call.attrs.int("replacement_char")?;
    if !(0..=0x10_ffff).contains(&replacement) {
        return Err(call.wrong("replacement_char", "a code point", replacement));
    }
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (lengths, words) = (io.input::<i64>(0), io.strings(3)?);
        let properties: &[i64] = io.input(4);
        let n = [io.input::<i64>(1).len(), io.input::<i64>(2).len(), properties.len()];
        let lengths = rows(lengths, words.len())?;
        if n.iter().any(|n| *n != words.len()) {
            let expected = format!("of the length of `token_word`, {}", words.len());
            return Err(Error::argument(OP, "tokens", expected, format!("{n:?}")).into());
        }
        let mut fragments = Fragments::default();
        let tokens = words.iter().zip(properties);
        let mut tokens = tokens.map(|(word, properties)| Token::new(&encoding, word, *properties));
        for length in lengths {
            let before = fragments.starts.len();
            let row = tokens.by_ref().take(length).collect::<Result<Vec<Token>>>()?;
            Row { tokens: &row, opened_first: false }.split(&mut fragments);
            fragments.n_of_rows.push((fragments.starts.len() - before) as i64);
        }
        fragments.put(io)
    })))
}

/// The lengths of rows that have `n` tokens together.
fn rows(lengths: &[i64], n: usize) -> Result<Vec<usize>> {
    let lengths: Option<Vec<usize>> =
        lengths.iter().map(|length| usize::try_from(*length).ok()).collect();
    let sum = |lengths: &Vec<usize>| {
        lengths.iter().try_fold(0usize, |sum, length| sum.checked_add(*length))
    };
    lengths.filter(|lengths| sum(lengths) == Some(n)).ok_or_else(|| {
        let expected = format!("lengths of {n} tokens together");
        Error::argument(OP, "row_lengths", expected, "others").into()
    })
}

struct Row<'a> {
    tokens: &'a [Token],
    /// Whether the opening parenthesis seen last began its fragment.
    opened_first: bool,
}

impl Row<'_> {
    fn split(&mut self, fragments: &mut Fragments) {
        let mut start = 0;
        while start < self.tokens.len() {
            let end = self.end(start);
            let own = &self.tokens[start..end.limit];
            if let Some(place) = own.iter().rposition(|token| token.opening) {
                self.opened_first = place == 0;
            }
            let (mut properties, mut terminal) = (0, None);
            if end.has_terminal() {
                properties = self.properties(&end);
                terminal = Some(self.terminal(&end));
            }
            fragments.add(start, end.limit, properties, terminal);
            start = end.limit;
        }
    }

    /// The end of the fragment that begins with a token, as [`text`](super::text) finds it.
    fn end(&self, start: usize) -> End {
        let (mut end, mut sure) = (End::new(), None);
        for (at, token) in self.tokens.iter().enumerate().skip(start) {
            if end.has_terminal() && at > start {
                if !(token.emoticon || token.terminal || token.closing) {
                    break;
                }
                sure = Some(end);
            }
            if !advance(&mut end, at, token) {
                if let Some(end) = sure {
                    return end;
                }
                end = End::new();
                advance(&mut end, at, token);
            }
        }
        end
    }

    fn properties(&self, end: &End) -> i64 {
        let hard = |token: &Token| token.punctuation && !token.ellipsis && !token.emoticon;
        let several = (end.terminal + 1..end.closing).any(|at| hard(&self.tokens[at]));
        let closes = self.tokens[end.closing..end.limit].iter().any(|token| token.closing);
        TERMINAL
            | if several { SEVERAL_TERMINAL } else { 0 }
            | match (closes, self.opened_first) {
                (true, true) => CLOSES | CLOSES_SENTENCE,
                (true, false) => CLOSES,
                (false, _) => 0,
            }
    }

    /// The first terminal mark; an ellipsis or emoticon before other marks belongs to the sentence.
    fn terminal(&self, end: &End) -> usize {
        let soft = |at: &usize| self.tokens[at - 1].ellipsis || self.tokens[at - 1].emoticon;
        match (end.terminal + 1..=end.closing).rev().find(soft) {
            Some(at) if at < end.closing => at,
            Some(_) | None => end.terminal,
        }
    }
}

/// Moves an end on over a token; false if that is no part of it.
fn advance(end: &mut End, at: usize, token: &Token) -> bool {
    match end.state {
        State::Initial => {
            if token.terminal || token.acronym || token.emoticon {
                (end.terminal, end.state) = (at, State::Terminal);
            }
        }
        State::Terminal if token.terminal || token.emoticon => {}
        State::Terminal if token.closing => (end.closing, end.state) = (at, State::Closing),
        State::Closing if token.closing || token.ellipsis || token.emoticon => {}
        State::Terminal | State::Closing => return false,
    }
    end.limit = at + 1;
    if end.state == State::Terminal {
        end.closing = end.limit;
    }
    true
}
