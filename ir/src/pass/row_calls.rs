//! Rows that one call reads are read where they are: the slice of a tensor at an index, as each round of a recurrent
//! layer takes one, is not copied first (`_RowCall`).
//!
//! It comes last, and only for calls whose kernels read their inputs as they lie: elementwise ones and regions.

use super::{
    call::record,
    execution::{Execution, constant},
    specialize::Specialized,
};
use crate::{
    attr::{Attrs, NameAttrList},
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
    ops::names,
    shape::Shape,
    spec::ValueType,
};
use std::sync::Arc;

/// The calls that read rows where they are.
const READERS: [&str; 3] = [names::FUSED_ELEMENTWISE, names::FUSED_EXPRESSIONS, names::REGION];

/// Has calls of a body read rows where they are, if that is profitable on the device they run on.
///
/// # Errors
///
/// None on a well-formed body.
pub fn row_calls(
    body: &mut Specialized,
    mut is_profitable: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let ids: Vec<NodeId> = body.graph.ids().collect();
    let results: FastSet<Outlet> = body.results.iter().copied().collect();
    for id in ids {
        let Some(read) = RowRead::find(&body.graph, &results, id)? else { continue };
        let node = read.node(&body.graph)?;
        if is_profitable(&body.graph, &node) {
            let (inputs, controls) = (node.inputs().to_vec(), node.controls().to_vec());
            let reader = body.graph.node_mut(read.reader);
            (*reader.op, *reader.attrs) = (node.op, node.attrs);
            body.graph.connect(read.reader, inputs, controls)?;
        }
    }
    Ok(())
}

/// A row of a tensor that one call reads.
struct RowRead {
    tensor: Outlet,
    index: Outlet,
    reader: NodeId,
    /// The row as the call reads it.
    value: Outlet,
    shape: Shape,
}

impl RowRead {
    fn find(graph: &Graph, results: &FastSet<Outlet>, id: NodeId) -> Result<Option<RowRead>> {
        let Some((tensor, index)) = row_of(graph, &graph[id]) else { return Ok(None) };
        let mut value = Outlet::from(id);
        loop {
            let mut readers = graph.consumers(value.node);
            let Some(reader) = readers.next() else { return Ok(None) };
            if readers.any(|other| other != reader) || results.contains(&value) {
                return Ok(None);
            }
            let node = &graph[reader];
            if Execution::of(graph, node)? == Execution::Alias && node.device.is_empty() {
                value = reader.into();
                continue;
            }
            let shape = graph.ty(value).and_then(|ty| ty.shape.known());
            let is_reader = READERS.contains(&node.op.name())
                && node.device.is_empty()
                && node.inputs().contains(&value)
                && Execution::of(graph, node)? == Execution::Kernel;
            let read = |shape| RowRead { tensor, index, reader, value, shape };
            return Ok(shape.filter(|_| is_reader).map(read));
        }
    }

    /// The call that reads the row where it is.
    fn node(&self, graph: &Graph) -> Result<NodeDef> {
        let node = &graph[self.reader];
        let inputs = node.inputs().iter().enumerate();
        let rows: Vec<i64> = inputs
            .filter(|(_, input)| **input == self.value)
            .map(|(position, _)| position as i64)
            .collect();
        let own = |&input: &Outlet| if input == self.value { self.tensor } else { input };
        let inputs: Vec<Outlet> = node.inputs().iter().map(own).chain([self.index]).collect();
        let types: Vec<DType> =
            inputs.iter().filter_map(|&input| Some(graph.ty(input)?.dtype)).collect();
        let call = NameAttrList::with_attrs(node.op.name(), (*node.attrs).clone());
        let attrs = Attrs::new()
            .with("Tin", types)
            .with("Tout", node.outputs().iter().map(|ty| ty.dtype).collect::<Vec<_>>())
            .with("call", call)
            .with("rows", rows)
            .with("shape", self.shape.to_i64());
        let op = record(names::ROW_CALL)?;
        let mut node = node.clone().with_inputs(inputs);
        (node.op, node.attrs) = (op.into(), Arc::new(op.complete_attrs(attrs)?));
        Ok(node)
    }
}

/// The tensor and the index of the row that a call on the host reads: all of a slice along the first dimension.
fn row_of(graph: &Graph, node: &NodeDef) -> Option<(Outlet, Outlet)> {
    let (tensor, index) = match (node.op.name(), node.inputs()) {
        (names::GATHER, &[tensor, index]) => (tensor, index),
        (names::GATHER_V2, &[tensor, index, axis]) => {
            let is_first = constant(graph, axis)?.to_i64s().ok()? == [0];
            let has_batch = node.attrs.int("batch_dims").ok()? != 0;
            (is_first && !has_batch).then_some((tensor, index))?
        }
        _ => return None,
    };
    let is_known = |ty: &ValueType| ty.shape.known();
    let whole = is_known(graph.ty(tensor)?)?;
    let n_indices = is_known(graph.ty(index)?)?.num_elements();
    let ty = graph.ty(index)?;
    let fits = node.device.is_empty()
        && n_indices == 1
        && matches!(ty.dtype, DType::I32 | DType::I64)
        && graph.ty(tensor)?.dtype.size().is_some()
        && constant(graph, index).is_none()
        && whole.num_elements() > 0;
    fits.then_some((tensor, index))
}
