//! Names of tensors in a graph: `node:1`, or `node` alone for the first result of a node.

use crate::{
    error::{Error, Result},
    graph::{Graph, Outlet},
};

/// Node and number of the result.
///
/// ```
/// use ferroflow_ir::tensor_name::parse;
/// assert_eq!(parse("layer/sum:1"), ("layer/sum", 1));
/// assert_eq!(parse("layer/sum"), ("layer/sum", 0));
/// ```
pub fn parse(name: &str) -> (&str, u32) {
    let parts = name.rsplit_once(':');
    parts.and_then(|(node, index)| Some((node, index.parse().ok()?))).unwrap_or((name, 0))
}

/// The tensor of this name.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such node, or it has no such result.
pub fn find(graph: &Graph, name: &str) -> Result<Outlet> {
    let (node, index) = parse(name);
    let found = graph.find(node).map(|node| Outlet { node, index });
    // How many results an op without a record has is not known.
    let found =
        found.filter(|&outlet| graph.ty(outlet).is_some() || graph[outlet.node].op.def().is_none());
    found.ok_or_else(|| Error::NotFound { kind: "tensor", name: name.into() })
}

/// The full name of a tensor, with the number of the result even if that is 0.
pub fn of(graph: &Graph, outlet: Outlet) -> String {
    format!("{}:{}", graph[outlet.node].name, outlet.index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, NodeDef, OpRef, PartialShape, attr::Attrs, build::GraphBuilder};

    #[test]
    fn what_is_no_number_belongs_to_the_node() {
        assert_eq!(parse("a:b"), ("a:b", 0));
        assert_eq!(parse("a:b:12"), ("a:b", 12));
        assert_eq!(parse("a:-1"), ("a:-1", 0));
        assert_eq!(parse(""), ("", 0));
    }

    #[test]
    fn results_are_found_by_name() {
        let mut builder = GraphBuilder::new();
        let x = builder.placeholder("x", DType::F32, PartialShape::scalar()).unwrap();
        let mut graph = builder.finish();
        let foreign = OpRef::Foreign("OpOfTheFuture".into());
        let odd = graph.add(NodeDef::new("odd", foreign, Attrs::new())).unwrap();
        assert_eq!(find(&graph, "x").unwrap(), x);
        assert_eq!(of(&graph, x), "x:0");
        assert_eq!(find(&graph, "odd:7").unwrap(), Outlet::new(odd, 7));
        assert_eq!(find(&graph, "x:1").unwrap_err().to_string(), "tensor `x:1` does not exist");
        assert!(find(&graph, "y").is_err());
    }
}
