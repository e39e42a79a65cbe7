//! Byte pair encoding ("Neural Machine Translation of Rare Words with Subword Units", Sennrich et
//! al., 2016), with merges left out at random on request ("BPE-Dropout", Provilkov et al., 2020).

use super::{SentencepieceModel, Split, proto::PieceKind, random::Random};
use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap},
    ops::Range,
};

/// A part of the text that is not merged further yet.
#[derive(Debug, Clone)]
struct Symbol {
    before: Option<usize>,
    next: Option<usize>,
    /// Whether it is never merged.
    fixed: bool,
    /// Its bytes; none once it is merged into the one before.
    range: Range<usize>,
}

/// Two neighbours that a piece can replace.
#[derive(Debug, Clone, Copy)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// The bytes of both.
    length: usize,
}

impl Ord for Pair {
    /// The higher score is greater, then the position further left.
    fn cmp(&self, other: &Pair) -> Ordering {
        let scores = self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
        scores.then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Pair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

struct Merging<'a> {
    model: &'a SentencepieceModel,
    text: &'a [u8],
    symbols: Vec<Symbol>,
    pairs: BinaryHeap<Pair>,
    /// For pieces that are only used on the way: where they were put together.
    unused: HashMap<&'a [u8], usize>,
}

/// Splits a text, which is not empty. Merges are left out with a probability, if there is one.
pub(super) fn split(
    model: &SentencepieceModel,
    text: &[u8],
    dropout: Option<(f32, &mut Random)>,
    out: &mut Vec<Split>,
) {
    let mut merging = Merging {
        model,
        text,
        symbols: symbols(model, text),
        pairs: BinaryHeap::new(),
        unused: HashMap::new(),
    };
    for right in 1..merging.symbols.len() {
        merging.offer(Some(right - 1), Some(right));
    }
    merging.run(dropout);
    let mut at = Some(0);
    while let Some(place) = at {
        merging.put(merging.symbols[place].range.clone(), out);
        at = merging.symbols[place].next;
    }
}

/// The characters of a text, and texts that users have defined.
fn symbols(model: &SentencepieceModel, text: &[u8]) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (length, fixed) = model.character(&text[at..]);
        let end = at + length;
        let index = symbols.len();
        symbols.push(Symbol {
            before: index.checked_sub(1),
            next: (end < text.len()).then_some(index + 1),
            fixed,
            range: at..end,
        });
        at = end;
    }
    symbols
}

impl<'a> Merging<'a> {
    /// Notes that two neighbours can be merged, if there is a piece for them.
    fn offer(&mut self, left: Option<usize>, right: Option<usize>) {
        let (Some(left), Some(right)) = (left, right) else { return };
        let (first, second) = (&self.symbols[left], &self.symbols[right]);
        if first.fixed || second.fixed {
            return;
        }
        let (range, middle) = (first.range.start..second.range.end, first.range.end);
        let piece = &self.text[range.clone()];
        let Some(id) = self.model.trie.get(piece) else { return };
        let score = self.model.pieces[id as usize].score;
        self.pairs.push(Pair { score, left, right, length: piece.len() });
        if self.model.kinds[id as usize] == PieceKind::Unused {
            self.unused.insert(piece, middle - range.start);
        }
    }

    fn run(&mut self, mut dropout: Option<(f32, &mut Random)>) {
        while let Some(pair) = self.pairs.pop() {
            let (left, right) = (&self.symbols[pair.left].range, &self.symbols[pair.right].range);
            // One of them may have been merged otherwise since.
            if left.is_empty() || right.is_empty() || left.len() + right.len() != pair.length {
                continue;
            }
            if let Some((probability, random)) = &mut dropout
                && (*probability >= 1.0 || random.unit() < f64::from(*probability))
            {
                continue;
            }
            let (end, next) = (right.end, self.symbols[pair.right].next);
            self.symbols[pair.right].range = end..end;
            self.symbols[pair.left].range.end = end;
            self.symbols[pair.left].next = next;
            if let Some(next) = next {
                self.symbols[next].before = Some(pair.left);
            }
            self.offer(self.symbols[pair.left].before, Some(pair.left));
            self.offer(Some(pair.left), next);
        }
    }

    /// Adds a symbol, or its parts where it is only used on the way to longer ones.
    fn put(&self, range: Range<usize>, out: &mut Vec<Split>) {
        let mut open = vec![range];
        while let Some(range) = open.pop() {
            let piece = &self.text[range.clone()];
            let id = self.model.id(piece);
            let unused = self.model.kinds[id as usize] == PieceKind::Unused;
            match self.unused.get(piece) {
                Some(&middle) if unused => {
                    let middle = range.start + middle;
                    open.push(middle..range.end);
                    open.push(range.start..middle);
                }
                _ => out.push(Split { id, start: range.start, end: range.end }),
            }
        }
    }
}
