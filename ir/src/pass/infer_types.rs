//! Types of results, from those of arguments on.

use crate::{
    attr::AttrValue,
    error::Result,
    graph::{Graph, NodeId},
    host_tensor::HostTensor,
    infer::{InputFacts, infer},
    op::CallKind,
    ops::names,
    spec::ValueType,
};
use smallvec::SmallVec;

/// Infers the types of all results that follow from those before them. What is known already stays
/// known: it may come from elsewhere.
///
/// # Errors
///
/// The first call that does not fit its op, with the node.
pub fn infer_types(graph: &mut Graph) -> Result<()> {
    for id in graph.topological_order()? {
        let inferred = outputs(graph, id).map_err(graph[id].locate(""))?;
        let Some(inferred) = inferred else { continue };
        let known = graph[id].outputs().iter().cloned().zip(inferred);
        let merged: SmallVec<[ValueType; 2]> = known.map(|(a, b)| merge(a, b)).collect();
        *graph.node_mut(id).outputs = merged;
    }
    Ok(())
}

/// Types of an op's results, from those of its inputs; `None` where the op, or what it calls, is
/// not known here.
fn outputs(graph: &Graph, id: NodeId) -> Result<Option<SmallVec<[ValueType; 2]>>> {
    let node = &graph[id];
    let Some(op) = node.op.def().filter(|op| op.call == CallKind::None) else { return Ok(None) };
    if node.attrs.iter().any(|(_, value)| matches!(value, AttrValue::Placeholder(_))) {
        return Ok(None);
    }
    let mut inputs: SmallVec<[InputFacts<'_>; 4]> = SmallVec::new();
    for &input in node.inputs() {
        let Some(ty) = graph.ty(input) else { return Ok(None) };
        inputs.push(InputFacts { ty, value: constant(graph, input.node) });
    }
    infer(op, &node.attrs, &inputs).map(Some)
}

fn constant(graph: &Graph, id: NodeId) -> Option<&HostTensor> {
    let node = &graph[id];
    node.attrs.tensor("value").ok().filter(|_| node.op.name() == names::CONST)
}

fn merge(known: ValueType, inferred: ValueType) -> ValueType {
    let shape = known.shape.merge(&inferred.shape).unwrap_or(inferred.shape);
    let pointee = inferred.pointee.or(known.pointee);
    ValueType { dtype: known.dtype, shape, pointee, items: inferred.items }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, PartialShape, build::GraphBuilder};

    fn ranked(dims: &[Option<usize>]) -> PartialShape {
        PartialShape::ranked(dims.iter().copied())
    }

    /// `reshape(square(x), [-1, 2])`, with all types forgotten but that of `x`.
    fn forgetful(x: PartialShape) -> (Graph, crate::Outlet) {
        let mut builder = GraphBuilder::new();
        let x = builder.placeholder("x", DType::F32, x).unwrap();
        let shape = builder.constant("shape", HostTensor::vector(&[-1i32, 2]).unwrap()).unwrap();
        let square = builder.call("Square", "square", &[x]).unwrap()[0];
        let y = builder.call("Reshape", "y", &[square, shape]).unwrap()[0];
        let mut graph = builder.finish();
        for outlet in [square, y] {
            let unknown = ValueType::new(DType::F32, PartialShape::Unknown);
            *graph.node_mut(outlet.node).outputs = [unknown].into_iter().collect();
        }
        (graph, y)
    }

    /// An empty vector is the shape of a scalar, whatever else is known of it.
    #[test]
    fn reshapes_to_scalars_are_of_one_element() {
        let reshape = |n: usize| {
            let mut builder = GraphBuilder::new();
            let x = builder.placeholder("x", DType::F32, ranked(&[Some(n)])).unwrap();
            let sizes = builder.placeholder("sizes", DType::I32, ranked(&[Some(0)])).unwrap();
            builder.call("Reshape", "y", &[x, sizes]).map(|y| builder.graph().ty(y[0]).cloned())
        };
        assert_eq!(reshape(1).unwrap().unwrap().shape, PartialShape::scalar());
        let message = reshape(3).unwrap_err().to_string();
        assert!(message.contains("of as many elements as the tensor"), "{message}");
    }

    #[test]
    fn shapes_are_inferred_from_arguments_and_constants() {
        let (mut graph, y) = forgetful(ranked(&[Some(3), Some(4)]));
        infer_types(&mut graph).unwrap();
        assert_eq!(graph.ty(y).unwrap().shape, ranked(&[Some(6), Some(2)]));
    }

    #[test]
    fn what_is_known_stays_known() {
        let (mut graph, y) = forgetful(PartialShape::Unknown);
        let noted = ValueType::new(DType::F32, ranked(&[Some(5), None]));
        *graph.node_mut(y.node).outputs = [noted].into_iter().collect();
        infer_types(&mut graph).unwrap();
        assert_eq!(graph.ty(y).unwrap().shape, ranked(&[Some(5), Some(2)]));
    }

    #[test]
    fn calls_that_do_not_fit_are_located() {
        let (mut graph, _) = forgetful(ranked(&[Some(3)]));
        let message = infer_types(&mut graph).unwrap_err().to_string();
        assert!(message.contains("(node `y`, op Reshape)"), "{message}");
    }
}
