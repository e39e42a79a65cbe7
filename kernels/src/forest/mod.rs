//! Decision forests: trees of conditions on the columns of examples, and the prediction that the
//! leaves an example reaches make together.
//!
//! A forest is built node by node in preorder ([`ForestBuilder`]) and cannot be changed after that.
//! [`Forest::predict`] walks blocks of examples through one tree after the other, so that the nodes
//! of a tree stay in the cache.
//!
//! ```
//! use ferroflow_kernels::{Threads, forest::{Columns, SplitCondition, ForestExamples, ForestBuilder, Leaf, ForestPrediction}};
//!
//! # fn main() -> ferroflow_kernels::Result<()> {
//! let columns = Columns { numbers: 1, ..Columns::default() };
//! let mut builder = ForestBuilder::new(columns, ForestPrediction::Mean)?;
//! builder.split(SplitCondition::AtLeast { column: 0, threshold: 2.5 }, false)?;
//! builder.leaf(Leaf::Score(-1.0))?; // below 2.5, or missing
//! builder.leaf(Leaf::Score(1.0))?;
//! let forest = builder.finish()?;
//! let numbers = [2.0, 3.0, f32::NAN];
//! let examples = ForestExamples { len: 3, numbers: &numbers, ..ForestExamples::default() };
//! let mut predictions = [0.0; 3];
//! forest.predict(&examples, &Threads::single(), &mut predictions)?;
//! assert_eq!(predictions, [-1.0, 1.0, -1.0]);
//! # Ok(())
//! # }
//! ```
//!
//! Source: the meaning of conditions and predictions is that of Yggdrasil Decision Forests
//! (`decision_tree.proto`, `random_forest.cc`, `gradient_boosted_trees.cc`, `isolation_forest.cc`).

mod build;
mod condition;
mod examples;
mod predict;

pub use build::{ForestBuilder, Leaf};
pub use condition::{Categories, ForestColumn, ObliqueTerm, SplitCondition};
pub use examples::{Columns, ForestExamples, Sets};
pub use predict::{ForestPrediction, Link};

use crate::{Threads, error::Result};
/// The name that errors of this module have for the op.
const OP: &str = "a decision forest";

/// A decision forest.
#[derive(Debug)]
pub struct Forest {
    columns: Columns,
    nodes: Vec<Node>,
    trees: Vec<Tree>,
    leaves: build::LeafTable,
    prediction: ForestPrediction,
}

/// A tree: positions of its first node and of its first leaf.
#[derive(Debug, Clone, Copy)]
struct Tree {
    root: usize,
    first_leaf: usize,
}

#[derive(Debug)]
enum Node {
    /// The leaf of this position.
    Leaf(usize),
    Split(Split),
}

/// A condition. The negative child is the next node.
#[derive(Debug)]
struct Split {
    condition: SplitCondition,
    /// Value of the condition where the column has none.
    if_missing: bool,
    /// Position of the positive child.
    positive: usize,
}

impl Forest {
    /// Columns that examples must have.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Number of trees.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// Number of values that the prediction of an example has.
    pub fn width(&self) -> usize {
        self.prediction.width()
    }

    /// The predictions of all examples, [`width`](Forest::width) values each.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](ferroflow_ir::Error::Argument) if the examples do not have the columns of
    /// the forest.
    ///
    /// # Panics
    ///
    /// If `predictions` has another length.
    pub fn predict(
        &self,
        examples: &ForestExamples<'_>,
        threads: &Threads,
        predictions: &mut [f32],
    ) -> Result<()> {
        examples.check(&self.columns)?;
        let width = self.width();
        assert_eq!(
            Some(predictions.len()),
            examples.len.checked_mul(width),
            "one prediction for each example"
        );
        threads.for_each_piece(
            predictions,
            predict::BLOCK.saturating_mul(width),
            |start, block| {
                self.predict_block(examples, start / width, block);
            },
        );
        Ok(())
    }

    /// The leaf of each tree that each example reaches, in rows of [`n_trees`](Forest::n_trees):
    /// numbers within the tree, in preorder.
    ///
    /// # Errors
    ///
    /// As [`predict`](Forest::predict).
    ///
    /// # Panics
    ///
    /// If `leaves` has another length.
    pub fn leaves(&self, examples: &ForestExamples<'_>, leaves: &mut [i32]) -> Result<()> {
        examples.check(&self.columns)?;
        assert_eq!(
            Some(leaves.len()),
            examples.len.checked_mul(self.trees.len()),
            "one leaf for each tree"
        );
        if self.trees.is_empty() {
            return Ok(());
        }
        for (row, leaves) in leaves.chunks_exact_mut(self.trees.len()).enumerate() {
            ferroflow_ir::budget::tick();
            for (tree, leaf) in self.trees.iter().zip(leaves) {
                *leaf = (self.leaf(*tree, examples, row) - tree.first_leaf) as i32;
            }
        }
        Ok(())
    }

    /// Position of the leaf that an example reaches.
    fn leaf(&self, tree: Tree, examples: &ForestExamples<'_>, row: usize) -> usize {
        let mut at = tree.root;
        loop {
            match &self.nodes[at] {
                Node::Leaf(leaf) => return *leaf,
                Node::Split(split) => {
                    let holds = split.condition.holds(examples, &self.columns, row);
                    at = if holds.unwrap_or(split.if_missing) { split.positive } else { at + 1 };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
