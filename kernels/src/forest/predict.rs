//! Predictions: what the leaves that an example reaches make together.

use super::{Forest, OP, build::LeafTable, examples::ForestExamples};
use crate::error::Result;
use ferroflow_ir::Error;

/// Number of examples that go through a tree together.
pub(super) const BLOCK: usize = 64;

/// Bound of a sum before its exponential, as the source has it.
const MAX_LOG: f32 = 19.0;

/// Rule by which leaves become a prediction.
#[derive(Debug, Clone, PartialEq)]
pub enum ForestPrediction {
    /// The mean of the scores.
    Mean,
    /// The share of each of `n` classes: of the votes, or the mean of the shares at the leaves.
    Classes {
        /// Number of classes.
        n: usize,
        /// Whether leaves vote for one class.
        by_votes: bool,
    },
    /// Sums of scores. Trees take turns: the first adds to the first sum.
    Boosted {
        /// The sums before the first tree.
        initial: Vec<f32>,
        /// Function of the sums that the prediction is.
        link: Link,
    },
    /// `2^(-d / e)` of the mean depth `d` of the leaves, to which leaves add the depth that a tree of
    /// their examples is expected to have, and the depth `e` expected of a tree of all examples.
    Isolation {
        /// Number of examples that a tree was trained with.
        n_examples: u64,
    },
}

/// The last step of a boosted prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The sums themselves.
    Identity,
    /// The probabilities of two classes: one minus the logistic function of the one sum, and it.
    Logistic,
    /// The exponentials of the sums, by their sum.
    Softmax,
    /// The exponential of the sum, which is cut off at 19 on both sides.
    Exponential,
}

impl ForestPrediction {
    /// Number of values for each example.
    pub fn width(&self) -> usize {
        match self {
            ForestPrediction::Mean | ForestPrediction::Isolation { .. } => 1,
            ForestPrediction::Classes { n, .. } => *n,
            ForestPrediction::Boosted { link: Link::Logistic, .. } => 2,
            ForestPrediction::Boosted { initial, .. } => initial.len(),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what, expected: &'static str, found: usize| {
            Err(Error::argument(OP, what, expected, found).into())
        };
        match self {
            ForestPrediction::Classes { n: 0, .. } => wrong("classes", "at least one", 0),
            ForestPrediction::Boosted { initial, link } => match (link, initial.len()) {
                (_, 0) => wrong("initial_predictions", "at least one", 0),
                (Link::Logistic | Link::Exponential, n @ 2..) => {
                    wrong("initial_predictions", "one value", n)
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// The depth that a tree of `n` random examples is expected to have ("Isolation Forest", Liu, Ting
/// and Zhou, 2008, equation 1).
pub(super) fn expected_depth(n: u64) -> f32 {
    const EULER: f32 = 0.577_215_7;
    match n {
        0 | 1 => 0.0,
        2 => 1.0,
        _ => {
            let n = n as f32;
            2.0 * ((n - 1.0).ln() + EULER) - 2.0 * (n - 1.0) / n
        }
    }
}

impl Forest {
    /// The predictions of examples from `first` on.
    pub(super) fn predict_block(
        &self,
        examples: &ForestExamples<'_>,
        first: usize,
        block: &mut [f32],
    ) {
        let rows = first..first + block.len() / self.width();
        match (&self.prediction, &self.leaves) {
            (ForestPrediction::Classes { n, .. }, table) => {
                self.classes(table, *n, examples, rows, block)
            }
            (ForestPrediction::Boosted { initial, link }, LeafTable::Scores(scores)) => {
                let sums = self.sums(scores, initial, examples, rows);
                link.apply(&sums, initial.len(), block);
            }
            (prediction, LeafTable::Scores(scores)) => {
                let sums = self.sums(scores, &[0.0], examples, rows);
                let n = (self.trees.len() as f64).max(1.0);
                for (sum, prediction_of) in sums.iter().zip(block) {
                    *prediction_of = prediction.of_mean(sum / n);
                }
            }
            (_, LeafTable::Classes(_) | LeafTable::Shares(_)) => {
                unreachable!("the builder makes tables of scores for all other predictions")
            }
        }
    }

    fn sums(
        &self,
        scores: &[f32],
        initial: &[f32],
        examples: &ForestExamples<'_>,
        rows: std::ops::Range<usize>,
    ) -> Vec<f64> {
        let n_sums = initial.len();
        let start: Vec<f64> = initial.iter().map(|&value| f64::from(value)).collect();
        let mut sums = start.repeat(rows.len());
        for (index, tree) in self.trees.iter().enumerate() {
            let sum = index % n_sums;
            for (at, row) in rows.clone().enumerate() {
                sums[at * n_sums + sum] += f64::from(scores[self.leaf(*tree, examples, row)]);
            }
        }
        sums
    }

    fn classes(
        &self,
        table: &LeafTable,
        n: usize,
        examples: &ForestExamples<'_>,
        rows: std::ops::Range<usize>,
        block: &mut [f32],
    ) {
        block.fill(0.0);
        for tree in &self.trees {
            for (row, sums) in rows.clone().zip(block.chunks_exact_mut(n)) {
                let leaf = self.leaf(*tree, examples, row);
                match table {
                    LeafTable::Classes(classes) => sums[classes[leaf]] += 1.0,
                    LeafTable::Shares(shares) => {
                        let own = &shares[leaf * n..][..n];
                        sums.iter_mut().zip(own).for_each(|(sum, share)| *sum += share);
                    }
                    LeafTable::Scores(_) => unreachable!("the builder makes tables of classes"),
                }
            }
        }
        let n_trees = self.trees.len().max(1) as f32;
        block.iter_mut().for_each(|sum| *sum = (*sum / n_trees).clamp(0.0, 1.0));
    }
}

impl ForestPrediction {
    fn of_mean(&self, mean: f64) -> f32 {
        match self {
            ForestPrediction::Isolation { n_examples } => {
                let expected = expected_depth(*n_examples);
                if expected == 0.0 { 0.0 } else { (-(mean as f32) / expected).exp2() }
            }
            _ => mean as f32,
        }
    }
}

impl Link {
    fn apply(self, sums: &[f64], n_sums: usize, block: &mut [f32]) {
        match self {
            Link::Identity => {
                block.iter_mut().zip(sums).for_each(|(value, sum)| *value = *sum as f32);
            }
            Link::Logistic => {
                for (pair, sum) in block.chunks_exact_mut(2).zip(sums) {
                    let positive = (1.0 / (1.0 + (-sum).exp())) as f32;
                    pair.copy_from_slice(&[1.0 - positive, positive]);
                }
            }
            Link::Exponential => {
                for (value, sum) in block.iter_mut().zip(sums) {
                    *value = (*sum as f32).clamp(-MAX_LOG, MAX_LOG).exp();
                }
            }
            Link::Softmax => {
                for (row, sums) in block.chunks_exact_mut(n_sums).zip(sums.chunks_exact(n_sums)) {
                    let largest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = sums.iter().map(|sum| (sum - largest).exp()).sum();
                    for (value, sum) in row.iter_mut().zip(sums) {
                        *value = ((sum - largest).exp() / total) as f32;
                    }
                }
            }
        }
    }
}
