//! Gradients of dilated convolutions.
//!
//! `Conv2DBackpropInput` and `Conv2DBackpropFilter` refuse dilation, as TensorFlow's own kernels do for CPUs.
//! Its kernels of oneDNN, which it takes by default, have it, and with them transposed convolutions that
//! are dilated; so have the ops that came later, which take a tensor of the shape instead of the shape.
//! Nodes of files become those.

use ferroflow_ir::{
    Attrs, Error, Graph, HostTensor, NodeDef, NodeId, OpDef, Outlet, PartialShape, Result, Shape,
    ValueType, registry,
};

/// The ops that refuse, the ops that do not, and the input that is a shape for the first.
const OPS: &[(&str, &str, usize)] = &[
    ("Conv2DBackpropFilter", "Conv2DBackpropFilterV2", 1),
    ("Conv2DBackpropInput", "Conv2DBackpropInputV2", 0),
];

/// Makes the nodes of gradients of dilated convolutions those of the ops that have them.
pub(super) fn replace_dilated(graph: &mut Graph) -> Result<()> {
    let found: Vec<(NodeId, &str, usize)> = graph
        .iter()
        .filter_map(|(id, node)| replacement(node).map(|(op, at)| (id, op, at)))
        .collect();
    for (id, op, at) in found {
        let (mut inputs, controls) = (graph[id].inputs().to_vec(), graph[id].controls().to_vec());
        let Some(&sizes) = inputs.get(at) else { continue };
        inputs[at] = zeros(graph, id, sizes)?;
        *graph.node_mut(id).op = find(op)?.into();
        graph.connect(id, inputs, controls)?;
    }
    Ok(())
}

/// The op to take for a node, and the input that is a shape.
fn replacement(node: &NodeDef) -> Option<(&'static str, usize)> {
    let &(_, op, at) = OPS.iter().find(|(refuses, ..)| *refuses == node.op.name())?;
    let dilations = node.attrs.ints("dilations").ok()?;
    // A function of any dtype has none yet.
    node.attrs.dtype("T").ok()?;
    dilations.iter().any(|&dilation| dilation > 1).then_some((op, at))
}

fn find(op: &str) -> Result<&'static OpDef> {
    registry::find(op).ok_or_else(|| Error::NotFound { kind: "op", name: op.into() })
}

/// Zeros of a shape, for the convolution of a node.
fn zeros(graph: &mut Graph, id: NodeId, sizes: Outlet) -> Result<Outlet> {
    let (dtype, name) = (graph[id].attrs.dtype("T")?, graph[id].name.to_string());
    let zero = HostTensor::zeros(dtype, Shape::scalar())?;
    let ty = ValueType::new(dtype, zero.shape());
    let attrs = Attrs::new().with("value", zero).with("dtype", dtype);
    let zero = add(graph, format!("{name}/zero"), ("Const", attrs), Vec::new(), ty)?;
    let ty = ValueType::new(dtype, PartialShape::Unknown);
    let attrs = Attrs::new().with("T", dtype);
    add(graph, format!("{name}/zeros"), ("Fill", attrs), vec![sizes, zero], ty)
}

fn add(
    graph: &mut Graph,
    mut name: String,
    (op, attrs): (&str, Attrs),
    inputs: Vec<Outlet>,
    output: ValueType,
) -> Result<Outlet> {
    while graph.find(&name).is_some() {
        name.push('_');
    }
    let op = find(op)?;
    let attrs = op.complete_attrs(attrs)?;
    let node = graph.add(NodeDef::new(name.as_str(), op, attrs).with_outputs([output]))?;
    graph.connect(node, inputs, Vec::new())?;
    Ok(Outlet { node, index: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        convert::{
            Definitions, graph,
            testing::{FLOAT, node},
        },
        proto::attr_value::{ListValue, Value},
    };
    use ferroflow_ir::{Limits, OpRegistry};
    use std::sync::Arc;

    fn converted(dilation: i64) -> Graph {
        let numbers = |i: Vec<i64>| Value::List(ListValue { i, ..ListValue::default() });
        let attrs = [
            ("T", FLOAT),
            ("strides", numbers(vec![1, 1, 1, 1])),
            ("dilations", numbers(vec![1, dilation, dilation, 1])),
            ("padding", Value::S(b"SAME".to_vec().into())),
        ];
        let nodes = [
            node("sizes", "Placeholder", &[], &[("dtype", Value::Type(3))]),
            node("filter", "Placeholder", &[], &[("dtype", FLOAT)]),
            node("dy", "Placeholder", &[], &[("dtype", FLOAT)]),
            node("dx", "Conv2DBackpropInput", &["sizes", "filter", "dy"], &attrs),
        ];
        let registry = Arc::new(OpRegistry::default());
        let definitions = Definitions::new(Default::default(), registry, Limits::default());
        graph(&nodes, &definitions.unwrap()).unwrap()
    }

    #[test]
    fn gradients_of_dilated_convolutions_take_a_tensor_of_the_shape() {
        let plain = converted(1);
        assert_eq!(plain[plain.find("dx").unwrap()].op.name(), "Conv2DBackpropInput");
        let dilated = converted(2);
        let dx = &dilated[dilated.find("dx").unwrap()];
        assert_eq!(dx.op.name(), "Conv2DBackpropInputV2");
        let zeros = &dilated[dx.inputs()[0].node];
        assert_eq!((zeros.op.name(), &*zeros.name), ("Fill", "dx/zeros"));
        assert_eq!(zeros.inputs()[0].node, dilated.find("sizes").unwrap());
    }
}
