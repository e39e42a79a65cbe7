//! Text to pieces.

use super::{
    ModelType, SentencepieceModel, SpecialPieces, Split, byte_pairs, character_length,
    lattice::Lattice,
    normalizer::{Normalized, SPACE},
    proto::PieceKind,
    random::Random,
    unigram,
};
use crate::{cpu::text::failed, error::Result};
use bytes::Bytes;
use ferroflow_ir::Code;

const TOKENIZE: &str = "SentencepieceTokenizeOp";

/// Choice among the ways to split a text.
#[derive(Debug, Clone, Copy)]
pub enum Sampling {
    /// The best one.
    Best,
    /// A random one of the `n` best ones; of all, or with merges left out, where `n` is absent.
    /// Likely ones are preferred the more, the larger `alpha` is.
    Random {
        /// Number of the best ones that are drawn from.
        n: Option<usize>,
        /// The inverse temperature, or the probability that a merge is left out.
        alpha: f32,
    },
    /// Each of the `n` best ones.
    Each {
        /// Number of ways.
        n: usize,
    },
}

/// The pieces of texts, and what is needed to find more of them.
#[derive(Debug)]
pub struct Pieces {
    /// The numbers of the pieces.
    pub ids: Vec<i32>,
    /// The pieces, if they are wanted.
    pub texts: Option<Vec<Bytes>>,
    /// The bytes of the text that they begin at.
    pub starts: Vec<i64>,
    /// The bytes of the text that they end at.
    pub limits: Vec<i64>,
    /// Where the pieces of each text begin.
    pub splits: Vec<usize>,
    normalized: Normalized,
    best: Vec<unigram::Best>,
    found: Vec<Split>,
    random: Random,
}

impl Pieces {
    /// No pieces yet.
    pub fn new(with_texts: bool) -> Pieces {
        Pieces {
            ids: Vec::new(),
            texts: with_texts.then(Vec::new),
            starts: Vec::new(),
            limits: Vec::new(),
            splits: vec![0],
            normalized: Normalized::default(),
            best: Vec::new(),
            found: Vec::new(),
            random: Random::new(),
        }
    }

    fn push(&mut self, id: u32, text: impl FnOnce() -> Bytes, start: u32, limit: u32) {
        self.ids.push(id as i32);
        if let Some(texts) = &mut self.texts {
            texts.push(text());
        }
        self.starts.push(start.into());
        self.limits.push(limit.into());
    }

    /// Makes the last piece longer.
    fn extend(&mut self, more: &[u8], limit: u32) {
        if let Some(last) = self.texts.as_mut().and_then(|texts| texts.last_mut()) {
            *last = [last, more].concat().into();
        }
        if let Some(last) = self.limits.last_mut() {
            *last = limit.into();
        }
    }

    /// Puts the pieces from a position on into reverse order.
    fn reverse(&mut self, first: usize) {
        self.ids[first..].reverse();
        self.starts[first..].reverse();
        self.limits[first..].reverse();
        if let Some(texts) = &mut self.texts {
            texts[first..].reverse();
        }
    }
}

fn unavailable(what: &'static str) -> crate::Error {
    failed(TOKENIZE, Code::Internal, what)
}

impl SentencepieceModel {
    /// Adds the pieces of a text.
    ///
    /// # Errors
    ///
    /// When the model does not split in such a way, or has not the ends that are wanted.
    pub fn encode(
        &self,
        text: &[u8],
        sampling: Sampling,
        ends: SpecialPieces,
        pieces: &mut Pieces,
    ) -> Result<()> {
        let mut normalized = std::mem::take(&mut pieces.normalized);
        let mut found = std::mem::take(&mut pieces.found);
        found.clear();
        self.normalizer.normalize(text, &mut normalized);
        let done = match sampling {
            Sampling::Best => {
                self.split(&normalized.text, pieces, &mut found);
                self.put(&normalized, &found, ends, pieces)
            }
            Sampling::Each { n } => self.each(&normalized, n, ends, pieces),
            Sampling::Random { n, alpha } => {
                let sampled = self.sample(&normalized.text, n, alpha, pieces, &mut found);
                sampled.and_then(|()| self.put(&normalized, &found, ends, pieces))
            }
        };
        (pieces.normalized, pieces.found) = (normalized, found);
        done
    }

    /// The best way to split a text.
    fn split(&self, text: &[u8], pieces: &mut Pieces, found: &mut Vec<Split>) {
        if text.is_empty() {
            return;
        }
        match self.algorithm {
            ModelType::Unigram => unigram::split(self, text, &mut pieces.best, found),
            ModelType::BytePairs => byte_pairs::split(self, text, None, found),
            ModelType::Words => {
                let mut start = 0;
                while start < text.len() {
                    let end = word_end(text, start);
                    found.push(Split { id: self.id(&text[start..end]), start, end });
                    start = end;
                }
            }
            ModelType::Characters => {
                let mut start = 0;
                while start < text.len() {
                    let end = start + self.character(&text[start..]).0;
                    found.push(Split { id: self.id(&text[start..end]), start, end });
                    start = end;
                }
            }
        }
    }

    fn each(
        &self,
        text: &Normalized,
        n: usize,
        ends: SpecialPieces,
        pieces: &mut Pieces,
    ) -> Result<()> {
        if self.algorithm != ModelType::Unigram {
            return Err(unavailable("the model does not tell several ways to split"));
        }
        if text.text.is_empty() {
            return self.put(text, &[], ends, pieces);
        }
        let best = Lattice::new(self, &text.text).best(n.clamp(1, 1024));
        best.iter().try_for_each(|(splits, _)| self.put(text, splits, ends, pieces))
    }

    fn sample(
        &self,
        text: &[u8],
        n: Option<usize>,
        alpha: f32,
        pieces: &mut Pieces,
        found: &mut Vec<Split>,
    ) -> Result<()> {
        if n.is_some_and(|n| n > 512) {
            return Err(unavailable("`nbest_size` is more than 512"));
        }
        match (self.algorithm, n) {
            (ModelType::Words | ModelType::Characters, _) => {
                return Err(unavailable("the model does not split at random"));
            }
            _ if text.is_empty() => {}
            (ModelType::BytePairs, _) => {
                let dropout = (alpha > 0.0).then_some((alpha, &mut pieces.random));
                byte_pairs::split(self, text, dropout, found);
            }
            (ModelType::Unigram, None) => {
                found.extend(Lattice::new(self, text).sample(alpha, &mut pieces.random));
            }
            (ModelType::Unigram, Some(n)) => {
                let best = Lattice::new(self, text).best(n);
                // Relative to the best one, none of which is too small for a number.
                let highest = best.first().map_or(0.0, |(_, score)| *score);
                let likely = |score: f32| f64::from(alpha * (score - highest)).exp();
                let weights: Vec<f64> = best.iter().map(|(_, score)| likely(*score)).collect();
                let chosen = pieces.random.choose(&weights);
                found.extend(best.into_iter().nth(chosen).into_iter().flat_map(|(way, _)| way));
            }
        }
        Ok(())
    }

    /// Adds the pieces that a text was split into. Neighbours that are not known become one.
    fn put(
        &self,
        text: &Normalized,
        splits: &[Split],
        ends: SpecialPieces,
        pieces: &mut Pieces,
    ) -> Result<()> {
        let first = pieces.ids.len();
        let [bos, eos] = self.ends(ends)?;
        if let Some((id, piece)) = bos {
            pieces.push(id, || piece, 0, 0);
        }
        let mut after_unknown = false;
        for split in splits {
            let part = &text.text[split.start..split.end];
            let (start, limit) = (text.origins[split.start], text.origins[split.end]);
            let unknown = split.id == self.unknown;
            match (&self.bytes, self.kinds[split.id as usize]) {
                (_, PieceKind::Control) => {
                    return Err(unavailable("the text has what a control piece is for"));
                }
                (Some(bytes), PieceKind::Unknown) => {
                    for (place, byte) in part.iter().enumerate() {
                        let id = bytes[usize::from(*byte)];
                        let end = if place + 1 == part.len() { limit } else { start };
                        let piece = &self.pieces[id as usize].text;
                        pieces.push(id, || piece.clone(), start, end);
                    }
                }
                (None, PieceKind::Unknown) if after_unknown => pieces.extend(part, limit),
                (None, PieceKind::Unknown) => {
                    pieces.push(split.id, || Bytes::copy_from_slice(part), start, limit);
                }
                _ => {
                    let piece = &self.pieces[split.id as usize].text;
                    pieces.push(split.id, || piece.clone(), start, limit);
                }
            }
            after_unknown = unknown;
        }
        if let Some((id, piece)) = eos {
            pieces.push(id, || piece, 0, 0);
        }
        if ends.reverse {
            pieces.reverse(first);
        }
        pieces.splits.push(pieces.ids.len());
        Ok(())
    }
}

/// The end of a word that begins at a byte: a space begins the next one.
fn word_end(text: &[u8], start: usize) -> usize {
    let mut at = start + character_length(&text[start..]);
    while at < text.len() && !text[at..].starts_with(SPACE) {
        at += character_length(&text[at..]);
    }
    at
}
