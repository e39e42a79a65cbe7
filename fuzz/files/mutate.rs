//! Mutations of files: bytes, the fields of messages, the fields of messages as text.

use super::targets::FileFormat;
use crate::programs::rng::FuzzRng;

/// Numbers at which sizes and positions go wrong.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    7,
    127,
    128,
    1 << 16,
    (1 << 24) + 1,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 36,
    1 << 62,
    i64::MAX as u64,
    u64::MAX,
];

/// A file that differs from another in some respect.
pub(super) fn mutate(format: FileFormat, bytes: &[u8], other: &[u8], rng: &mut FuzzRng) -> Vec<u8> {
    match format {
        FileFormat::Message if rng.chance(0.9) => message(bytes, other, rng, 0),
        FileFormat::Text if rng.chance(0.95) => text(bytes, rng),
        FileFormat::Message | FileFormat::Text | FileFormat::Bytes => plain(bytes, other, rng),
    }
}

fn plain(bytes: &[u8], other: &[u8], rng: &mut FuzzRng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let near = rng.below(64).min(bytes.len().saturating_sub(1));
    // Headers and tables of contents are at the beginning or at the end.
    let at = match rng.below(3) {
        0 => near,
        1 => bytes.len().saturating_sub(1 + near),
        _ => rng.below(bytes.len().max(1)),
    };
    let len = rng.below(32).min(bytes.len().saturating_sub(at));
    match rng.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 => {
            let part = bytes[at..at + len].to_vec();
            bytes.splice(at..at, part);
        }
        3 => {
            let from = rng.below(other.len().max(1));
            let part = &other[from..other.len().min(from + 1 + rng.below(64))];
            bytes.splice(at..(at + len).min(bytes.len()), part.iter().copied());
        }
        4 | 5 => {
            let (number, width) = (rng.pick(&NUMBERS), rng.pick(&[1, 2, 4, 8]));
            let mut written = number.to_le_bytes()[..width].to_vec();
            if rng.chance(0.3) {
                written.reverse();
            }
            bytes.iter_mut().skip(at).zip(written).for_each(|(byte, new)| *byte = new);
        }
        6 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = rng.below(256) as u8),
    }
    bytes
}

/// A field of a message: its number, and its value.
#[derive(Clone, Debug)]
struct WireField {
    number: u64,
    value: WireValue,
}

#[derive(Clone, Debug)]
enum WireValue {
    Varint(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
}

/// The fields of a message; `None` for bytes that are none.
fn fields(mut bytes: &[u8]) -> Option<Vec<WireField>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let number = tag >> 3;
        let value = match tag & 7 {
            0 => WireValue::Varint(varint(&mut bytes)?),
            1 => WireValue::Fixed(take(&mut bytes, 8)?.to_vec()),
            2 => {
                let len = usize::try_from(varint(&mut bytes)?).ok()?;
                WireValue::Bytes(take(&mut bytes, len)?.to_vec())
            }
            5 => WireValue::Fixed(take(&mut bytes, 4)?.to_vec()),
            _ => return None,
        };
        if number == 0 || number >= 1 << 29 {
            return None;
        }
        fields.push(WireField { number, value });
    }
    Some(fields)
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn encoded(fields: &[WireField]) -> Vec<u8> {
    let mut out = Vec::new();
    for WireField { number, value } in fields {
        match value {
            WireValue::Varint(value) => {
                put_varint(&mut out, number << 3);
                put_varint(&mut out, *value);
            }
            WireValue::Fixed(bytes) => {
                put_varint(&mut out, number << 3 | if bytes.len() == 8 { 1 } else { 5 });
                out.extend_from_slice(bytes);
            }
            WireValue::Bytes(bytes) => {
                put_varint(&mut out, number << 3 | 2);
                put_varint(&mut out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }
    out
}

/// A message with another field somewhere.
fn message(bytes: &[u8], other: &[u8], rng: &mut FuzzRng, depth: usize) -> Vec<u8> {
    let Some(mut found) = fields(bytes).filter(|fields| !fields.is_empty()) else {
        return plain(bytes, other, rng);
    };
    let at = rng.below(found.len());
    if depth < 24
        && let WireValue::Bytes(inner) = &found[at].value
        && rng.chance(0.85)
        && fields(inner).is_some_and(|fields| !fields.is_empty())
    {
        let inner = message(inner, other, rng, depth + 1);
        found[at].value = WireValue::Bytes(inner);
        return encoded(&found);
    }
    match rng.below(10) {
        0 => drop(found.remove(at)),
        1 => found.insert(at, found[at].clone()),
        2 => found.swap(at, 0),
        3 => found[at].number = 1 + rng.below(20) as u64,
        // A value of another field of the message: names, types and positions get mixed up.
        4 | 5 => {
            let from = rng.below(found.len());
            found[at].value = found[from].value.clone();
        }
        6 => {
            let extra = WireField { number: 1 + rng.below(12) as u64, value: value(rng) };
            found.insert(at, extra);
        }
        _ => found[at].value = changed(&found[at].value, other, rng),
    }
    encoded(&found)
}

fn value(rng: &mut FuzzRng) -> WireValue {
    match rng.below(3) {
        0 => WireValue::Varint(rng.pick(&NUMBERS)),
        1 => WireValue::Fixed(rng.pick(&NUMBERS).to_le_bytes()[..rng.pick(&[4, 8])].to_vec()),
        _ => WireValue::Bytes(vec![0x61; rng.below(20)]),
    }
}

fn changed(value: &WireValue, other: &[u8], rng: &mut FuzzRng) -> WireValue {
    match value {
        WireValue::Varint(number) => WireValue::Varint(match rng.below(4) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => rng.below(140) as u64,
            _ => rng.pick(&NUMBERS),
        }),
        WireValue::Fixed(bytes) => {
            let number = rng.pick(&[0, 1, 0x7f80_0000, 0x7fc0_0000, 0x7ff0 << 48, u64::MAX]);
            WireValue::Fixed(number.to_le_bytes()[..bytes.len().min(8)].to_vec())
        }
        WireValue::Bytes(bytes) => WireValue::Bytes(plain(bytes, other, rng)),
    }
}

/// Values that a message as text may have anywhere.
const VALUES: [&str; 22] = [
    "0",
    "-1",
    "1",
    "2147483647",
    "-9223372036854775808",
    "18446744073709551615",
    "0x7f",
    "0777",
    "1e308",
    "-inf",
    "nan",
    ".5",
    "1f",
    "true",
    "DT_FLOAT",
    "\"\"",
    "'a'",
    "\"\\377\\x00\\n\"",
    "\"a\" 'b'",
    "[]",
    "[1, 2]",
    "{}",
];

/// Words that belong to the grammar, and some that do not.
const WORDS: [&str; 14] =
    ["{", "}", "<", ">", ":", ";", ",", "[", "]", "# a comment\n", "node", "attr", "\"", "-"];

/// A message as text with another field, value or word somewhere.
fn text(bytes: &[u8], rng: &mut FuzzRng) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut words = words(&text);
    if words.is_empty() {
        return rng.pick(&WORDS).as_bytes().to_vec();
    }
    let at = rng.below(words.len());
    match rng.below(10) {
        // A whole field.
        0 => drop(words.drain(field(&words, at))),
        1 => {
            let copy = words[field(&words, at)].to_vec();
            words.splice(at..at, copy);
        }
        2 => {
            let moved: Vec<&str> = words.drain(field(&words, at)).collect();
            let to = rng.below(words.len() + 1);
            words.splice(to..to, moved);
        }
        // A field inside itself, again and again.
        3 => {
            let range = field(&words, at);
            let inner = words[range.clone()].to_vec();
            let depth = rng.pick(&[1, 2, 50, 300]);
            let open = ["node", "{"].repeat(depth);
            words.splice(range, open.into_iter().chain(inner).chain(["}"].repeat(depth)));
        }
        4 => {
            for word in &mut words {
                *word = match *word {
                    "{" => "<",
                    "}" => ">",
                    word => word,
                };
            }
        }
        5 => words.insert(at, rng.pick(&WORDS)),
        // The value of a field.
        _ => {
            let value = (at..words.len()).find(|&at| words[at] == ":");
            match value.filter(|&at| at + 1 < words.len()) {
                Some(at) => words[at + 1] = rng.pick(&VALUES),
                None => words[at] = rng.pick(&VALUES),
            }
        }
    }
    words.join(" ").into_bytes()
}

/// The words of a message as text: names, numbers, strings, signs.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' | '\'' => string_len(rest, first),
            '#' => rest.find('\n').map_or(rest.len(), |end| end + 1),
            first if first.is_alphanumeric() || "_.-+".contains(first) => {
                let is_part = |c: char| c.is_alphanumeric() || "_.-+".contains(c);
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            }
            first => first.len_utf8(),
        };
        let (word, after) = rest.split_at(len);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn string_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The words of the field that begins at or after a word; of all that is left if none does.
fn field(words: &[&str], at: usize) -> std::ops::Range<usize> {
    let is_name = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic());
    let start = (at..words.len()).find(|&at| is_name(words[at])).unwrap_or(at);
    let mut depth = 0usize;
    for (end, word) in words.iter().enumerate().skip(start + 1) {
        match *word {
            "{" | "<" | "[" => depth += 1,
            "}" | ">" | "]" if depth > 1 => depth -= 1,
            "}" | ">" | "]" => return start..end + usize::from(depth == 1),
            ":" => {}
            _ if depth == 0 => return start..end + 1,
            _ => {}
        }
    }
    start..words.len()
}
