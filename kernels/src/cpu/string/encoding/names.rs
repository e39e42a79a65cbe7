//! Names of encodings: those that ICU knows an encoding by.

/// Each line is an encoding: ICU's own name, then the others (`tests/ops/encodings.py`).
const NAMES: &str = include_str!("names.txt");

/// ICU's own name of an encoding.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    /// Bytes of the longest name, and one more.
    const LIMIT: usize = 60;
    if name.len() >= LIMIT {
        return None;
    }
    let listed = |name: &str| {
        // After a comma there are options, which are taken to the letter.
        let same = |known: &&str| match known.contains(',') || name.contains(',') {
            true => *known == name,
            false => significant(known).eq(significant(name)),
        };
        let mut lines = NAMES.lines().map(|line| line.split(' '));
        lines.find_map(|mut names| {
            let own = names.clone().next()?;
            names.find(same).map(|_| own)
        })
    };
    let without_x = || name.strip_prefix("x-").filter(|name| !name.contains(','));
    listed(name).or_else(|| without_x().and_then(listed))
}

/// The letters and digits that tell names apart: no leading zeros, and all letters small.
fn significant(name: &str) -> impl Iterator<Item = u8> + '_ {
    let bytes = name.bytes();
    let next = bytes.clone().skip(1).map(Some).chain([None]);
    let mut after_digit = false;
    bytes.zip(next).filter_map(move |(byte, next)| {
        let is_leading_zero =
            byte == b'0' && !after_digit && next.is_some_and(|next| next.is_ascii_digit());
        after_digit = matches!(byte, b'1'..=b'9') || (byte == b'0' && after_digit);
        (byte.is_ascii_alphanumeric() && !is_leading_zero).then(|| byte.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_hyphens_do_not_matter() {
        for name in ["shift_jis", "Shift-JIS", "SHIFT JIS", "x-sjis", "MS_Kanji", "windows-932"] {
            assert_eq!(canonical(name), Some("ibm-943_P15A-2003"), "{name}");
        }
        for (name, own) in [
            ("IBM037", "ibm-37_P100-1995"),
            ("utf-008", "UTF-8"),
            ("x-big5", "windows-950-2000"),
            ("8859_2", "ibm-912_P100-1995"),
        ] {
            assert_eq!(canonical(name), Some(own), "{name}");
        }
        for name in ["", "NOPE", "ibm-", "utf-80", "windows-1252 and more", "UTF-8,x"] {
            assert_eq!(canonical(name), None, "{name}");
        }
    }
}
