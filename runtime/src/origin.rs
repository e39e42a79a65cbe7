//! The nodes of functions that errors, notes and generators refer to.

use crate::error::Error;
use ferroflow_ir::{NodeId, error::SourceLocation};
use std::sync::Arc;

/// The node of a function that an action stems from, for error messages.
#[derive(Debug)]
pub(crate) struct NodeOrigin {
    /// The node: all its inputs are read, all its results are written.
    pub(crate) id: NodeId,
    pub(crate) node: Box<str>,
    pub(crate) op: Box<str>,
    pub(crate) function: Arc<str>,
    pub(crate) location: Option<SourceLocation>,
}

impl NodeOrigin {
    pub(crate) fn locate(&self, error: impl Into<Error>) -> Error {
        let error = error.into().at_node(&self.node, &self.op, &self.function);
        error.written_at(self.location)
    }
}
