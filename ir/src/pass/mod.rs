//! Graph to graph.
