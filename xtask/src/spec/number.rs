//! The numbers of lines.

use std::{fmt, str::FromStr};

/// The number of a line: `24` of what is documented, or `b24` of what is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineNumber {
    pub(super) observed: bool,
    value: u32,
}

impl FromStr for LineNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<LineNumber, String> {
        let (observed, digits) = match text.strip_prefix('b') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = digits.parse().ok().filter(|_| is_plain);
        value
            .map(|value| LineNumber { observed, value })
            .ok_or(format!("`{text}` is no number of a line"))
    }
}

impl fmt::Display for LineNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.observed { "b" } else { "" }, self.value)
    }
}

/// Reads `24, 26-28, b6`.
pub(super) fn list(text: &str) -> Result<Vec<LineNumber>, String> {
    let mut numbers = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last): (LineNumber, LineNumber) = (first.trim().parse()?, last.trim().parse()?);
        if first.observed != last.observed || first > last {
            return Err(format!("`{item}` is no range"));
        }
        numbers.extend((first.value..=last.value).map(|value| LineNumber { value, ..first }));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found = list(text).map(|numbers| numbers.iter().map(LineNumber::to_string).collect());
        let found: Result<Vec<String>, String> = found;
        let expected = expected.map(|numbers| numbers.iter().map(|n| n.to_string()).collect());
        assert_eq!(found, expected.map_err(str::to_string));
    }

    #[test]
    fn lists_hold_numbers_and_ranges() {
        check("24, 26-28,b6", Ok(&["24", "26", "27", "28", "b6"]));
        check("b1-b3", Ok(&["b1", "b2", "b3"]));
        check("24 26", Err("`24 26` is no number of a line"));
        check("24,", Err("`` is no number of a line"));
        check("+3", Err("`+3` is no number of a line"));
        check("3-1", Err("`3-1` is no range"));
        check("1-b3", Err("`1-b3` is no range"));
    }
}
