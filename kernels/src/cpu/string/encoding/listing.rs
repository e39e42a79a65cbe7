//! Tables as text: each is told by what differs from another one (`tests/ops/encodings.py`).
//!
//! A table begins with a line of its own: its name, and if characters have several bytes the name of
//! the table it differs from, the bytes that lead, and those that follow. Tables of one byte differ
//! from Latin-1. Items follow, each with the byte or the two where it begins:
//!
//! | item | what it says |
//! |---|---|
//! | `a1:ĄĽ` | characters of successive bytes |
//! | `a1=a0` | the character of a number; of two, if a second number follows a comma |
//! | `a1+12=401` | 12 characters of successive numbers |
//! | `a1!`, `a1+3!` | malformed |
//! | `fd?`, `fd+3?` | malformed, but a character may begin there, or at the second byte |

use super::table::{Table, mark};
use encoding_rs::Encoding;
use std::{iter, sync::Arc};

const SINGLE_BYTE: &str = include_str!("single_byte.txt");
const MULTI_BYTE: &str = include_str!("multi_byte.txt");

/// Listed table.
pub(super) struct Listing {
    header: std::str::Split<'static, char>,
    items: Vec<&'static str>,
}

/// Table that another one differs from.
enum Base {
    /// Table of encoding_rs, after these bytes.
    Whatwg(&'static Encoding, &'static [u8]),
    Listed(Arc<Table>),
}

impl Listing {
    pub(super) fn find(name: &str) -> Option<Listing> {
        let mut lines = SINGLE_BYTE.lines().chain(MULTI_BYTE.lines());
        let header = lines.find_map(|line| {
            let mut words = line.split(' ');
            (words.next() == Some(name)).then_some(words)
        })?;
        let items = lines.map_while(|line| line.strip_prefix(' '));
        Some(Listing { header, items: items.flat_map(|line| line.split(' ')).collect() })
    }

    /// The table; `None` if the text is not as it should be.
    pub(super) fn table(mut self, name: &str) -> Option<Table> {
        let Some(base) = self.header.next() else {
            let mut singles = std::array::from_fn(|byte| byte as u32);
            let indices: Vec<usize> = (0..256).collect();
            self.items.iter().try_for_each(|item| put(item, &indices, &mut singles))?;
            return Some(Table { singles, pairs: Vec::new(), triples: None, quads: false });
        };
        let base = Base::find(base)?;
        let (leads, trails) = (ranges(self.header.next()?)?, ranges(self.header.next()?)?);
        let (singles, starts) = self.singles(&base, &leads)?;
        let indices: Vec<usize> = leads
            .iter()
            .flat_map(|lead| trails.iter().map(move |trail| lead << 8 | trail))
            .collect();
        let malformed = |index: usize| {
            if starts[index % 256] { mark::MALFORMED_FIRST } else { mark::MALFORMED }
        };
        let mut pairs: Vec<u32> = (0..1 << 16).map(malformed).collect();
        indices.iter().for_each(|&index| pairs[index] = base.pair(index));
        let of_pairs = self.items.iter().filter(|item| !is_single(item));
        of_pairs.into_iter().try_for_each(|item| put(item, &indices, &mut pairs))?;
        let triples = Listing::find(&format!("{name}/8f"));
        let triples = triples.and_then(|triples| Some((0x8f, triples.table("")?.pairs)));
        Some(Table { singles, pairs, triples, quads: name == "gb18030" })
    }

    /// Characters of single bytes, and which bytes may begin one.
    fn singles(&self, base: &Base, leads: &[usize]) -> Option<([u32; 256], [bool; 256])> {
        let mut singles = std::array::from_fn(|byte| base.single(byte));
        leads.iter().for_each(|&lead| singles[lead] = mark::LEAD);
        let indices: Vec<usize> = (0..256).collect();
        let mut of_singles = self.items.iter().filter(|item| is_single(item));
        of_singles.try_for_each(|item| put(item, &indices, &mut singles))?;
        Some((singles, singles.map(|code| code != mark::MALFORMED)))
    }
}

impl Base {
    fn find(name: &'static str) -> Option<Base> {
        let (encoding, prefix): (_, &[u8]) = match name.strip_suffix("/8f") {
            Some(encoding) => (encoding, &[0x8f]),
            None => (name, &[]),
        };
        match Encoding::for_label(encoding.as_bytes()) {
            Some(encoding) => Some(Base::Whatwg(encoding, prefix)),
            None => Table::find(name).map(Base::Listed),
        }
    }

    fn single(&self, byte: usize) -> u32 {
        match self {
            Base::Whatwg(encoding, _) => whatwg(encoding, &[byte as u8]),
            Base::Listed(table) if table.singles[byte] == mark::LEAD => mark::MALFORMED,
            Base::Listed(table) => table.singles[byte],
        }
    }

    fn pair(&self, index: usize) -> u32 {
        let code = match self {
            Base::Whatwg(encoding, prefix) => {
                let bytes = [&prefix[..], &[(index >> 8) as u8, index as u8]].concat();
                whatwg(encoding, &bytes)
            }
            Base::Listed(table) => table.pairs[index],
        };
        if code == mark::MALFORMED_FIRST { mark::MALFORMED } else { code }
    }
}

/// Character of encoding_rs for these bytes.
pub(super) fn whatwg(encoding: &'static Encoding, bytes: &[u8]) -> u32 {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    let mut characters = text.iter().flat_map(|text| text.chars()).map(u32::from);
    match (characters.next(), characters.next()) {
        (Some(only), None) => only,
        (Some(first), Some(second)) => mark::TWO | first << 16 | second,
        (None, _) => mark::MALFORMED,
    }
}

/// Bytes such as `81-9f,e0`.
fn ranges(text: &str) -> Option<Vec<usize>> {
    let number = |text| usize::from_str_radix(text, 16).ok().filter(|&number| number < 256);
    let mut bytes = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        bytes.extend(number(first)?..=number(last)?);
    }
    Some(bytes)
}

/// Whether an item is about one byte.
fn is_single(item: &str) -> bool {
    item.bytes().take_while(u8::is_ascii_hexdigit).count() == 2
}

/// Puts what an item says into a table with these indices, in rising order.
fn put(item: &str, indices: &[usize], table: &mut [u32]) -> Option<()> {
    let (key, rest) = item.split_at(item.find(['+', '=', ':', '!', '?'])?);
    let (count, rest) = match rest.strip_prefix('+') {
        Some(rest) => {
            let (count, rest) = rest.split_at(rest.find(['=', '!', '?'])?);
            (count.parse().ok()?, rest)
        }
        None => (1, rest),
    };
    let start = indices.binary_search(&usize::from_str_radix(key, 16).ok()?).ok()?;
    let mut indices = indices[start..].iter();
    let mut put = |codes: &mut dyn Iterator<Item = u32>| {
        codes.zip(&mut indices).for_each(|(code, &index)| table[index] = code);
    };
    match rest.split_at(1) {
        (":", text) => put(&mut text.chars().map(u32::from)),
        ("!", "") => put(&mut iter::repeat_n(mark::MALFORMED, count)),
        ("?", "") => put(&mut iter::repeat_n(mark::MALFORMED_FIRST, count)),
        (_, numbers) => {
            let number = |text| u32::from_str_radix(text, 16).ok();
            match numbers.split_once(',') {
                Some((a, b)) => put(&mut iter::once(mark::TWO | number(a)? << 16 | number(b)?)),
                None => put(&mut (number(numbers)?..).take(count)),
            }
        }
    }
    Some(())
}
