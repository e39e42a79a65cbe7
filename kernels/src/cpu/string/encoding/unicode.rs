//! Unicode's own encodings.

pub(super) fn ascii(text: &[u8]) -> Vec<(usize, Option<char>)> {
    let character = |byte: u8| byte.is_ascii().then_some(char::from(byte));
    text.iter().map(|&byte| character(byte)).enumerate().collect()
}

pub(super) fn latin1(text: &[u8]) -> Vec<(usize, Option<char>)> {
    text.iter().map(|&byte| Some(char::from(byte))).enumerate().collect()
}

pub(super) fn utf8(text: &[u8]) -> Vec<(usize, Option<char>)> {
    let mut characters = Vec::with_capacity(text.len());
    let mut start = 0;
    for chunk in text.utf8_chunks() {
        let own = chunk.valid().char_indices();
        characters.extend(own.map(|(at, character)| (start + at, Some(character))));
        start += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            characters.push((start, None));
        }
        start += chunk.invalid().len();
    }
    characters
}

/// Two bytes, the first of which is the high one unless a mark or `little` says otherwise.
pub(super) fn utf16(text: &[u8], little: bool, marked: bool) -> Vec<(usize, Option<char>)> {
    let (little, start) = match text {
        [0xff, 0xfe, ..] if marked => (true, 2),
        [0xfe, 0xff, ..] if marked => (false, 2),
        _ => (little, 0),
    };
    let (pairs, rest) = text[start..].as_chunks::<2>();
    let unit = |pair: &[u8; 2]| match little {
        true => u16::from_le_bytes(*pair),
        false => u16::from_be_bytes(*pair),
    };
    let mut characters = Vec::with_capacity(pairs.len());
    let mut at = start;
    for character in char::decode_utf16(pairs.iter().map(unit)) {
        let character = character.ok();
        characters.push((at, character));
        at += 2 * character.map_or(1, char::len_utf16);
    }
    let is_high = |pair: &[u8; 2]| (0xd800..0xdc00).contains(&unit(pair));
    // A high surrogate and a byte are malformed together.
    if !rest.is_empty() && !pairs.last().is_some_and(is_high) {
        characters.push((at, None));
    }
    with_mark(characters, start)
}

/// Four bytes, likewise.
pub(super) fn utf32(text: &[u8], little: bool, marked: bool) -> Vec<(usize, Option<char>)> {
    let (little, start) = match text {
        [0xff, 0xfe, 0, 0, ..] if marked => (true, 4),
        [0, 0, 0xfe, 0xff, ..] if marked => (false, 4),
        _ => (little, 0),
    };
    let character = |(n, bytes): (usize, &[u8])| {
        let code = bytes.first_chunk().map(|bytes| match little {
            true => u32::from_le_bytes(*bytes),
            false => u32::from_be_bytes(*bytes),
        });
        (start + 4 * n, code.and_then(char::from_u32))
    };
    with_mark(text[start..].chunks(4).enumerate().map(character).collect(), start)
}

/// Characters after a mark of so many bytes: the first one begins with the mark. ICU makes this
/// character of a mark alone.
fn with_mark(
    mut characters: Vec<(usize, Option<char>)>,
    mark: usize,
) -> Vec<(usize, Option<char>)> {
    match characters.first_mut() {
        Some((start, _)) if mark > 0 => *start = 0,
        None if mark > 0 => characters.push((0, Some('\u{ffff}'))),
        _ => {}
    }
    characters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_parts_are_found() {
        assert_eq!(utf8(b"a\xffb\xe6\x97"), [(0, Some('a')), (1, None), (2, Some('b')), (3, None)]);
        assert_eq!(utf16(b"\xff\xfea\0\0\xd8", false, true), [(0, Some('a')), (4, None)]);
        assert_eq!(utf32(b"\xff\xfe\0\0", false, true), [(0, Some('\u{ffff}'))]);
        assert_eq!(utf16(b"\xd8\0a", false, false), [(0, None)]);
        assert_eq!(utf16(b"\0a\0", false, true), [(0, Some('a')), (2, None)]);
    }
}
