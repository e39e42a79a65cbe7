//! Characters of bytes that need not be UTF-8.

/// The character that begins at byte `at`, which is in the text, and where the next one begins.
/// Bytes that are no character are skipped as Unicode recommends: the longest beginning of a
/// character at once, else one byte.
pub(super) fn next(text: &[u8], at: usize) -> (Option<char>, usize) {
    let first = text[at];
    if first < 0x80 {
        return (Some(char::from(first)), at + 1);
    }
    let (length, lowest, highest) = match first {
        0xc2..=0xdf => (2, 0x80, 0xbf),
        0xe0 => (3, 0xa0, 0xbf),
        0xed => (3, 0x80, 0x9f),
        0xe1..=0xef => (3, 0x80, 0xbf),
        0xf0 => (4, 0x90, 0xbf),
        0xf1..=0xf3 => (4, 0x80, 0xbf),
        0xf4 => (4, 0x80, 0x8f),
        _ => return (None, at + 1),
    };
    let mut code = u32::from(first) & (0x7f >> length);
    for place in 1..length {
        let allowed = if place == 1 { lowest..=highest } else { 0x80..=0xbf };
        match text.get(at + place) {
            Some(byte) if allowed.contains(byte) => code = code << 6 | u32::from(byte & 0x3f),
            _ => return (None, at + place),
        }
    }
    (char::from_u32(code), at + length)
}

/// The bits of eight bytes that are set where a byte is not ASCII, the first byte in the lowest ones.
fn other_bits(bytes: [u8; 8]) -> u64 {
    u64::from_le_bytes(bytes) & 0x8080_8080_8080_8080
}

/// The number of bytes before the first that is not ASCII.
pub(super) fn ascii_prefix(text: &[u8]) -> usize {
    let (words, rest) = text.as_chunks::<8>();
    if let Some(last) = text.last_chunk() {
        let found = words.iter().position(|word| other_bits(*word) != 0);
        return match (found, other_bits(*last)) {
            (Some(word), _) => 8 * word + other_bits(words[word]).trailing_zeros() as usize / 8,
            (None, 0) => text.len(),
            // Those of the last bytes that are in a whole word are ASCII.
            (None, bits) => text.len() - 8 + bits.trailing_zeros() as usize / 8,
        };
    }
    rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len())
}

/// The number of bytes up to the last that is not ASCII.
pub(super) fn without_ascii_suffix(text: &[u8]) -> usize {
    let (rest, words) = text.as_rchunks::<8>();
    match words.iter().rposition(|word| other_bits(*word) != 0) {
        Some(word) => {
            let bits = other_bits(words[word]).leading_zeros() as usize;
            rest.len() + 8 * (word + 1) - bits / 8
        }
        None => rest.iter().rposition(|byte| !byte.is_ascii()).map_or(0, |last| last + 1),
    }
}

/// The characters of a text with the bytes they take; `None` for bytes that are no character.
pub(super) fn characters(
    text: &[u8],
) -> impl Iterator<Item = (Option<char>, std::ops::Range<usize>)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let (character, end) = next(text, at);
        let start = std::mem::replace(&mut at, end);
        Some((character, start..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn prefixes_and_suffixes_of_ascii_end_at_other_bytes(
            text in proptest::collection::vec(0u8..0x82, 0..80)
        ) {
            let expected = text.iter().position(|byte| *byte >= 0x80).unwrap_or(text.len());
            prop_assert_eq!(ascii_prefix(&text), expected);
            let expected = text.iter().rposition(|byte| *byte >= 0x80).map_or(0, |last| last + 1);
            prop_assert_eq!(without_ascii_suffix(&text), expected);
        }

        #[test]
        fn characters_are_those_of_the_standard_library(
            text in proptest::collection::vec(
                prop_oneof![Just(0xe2u8), Just(0xf0), Just(0x9f), Just(0x80), Just(0xed), any::<u8>()],
                0..12,
            )
        ) {
            let mut expected = Vec::new();
            for chunk in text.utf8_chunks() {
                expected.extend(chunk.valid().chars().map(|c| (Some(c), c.len_utf8())));
                if !chunk.invalid().is_empty() {
                    expected.push((None, chunk.invalid().len()));
                }
            }
            let found: Vec<_> = characters(&text).map(|(c, bytes)| (c, bytes.len())).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
