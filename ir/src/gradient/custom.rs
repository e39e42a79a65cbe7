//! Custom gradients as function libraries keep them: names of functions and values, and nothing
//! that differentiates.

use std::sync::Arc;

/// The gradient of nodes whose `_gradient_op_type` has a certain name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedGradient {
    /// The function that computes it.
    pub function: Arc<str>,
    /// The results that are the gradients of the inputs of the node; `None` for inputs without one.
    pub gradients: Vec<Option<usize>>,
    /// The arguments after the gradients of the results of the node.
    pub captures: Vec<LoadedCapture>,
}

impl LoadedGradient {
    /// The attribute by which TensorFlow names the gradient of a node that has one of its own.
    pub const ATTRIBUTE: &str = "_gradient_op_type";

    /// The attribute that names the values of the graph around a node that its gradient takes, of
    /// nodes that were traced or copied. It is no part of files.
    pub const CAPTURES: &str = "_gradient_captures";
}

/// A value that a gradient takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedCapture {
    /// The function it belongs to.
    pub function: Arc<str>,
    /// The node.
    pub node: String,
    /// The number of the result of the node.
    pub index: usize,
}
