//! The most probable sequences of labels, by a search that keeps a fixed number of them.
//!
//! The rules are those of `tensorflow/core/util/ctc/ctc_beam_search.h`.

use super::{Sizes, log_add, log_softmax, write_paths};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{Code, DType, Error};
use num_traits::AsPrimitive;
use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, HashMap},
    sync::Arc,
};

pub(super) fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sizes = Sizes::new(call.op.name, call.shape(0));
    let count = |name: &str| -> Result<usize> {
        Ok(usize::try_from(call.attrs.int(name)?).unwrap_or(usize::MAX))
    };
    let (width, paths) = (count("beam_width")?, count("top_paths")?);
    let merge = call.attrs.bool("merge_repeated")?;
    Ok(match call.dtype(0) {
        DType::F32 => Some(kernel::<f32>(sizes, width, paths, merge)),
        DType::F64 => Some(kernel::<f64>(sizes, width, paths, merge)),
        _ => None,
    })
}

fn kernel<T: Number + Into<f64>>(
    sizes: Sizes,
    width: usize,
    n_paths: usize,
    merge: bool,
) -> Arc<dyn Kernel>
where
    f64: AsPrimitive<T>,
{
    Arc::new(move |io: &mut Io<'_>| {
        let lengths = sizes.lengths(io, 1, Code::FailedPrecondition)?;
        let scores: &[T] = io.input(0);
        let log_probability: &mut [T] = io.output(3 * n_paths);
        let mut found = Vec::new();
        for (batch, &length) in lengths.iter().enumerate() {
            let mut search = Search::new(sizes.classes - 1, width);
            for time in 0..length {
                search.step(&log_softmax(sizes.row(scores, time, batch)));
            }
            let best = search.best();
            if best.len() < n_paths {
                let expected = format!("at most {}, the number of paths there are", best.len());
                return Err(Error::argument(sizes.op, "top_paths", expected, n_paths).into());
            }
            for (rank, &(total, node)) in best[..n_paths].iter().enumerate() {
                log_probability[batch * n_paths + rank] = total.as_();
                found.push(search.labels(node, merge));
            }
        }
        for rank in 0..n_paths {
            let paths: Vec<&[i64]> =
                found.iter().skip(rank).step_by(n_paths).map(|path| &path[..]).collect();
            write_paths(io, [rank, n_paths + rank, 2 * n_paths + rank], &paths)?;
        }
        Ok(())
    })
}

/// The probability of a sequence after some time steps, by what the last of them was.
#[derive(Debug, Clone, Copy)]
struct Probability {
    total: f64,
    blank: f64,
    label: f64,
}

impl Probability {
    const NONE: Probability = Probability {
        total: f64::NEG_INFINITY,
        blank: f64::NEG_INFINITY,
        label: f64::NEG_INFINITY,
    };
}

/// A sequence of labels: that of its parent and one more.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    label: usize,
    before: Probability,
    now: Probability,
}

/// A sequence in the beam. The better one is the larger one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Leaf {
    total: f64,
    node: usize,
}

impl Eq for Leaf {}

impl PartialOrd for Leaf {
    fn partial_cmp(&self, other: &Leaf) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Leaf {
    fn cmp(&self, other: &Leaf) -> Ordering {
        self.total.total_cmp(&other.total).then(other.node.cmp(&self.node))
    }
}

#[derive(Debug)]
struct Search {
    /// The number of labels, which is also the blank.
    blank: usize,
    width: usize,
    nodes: Vec<Node>,
    children: HashMap<(usize, usize), usize>,
    /// The beam, worst first.
    leaves: BinaryHeap<Reverse<Leaf>>,
}

impl Search {
    fn new(blank: usize, width: usize) -> Search {
        let now = Probability { total: 0.0, blank: 0.0, label: f64::NEG_INFINITY };
        let root = Node { parent: None, label: usize::MAX, before: Probability::NONE, now };
        let leaves = BinaryHeap::from([Reverse(Leaf { total: 0.0, node: 0 })]);
        Search { blank, width, nodes: vec![root], children: HashMap::new(), leaves }
    }

    fn step(&mut self, log_probability: &[f64]) {
        let mut branches: Vec<Leaf> = self.leaves.drain().map(|Reverse(leaf)| leaf).collect();
        branches.sort_unstable_by(|a, b| b.cmp(a));
        for leaf in &branches {
            let node = &mut self.nodes[leaf.node];
            node.before = node.now;
        }
        for leaf in &branches {
            let total = self.stay(leaf.node, log_probability);
            self.leaves.push(Reverse(Leaf { total, node: leaf.node }));
        }
        for leaf in &branches {
            if !self.is_candidate(self.nodes[leaf.node].before.total) {
                continue;
            }
            for (label, &score) in log_probability[..self.blank].iter().enumerate() {
                self.grow(leaf.node, label, score);
            }
        }
    }

    /// Sets the probability of a label sequence in the beam that it is still the same after a step.
    fn stay(&mut self, index: usize, log_probability: &[f64]) -> f64 {
        let node = &self.nodes[index];
        let mut now = node.now;
        if let Some(parent) = node.parent {
            let above = &self.nodes[parent];
            if above.now.total > f64::NEG_INFINITY {
                now.label = log_add(now.label, above.leading_to(node.label));
            }
            now.label += log_probability[node.label];
        }
        now.blank = node.before.total + log_probability[self.blank];
        now.total = log_add(now.blank, now.label);
        self.nodes[index].now = now;
        now.total
    }

    /// Whether a sequence of this probability fits in the beam.
    fn is_candidate(&self, total: f64) -> bool {
        let worse = |worst: &Reverse<Leaf>| total > worst.0.total;
        let has_room = self.leaves.len() < self.width || self.leaves.peek().is_some_and(worse);
        total > f64::NEG_INFINITY && has_room
    }

    /// Adds a sequence with one more label to the beam, if it fits.
    fn grow(&mut self, parent: usize, label: usize, score: f64) {
        let known = self.children.get(&(parent, label)).copied();
        if known.is_some_and(|child| self.nodes[child].now.total > f64::NEG_INFINITY) {
            return;
        }
        let total = score + self.nodes[parent].leading_to(label);
        let now = Probability { total, blank: f64::NEG_INFINITY, label: total };
        if !self.is_candidate(total) {
            if let Some(child) = known {
                self.nodes[child].before = Probability::NONE;
            }
            return;
        }
        if self.leaves.len() >= self.width
            && let Some(Reverse(worst)) = self.leaves.pop()
        {
            self.nodes[worst.node].now = Probability::NONE;
        }
        let node = known.unwrap_or_else(|| {
            let before = Probability::NONE;
            self.nodes.push(Node { parent: Some(parent), label, before, now });
            self.children.insert((parent, label), self.nodes.len() - 1);
            self.nodes.len() - 1
        });
        self.nodes[node].now = now;
        self.leaves.push(Reverse(Leaf { total, node }));
    }

    /// The sequences in the beam with their probabilities, best first.
    fn best(&self) -> Vec<(f64, usize)> {
        let mut leaves: Vec<Leaf> = self.leaves.iter().map(|&Reverse(leaf)| leaf).collect();
        leaves.sort_unstable_by(|a, b| b.cmp(a));
        leaves.iter().map(|leaf| (leaf.total, leaf.node)).collect()
    }

    /// The labels of a sequence; neighbours that are equal count once if they are merged.
    fn labels(&self, node: usize, merge: bool) -> Vec<i64> {
        let mut labels = Vec::new();
        let mut node = &self.nodes[node];
        while let Some(parent) = node.parent {
            labels.push(node.label as i64);
            node = &self.nodes[parent];
        }
        labels.reverse();
        if merge {
            labels.dedup();
        }
        labels
    }
}

impl Node {
    /// The probability, before a step, of the sequences that another label may come after: a label
    /// follows itself after a blank only.
    fn leading_to(&self, label: usize) -> f64 {
        if label == self.label { self.before.blank } else { self.before.total }
    }
}
