//! The characters that sentences end with.
//!
//! Closing and opening marks are those that the line breaking property of Unicode 16 calls `CL` or
//! `CP`, and `OP`; terminal ones those that the sentence breaking property calls `ATerm` or `STerm`.

use super::super::char_set::CharSet;
use std::sync::OnceLock;

pub(super) const ELLIPSIS: char = '\u{2026}';

/// Characters by what they do at the end of a sentence.
struct Marks {
    terminal: CharSet,
    closing: CharSet,
    opening: CharSet,
    punctuation: CharSet,
}

fn marks() -> &'static Marks {
    static MARKS: OnceLock<Marks> = OnceLock::new();
    MARKS.get_or_init(|| Marks {
        terminal: CharSet::of_class(
            r"[\p{sb=ATerm}\p{sb=STerm}\x{55C}\x{55E}\x{17D4}\x{37E}\x{2026}]",
        ),
        closing: CharSet::of_class(
            r"[\p{Pe}>\x{3001}\x{3002}\x{FD3F}\x{FE10}-\x{FE12}\x{FE50}\x{FE52}\x{FF0C}\x{FF0E}\x{FF61}\x{FF64}\x{1325B}-\x{1325D}\x{13282}\x{13287}\x{13289}\x{1337A}\x{1337B}\x{13438}\x{1343D}\x{1343F}\x{145CF}]",
        ),
        opening: CharSet::of_class(
            r"[\p{Ps}<\xA1\xBF\x{2E18}\x{FD3E}\x{13258}-\x{1325A}\x{13286}\x{13288}\x{13379}\x{1342F}\x{13437}\x{1343C}\x{1343E}\x{145CE}\x{1E95E}\x{1E95F}]",
        ),
        punctuation: CharSet::of_class(r"[\p{P}\p{Dash}\p{Hyphen}`<>~\x{166D}]"),
    })
}

/// Whether a character ends sentences.
pub(super) fn is_terminal(character: Option<char>) -> bool {
    character.is_some_and(|character| marks().terminal.has(character))
}

/// Whether a character is a closing parenthesis, in a wide sense.
pub(super) fn is_closing(character: Option<char>) -> bool {
    character.is_some_and(|character| marks().closing.has(character))
}

/// Whether a character is an opening parenthesis, in a wide sense.
pub(super) fn is_opening(character: Option<char>) -> bool {
    character.is_some_and(|character| marks().opening.has(character))
}

/// Whether a character is punctuation.
pub(super) fn is_punctuation(character: Option<char>) -> bool {
    character.is_some_and(|character| marks().punctuation.has(character))
}

/// The bytes of the emoticon that a text begins with, if it begins with one.
pub(super) fn emoticon(text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let of_first = |emoticon: &&&str| emoticon.as_bytes()[0] == first;
    let found =
        EMOTICONS.iter().filter(of_first).find(|emoticon| text.starts_with(emoticon.as_bytes()));
    found.map(|emoticon| emoticon.len())
}

/// Emoticons, of which the first that fits counts.
const EMOTICONS: &[&str] = &[
    "#-)", "(=^.^=)", "(=^..^=)", "(]:{", "*-)", "*)", "-_-", "-<@%", "0:-)", "0:)", "0;^)",
    "3:-)", "8-)", "8'(", ":(:)", ":)", ":(", ":o)", ":]", ":3", ":>", ":}", ":^)", ":-D",
    ":-)))))", ":-))))", ":-)))", ":-))", ":-)", ":-(", ":-c", ":c", ":-<", ":<", ":-[", ":[",
    ":{", ":-||", ":@", ":'-(", ":'(", ":'-)", ":')", ":-O", ":-o", ":*", ":-*", ":^*", ":-,",
    ":-P", ":p", ":-p", ":P", ":-/", ":-.", ":/", ":\\", ":|", ":-|", ":$", ":-#", ":#", ":-J",
    ":-&", ":&", ":D", ":-\\", ":s", ":S", ":-s", ":-S", ":o", ":O", ":X)", ";(", ";-)", ";)",
    ";-]", ";]", ";^)", ";p", ";-p", ";P", ";-P", ";*", ";-*=(", ";_;", "<3", "<\\3", "=]", "=)",
    "=p", "=P", "=/", "=\\", "=D", "=|", "='(", "=o", "=O", "=^_^=", ">:[", ">:(", ">:O", ">:P",
    ">:\\", ">:/", ">:)", ">;)", ">:-)", ">_>^", ">.<", ">:-(", ">=(", ">_<", "B)", "B-)", "D:<",
    "D:", "DX", "O:-)", "O=)", "O.O", "T_T", "X-(", "X(", "X-o", "X-O", "XD", "^<_<", "^_^",
    "o_o;", "o.o", "u_u", "x_x", "|;-)", "|-O", "}:-)", "}:)", "}=)", "~@~",
];
