//! The lists of a loop that can be tensors.

use super::{
    WrittenList,
    counter::{CounterBound, Counters},
};
use crate::{
    dtype::DType,
    graph::{Graph, NodeId, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::byte_len,
    ops::names,
    pass::{
        call::is_host_call,
        execution::constant,
        first_round::has_first_round,
        placement::location,
        specialize::{Evaluate, Specialized},
    },
    shape::Shape,
    spec::ValueType,
};
use std::cell::OnceCell;

/// The most bytes of a tensor in place of a list: memory for all items is there from the beginning.
const MAX_BYTES: usize = 1 << 28;

/// The most bytes of a tensor that nothing would have made of the list.
const MAX_UNSTACKED_BYTES: usize = 1 << 20;

/// The lists that rounds of a loop write, and that can be tensors.
pub(super) fn written_lists(
    body: &Specialized,
    id: NodeId,
    evaluate: &dyn Evaluate,
) -> Vec<WrittenList> {
    let Some([condition, rounds]) = body.nested.get(&id).map(Vec::as_slice) else {
        return Vec::new();
    };
    let n = body.graph[id].inputs().len();
    let is_set =
        |result: &Outlet| is_host_call(&rounds.graph[result.node], names::TENSOR_LIST_SET_ITEM);
    let is_whole = [condition.args.len(), rounds.args.len(), rounds.results.len()] == [n; 3]
        && condition.failure.is_none()
        && rounds.failure.is_none();
    if !is_whole || !rounds.results.iter().any(is_set) {
        return Vec::new();
    }
    let mut variables: FastMap<Outlet, Vec<usize>> = FastMap::default();
    for (variable, &result) in rounds.results.iter().enumerate() {
        variables.entry(result).or_default().push(variable);
    }
    let mut readers: FastMap<Outlet, Vec<NodeId>> = FastMap::default();
    let nodes: FastSet<NodeId> = body.graph.data_consumers(id).collect();
    for reader in nodes {
        let inputs = body.graph[reader].inputs().iter().filter(|input| input.node == id);
        inputs.for_each(|&input| readers.entry(input).or_default().push(reader));
    }
    let returned = body.results.iter().copied().filter(|result| result.node == id).collect();
    let search = Search {
        body,
        id,
        condition,
        rounds,
        counters: Counters::of(body, id, condition, rounds),
        variables,
        readers,
        returned,
        evaluate,
        runs: OnceCell::new(),
    };
    (0..n).filter_map(|variable| search.list(variable)).collect()
}

/// The search for the lists of a loop.
struct Search<'a> {
    body: &'a Specialized,
    id: NodeId,
    condition: &'a Specialized,
    rounds: &'a Specialized,
    counters: Counters<'a>,
    /// The variables that a result of rounds is assigned to.
    variables: FastMap<Outlet, Vec<usize>>,
    /// The nodes after the loop that read a variable.
    readers: FastMap<Outlet, Vec<NodeId>>,
    /// The variables that are results of the body around.
    returned: FastSet<Outlet>,
    evaluate: &'a dyn Evaluate,
    /// Whether there is a round.
    runs: OnceCell<bool>,
}

impl Search<'_> {
    fn list(&self, variable: usize) -> Option<WrittenList> {
        let [tested, list] = [self.condition, self.rounds].map(|function| function.args[variable]);
        let result = self.rounds.results[variable];
        let graph = &self.rounds.graph;
        let set = &graph[result.node];
        let &[written, index, item] = set.inputs() else { return None };
        let is_written = is_host_call(set, names::TENSOR_LIST_SET_ITEM)
            && written == list
            && self.variables[&result].len() == 1
            && graph.consumers(list.node).eq([result.node])
            && graph.consumers(result.node).next().is_none()
            && self.condition.graph.consumers(tested.node).next().is_none()
            && self.condition.results.first() != Some(&tested);
        let ty = graph.ty(item).filter(|ty| is_written && ty.dtype.size().is_some())?;
        let shape = ty.shape.known().filter(|shape| shape.num_elements() > 0)?;
        let n_items = self.reserved(self.body.graph[self.id].inputs()[variable], ty)?;
        let stacked = Shape::new([n_items].into_iter().chain(shape.iter().copied())).ok()?;
        if !self.is_item(index, n_items) {
            return None;
        }
        let readers = self.readers(Outlet::new(self.id, variable), ty.dtype, &stacked)?;
        Some(WrittenList {
            variable,
            set: result.node,
            index,
            item,
            dtype: ty.dtype,
            last: if n_items == 1 { self.last_item(item, ty.dtype, &shape) } else { None },
            shape: stacked,
            readers,
        })
    }

    /// Whether there is a round.
    fn runs(&self) -> bool {
        let inputs = self.body.graph[self.id].inputs();
        *self.runs.get_or_init(|| {
            has_first_round(self.condition, inputs, &self.body.graph, self.evaluate)
        })
    }

    /// The number of items of a list that is reserved for items of a type, if it is known, they fit, and the shape of
    /// those that are not written is known, too.
    fn reserved(&self, list: Outlet, item: &ValueType) -> Option<usize> {
        let graph = &self.body.graph;
        let node = &graph[list.node];
        let &[element, length] = node.inputs() else { return None };
        if !is_host_call(node, names::TENSOR_LIST_RESERVE) {
            return None;
        }
        constant(graph, element)?;
        let n_items = usize::try_from(constant(graph, length)?.as_scalar::<i32>().ok()?).ok()?;
        let pointee = node.outputs()[0].pointee.as_ref()?;
        let fits = n_items > 0
            && pointee.dtype == item.dtype
            && pointee.shape.is_compatible_with(&item.shape)
            && (pointee.shape.is_known() || self.runs());
        fits.then_some(n_items)
    }

    /// Whether an index is one of so many items in every round.
    fn is_item(&self, index: Outlet, n_items: usize) -> bool {
        let Ok(n_items) = i64::try_from(n_items) else { return false };
        if let Some(index) = self.counters.number(index) {
            return (0..n_items).contains(&index);
        }
        let Some(counter) = self.counters.find(index) else { return false };
        match counter.step > 0 {
            // The number that ends the loop does not wrap around either.
            true => {
                counter.first >= 0
                    && n_items + counter.step <= i64::from(i32::MAX)
                    && self.counters.is_bounded(counter.variable, CounterBound::Below(n_items))
            }
            false => {
                counter.first < n_items
                    && self.counters.is_bounded(counter.variable, CounterBound::AtLeast(0))
            }
        }
    }

    /// The variable that the item of the last round is, if there is one.
    fn last_item(&self, item: Outlet, dtype: DType, shape: &Shape) -> Option<Outlet> {
        let graph = &self.body.graph;
        let variable = Outlet::new(self.id, *self.variables.get(&item)?.first()?);
        let ty = graph.ty(variable)?;
        let is_item = ty.dtype == dtype
            && ty.shape.known().as_ref() == Some(shape)
            && location(graph, variable).is_empty();
        (is_item && self.runs()).then_some(variable)
    }

    /// The nodes that read a list after the loop, if the stacked tensor is all they need.
    fn readers(&self, list: Outlet, dtype: DType, stacked: &Shape) -> Option<Vec<NodeId>> {
        let graph = &self.body.graph;
        let readers = self.readers.get(&list)?;
        let mut stacks = 0;
        for &reader in readers {
            let node = &graph[reader];
            let output = node.outputs().first()?;
            let has_shape = |shape: &[usize]| {
                output.dtype == dtype && output.shape.known().is_some_and(|it| it[..] == *shape)
            };
            let fits = match *node.inputs() {
                [_, element] if is_host_call(node, names::TENSOR_LIST_STACK) => {
                    let n_items = node.attrs.int("num_elements").ok()?;
                    stacks += 1;
                    constant(graph, element).is_some()
                        && (n_items == -1 || usize::try_from(n_items) == Ok(stacked[0]))
                        && has_shape(stacked)
                }
                [_, index, element] if is_host_call(node, names::TENSOR_LIST_GET_ITEM) => {
                    constant(graph, element).is_some()
                        && is_index(graph, index, stacked[0])
                        && has_shape(&stacked[1..])
                }
                _ => false,
            };
            if !fits {
                return None;
            }
        }
        let most = if stacks > 0 { MAX_BYTES } else { MAX_UNSTACKED_BYTES };
        let is_small = byte_len(dtype, stacked).is_ok_and(|bytes| bytes <= most);
        (is_small && !self.returned.contains(&list)).then(|| readers.clone())
    }
}

/// Whether a value is a constant index of so many items.
fn is_index(graph: &Graph, index: Outlet, n_items: usize) -> bool {
    let index = constant(graph, index).and_then(|index| index.as_scalar::<i32>().ok());
    index.and_then(|index| usize::try_from(index).ok()).is_some_and(|index| index < n_items)
}
