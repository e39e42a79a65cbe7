//! Forests from their nodes.

use super::{Columns, Forest, ForestPrediction, Node, OP, Split, SplitCondition, Tree, predict};
use crate::error::Result;
use ferroflow_ir::{Error, workspace};

/// The value of a leaf, which must be of the kind that the prediction takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    /// A number: for all predictions but [`ForestPrediction::Classes`].
    Score(f32),
    /// The class that the leaf votes for.
    Class(usize),
    /// The share of each class.
    Shares(Vec<f32>),
    /// The number of examples that reached the leaf in training: for [`ForestPrediction::Isolation`].
    Examples(u64),
}

/// The values of all leaves.
#[derive(Debug)]
pub(super) enum LeafTable {
    Scores(Vec<f32>),
    Classes(Vec<usize>),
    /// Rows of as many values as there are classes.
    Shares(Vec<f32>),
}

impl LeafTable {
    fn push(&mut self, leaf: Leaf, depth: usize, prediction: &ForestPrediction) -> Result<()> {
        match (&mut *self, leaf, prediction) {
            (LeafTable::Scores(scores), Leaf::Examples(n), ForestPrediction::Isolation { .. }) => {
                // A sum of 32 bits, as the source has it.
                scores.push(depth as f32 + predict::expected_depth(n));
                Ok(())
            }
            (_, _, ForestPrediction::Isolation { .. }) => Err(mistyped("a number of examples")),
            (LeafTable::Scores(scores), Leaf::Score(score), _) => {
                scores.push(score);
                Ok(())
            }
            (
                LeafTable::Classes(classes),
                Leaf::Class(class),
                &ForestPrediction::Classes { n, .. },
            ) => {
                if class >= n {
                    return Err(Error::argument(OP, "a leaf", "one of its classes", class).into());
                }
                classes.push(class);
                Ok(())
            }
            (LeafTable::Shares(all), Leaf::Shares(own), &ForestPrediction::Classes { n, .. }) => {
                if own.len() != n {
                    return Err(mistyped("a share for each class"));
                }
                all.extend(own);
                Ok(())
            }
            (LeafTable::Scores(_), ..) => Err(mistyped("a number")),
            (LeafTable::Classes(_), ..) => Err(mistyped("a class")),
            (LeafTable::Shares(_), ..) => Err(mistyped("shares of classes")),
        }
    }
}

fn mistyped(expected: &'static str) -> crate::Error {
    Error::argument(OP, "a leaf", expected, "another kind of leaf").into()
}

/// A forest whose nodes come in preorder: a split, its negative child with all that is below it, its
/// positive child.
#[derive(Debug)]
pub struct ForestBuilder {
    forest: Forest,
    n_leaves: usize,
    /// Splits above the next node, and which of them have their negative child.
    open: Vec<(usize, bool)>,
}

impl ForestBuilder {
    /// A forest without trees.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](ferroflow_ir::Error::Argument) for a prediction that cannot be: of no
    /// class, without initial values.
    pub fn new(columns: Columns, prediction: ForestPrediction) -> Result<ForestBuilder> {
        prediction.check()?;
        let leaves = match prediction {
            ForestPrediction::Classes { by_votes: true, .. } => LeafTable::Classes(Vec::new()),
            ForestPrediction::Classes { by_votes: false, .. } => LeafTable::Shares(Vec::new()),
            _ => LeafTable::Scores(Vec::new()),
        };
        let (nodes, trees) = (Vec::new(), Vec::new());
        let forest = Forest { columns, nodes, trees, leaves, prediction };
        Ok(ForestBuilder { forest, n_leaves: 0, open: Vec::new() })
    }

    /// Number of trees that are whole.
    pub fn n_whole_trees(&self) -> usize {
        self.forest.trees.len() - usize::from(!self.open.is_empty())
    }

    /// The next node is a split.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](ferroflow_ir::Error::Argument) for a condition on a column that does not
    /// exist; [`Error::Limit`](ferroflow_ir::Error::Limit) for more nodes than memory has room for.
    pub fn split(&mut self, condition: SplitCondition, if_missing: bool) -> Result<()> {
        if let Some(column) =
            condition.columns().find(|&column| !self.forest.columns.contains(column))
        {
            let found = format!("{column:?}");
            return Err(
                Error::argument(OP, "a condition", "a column of the examples", found).into()
            );
        }
        self.begin_node();
        self.open.push((self.forest.nodes.len(), false));
        self.push(Node::Split(Split { condition, if_missing, positive: 0 }))
    }

    /// The next node is a leaf.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](ferroflow_ir::Error::Argument) for a value that the prediction does not
    /// take; [`Error::Limit`](ferroflow_ir::Error::Limit) as for [`split`](ForestBuilder::split).
    pub fn leaf(&mut self, leaf: Leaf) -> Result<()> {
        let depth = self.open.len();
        self.begin_node();
        let forest = &mut self.forest;
        forest.leaves.push(leaf, depth, &forest.prediction)?;
        self.push(Node::Leaf(self.n_leaves))?;
        self.n_leaves += 1;
        self.end_leaf();
        Ok(())
    }

    fn begin_node(&mut self) {
        if self.open.is_empty() {
            let tree = Tree { root: self.forest.nodes.len(), first_leaf: self.n_leaves };
            self.forest.trees.push(tree);
        }
    }

    fn push(&mut self, node: Node) -> Result<()> {
        if self.forest.nodes.len() == self.forest.nodes.capacity() {
            workspace::check::<Node>(self.forest.nodes.len().saturating_mul(2))?;
        }
        self.forest.nodes.push(node);
        Ok(())
    }

    /// The positive child of the lowest split without one is next; splits that have it are done.
    fn end_leaf(&mut self) {
        while let Some((split, has_negative)) = self.open.pop() {
            if has_negative {
                continue;
            }
            let next = self.forest.nodes.len();
            if let Node::Split(split) = &mut self.forest.nodes[split] {
                split.positive = next;
            }
            self.open.push((split, true));
            return;
        }
    }

    /// The forest.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](ferroflow_ir::Error::Argument) if the last tree lacks nodes, or trees of
    /// a step of boosting are missing.
    pub fn finish(self) -> Result<Forest> {
        let n = self.forest.trees.len();
        if !self.open.is_empty() {
            return Err(Error::argument(OP, "nodes", "whole trees", "a part of one").into());
        }
        if let ForestPrediction::Boosted { initial, .. } = &self.forest.prediction
            && !n.is_multiple_of(initial.len())
        {
            let expected = format!("a multiple of {}", initial.len());
            return Err(Error::argument(OP, "the number of trees", expected, n).into());
        }
        Ok(self.forest)
    }
}
