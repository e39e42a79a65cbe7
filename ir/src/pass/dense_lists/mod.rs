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
//! A list stays a list unless everything is known that could make an op on it fail: its length, the shapes, and
//! (`counter`) that every index is one of an item.

mod counter;

use super::{
    call::{add_call, add_sizes, record},
    execution::constant,
    first_round::has_first_round,
    placement::location,
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
    host_tensor::{HostTensor, byte_len},
    op::CallKind,
    ops::names,
    shape::Shape,
    spec::ValueType,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most bytes of a tensor that nothing would have made of the list.
const MAX_UNSTACKED_BYTES: usize = 1 << 20;

/// Turns lists that loops of a body write to into tensors. `evaluate` computes conditions whose operands are known.
///
/// # Errors
///
/// None on a well-formed body.
pub fn dense_lists(body: &mut Specialized, evaluate: &dyn Evaluate) -> Result<()> {
    let is_loop = |node: &NodeDef| node.op.def().is_some_and(|op| op.call == CallKind::While);
    let loops = body.nested.keys().copied().filter(|&id| is_loop(&body.graph[id]));
    let loops: Vec<NodeId> = loops.collect();
    let mut dense: FastMap<NodeId, Vec<WrittenList>> = FastMap::default();
    let mut last: FastMap<NodeId, LastItem> = FastMap::default();
    for id in loops {
        let n_variables = body.graph[id].inputs().len();
        let find = |variable| WrittenList::find(body, id, variable);
        let lists: Vec<WrittenList> = (0..n_variables).filter_map(find).collect();
        for list in lists {
            if let Some(item) = list.last_item(body, id, evaluate) {
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
        for list in dense.get(&id).into_iter().flatten() {
            node = list.add_zeros(outer, node)?;
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
}

impl WrittenList {
    fn find(body: &Specialized, id: NodeId, variable: usize) -> Option<WrittenList> {
        let [condition, rounds] = &body.nested.get(&id)?[..] else { return None };
        let [tested, list] = [condition, rounds].map(|function| function.args.get(variable));
        let (&tested, &list, &result) = (tested?, list?, rounds.results.get(variable)?);
        let graph = &rounds.graph;
        let set = &graph[result.node];
        let &[written, index, item] = set.inputs() else { return None };
        let is_written = is_host(set, names::TENSOR_LIST_SET_ITEM)
            && written == list
            && is_used_once(rounds, result)
            && graph.consumers(list.node).eq([result.node])
            && graph.consumers(result.node).next().is_none()
            && condition.graph.consumers(tested.node).next().is_none();
        let fails = condition.failure.is_some() || rounds.failure.is_some();
        if !is_written || fails || condition.results.contains(&tested) {
            return None;
        }
        let ty = graph.ty(item)?;
        let shape = ty.shape.known().filter(|shape| shape.num_elements() > 0)?;
        let n_items = reserved(&body.graph, *body.graph[id].inputs().get(variable)?, ty)?;
        let in_range = counter::is_below(body, id, index, n_items);
        let shape = Shape::new([n_items].into_iter().chain(shape.iter().copied())).ok()?;
        if !in_range || ty.dtype.size().is_none() {
            return None;
        }
        let outlet = Outlet::new(id, variable);
        let readers = readers(body, outlet, ty.dtype, &shape)?;
        Some(WrittenList {
            variable,
            set: result.node,
            index,
            item,
            dtype: ty.dtype,
            shape,
            readers,
        })
    }

    fn ty(&self) -> ValueType {
        ValueType::new(self.dtype, self.shape.clone())
    }

    /// The item, if it is the only one and that of the last round, which a variable of the loop is.
    fn last_item(
        &self,
        body: &Specialized,
        id: NodeId,
        evaluate: &dyn Evaluate,
    ) -> Option<LastItem> {
        let [condition, rounds] = &body.nested.get(&id)?[..] else { return None };
        if self.shape[0] != 1 {
            return None;
        }
        let variable = rounds.results.iter().position(|&result| result == self.item)?;
        let variable = Outlet::new(id, variable);
        let ty = body.graph.ty(variable)?;
        let is_item = ty.dtype == self.dtype
            && ty.shape.known().is_some_and(|shape| shape[..] == self.shape[1..])
            && location(&body.graph, variable).is_empty();
        let is_last =
            is_item && has_first_round(condition, body.graph[id].inputs(), &body.graph, evaluate);
        is_last.then(|| LastItem { variable, stacked: self.shape.clone() })
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
        for &reader in &self.readers {
            let tensor = Outlet::new(id, self.variable);
            let (op, inputs, dtypes) = match graph[reader].inputs() {
                &[_, index, _] => {
                    (names::GATHER, vec![tensor, index], vec![self.dtype, DType::I32])
                }
                _ => (names::IDENTITY, vec![tensor], vec![self.dtype]),
            };
            let op = record(op)?;
            let attrs = op.complete_attrs(infer_attrs(op, Attrs::new(), &dtypes))?;
            let controls = graph[reader].controls().to_vec();
            let node = graph.node_mut(reader);
            *node.attrs = attrs.into();
            *node.op = op.into();
            graph.connect(reader, inputs, controls)?;
        }
        Ok(())
    }

    /// The call of the loop with a tensor of zeros in place of the list, which is added before it.
    fn add_zeros(&self, outer: &mut Rebuilt, node: NodeDef) -> Result<NodeDef> {
        let name = format!("{}/zeros", node.name);
        let graph = &mut outer.graph;
        let sizes = add_sizes(graph, &name, &self.shape)?;
        let zero = HostTensor::zeros(self.dtype, Shape::scalar())?;
        let attrs = Attrs::new().with("dtype", self.dtype).with("value", zero);
        let zero = add_call(graph, &name, names::CONST, attrs, &[])?;
        let zeros = add_call(graph, &name, names::FILL, Attrs::new(), &[sizes, zero])?;
        let mut inputs: Vec<Outlet> = node.inputs().to_vec();
        inputs[self.variable] = zeros;
        let mut outputs: Vec<ValueType> = node.outputs().to_vec();
        outputs[self.variable] = self.ty();
        let mut node = node.with_inputs(inputs).with_outputs(outputs);
        let dtypes: Vec<DType> = node.outputs().iter().map(|ty| ty.dtype).collect();
        Arc::make_mut(&mut node.attrs).set("T", dtypes);
        Ok(node)
    }
}

fn is_host(node: &NodeDef, op: &str) -> bool {
    node.op.name() == op && node.device.is_empty()
}

fn is_used_once(function: &Specialized, result: Outlet) -> bool {
    function.results.iter().filter(|&&other| other == result).count() == 1
}

/// The number of items of a list that is reserved for items of a type, if both are known and fit.
fn reserved(graph: &Graph, list: Outlet, item: &ValueType) -> Option<usize> {
    let node = &graph[list.node];
    let &[element, length] = node.inputs() else { return None };
    constant(graph, element)?;
    let n_items = usize::try_from(constant(graph, length)?.as_scalar::<i32>().ok()?).ok()?;
    let pointee = node.outputs()[0].pointee.as_ref()?;
    let fits = is_host(node, names::TENSOR_LIST_RESERVE)
        && pointee.dtype == item.dtype
        && pointee.shape.is_compatible_with(&item.shape)
        && n_items > 0;
    fits.then_some(n_items)
}

/// The nodes that read the list after the loop, if the stacked tensor is all they need.
fn readers(body: &Specialized, list: Outlet, dtype: DType, stacked: &Shape) -> Option<Vec<NodeId>> {
    let graph = &body.graph;
    let mut readers: Vec<NodeId> = graph.data_consumers(list.node).collect();
    readers.retain(|&reader| graph[reader].inputs().contains(&list));
    let mut stacks = 0;
    for &reader in &readers {
        let node = &graph[reader];
        let output = node.outputs().first()?;
        let has_shape = |shape: &[usize]| {
            output.dtype == dtype && output.shape.known().is_some_and(|it| it[..] == *shape)
        };
        let fits = match *node.inputs() {
            [_, element] if is_host(node, names::TENSOR_LIST_STACK) => {
                let n_items = node.attrs.int("num_elements").ok()?;
                stacks += 1;
                constant(graph, element).is_some()
                    && (n_items == -1 || usize::try_from(n_items) == Ok(stacked[0]))
                    && has_shape(stacked)
            }
            [_, index, element] if is_host(node, names::TENSOR_LIST_GET_ITEM) => {
                let index = constant(graph, index)?.as_scalar::<i32>().ok()?;
                constant(graph, element).is_some()
                    && usize::try_from(index).is_ok_and(|index| index < stacked[0])
                    && has_shape(&stacked[1..])
            }
            _ => false,
        };
        if !fits {
            return None;
        }
    }
    let is_small = byte_len(dtype, stacked).is_ok_and(|bytes| bytes <= MAX_UNSTACKED_BYTES);
    let is_read = !readers.is_empty() && !body.results.contains(&list);
    (is_read && (stacks > 0 || is_small)).then_some(readers)
}
