//! The algorithm of Chu, Liu and Edmonds on dense graphs, in the form of Georgiadis ("Arborescence
//! optimization problems solvable by Edmonds' algorithm", 2003): cycles of best arcs are contracted
//! as soon as they close, and undone from the last one.
//!
//! Node 0 stands outside of the graph; an arc from it selects a root.

use ferroflow_ir::DType;

/// A score of an arc.
pub(super) trait Score: Copy + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    const DTYPE: DType;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, n: usize) -> Self;
    /// Whether it is a number; an arc without one does not exist.
    fn exists(self) -> bool;
}

impl Score for i32 {
    const ZERO: i32 = 0;
    const ONE: i32 = 1;
    const LOWEST: i32 = i32::MIN;
    const DTYPE: DType = DType::I32;

    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    fn minus(self, other: i32) -> i32 {
        self.wrapping_sub(other)
    }

    fn times(self, n: usize) -> i32 {
        self.wrapping_mul(n as i32)
    }

    fn exists(self) -> bool {
        true
    }
}

macro_rules! float_score {
    ($type:ident, $dtype:ident) => {
        impl Score for $type {
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            const LOWEST: $type = $type::MIN;
            const DTYPE: DType = DType::$dtype;

            fn plus(self, other: $type) -> $type {
                self + other
            }

            fn minus(self, other: $type) -> $type {
                self - other
            }

            fn times(self, n: usize) -> $type {
                self * n as $type
            }

            fn exists(self) -> bool {
                self.is_finite()
            }
        }
    };
}

float_score!(f32, F32);
float_score!(f64, F64);

/// An arc of the graph as it was passed, with its score as it is now.
#[derive(Debug, Clone, Copy)]
struct Arc<T> {
    score: T,
    source: usize,
    target: usize,
}

/// Sets of nodes, each known by one of them.
struct Sets(Vec<usize>);

impl Sets {
    fn new(n: usize) -> Sets {
        Sets((0..n).collect())
    }

    fn find(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    /// Joins the set of a node to that of another, whose name is kept.
    fn join(&mut self, node: usize, to: usize) {
        let (node, to) = (self.find(node), self.find(to));
        self.0[node] = to;
    }
}

/// A graph that is being contracted.
pub(super) struct Solver<T> {
    forest: bool,
    /// The number of nodes before contraction, with the one outside.
    n_initial: usize,
    /// By node, contracted ones too, then by source: the arcs into it.
    arcs: Vec<Option<Arc<T>>>,
    /// By node: the best arc into it.
    best: Vec<Option<Arc<T>>>,
    /// By node: the one it was contracted into; `None` for those that were not, and for those whose
    /// contraction is undone.
    into: Vec<Option<usize>>,
    /// Nodes that arcs connect.
    connected: Sets,
    /// Nodes of one contracted node.
    merged: Sets,
    /// The same, named by the contracted node.
    contracted: Sets,
}

impl<T: Score> Solver<T> {
    /// The bytes of an arc.
    pub(super) const ARC: usize = size_of::<Option<Arc<T>>>();

    /// A graph of `n` nodes with scores by target and source. The score of a node and itself is
    /// that of the node as a root.
    pub(super) fn new(n: usize, forest: bool, score: impl Fn(usize, usize) -> T) -> Solver<T> {
        let n_initial = n + 1;
        let mut arcs = Vec::with_capacity(n_initial * 2 * n);
        arcs.resize(n_initial * n_initial, None);
        for target in 0..n {
            for source in 0..n {
                let score = score(target, source);
                let from = if source == target { 0 } else { source + 1 };
                if score.exists() {
                    arcs[(target + 1) * n_initial + from] =
                        Some(Arc { score, source: from, target: target + 1 });
                }
            }
        }
        let n_nodes = (2 * n).max(n_initial);
        Solver {
            forest,
            n_initial,
            arcs,
            best: vec![None; n_nodes],
            into: vec![None; n_nodes],
            connected: Sets::new(n_initial),
            merged: Sets::new(n_initial),
            contracted: Sets::new(n_nodes),
        }
    }

    /// Writes the source of each node, or the node itself for a root; false if there is no tree.
    pub(super) fn solve(mut self, sources: &mut [i32]) -> bool {
        if !self.forest {
            self.penalize_roots();
        }
        self.contract() && self.expand(sources)
    }

    /// Lowers the scores of roots so far that one more never pays.
    fn penalize_roots(&mut self) {
        let mut scores = self.arcs.iter().flatten().map(|arc| arc.score);
        let Some(first) = scores.next() else { return };
        let (lowest, highest) = scores.fold((first, first), |(lowest, highest), score| {
            (
                if score < lowest { score } else { lowest },
                if score > highest { score } else { highest },
            )
        });
        let penalty = highest.minus(lowest).times(self.n_initial).plus(T::ONE);
        for root in 1..self.n_initial {
            if let Some(arc) = &mut self.arcs[root * self.n_initial] {
                arc.score = arc.score.minus(penalty);
            }
        }
    }

    fn inbound(&self, node: usize) -> &[Option<Arc<T>>] {
        &self.arcs[node * self.n_initial..][..self.n_initial]
    }

    /// Chooses the best arc into each node and contracts the cycles of them.
    fn contract(&mut self) -> bool {
        let mut target = 1;
        while target * self.n_initial < self.arcs.len() {
            let mut best: Option<Arc<T>> = None;
            for &arc in self.inbound(target).iter().flatten() {
                // The last of the best ones counts.
                if best.map_or(T::LOWEST, |best| best.score) <= arc.score {
                    best = Some(arc);
                }
            }
            let Some(arc) = best else { return false };
            self.best[target] = best;
            if arc.source != 0 {
                if self.connected.find(arc.source) == self.connected.find(arc.target) {
                    self.contract_cycle(target);
                } else {
                    self.connected.join(arc.source, arc.target);
                }
            }
            target += 1;
        }
        true
    }

    /// Makes one node of the cycle that a node is on.
    fn contract_cycle(&mut self, node: usize) {
        let new = self.arcs.len() / self.n_initial;
        self.arcs.resize(self.arcs.len() + self.n_initial, None);
        let mut cycle = Vec::new();
        let mut at = node;
        while at != new {
            // Only nodes with a best arc that is not a root's are on a cycle.
            let Some(arc) = self.best[at] else { break };
            cycle.push((at, arc.score));
            self.merged.join(arc.source, arc.target);
            let next = self.contracted.find(arc.source);
            self.contracted.join(at, new);
            self.into[at] = Some(new);
            at = next;
        }
        for (node, score) in cycle {
            self.merge_inbound(node, score, new);
        }
    }

    /// Adds to a contracted node the arcs into one of its nodes, less the score of the arc that
    /// each of them would replace.
    fn merge_inbound(&mut self, node: usize, replaced: T, new: usize) {
        for source in 0..self.n_initial {
            let Some(arc) = self.arcs[node * self.n_initial + source] else { continue };
            if self.merged.find(arc.source) == self.merged.find(arc.target) {
                continue;
            }
            let score = arc.score.minus(replaced);
            let kept = &mut self.arcs[new * self.n_initial + source];
            if kept.is_none_or(|known| known.score < score) {
                *kept = Some(Arc { score, ..arc });
            }
        }
    }

    /// Undoes contractions, each by the arc that breaks its cycle.
    fn expand(&mut self, sources: &mut [i32]) -> bool {
        let n_nodes = self.arcs.len() / self.n_initial;
        let mut undone = vec![false; n_nodes];
        for root in (self.n_initial..n_nodes).rev() {
            if undone[root] {
                continue;
            }
            let Some(arc) = self.best[root] else { return false };
            self.best[arc.target] = Some(arc);
            let mut node = self.into[arc.target];
            undone[arc.target] = true;
            while let Some(at) = node.filter(|at| *at != root && !undone[*at]) {
                undone[at] = true;
                node = self.into[at];
            }
        }
        let mut n_roots = 0;
        for (target, source) in sources.iter_mut().enumerate() {
            let Some(arc) = self.best[target + 1] else { return false };
            let is_root = arc.source == 0;
            n_roots += usize::from(is_root);
            *source = if is_root { target as i32 } else { arc.source as i32 - 1 };
        }
        self.forest || n_roots == 1
    }
}
