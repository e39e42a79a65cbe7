//! Tensor lists that rounds of a loop write to become dense tensors, as in recurrent layers, scans and maps: the
//! list is reserved before the loop, each round writes an item of it, and what comes after the loop reads the
//! stacked items.
//!
//! The variable of the loop is the stacked tensor then, zeros at first as items of a list are. A round writes
//! its item to a row, in the memory of the variable, and the stack after the loop is the variable itself.
//!
//! A list of one item, which all rounds write, holds the item of the last round: where that is a variable of its own and
//! there is a last round, what comes after the loop reads the variable.
//!
//! A list stays a list unless everything is known that could make an op on it fail (`find`): its length, the shapes,
//! that there is an item which tells the shape of those that are not written, if nothing else does, and (`counter`)
//! that every index is one of an item.

mod counter;
mod find;

use super::{
    call::{add_call, add_sizes, record, replace_call},
    rebuild::{Rebuilt, rebuild},
    specialize::{Evaluate, Specialized},
};
use crate::{
    attr::Attrs,
    build::infer_attrs,
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastMap,
    host_tensor::HostTensor,
    op::CallKind,
    ops::names,
    shape::Shape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// Turns lists that loops of a body write to into tensors. `evaluate` computes conditions whose operands are known.
///
/// # Errors
///
/// None on a well-formed body.
pub fn dense_lists(body: &mut Specialized, evaluate: &dyn Evaluate) -> Result<()> {
    let is_loop = |node: &NodeDef| node.op.def().is_some_and(|op| op.call == CallKind::While);
    let loops = body.nested.keys().copied().filter(|&id| is_loop(&body.graph[id]));
    let mut loops: Vec<NodeId> = loops.collect();
    loops.sort_unstable();
    let mut dense: FastMap<NodeId, Vec<WrittenList>> = FastMap::default();
    let mut last: FastMap<NodeId, LastItem> = FastMap::default();
    for id in loops {
        for list in find::written_lists(body, id, evaluate) {
            if let Some(variable) = list.last {
                let item = LastItem { variable, stacked: list.shape };
                last.extend(list.readers.into_iter().map(|reader| (reader, item.clone())));
                continue;
            }
            list.write_rows(body, id)?;
            list.read_tensor(body, id)?;
            dense.entry(id).or_default().push(list);
        }
    }
    if dense.is_empty() && last.is_empty() {
        return Ok(());
    }
    rebuild(body, |outer, source, id, _| {
        let mut node = outer.node(&source[id]);
        if let Some(lists) = dense.get(&id) {
            node = with_tensors(outer, node, lists)?;
        }
        match last.get(&id) {
            Some(item) => item.add_read(outer, &source[id], node),
            None => outer.graph.add(node),
        }
    })
}

/// The item that the last round of a loop writes, which a variable of the loop is.
#[derive(Clone)]
struct LastItem {
    variable: Outlet,
    /// The shape of the stack of it alone.
    stacked: Shape,
}

impl LastItem {
    /// Adds a read of the variable in place of one of the list.
    fn add_read(&self, outer: &mut Rebuilt, source: &NodeDef, node: NodeDef) -> Result<NodeId> {
        let variable = outer.outlet(self.variable);
        let (op, inputs, dtype) = match source.inputs().len() {
            // `TensorListStack`, not `TensorListGetItem`.
            2 => {
                let name = format!("{}/shape", node.name);
                let sizes = add_sizes(&mut outer.graph, &name, &self.stacked)?;
                (names::RESHAPE, vec![variable, sizes], source.outputs()[0].dtype)
            }
            _ => (names::IDENTITY, vec![variable], source.outputs()[0].dtype),
        };
        let op = record(op)?;
        let dtypes = [dtype, DType::I64];
        let attrs = op.complete_attrs(infer_attrs(op, Attrs::new(), &dtypes[..inputs.len()]))?;
        let mut node = node.with_inputs(inputs);
        (node.op, node.attrs) = (op.into(), attrs.into());
        outer.graph.add(node)
    }
}

/// A variable of a loop that is a list, of which each round writes an item.
struct WrittenList {
    variable: usize,
    /// The op that writes it, its index and its item, in the body of the loop.
    set: NodeId,
    index: Outlet,
    item: Outlet,
    dtype: DType,
    /// The shape of the stacked items.
    shape: Shape,
    /// The nodes after the loop that read it.
    readers: Vec<NodeId>,
    /// The variable of the loop that the item is, if it is the only item and there is a round.
    last: Option<Outlet>,
}

impl WrittenList {
    fn ty(&self) -> ValueType {
        ValueType::new(self.dtype, self.shape.clone())
    }

    /// Has rounds write their items to rows of a tensor.
    fn write_rows(&self, body: &mut Specialized, id: NodeId) -> Result<()> {
        let Some([condition, rounds]) = body.nested.get_mut(&id).map(Vec::as_mut_slice) else {
            return Ok(());
        };
        for function in [&mut *condition, &mut *rounds] {
            let arg = function.graph.node_mut(function.args[self.variable].node);
            Arc::make_mut(arg.attrs).set("T", self.dtype);
            *arg.outputs = [self.ty()].into_iter().collect();
        }
        let graph = &mut rounds.graph;
        let name = graph[self.set].name.to_string();
        let mut reshaped = |value: Outlet, shape: &[usize]| {
            let sizes = add_sizes(graph, &name, shape)?;
            add_call(graph, &name, names::RESHAPE, Attrs::new(), &[value, sizes])
        };
        let index = reshaped(self.index, &[1, 1])?;
        let row: SmallVec<[usize; 6]> =
            [1].into_iter().chain(self.shape[1..].iter().copied()).collect();
        let row = reshaped(self.item, &row)?;
        let inputs = [rounds.args[self.variable], index, row];
        let update = names::TENSOR_SCATTER_UPDATE;
        let written = add_call(&mut rounds.graph, &name, update, Attrs::new(), &inputs)?;
        rounds.results[self.variable] = written;
        rounds.reasons.remove(&self.set);
        rounds.graph.remove(self.set).map(drop)
    }

    /// Has what comes after the loop read the tensor.
    fn read_tensor(&self, body: &mut Specialized, id: NodeId) -> Result<()> {
        let graph = &mut body.graph;
        graph.node_mut(id).outputs[self.variable] = self.ty();
        let tensor = Outlet::new(id, self.variable);
        for &reader in &self.readers {
            match *graph[reader].inputs() {
                [_, index, _] => replace_call(graph, reader, names::GATHER, &[tensor, index])?,
                _ => replace_call(graph, reader, names::IDENTITY, &[tensor])?,
            }
        }
        Ok(())
    }

    /// Adds a tensor of zeros, as the items of a list are at first.
    fn add_zeros(&self, graph: &mut Graph, loop_name: &str) -> Result<Outlet> {
        let name = format!("{loop_name}/zeros");
        let sizes = add_sizes(graph, &name, &self.shape)?;
        let zero = HostTensor::zeros(self.dtype, Shape::scalar())?;
        let attrs = Attrs::new().with("dtype", self.dtype).with("value", zero);
        let zero = add_call(graph, &name, names::CONST, attrs, &[])?;
        add_call(graph, &name, names::FILL, Attrs::new(), &[sizes, zero])
    }
}

/// The call of a loop with tensors of zeros in place of lists, which are added before it.
fn with_tensors(outer: &mut Rebuilt, node: NodeDef, lists: &[WrittenList]) -> Result<NodeDef> {
    let mut inputs: Vec<Outlet> = node.inputs().to_vec();
    for list in lists {
        inputs[list.variable] = list.add_zeros(&mut outer.graph, &node.name)?;
    }
    let dtypes: Vec<DType> = node.outputs().iter().map(|ty| ty.dtype).collect();
    let mut node = node.with_inputs(inputs);
    Arc::make_mut(&mut node.attrs).set("T", dtypes);
    Ok(node)
}
