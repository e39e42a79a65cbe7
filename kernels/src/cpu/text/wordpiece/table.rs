//! Word pieces by a lookup table: `WordpieceTokenizeWithOffsets`.

use super::super::utf8;
use bytes::Bytes;
use std::ops::Range;

/// Rule by which words are split into pieces that a table has.
#[derive(Debug, Clone)]
pub struct WordpieceRule {
    /// Prefix of pieces that do not begin a word.
    pub suffix_indicator: Bytes,
    /// Longer words are not split.
    pub max_bytes_per_word: usize,
    /// Longer pieces are not looked for; 0 for pieces of any length.
    pub max_chars_per_token: usize,
    /// Piece for words without pieces; they stand for themselves if it is absent.
    pub unknown_token: Option<Bytes>,
    /// Whether a character that no piece has is a piece.
    pub split_unknown_characters: bool,
}

/// The pieces of words.
#[derive(Debug, Default)]
pub struct Wordpieces {
    /// The pieces.
    pub texts: Vec<Bytes>,
    /// The bytes of the word that they begin at.
    pub starts: Vec<i64>,
    /// The bytes of the word that they end at.
    pub limits: Vec<i64>,
}

impl Wordpieces {
    fn push(&mut self, text: Bytes, range: Range<usize>) {
        self.texts.push(text);
        self.starts.push(range.start as i64);
        self.limits.push(range.end as i64);
    }

    fn truncate(&mut self, n: usize) {
        self.texts.truncate(n);
        self.starts.truncate(n);
        self.limits.truncate(n);
    }
}

impl WordpieceRule {
    /// Adds the pieces of a word, the longest that `has` first from every position.
    ///
    /// # Errors
    ///
    /// Those of `has`.
    pub fn tokenize<E>(
        &self,
        word: &Bytes,
        mut has: impl FnMut(&[u8]) -> Result<bool, E>,
        pieces: &mut Wordpieces,
    ) -> Result<(), E> {
        let n_before = pieces.texts.len();
        if word.len() > self.max_bytes_per_word {
            let (text, end) = match &self.unknown_token {
                Some(unknown) => (unknown, unknown.len()),
                None => (word, word.len()),
            };
            pieces.push(text.clone(), 0..end);
            return Ok(());
        }
        let (mut start, mut ends, mut key) = (0, Vec::new(), Vec::new());
        while start < word.len() {
            self.ends(word, start, &mut ends);
            key.clear();
            if start > 0 {
                key.extend_from_slice(&self.suffix_indicator);
            }
            let indicator = key.len();
            key.extend_from_slice(&word[start..ends[ends.len() - 1]]);
            let mut found = None;
            for &end in ends.iter().rev() {
                key.truncate(indicator + end - start);
                if has(&key)? {
                    found = Some(end);
                    break;
                }
            }
            match (found, self.split_unknown_characters) {
                (Some(end), _) => {
                    pieces.push(self.piece(word, start..end), start..end);
                    start = end;
                }
                (None, true) => {
                    pieces.push(self.unknown(word, start..ends[0]), start..ends[0]);
                    start = ends[0];
                }
                (None, false) => {
                    pieces.truncate(n_before);
                    let text = self.unknown_token.as_ref().unwrap_or(word);
                    pieces.push(text.clone(), 0..word.len());
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The ends of characters from a position on.
    fn ends(&self, word: &[u8], mut at: usize, ends: &mut Vec<usize>) {
        ends.clear();
        while at < word.len() {
            at = utf8::next(word, at).1;
            ends.push(at);
            if ends.len() == self.max_chars_per_token {
                break;
            }
        }
    }

    fn piece(&self, word: &Bytes, range: Range<usize>) -> Bytes {
        match range.start {
            0 => word.slice(range),
            _ => [&self.suffix_indicator[..], &word[range]].concat().into(),
        }
    }

    /// Piece for a character that no piece has.
    fn unknown(&self, word: &Bytes, range: Range<usize>) -> Bytes {
        match (&self.unknown_token, range.start) {
            (None, _) => self.piece(word, range),
            (Some(unknown), 0) => unknown.clone(),
            (Some(unknown), _) => [&self.suffix_indicator[..], unknown].concat().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pieces_are_taken() {
        let rule = WordpieceRule {
            suffix_indicator: "##".into(),
            max_bytes_per_word: 20,
            max_chars_per_token: 0,
            unknown_token: Some("[UNK]".into()),
            split_unknown_characters: false,
        };
        let check = |rule: &WordpieceRule, word: &'static str, expected: &[&str]| {
            let mut pieces = Wordpieces::default();
            let has = |key: &[u8]| Ok::<_, ()>([&b"un"[..], b"##able", b"##a"].contains(&key));
            rule.tokenize(&word.into(), has, &mut pieces).unwrap();
            assert_eq!(pieces.texts, expected, "{word}");
        };
        check(&rule, "unable", &["un", "##able"]);
        check(&rule, "unx", &["[UNK]"]);
        check(&rule, "", &[]);
        let rule = WordpieceRule { split_unknown_characters: true, ..rule };
        check(&rule, "unx", &["un", "##[UNK]"]);
        let rule = WordpieceRule { unknown_token: None, ..rule };
        check(&rule, "xa", &["x", "##a"]);
    }
}
