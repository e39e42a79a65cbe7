//! All ways to split a text by a unigram language model: the n best of them, and random ones.

use super::{
    SentencepieceModel, Split, character_length, heap::Heap, proto::PieceKind, random::Random,
};

/// A piece at a position of the text.
#[derive(Debug, Clone, Copy)]
struct LatticeNode {
    id: u32,
    /// The characters it begins before, and how many it takes.
    start: u32,
    length: u32,
    score: f32,
    /// The score of the best way to its end.
    best: f32,
}

/// The pieces that a text can be split into. The first node stands before it, the second behind it.
pub(super) struct Lattice {
    nodes: Vec<LatticeNode>,
    /// Where characters begin, and the end.
    places: Vec<usize>,
    /// By the number of characters before: the nodes that begin and that end there.
    begin: Vec<Vec<u32>>,
    end: Vec<Vec<u32>>,
}

const BEFORE: u32 = 0;
const BEHIND: u32 = 1;

impl Lattice {
    /// The lattice of a text, which is not empty.
    pub(super) fn new(model: &SentencepieceModel, text: &[u8]) -> Lattice {
        let mut indices = vec![0];
        while let Some(&at) = indices.last().filter(|at| **at < text.len()) {
            indices.push(at + character_length(&text[at..]));
        }
        let n = indices.len() - 1;
        let outside = |start| LatticeNode { id: 0, start, length: 0, score: 0.0, best: 0.0 };
        let nodes = vec![outside(0), outside(n as u32)];
        let (begin, end) = (vec![Vec::new(); n + 1], vec![Vec::new(); n + 1]);
        let mut lattice = Lattice { nodes, places: indices, begin, end };
        lattice.end[0].push(BEFORE);
        lattice.begin[n].push(BEHIND);
        for start in 0..n {
            lattice.fill(model, text, start);
        }
        lattice
    }

    /// Adds the pieces that begin at a character.
    fn fill(&mut self, model: &SentencepieceModel, text: &[u8], start: usize) {
        let first = self.places[start];
        let mut found = Vec::new();
        model.trie.prefixes(&text[first..], |n, id| found.push((n, id)));
        let (mut single, mut length) = (false, 0);
        for (n, id) in found {
            while self.places[start + length] < first + n {
                length += 1;
            }
            let score = match model.kinds[id as usize] {
                PieceKind::Unused => continue,
                PieceKind::UserDefined => model.scores.user_defined(length) as f32,
                _ => model.pieces[id as usize].score,
            };
            self.insert(id, start, length, score);
            single |= length == 1;
        }
        if !single {
            self.insert(model.unknown, start, 1, model.scores.unknown());
        }
    }

    fn insert(&mut self, id: u32, start: usize, length: usize, score: f32) {
        let node = self.nodes.len() as u32;
        let (first, n) = (start as u32, length as u32);
        self.nodes.push(LatticeNode { id, start: first, length: n, score, best: 0.0 });
        self.begin[start].push(node);
        self.end[start + length].push(node);
    }

    fn node(&self, node: u32) -> &LatticeNode {
        &self.nodes[node as usize]
    }

    /// The pieces of a way through the lattice.
    fn splits(&self, way: impl IntoIterator<Item = u32>) -> Vec<Split> {
        let split = |node| {
            let LatticeNode { id, start, length, .. } = *self.node(node);
            let (start, end) = (start as usize, (start + length) as usize);
            Split { id, start: self.places[start], end: self.places[end] }
        };
        way.into_iter().map(split).collect()
    }

    /// The best way, and the best score to every node.
    fn viterbi(&mut self) -> Vec<u32> {
        let mut before = vec![BEFORE; self.nodes.len()];
        for place in 0..self.begin.len() {
            for index in 0..self.begin[place].len() {
                let node = self.begin[place][index];
                let own = self.node(node).score;
                let mut best: Option<(u32, f32)> = None;
                for &left in &self.end[place] {
                    let score = self.node(left).best + own;
                    if best.is_none_or(|(_, known)| score > known) {
                        best = Some((left, score));
                    }
                }
                if let Some((left, score)) = best {
                    before[node as usize] = left;
                    self.nodes[node as usize].best = score;
                }
            }
        }
        let mut way = Vec::new();
        let mut node = before[BEHIND as usize];
        while node != BEFORE {
            way.push(node);
            node = before[node as usize];
        }
        way.reverse();
        way
    }

    /// The best ways with their scores, the best one first.
    pub(super) fn best(&mut self, n: usize) -> Vec<(Vec<Split>, f32)> {
        let best = self.viterbi();
        if n == 1 {
            return vec![(self.splits(best), self.node(BEHIND).best)];
        }
        let mut search = Search::new(self.node(BEHIND).best);
        let mut found = Vec::new();
        while let Some(top) = search.heap.pop() {
            let Hypothesis { node, cost, .. } = search.all[top as usize];
            if node == BEFORE {
                found.push((self.splits(search.way(top)), search.all[top as usize].priority));
                if found.len() == n {
                    break;
                }
                continue;
            }
            for &left in &self.end[self.node(node).start as usize] {
                let LatticeNode { score, best, .. } = *self.node(left);
                search.push(Hypothesis {
                    node: left,
                    next: top,
                    priority: best + cost,
                    cost: score + cost,
                });
            }
            search.shrink(n);
        }
        found
    }

    /// A random way; the likelier ones are preferred the more, the larger `alpha` is.
    pub(super) fn sample(&self, alpha: f32, random: &mut Random) -> Vec<Split> {
        let sums = self.forward(alpha);
        let (mut way, mut node) = (Vec::new(), BEHIND);
        loop {
            let total = sums[node as usize];
            let lefts = &self.end[self.node(node).start as usize];
            let likely = |left: &u32| {
                f64::from(sums[*left as usize] + alpha * self.node(*left).score - total).exp()
            };
            let weights: Vec<f64> = lefts.iter().map(likely).collect();
            node = lefts[random.choose(&weights)];
            if node == BEFORE {
                break;
            }
            way.push(node);
        }
        way.reverse();
        self.splits(way)
    }

    /// For each node the logarithm of the sum over all ways to it.
    fn forward(&self, alpha: f32) -> Vec<f32> {
        let mut sums = vec![0.0; self.nodes.len()];
        for (begin, end) in self.begin.iter().zip(&self.end) {
            for &node in begin {
                let mut sum: Option<f32> = None;
                for &left in end {
                    let score = alpha * self.node(left).score + sums[left as usize];
                    sum = Some(sum.map_or(score, |sum| log_sum(sum, score)));
                }
                sums[node as usize] = sum.unwrap_or(0.0);
            }
        }
        sums
    }
}

/// The logarithm of a sum of two numbers that are represented by their logarithms.
fn log_sum(a: f32, b: f32) -> f32 {
    let (low, high) = (a.min(b), a.max(b));
    if high > low + 50.0 {
        return high;
    }
    (f64::from(high) + (f64::from(low - high).exp() + 1.0).ln()) as f32
}

/// A way from a node to the end of the text.
#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    node: u32,
    /// The hypothesis that this one is longer than by its node.
    next: u32,
    /// The score of the best way through it.
    priority: f32,
    /// The score of it alone.
    cost: f32,
}

/// The search for the best ways, from the end (A*).
struct Search {
    all: Vec<Hypothesis>,
    heap: Heap,
}

/// With so many open hypotheses, only the best are kept.
const MOST_OPEN: usize = 100_000;

impl Search {
    fn new(priority: f32) -> Search {
        let mut search = Search { all: Vec::new(), heap: Heap::default() };
        search.push(Hypothesis { node: BEHIND, next: 0, priority, cost: 0.0 });
        search
    }

    fn push(&mut self, hypothesis: Hypothesis) {
        let index = self.all.len() as u32;
        self.all.push(hypothesis);
        self.heap.push(hypothesis.priority, index);
    }

    /// The nodes of a way, without those outside of the text.
    fn way(&self, first: u32) -> Vec<u32> {
        let mut way = Vec::new();
        let mut at = self.all[first as usize].next;
        while self.all[at as usize].node != BEHIND {
            way.push(self.all[at as usize].node);
            at = self.all[at as usize].next;
        }
        way
    }

    fn shrink(&mut self, n: usize) {
        if self.heap.len() < MOST_OPEN {
            return;
        }
        let mut kept = Heap::default();
        for _ in 0..(10 * n).min(512) {
            let Some((priority, index)) = self.heap.pop_with_priority() else { break };
            kept.push(priority, index);
        }
        self.heap = kept;
    }
}
