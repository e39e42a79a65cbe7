//! ISO-2022-JP and its kin (RFC 1468, 1554, 2237; JIS7, JIS8): sets of characters that escape
//! sequences switch between.

use super::table::{Table, mark};
use std::sync::Arc;

const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// Set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Charset {
    #[default]
    Ascii,
    /// ASCII with a yen sign and an overline.
    JisX0201,
    Katakana,
    JisX0208,
    JisX0212,
    Gb2312,
    KsC5601,
    Latin1,
    Greek,
}

/// Sets that escape sequences switch to, by the bytes after the escape.
const DESIGNATIONS: &[(&[u8], Charset)] = &[
    (b"(B", Charset::Ascii),
    (b"(H", Charset::JisX0201),
    (b"(J", Charset::JisX0201),
    (b"(I", Charset::Katakana),
    (b"$@", Charset::JisX0208),
    (b"$B", Charset::JisX0208),
    (b"&@", Charset::JisX0208),
    (b"$(D", Charset::JisX0212),
    (b"$A", Charset::Gb2312),
    (b"$(C", Charset::KsC5601),
    (b".A", Charset::Latin1),
    (b".F", Charset::Greek),
];

/// Shifts to the second set for one character.
const SINGLE_SHIFT: &[u8] = b"N";

/// Sequences that mean something elsewhere: they are malformed as a whole.
const FOREIGN: &[&[u8]] = &[
    b"O", b"(@", b"(A", b"(C", b"(D", b"(E", b"(F", b"(G", b"(K", b"(R", b"%B", b"$(@", b"$(A",
    b"$(B", b"$(E", b"$(G", b"$(H", b"$(I", b"$(J", b"$(K", b"$(L", b"$(M", b"$)A", b"$)C", b"$)E",
    b"$)G", b"$*H", b"$+I", b"$+J", b"$+K", b"$+L", b"$+M", b"%/@", b"%/A", b"%/C", b"%/D", b"%/E",
    b"%/F",
];

/// Member of the family: ISO-2022-JP, -1, -2, JIS7 and JIS8, in this order.
#[derive(Debug, Clone)]
pub(in crate::cpu) struct Iso2022 {
    version: u8,
    shift_jis: Arc<Table>,
    jis_x0212: Arc<Table>,
    gb2312: Arc<Table>,
    korean: Arc<Table>,
    greek: Arc<Table>,
}

#[derive(Debug, Default)]
struct State {
    main: Charset,
    second: Option<Charset>,
    /// Whether the next character is one of the second set.
    single_shift: bool,
    /// Whether JIS7's katakana are shifted to.
    katakana: bool,
    /// Whether nothing came since the last escape sequence.
    is_empty: bool,
}

/// Begin of a text.
enum Step {
    Shift,
    Character(Option<char>),
}

impl Iso2022 {
    pub(super) fn new(version: u8) -> Option<Iso2022> {
        Some(Iso2022 {
            version,
            shift_jis: Table::find("ibm-943_P15A-2003")?,
            jis_x0212: Table::find("jisx-212")?,
            gb2312: Table::find("gb-2312")?,
            korean: Table::find("windows-949-2000")?,
            greek: Table::find("ibm-9005_X110-2007")?,
        })
    }

    /// The characters of a text, each with the byte at which the sequence before it begins; `None`
    /// for what is none.
    pub(super) fn decode(&self, text: &[u8]) -> Vec<(usize, Option<char>)> {
        let mut state = State::default();
        let (mut characters, mut start, mut at) = (Vec::with_capacity(text.len()), 0, 0);
        while let Some(&first) = text.get(at) {
            let (step, len) = self.step(&mut state, first, &text[at + 1..]);
            at += len;
            if let Step::Character(character) = step {
                characters.push((start, character));
                start = at;
            }
        }
        if start < at {
            // ICU ends with this where nothing comes after a sequence.
            characters.push((start, Some('\u{ffff}')));
        }
        characters
    }

    fn step(&self, state: &mut State, first: u8, rest: &[u8]) -> (Step, usize) {
        match first {
            SHIFT_IN | SHIFT_OUT if self.version == 3 => {
                state.katakana = first == SHIFT_OUT;
                state.single_shift = false;
                (Step::Shift, 1)
            }
            SHIFT_IN | SHIFT_OUT => {
                state.is_empty = false;
                (Step::Character(None), 1)
            }
            ESCAPE => {
                let (done, len) = self.escape(state, rest);
                let was_empty = std::mem::replace(&mut state.is_empty, done);
                if done && !(was_empty && self.version == 0) {
                    return (Step::Shift, len);
                }
                state.is_empty = false;
                (Step::Character(None), len)
            }
            _ => {
                state.is_empty = false;
                if matches!(first, b'\r' | b'\n') {
                    if !matches!(state.main, Charset::Ascii | Charset::JisX0201) {
                        state.main = Charset::Ascii;
                    }
                    *state = State { main: state.main, ..State::default() };
                }
                let (character, len) = self.character(state, first, rest);
                (Step::Character(character), len)
            }
        }
    }

    /// Whether an escape sequence is one of this encoding, and its length.
    fn escape(&self, state: &mut State, rest: &[u8]) -> (bool, usize) {
        let designations = || DESIGNATIONS.iter().map(|(bytes, _)| *bytes);
        if let Some((bytes, set)) = DESIGNATIONS.iter().find(|(bytes, _)| rest.starts_with(bytes)) {
            let known = self.has(*set);
            match set {
                _ if !known => {}
                Charset::Latin1 | Charset::Greek => state.second = Some(*set),
                _ => state.main = *set,
            }
            return (known, 1 + bytes.len());
        }
        if rest.starts_with(SINGLE_SHIFT) {
            state.single_shift |= state.second.is_some();
            return if state.second.is_some() { (true, 2) } else { (false, 1) };
        }
        if let Some(bytes) = FOREIGN.iter().find(|bytes| rest.starts_with(bytes)) {
            return (false, 1 + bytes.len());
        }
        let is_cut_off = designations().chain(FOREIGN.iter().copied()).any(|b| b.starts_with(rest));
        (false, if is_cut_off { 1 + rest.len() } else { 1 })
    }

    fn has(&self, set: Charset) -> bool {
        match set {
            Charset::Ascii | Charset::JisX0201 | Charset::Katakana | Charset::JisX0208 => true,
            Charset::JisX0212 => self.version >= 1,
            Charset::Gb2312 | Charset::KsC5601 | Charset::Latin1 | Charset::Greek => {
                self.version >= 2
            }
        }
    }

    /// The character of one byte or two, and their number.
    fn character(&self, state: &mut State, first: u8, rest: &[u8]) -> (Option<char>, usize) {
        let set = match state.second {
            Some(second) if std::mem::take(&mut state.single_shift) => second,
            _ if state.katakana => Charset::Katakana,
            _ => state.main,
        };
        let katakana = |first: u8| char::from_u32(u32::from(first) + 0xff40);
        let single = match set {
            Charset::JisX0208 | Charset::JisX0212 | Charset::Gb2312 | Charset::KsC5601 => {
                return self.double(set, first, rest);
            }
            _ if self.version == 4 && matches!(first, 0xa1..=0xdf) => katakana(first - 0x80),
            Charset::Katakana => {
                Some(first).filter(|b| matches!(b, 0x21..=0x5f)).and_then(katakana)
            }
            _ if first >= 0x80 => None,
            Charset::JisX0201 if first == b'\\' => Some('\u{a5}'),
            Charset::JisX0201 if first == b'~' => Some('\u{203e}'),
            Charset::Ascii | Charset::JisX0201 => Some(char::from(first)),
            Charset::Latin1 => Some(char::from(first + 0x80)),
            Charset::Greek => char::from_u32(self.greek.singles[usize::from(first) + 0x80]),
        };
        (single, 1)
    }

    fn double(&self, set: Charset, first: u8, rest: &[u8]) -> (Option<char>, usize) {
        let (graphic, Some(&second)) = (0x21..=0x7e, rest.first()) else { return (None, 1) };
        match (graphic.contains(&first), graphic.contains(&second)) {
            (true, true) => (self.double_code(set, first, second), 2),
            (false, true) => (None, 1),
            (_, false) if matches!(second, ESCAPE | SHIFT_IN | SHIFT_OUT) => (None, 1),
            (_, false) => (None, 2),
        }
    }

    fn double_code(&self, set: Charset, first: u8, second: u8) -> Option<char> {
        let index = |first: u8, second: u8| usize::from(first) << 8 | usize::from(second);
        let code = match set {
            Charset::JisX0208 => {
                let lead = (first - 1) / 2 + if first <= 0x5e { 0x71 } else { 0xb1 };
                let trail = match first % 2 {
                    0 => second + 0x7e,
                    _ => second + if second < 0x60 { 0x1f } else { 0x20 },
                };
                self.shift_jis.pairs[index(lead, trail)]
            }
            Charset::JisX0212 => self.jis_x0212.pairs[index(first | 0x80, second | 0x80)],
            Charset::Gb2312 => self.gb2312.pairs[index(first | 0x80, second | 0x80)],
            _ => self.korean.pairs[index(first | 0x80, second | 0x80)],
        };
        if code & mark::TWO == 0 { char::from_u32(code) } else { None }
    }
}
