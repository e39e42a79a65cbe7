//! Literals of Python: numbers, texts, bytes, booleans, and tuples, lists, dictionaries and sets of them.
//!
//! Headers of `.npy` files are such literals, and so is what the command line takes as inputs. The syntax is
//! Python's (<https://docs.python.org/3/reference/lexical_analysis.html#literals>) without raw strings,
//! names of characters (`\N{…}`) and concatenation.

use num_complex::Complex;
use std::{fmt, str::FromStr};

/// Greatest depth of containers.
const DEPTH: usize = 64;

/// A value that a literal stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum PythonLiteral {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer of at most 128 bits; longer ones are floats.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(Complex<f64>),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<PythonLiteral>),
    /// A list.
    List(Vec<PythonLiteral>),
    /// A set.
    Set(Vec<PythonLiteral>),
    /// A dictionary, in the order of the text.
    Dict(Vec<(PythonLiteral, PythonLiteral)>),
}

/// The byte of a text at which it stops being a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a literal of Python at byte {at}")]
pub struct InvalidLiteral {
    /// The byte.
    pub at: usize,
}

impl FromStr for PythonLiteral {
    type Err = InvalidLiteral;

    fn from_str(text: &str) -> Result<PythonLiteral, InvalidLiteral> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let literal = parser.value();
        parser.skip_blanks();
        literal.filter(|_| parser.at == text.len()).ok_or(InvalidLiteral { at: parser.at })
    }
}

impl fmt::Display for PythonLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, items: &[PythonLiteral]| {
            items.iter().enumerate().try_for_each(|(index, item)| {
                f.write_str(if index == 0 { "" } else { ", " })?;
                item.fmt(f)
            })
        };
        match self {
            PythonLiteral::None => f.write_str("None"),
            PythonLiteral::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            PythonLiteral::Integer(value) => value.fmt(f),
            PythonLiteral::Float(value) => write!(f, "{value:?}"),
            PythonLiteral::Complex(value) => write!(f, "{:?}{:+?}j", value.re, value.im),
            PythonLiteral::Text(text) => write!(f, "'{}'", text.escape_default()),
            PythonLiteral::Bytes(bytes) => write!(f, "b'{}'", bytes.escape_ascii()),
            PythonLiteral::Tuple(items) => {
                f.write_str("(")?;
                list(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            PythonLiteral::List(items) => {
                f.write_str("[")?;
                list(f, items)?;
                f.write_str("]")
            }
            PythonLiteral::Set(items) => {
                f.write_str("{")?;
                list(f, items)?;
                f.write_str("}")
            }
            PythonLiteral::Dict(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A recursive descent over a text. A function that returns `None` stopped where the text is wrong.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips a token, and what is blank before it, if it comes next.
    fn takes(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn skip_blanks(&mut self) {
        let blanks = [' ', '\t', '\n', '\r', '\x0c'];
        self.at = self.text.len() - self.rest().trim_start_matches(blanks).len();
    }

    fn value(&mut self) -> Option<PythonLiteral> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        self.skip_blanks();
        let value = match self.rest().as_bytes().first()? {
            b'(' => self.tuple(),
            b'[' => self.items("[", "]").map(|(items, _)| PythonLiteral::List(items)),
            b'{' => self.braces(),
            b'\'' | b'"' => self.quoted(true).and_then(text).map(PythonLiteral::Text),
            b'b' | b'B' => {
                self.at += 1;
                self.quoted(false).and_then(bytes).map(PythonLiteral::Bytes)
            }
            b'T' | b'F' | b'N' => self.name(),
            _ => self.sum(),
        };
        self.depth -= 1;
        value
    }

    fn name(&mut self) -> Option<PythonLiteral> {
        let names = [
            ("True", PythonLiteral::Bool(true)),
            ("False", PythonLiteral::Bool(false)),
            ("None", PythonLiteral::None),
        ];
        names.into_iter().find_map(|(name, value)| self.takes(name).then_some(value))
    }

    /// Values between brackets, and whether a comma stands behind a single one.
    fn items(&mut self, open: &str, close: &str) -> Option<(Vec<PythonLiteral>, bool)> {
        if !self.takes(open) {
            return None;
        }
        if self.takes(close) {
            return Some((Vec::new(), false));
        }
        let first = self.value()?;
        let is_more = self.takes(",");
        let rest = self.rest_of_items(close, is_more)?;
        let ends_in_comma = is_more && rest.is_empty();
        Some(([first].into_iter().chain(rest).collect(), ends_in_comma))
    }

    /// The values up to a bracket, of which there may be more behind a comma only.
    fn rest_of_items(&mut self, close: &str, mut is_more: bool) -> Option<Vec<PythonLiteral>> {
        let mut items = Vec::new();
        while !self.takes(close) {
            if !is_more {
                return None;
            }
            items.push(self.value()?);
            is_more = self.takes(",");
        }
        Some(items)
    }

    fn tuple(&mut self) -> Option<PythonLiteral> {
        let (mut items, ends_in_comma) = self.items("(", ")")?;
        match items.len() {
            1 if !ends_in_comma => items.pop(),
            _ => Some(PythonLiteral::Tuple(items)),
        }
    }

    /// A set or a dictionary: the first item tells.
    fn braces(&mut self) -> Option<PythonLiteral> {
        if !self.takes("{") {
            return None;
        }
        if self.takes("}") {
            return Some(PythonLiteral::Dict(Vec::new()));
        }
        let first = self.value()?;
        if !self.takes(":") {
            let is_more = self.takes(",");
            let rest = self.rest_of_items("}", is_more)?;
            return Some(PythonLiteral::Set([first].into_iter().chain(rest).collect()));
        }
        let mut entries = vec![(first, self.value()?)];
        while self.takes(",") {
            if self.takes("}") {
                return Some(PythonLiteral::Dict(entries));
            }
            let key = self.value()?;
            let value = self.takes(":").then(|| self.value())??;
            entries.push((key, value));
        }
        self.takes("}").then_some(PythonLiteral::Dict(entries))
    }

    /// The code points between quotes; of bytes, one for each byte.
    fn quoted(&mut self, is_text: bool) -> Option<Vec<u32>> {
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quote = quotes.into_iter().find(|quote| self.rest().starts_with(quote))?;
        self.at += quote.len();
        let mut points = Vec::new();
        loop {
            if self.rest().starts_with(quote) {
                self.at += quote.len();
                return Some(points);
            }
            match self.character()? {
                '\\' => self.escape(is_text, &mut points)?,
                '\n' | '\r' if quote.len() == 1 => return None,
                character if is_text || character.is_ascii() => points.push(character.into()),
                _ => return None,
            }
        }
    }

    fn character(&mut self) -> Option<char> {
        let character = self.rest().chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Appends what an escape stands for, whose backslash is past; an unknown one stands for itself.
    fn escape(&mut self, is_text: bool, points: &mut Vec<u32>) -> Option<()> {
        let letter = self.character()?;
        let point = match letter {
            '\n' => return Some(()),
            '\\' | '\'' | '"' => letter.into(),
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => self.code(16, 2, 2)?,
            'u' if is_text => self.code(16, 4, 4)?,
            'U' if is_text => self.code(16, 8, 8)?,
            'N' if is_text => return None,
            '0'..='7' => {
                self.at -= 1;
                self.code(8, 1, 3)?
            }
            unknown if is_text || unknown.is_ascii() => {
                points.push('\\'.into());
                unknown.into()
            }
            _ => return None,
        };
        points.push(point);
        Some(())
    }

    /// A number of `least` to `most` digits.
    fn code(&mut self, radix: u32, least: usize, most: usize) -> Option<u32> {
        let digits = self.rest().bytes().take(most);
        let n = digits.take_while(|&byte| char::from(byte).is_digit(radix)).count();
        let code = u32::from_str_radix(&self.rest()[..n], radix).ok().filter(|_| n >= least)?;
        self.at += n;
        Some(code)
    }

    /// Numbers with signs between them: `-1`, `2 - 5j`.
    fn sum(&mut self) -> Option<PythonLiteral> {
        let mut sum = self.signed()?;
        self.skip_blanks();
        while self.rest().starts_with(['+', '-']) {
            sum = added(&sum, &self.signed()?)?;
            self.skip_blanks();
        }
        Some(sum)
    }

    fn signed(&mut self) -> Option<PythonLiteral> {
        let mut is_negative = false;
        loop {
            if self.takes("-") {
                is_negative = !is_negative;
            } else if !self.takes("+") {
                break;
            }
        }
        let number = self.number()?;
        if is_negative { negated(number) } else { Some(number) }
    }

    fn number(&mut self) -> Option<PythonLiteral> {
        let rest = self.rest();
        let radix = match rest.get(..2) {
            Some("0b" | "0B") => 2,
            Some("0o" | "0O") => 8,
            Some("0x" | "0X") => 16,
            _ => return self.decimal(),
        };
        let is_part = |byte: &u8| *byte == b'_' || char::from(*byte).is_digit(radix);
        let n = rest.bytes().skip(2).take_while(is_part).count();
        let digits = &rest[2..2 + n];
        let digits = without_separators(digits.strip_prefix('_').unwrap_or(digits))?;
        let value = i128::from_str_radix(&digits, radix).ok()?;
        self.at += 2 + n;
        Some(PythonLiteral::Integer(value))
    }

    fn decimal(&mut self) -> Option<PythonLiteral> {
        let rest = self.rest().as_bytes();
        let digits = |from: usize| {
            let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'_';
            rest.iter().skip(from).take_while(is_part).count()
        };
        let mut end = digits(0);
        let mut is_integer = true;
        if rest.get(end) == Some(&b'.') {
            end += 1 + digits(end + 1);
            is_integer = false;
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            end += 1 + sign + digits(end + 1 + sign);
            is_integer = false;
        }
        let is_imaginary = matches!(rest.get(end), Some(b'j' | b'J'));
        let digits = without_separators(&self.rest()[..end])?;
        let float: f64 = digits.parse().ok()?;
        self.at += end + usize::from(is_imaginary);
        Some(match digits.parse() {
            _ if is_imaginary => PythonLiteral::Complex(Complex::new(0.0, float)),
            Ok(integer) if is_integer => PythonLiteral::Integer(integer),
            _ => PythonLiteral::Float(float),
        })
    }
}

/// Digits without the underscores between them.
fn without_separators(digits: &str) -> Option<String> {
    let is_sound = digits.split('_').all(|part| !part.is_empty());
    is_sound.then(|| digits.replace('_', ""))
}

fn text(points: Vec<u32>) -> Option<String> {
    points.into_iter().map(char::from_u32).collect()
}

fn bytes(points: Vec<u32>) -> Option<Vec<u8>> {
    points.into_iter().map(|point| u8::try_from(point).ok()).collect()
}

fn negated(number: PythonLiteral) -> Option<PythonLiteral> {
    Some(match number {
        PythonLiteral::Integer(value) => PythonLiteral::Integer(value.checked_neg()?),
        PythonLiteral::Float(value) => PythonLiteral::Float(-value),
        PythonLiteral::Complex(value) => PythonLiteral::Complex(-value),
        _ => return None,
    })
}

fn added(a: &PythonLiteral, b: &PythonLiteral) -> Option<PythonLiteral> {
    if let (PythonLiteral::Integer(a), PythonLiteral::Integer(b)) = (a, b) {
        return a.checked_add(*b).map(PythonLiteral::Integer);
    }
    let is_complex = [a, b].iter().any(|number| matches!(number, PythonLiteral::Complex(_)));
    let sum = complex(a)? + complex(b)?;
    Some(if is_complex { PythonLiteral::Complex(sum) } else { PythonLiteral::Float(sum.re) })
}

fn complex(number: &PythonLiteral) -> Option<Complex<f64>> {
    match number {
        PythonLiteral::Integer(value) => Some(Complex::new(*value as f64, 0.0)),
        PythonLiteral::Float(value) => Some(Complex::new(*value, 0.0)),
        PythonLiteral::Complex(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = text.parse::<PythonLiteral>().map(|literal| literal.to_string());
        assert_eq!(found.as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn literals_are_read_as_python_reads_them() {
        check(" [1, -2, 0x_ff, 0b101, 1_000] ", "[1, -2, 255, 5, 1000]");
        check("(1.5, .5, 2., 1e3, 1_0E-1)", "(1.5, 0.5, 2.0, 1000.0, 1.0)");
        check("(3,)", "(3,)");
        check("(3)", "3");
        check("()", "()");
        check("2 - 5j", "2.0-5.0j");
        check("--1 + 2", "3");
        check("{'a': [True, None], b\"\\x00\": {1, 2,},}", "{'a': [True, None], b'\\x00': {1, 2}}");
        check("{}", "{}");
        check("'''two\n\"lines\"'''", "'two\\n\\\"lines\\\"'");
        check("'\\u00e9\\101\\q\\\n'", "'\\u{e9}A\\\\q'");
        check("12089258196146291747061760000000000000000000000", "1.2089258196146292e46");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "[1",
            "[1,,]",
            "[,]",
            "1 2",
            "{1: 2, 3}",
            "{,}",
            "'a",
            "'\n'",
            "b'é'",
            "'\\ud800'",
            "'\\N{DASH}'",
            "1__0",
            "_1",
            "0x",
            "1e",
            ".",
            "+",
            "x",
            "Truex",
            "b",
            "'a' 'b'",
            "- 'a'",
            "(1, 2",
            "(,)",
        ] {
            assert!(text.parse::<PythonLiteral>().is_err(), "{text}");
        }
        for bracket in ["[", "{", "("] {
            assert!(bracket.repeat(100_000).parse::<PythonLiteral>().is_err());
        }
    }
}
