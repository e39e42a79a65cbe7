//! Items of a list that is the same in all rounds, as in recurrent layers: the list was made from the
//! rows of a tensor, and each round reads one of them.
//!
//! - Rounds gather the row from the tensor: no list is made.
//! - Where a round multiplies the row by weights that never change, one matmul of all rows before the
//!   loop stands for those of the rounds, which gather from its result. Rounds that never come are
//!   computed in vain; so that holds for loops that run at least once, and for items of few rows,
//!   whose own matmuls wait for the weights.
//!
//! The index stays that of the round, and with it the error for an item that is not there.

use super::loop_call::LoopCall;
use crate::{
    attr::Attrs,
    error::{Error, Result},
    graph::{NodeId, Outlet},
    hash::FastMap,
    ops::names,
    pass::{
        call::{add_call, add_sizes, is_host_call, replace_call},
        execution::constant,
        rebuild::Rebuilt,
    },
    shape::Shape,
    spec::ValueType,
};

/// The most rows of an item that is multiplied. The weights are read once for so many rows anyway.
const MAX_ROWS: usize = 32;

/// The most bytes of the matmuls of all rounds.
const MAX_BYTES: usize = 1 << 26;

/// A read of an item of a list.
struct ListItem {
    /// The tensor before the loop whose rows the list holds.
    rows: Outlet,
    shape: Shape,
    index: Outlet,
}

/// A matmul of an item by weights that never change.
struct ItemMatmul {
    node: NodeId,
    item: NodeId,
    weights: Outlet,
    /// The shape of the matmuls of all rounds.
    shape: [usize; 3],
}

/// Lets rounds gather items, and multiplies all items at once before the loop; the latter if it
/// `runs` at least once.
///
/// # Errors
///
/// None on a well-formed body.
pub(super) fn gather(call: &mut LoopCall<'_>, outer: &mut Rebuilt, runs: bool) -> Result<()> {
    let ids: Vec<NodeId> = call.functions[1].graph.ids().collect();
    let find = |&id: &NodeId| Some((id, ListItem::find(call, outer, id)?));
    let items: FastMap<NodeId, ListItem> = ids.iter().filter_map(find).collect();
    if items.is_empty() {
        return Ok(());
    }
    for &id in ids.iter().filter(|_| runs) {
        if let Some(matmul) = ItemMatmul::find(call, &items, id) {
            matmul.move_before(call, outer, &items[&matmul.item])?;
        }
    }
    let mut variables: FastMap<Outlet, Outlet> = FastMap::default();
    for (id, item) in ids.iter().filter_map(|id| Some((*id, items.get(id)?))) {
        let rows = match variables.get(&item.rows) {
            Some(&rows) => rows,
            None => add_variable(call, outer, item.rows)?,
        };
        variables.insert(item.rows, rows);
        gather_row(call, id, rows, item.index)?;
    }
    Ok(())
}

impl ListItem {
    fn find(call: &LoopCall<'_>, outer: &Rebuilt, id: NodeId) -> Option<ListItem> {
        let graph = &call.functions[1].graph;
        let node = &graph[id];
        let &[list, index, expected] = node.inputs() else { return None };
        if !is_host_call(node, names::TENSOR_LIST_GET_ITEM) {
            return None;
        }
        let list = &outer.graph[call.fixed_input(1, list)?.node];
        if !is_host_call(list, names::TENSOR_LIST_FROM_TENSOR) {
            return None;
        }
        let &[rows, required] = list.inputs() else { return None };
        // Only what these say of the shape could fail.
        let _ = (constant(graph, expected)?, constant(&outer.graph, required)?);
        let ty = outer.graph.ty(rows)?;
        let shape = ty.shape.known().filter(|_| ty.dtype.size().is_some())?;
        let item = &node.outputs()[0];
        let is_row = item.dtype == ty.dtype && item.shape.known()?[..] == *shape.get(1..)?;
        // A gather of nothing does not look at its indices.
        let has_elements = shape[1..].iter().all(|&dim| dim > 0);
        (is_row && has_elements).then_some(ListItem { rows, shape, index })
    }
}

impl ItemMatmul {
    fn find(
        call: &LoopCall<'_>,
        items: &FastMap<NodeId, ListItem>,
        id: NodeId,
    ) -> Option<ItemMatmul> {
        let graph = &call.functions[1].graph;
        let node = &graph[id];
        let is_plain = |flag: &str| node.attrs.bool(flag).is_ok_and(|flag| !flag);
        if !is_host_call(node, names::MAT_MUL)
            || !is_plain("transpose_a")
            || !is_plain("transpose_b")
        {
            return None;
        }
        let &[item, weights] = node.inputs() else { return None };
        let [n_items, n_rows, _] = items.get(&item.node)?.shape[..] else { return None };
        let ty = graph.ty(weights)?;
        let [_, width] = ty.shape.known()?[..] else { return None };
        let sizes = [n_items, n_rows, width, ty.dtype.size()?];
        let bytes = sizes.iter().try_fold(1usize, |bytes, &size| bytes.checked_mul(size))?;
        let is_fixed = constant(graph, weights).is_some() || call.fixed_input(1, weights).is_some();
        let pays = is_fixed && width > 0 && n_rows <= MAX_ROWS && bytes <= MAX_BYTES;
        let shape = [n_items, n_rows, width];
        pays.then_some(ItemMatmul { node: id, item: item.node, weights, shape })
    }

    fn move_before(
        &self,
        call: &mut LoopCall<'_>,
        outer: &mut Rebuilt,
        item: &ListItem,
    ) -> Result<()> {
        let graph = &call.functions[1].graph;
        let matmul = graph[self.node].clone();
        let weights = match call.fixed_input(1, self.weights) {
            Some(weights) => weights,
            None => call.copy(outer, &graph[self.weights.node], &FastMap::default())?.into(),
        };
        let (graph, name) = (&mut outer.graph, call.outer_name(&matmul.name));
        let depth = item.shape.last().copied().unwrap_or(0);
        let flat = add_sizes(graph, &name, &[self.shape[0] * self.shape[1], depth])?;
        let flat = add_call(graph, &name, names::RESHAPE, Attrs::new(), &[item.rows, flat])?;
        let attrs = (*matmul.attrs).clone();
        let matmuls = add_call(graph, &name, names::MAT_MUL, attrs, &[flat, weights])?;
        let shape = add_sizes(graph, &name, &self.shape)?;
        let matmuls = add_call(graph, &name, names::RESHAPE, Attrs::new(), &[matmuls, shape])?;
        let matmuls = add_variable(call, outer, matmuls)?;
        gather_row(call, self.node, matmuls, item.index)
    }
}

/// Adds a variable that is this value from before the loop in all rounds; returns it in the body.
fn add_variable(call: &mut LoopCall<'_>, outer: &Rebuilt, outlet: Outlet) -> Result<Outlet> {
    let missing = || Error::NotFound { kind: "value", name: format!("{outlet:?}") };
    let ty: ValueType = outer.graph.ty(outlet).cloned().ok_or_else(missing)?;
    Ok(call.add_variable(outlet, &ty, "")?[1])
}

/// Makes a node of the body a read of a row.
fn gather_row(call: &mut LoopCall<'_>, id: NodeId, rows: Outlet, index: Outlet) -> Result<()> {
    replace_call(&mut call.functions[1].graph, id, names::GATHER, &[rows, index])
}
