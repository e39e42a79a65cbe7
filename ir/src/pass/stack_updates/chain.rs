//! Chains: the updates between a stack and what is stacked of its slices.

use super::picks::Picks;
use crate::{
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::{Lowering, OpDef},
    ops::names,
    pass::{call::call_views, execution::constant, prune::live, specialize::Specialized},
    view::StridedView,
};
use std::collections::BTreeSet;

/// Updates of slices of a stack, which are stacked again.
pub(super) struct Chain {
    pub(super) stack: Outlet,
    /// The node that stacks them.
    pub(super) last: NodeId,
    /// The slices that updates and stacks inside the last one make.
    pub(super) slices: FastMap<NodeId, Picks>,
    /// The updates among them.
    pub(super) updates: BTreeSet<NodeId>,
}

/// A slice of a stack.
#[derive(Clone)]
struct Slice {
    stack: Outlet,
    picks: Picks,
    /// Whether an update, or a stack of slices, made it; else it is a slice of the stack as it was.
    is_made: bool,
}

/// The chains of a body, no two of which share a node.
pub(super) fn find(body: &Specialized) -> Vec<Chain> {
    let mut search = Search::of(body);
    let ids: Vec<NodeId> = body.graph.ids().collect();
    if !ids.iter().any(|&id| is_update(&body.graph[id])) {
        return Vec::new();
    }
    ids.iter().for_each(|&id| search.note(id));
    let (mut chains, mut taken) = (Vec::new(), FastSet::default());
    for &id in ids.iter().rev().filter(|id| search.is_whole(**id)) {
        let Some(chain) = search.chain(id, &taken) else { continue };
        // No node is looked at twice, so that the search takes no longer than the body is long.
        taken.extend(chain.slices.keys().copied());
        if search.stays_in_place(&chain) {
            chains.push(chain);
        }
    }
    chains
}

fn is_update(node: &NodeDef) -> bool {
    is(node, names::TENSOR_STRIDED_SLICE_UPDATE)
}

fn is(node: &NodeDef, name: &str) -> bool {
    node.device.is_empty() && node.op.def().is_some_and(|op| op.name == name)
}

struct Search<'a> {
    graph: &'a Graph,
    live: FastSet<NodeId>,
    results: FastSet<NodeId>,
    slices: FastMap<Outlet, Slice>,
}

impl<'a> Search<'a> {
    fn of(body: &'a Specialized) -> Search<'a> {
        let results = body.results.iter().map(|result| result.node).collect();
        Search { graph: &body.graph, live: live(body), results, slices: FastMap::default() }
    }

    /// Finds out of which slices of what stack the results of a node are.
    fn note(&mut self, id: NodeId) {
        let node = &self.graph[id];
        if !self.live.contains(&id) {
            return;
        }
        if is_update(node) {
            self.slices.extend(self.updated(id).map(|slice| (id.into(), slice)));
        } else if is(node, names::PACK) {
            self.slices.extend(self.stacked(id).map(|slice| (id.into(), slice)));
        } else if matches!(node.op.def().map(|op| op.lowering), Some(Lowering::View(_))) {
            self.slices.extend(self.sliced(id).unwrap_or_default());
        }
    }

    /// The slice that a value is; the whole of itself, if it is none, or the last of a chain.
    fn slice(&self, outlet: Outlet) -> Option<Slice> {
        let whole = || {
            let rank = self.graph.ty(outlet)?.shape.known()?.rank();
            Some(Slice { stack: outlet, picks: Picks::whole(rank), is_made: false })
        };
        self.slices.get(&outlet).filter(|slice| !slice.picks.is_whole()).cloned().or_else(whole)
    }

    /// The results of a view that are each one index of an axis.
    fn sliced(&self, id: NodeId) -> Option<Vec<(Outlet, Slice)>> {
        let node = &self.graph[id];
        let source = self.slice(*node.inputs().first()?)?;
        if source.is_made {
            return None;
        }
        let shape = self.graph.ty(node.inputs()[0])?.shape.known()?;
        let views = call_views(self.graph, node)?;
        let slice = |(index, view): (usize, StridedView)| {
            let outlet = Outlet::new(id, index);
            let sizes = self.graph.ty(outlet)?.shape.known()?;
            let (axis, at) = (0..shape.rank()).find_map(|axis| {
                let rest = shape.iter().enumerate().filter(|&(own, _)| own != axis);
                if shape[axis] == 0 || !rest.map(|(_, size)| size).eq(sizes.iter()) {
                    return None;
                }
                let whole = StridedView::whole(&shape);
                let at = usize::try_from(view.offset).ok()? / shape.strides()[axis].max(1);
                let one = (at < shape[axis]).then(|| whole.sliced(axis, at, 1, 1))?;
                (one.simplified() == view.simplified()).then_some((axis, at))
            })?;
            let picks = source.picks.picked(axis, at)?;
            Some((outlet, Slice { picks, ..source.clone() }))
        };
        Some(views.into_iter().enumerate().filter_map(slice).collect())
    }

    /// The slice that an update changes a part of.
    fn updated(&self, id: NodeId) -> Option<Slice> {
        let node = &self.graph[id];
        let &[source, begin, _, strides, _] = node.inputs() else { return None };
        let mut slice = self.slice(source)?;
        let rank = self.graph.ty(source)?.shape.rank()?;
        let is_none = |mask| node.attrs.int(mask).is_ok_and(|mask| mask == 0);
        let fits = !slice.picks.is_whole()
            && self.graph.ty(begin)?.shape.known()?.num_elements() == rank
            && constant(self.graph, strides).is_some()
            && is_none("ellipsis_mask")
            && is_none("new_axis_mask")
            && (!slice.is_made || self.readers(source.node).eq([id]));
        slice.is_made = true;
        fits.then_some(slice)
    }

    /// The slice that others are, stacked.
    fn stacked(&self, id: NodeId) -> Option<Slice> {
        let node = &self.graph[id];
        let slices: Option<Vec<&Slice>> =
            node.inputs().iter().map(|input| self.slices.get(input)).collect();
        let slices = slices?;
        let stack = slices.first()?.stack;
        let rank = node.outputs()[0].shape.rank()? as i64;
        let axis = node.attrs.int("axis").ok()?;
        let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
        let sizes = self.graph.ty(stack)?.shape.known()?;
        let picks: Vec<&Picks> = slices.iter().map(|slice| &slice.picks).collect();
        let picks = Picks::stacked(&picks, axis, &sizes)?;
        if slices.iter().any(|slice| slice.stack != stack) {
            return None;
        }
        Some(Slice { stack, picks, is_made: true })
    }

    /// Whether all of a stack is stacked at a node.
    fn is_whole(&self, id: NodeId) -> bool {
        self.slices.get(&id.into()).is_some_and(|slice| slice.is_made && slice.picks.is_whole())
    }

    /// The chain that ends at such a node, if there are updates in it, and none of it is taken.
    fn chain(&self, id: NodeId, taken: &FastSet<NodeId>) -> Option<Chain> {
        let stack = self.slices.get(&id.into())?.stack;
        let (mut slices, mut updates) = (FastMap::default(), BTreeSet::new());
        let mut open = self.graph[id].inputs().to_vec();
        while let Some(outlet) = open.pop() {
            let Some(slice) = self.slices.get(&outlet).filter(|slice| slice.is_made) else {
                continue;
            };
            if taken.contains(&outlet.node) {
                return None;
            }
            let node = &self.graph[outlet.node];
            if slices.insert(outlet.node, slice.picks.clone()).is_some() {
                continue;
            }
            match is_update(node) {
                true => {
                    updates.insert(outlet.node);
                    open.push(node.inputs()[0]);
                }
                false => open.extend(node.inputs()),
            }
        }
        let is_chain = !updates.is_empty() && !taken.contains(&id);
        is_chain.then_some(Chain { stack, last: id, slices, updates })
    }

    fn readers(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.graph.data_consumers(id).filter(|reader| self.live.contains(reader))
    }

    /// Whether all that reads a slice has run when the next slice is updated.
    fn stays_in_place(&self, chain: &Chain) -> bool {
        chain.slices.keys().all(|&id| {
            let is_own = |id: &NodeId| *id == chain.last || chain.slices.contains_key(id);
            let mut others = self.readers(id).filter(|reader| !is_own(reader));
            !self.results.contains(&id)
                && others.all(|reader| match chain.updates.range(reader..).next() {
                    Some(&next) => self.is_over(reader, next),
                    None => true,
                })
        })
    }

    /// Whether a node has run before `end`, and so has all that reads its result, if that may be its operand
    /// in place.
    fn is_over(&self, id: NodeId, end: NodeId) -> bool {
        let mut seen = FastSet::default();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if id >= end {
                return false;
            }
            match self.graph[id].op.def().map(|op: &OpDef| op.lowering) {
                Some(Lowering::Alias(_) | Lowering::View(_)) => {
                    if self.results.contains(&id) {
                        return false;
                    }
                    open.extend(self.readers(id).filter(|reader| seen.insert(*reader)));
                }
                None | Some(Lowering::Runtime | Lowering::Interface) => return false,
                Some(_) => {}
            }
        }
        true
    }
}
