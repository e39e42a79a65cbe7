//! Calls that passes add to a graph.

use super::execution::constant;
use crate::{
    attr::Attrs,
    build::infer_attrs,
    dtype::DType,
    emit::check_call,
    error::{Error, Result},
    graph::{Graph, NodeDef, NodeId, Outlet},
    host_tensor::HostTensor,
    infer::{InputFacts, OpContext},
    op::{Lowering, OpDef},
    ops::names,
    registry,
    spec::ValueType,
    view::StridedView,
};
use smallvec::SmallVec;

/// The record of an op of the library.
///
/// # Errors
///
/// [`Error::NotFound`] when there is none.
pub(super) fn record(op: &str) -> Result<&'static OpDef> {
    registry::find(op).ok_or_else(|| Error::NotFound { kind: "op", name: op.into() })
}

/// Adds a call on the host, of one result; attributes that follow from the inputs may be left out.
///
/// # Errors
///
/// [`Error::NotFound`] for an unknown op, [`Error::Argument`] when the call does not fit it.
pub(super) fn add_call(
    graph: &mut Graph,
    name: &str,
    op: &str,
    attrs: Attrs,
    inputs: &[Outlet],
) -> Result<Outlet> {
    let op = record(op)?;
    let dtypes: SmallVec<[DType; 4]> =
        inputs.iter().filter_map(|&input| graph.ty(input)).map(|ty| ty.dtype).collect();
    let attrs = infer_attrs(op, attrs, &dtypes);
    let (attrs, types) = call_types(graph, op, attrs, inputs)?;
    let node = NodeDef::new(graph.unique_name(name), op, attrs);
    Ok(graph.add(node.with_inputs(inputs.iter().copied()).with_outputs(types))?.into())
}

/// Makes a node a call of another op on these inputs; its results keep their types.
///
/// # Errors
///
/// As [`add_call`].
pub(super) fn replace_call(
    graph: &mut Graph,
    id: NodeId,
    op: &str,
    inputs: &[Outlet],
) -> Result<()> {
    let op = record(op)?;
    let dtypes: SmallVec<[DType; 4]> =
        inputs.iter().filter_map(|&input| graph.ty(input)).map(|ty| ty.dtype).collect();
    let attrs = op.complete_attrs(infer_attrs(op, Attrs::new(), &dtypes))?;
    let controls = graph[id].controls().to_vec();
    let node = graph.node_mut(id);
    (*node.op, *node.attrs) = (op.into(), attrs.into());
    graph.connect(id, inputs.iter().copied(), controls)
}

/// Whether a node is a call of an op of the host.
pub(super) fn is_host_call(node: &NodeDef, op: &str) -> bool {
    node.op.name() == op && node.device.is_empty()
}

/// Adds a constant vector of sizes.
///
/// # Errors
///
/// None for as many as a shape has.
pub(super) fn add_sizes(graph: &mut Graph, name: &str, sizes: &[usize]) -> Result<Outlet> {
    let sizes: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
    let value = HostTensor::vector(&sizes)?;
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    add_call(graph, name, names::CONST, attrs, &[])
}

/// The complete attributes of a call in a graph, and the types of its results.
///
/// # Errors
///
/// [`Error::Argument`] when the call does not fit the op.
pub(super) fn call_types(
    graph: &Graph,
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[Outlet],
) -> Result<(Attrs, SmallVec<[ValueType; 2]>)> {
    let facts = |&input: &Outlet| {
        let ty = graph.ty(input)?;
        Some(InputFacts { ty, value: constant(graph, input) })
    };
    let facts: SmallVec<[InputFacts<'_>; 4]> = inputs.iter().filter_map(facts).collect();
    check_call(op, attrs, &facts)
}

/// Views of the first input that the results of a node are, if that is all they are and everything is known.
pub(super) fn call_views(graph: &Graph, node: &NodeDef) -> Option<Vec<StridedView>> {
    let op = node.op.def()?;
    let Lowering::View(rule) = op.lowering else { return None };
    let facts =
        |&input: &Outlet| Some(InputFacts { ty: graph.ty(input)?, value: constant(graph, input) });
    let inputs: Option<SmallVec<[InputFacts<'_>; 4]>> = node.inputs().iter().map(facts).collect();
    let inputs = inputs?;
    inputs.first()?.ty.shape.known()?;
    let mut context = OpContext::new(op, &node.attrs, &inputs).ok()?;
    context.infer().ok().filter(|()| context.host_values_known())?;
    rule(&context).ok()
}
