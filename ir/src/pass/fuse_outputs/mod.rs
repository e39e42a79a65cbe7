//! Multi-output fusion: elementwise calls that read each other become one call with a result for each that
//! others read.
//!
//! It comes after all other fusion. A group ends with its root and has the calls before it whose results are
//! of the same shape. What the group reads through windows (a `Split`, a slice) it reads where it is; where an
//! elementwise result is read through windows of the group alone, each window of it is computed in place of
//! the result: the gates of a recurrent cell are one sum that is taken apart.
//!
//! **Invariants:**
//! - No path leaves a group and comes back: a call whose result others read joins only if none of these leads
//!   to the group again.
//! - Nodes keep their order, which is that of effects; only the call that stands for a group moves, before the
//!   first node that reads a result of it. All that it reads comes before that.

use super::{
    call::call_views,
    fuse::{MAX_OPERATIONS, dtypes, formula, is_safe_elementwise},
    rebuild::rebuild_in_order,
    specialize::Specialized,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::Result,
    expr::{Expr, Replacement},
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::OpDef,
    ops::names,
    registry,
    shape::Shape,
    spec::ValueType,
    view::StridedView,
};
use smallvec::SmallVec;
use std::{
    collections::{BinaryHeap, HashMap, HashSet},
    sync::Arc,
};

#[cfg(test)]
mod tests;

/// A group has at most so many inputs and results, and so many calls with views.
const MAX_INPUTS: usize = 24;
const MAX_RESULTS: usize = 8;
const MAX_CALLS: usize = 64;

/// The most readers or windows of a node, which is looked at for each of them.
const MAX_READERS: usize = 32;

/// Nodes that are looked at for a way from a reader of a result back to the group.
const MOST_LOOKED_AT: usize = 256;

/// Forms the groups of a body that are profitable on the device they run on. Nodes without readers should have
/// been pruned, as they count as readers.
///
/// # Errors
///
/// None on a well-formed body.
pub fn fuse_outputs(
    body: &mut Specialized,
    is_profitable: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    if form_groups(&mut body.graph, &mut body.results, is_profitable)? {
        let args = body.args.iter().map(|arg| arg.node);
        let order = ordered(&body.graph, args.collect());
        rebuild_in_order(body, order, |rebuilt, source, id, _| {
            let node = rebuilt.node(&source[id]);
            rebuilt.graph.add(node)
        })?;
    }
    Ok(())
}

/// The nodes in their order, after `first`, but for those that others before them read.
fn ordered(graph: &Graph, first: Vec<NodeId>) -> Vec<NodeId> {
    let (mut order, mut seen) = (Vec::with_capacity(graph.len()), FastSet::default());
    for id in first.into_iter().chain(graph.ids()) {
        let mut queue = vec![id];
        while let Some(&next) = queue.last() {
            let node = &graph[next];
            let sources = node.inputs().iter().map(|input| input.node);
            let before = queue.len();
            let missing = |source: &NodeId| !seen.contains(source);
            queue.extend(sources.chain(node.controls().iter().copied()).filter(missing));
            if queue.len() == before {
                queue.pop();
                order.extend(seen.insert(next).then_some(next));
            }
        }
    }
    order
}

/// Forms the groups of a graph; whether there are some.
fn form_groups(
    graph: &mut Graph,
    results: &mut [Outlet],
    mut is_profitable: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<bool> {
    let mut is_changed = false;
    let record = registry::find(names::FUSED_EXPRESSIONS).expect("a built-in record");
    let order: Vec<NodeId> = graph.ids().collect();
    // There is room between two of them.
    let mut position: FastMap<NodeId, usize> =
        order.iter().enumerate().map(|(position, &id)| (id, 2 * position)).collect();
    let mut kept: FastSet<NodeId> = results.iter().map(|result| result.node).collect();
    for &root in order.iter().rev() {
        if !graph.contains(root) {
            continue;
        }
        let search = Search { graph, kept: &kept, position: &position };
        let Some((group, joined)) = Group::ending_with(&search, root) else { continue };
        let (node, end) = (joined.node(graph, &group, record), group.end(&search));
        if is_profitable(graph, &node) {
            if group.outputs.iter().any(|output| kept.contains(output)) {
                group.move_results(results);
                kept.insert(root);
                for output in &group.outputs[1..] {
                    kept.remove(output);
                }
            }
            position.extend(end.map(|end| (root, end - 1)));
            group.install(graph, &kept, node)?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// A graph in which groups are looked for.
struct Search<'a> {
    graph: &'a Graph,
    /// Nodes whose results are asked for from outside.
    kept: &'a FastSet<NodeId>,
    position: &'a FastMap<NodeId, usize>,
}

/// Calls that become one.
struct Group {
    root: NodeId,
    shape: Shape,
    /// The calls, by what is read of them.
    members: FastMap<NodeId, Part>,
    /// Those whose results others read, the root first.
    outputs: Vec<NodeId>,
    /// Windows that the group reads through, by node.
    views: FastMap<NodeId, Vec<Window>>,
}

/// Part of a call's result that its readers in a group need.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// All elements, at their positions.
    Whole,
    /// The elements of windows.
    Windows,
}

/// The first element of a window along each axis of a tensor.
type Window = SmallVec<[usize; 4]>;

impl Group {
    /// The group that ends with a call, and what it computes; `None` where the call is none of a group.
    fn ending_with(search: &Search<'_>, root: NodeId) -> Option<(Group, Joined)> {
        search.is_candidate(root, root).then_some(())?;
        let of_outputs = |most: usize| {
            let shape = search.shape(root).filter(|shape| shape.num_elements() > 0)?;
            let members = FastMap::from_iter([(root, Part::Whole)]);
            let (outputs, views) = (vec![root], FastMap::default());
            let mut group = Group { root, shape, members, outputs, views };
            group.absorb(search, most);
            let joined = group.joined(search.graph)?;
            let is_before = |end: usize| {
                let mut inputs = joined.inputs.iter();
                inputs.all(|input| search.position.get(&input.node).is_some_and(|&at| at < end))
            };
            group.end(search).is_none_or(is_before).then_some((group, joined))
        };
        of_outputs(MAX_RESULTS).or_else(|| of_outputs(1))
    }

    /// The position of the first node that reads a result besides that of the root.
    fn end(&self, search: &Search<'_>) -> Option<usize> {
        let readers = self.outputs[1..].iter().flat_map(|&output| search.graph.consumers(output));
        let outside = readers.filter(|reader| !self.members.contains_key(reader));
        outside.filter_map(|reader| search.position.get(&reader).copied()).min()
    }

    /// Takes in what fits, with up to `most` results: calls after those that read them.
    fn absorb(&mut self, search: &Search<'_>, most: usize) {
        let graph = search.graph;
        let mut queue: BinaryHeap<(usize, NodeId)> = search.sources(self.root).collect();
        let mut seen = FastSet::default();
        while let Some((_, id)) = queue.pop() {
            if self.len() == MAX_CALLS || !seen.insert(id) {
                continue;
            }
            if let Some(windows) = search.windows(id, self) {
                self.views.insert(id, windows);
                queue
                    .extend(search.sources(id).filter(|(_, of)| *of == graph[id].inputs()[0].node));
            } else if let Some(part) = self.part(search, id, most) {
                self.members.insert(id, part);
                let is_read = search.kept.contains(&id)
                    || graph.consumers(id).any(|reader| !self.members.contains_key(&reader));
                if part == Part::Whole && is_read {
                    self.outputs.push(id);
                }
                queue.extend(search.sources(id));
            }
        }
    }

    /// The number of calls and views.
    fn len(&self) -> usize {
        self.members.len() + self.views.len()
    }

    /// The part of a call that the group would compute, if the call may join.
    fn part(&self, search: &Search<'_>, id: NodeId, most: usize) -> Option<Part> {
        let graph = search.graph;
        search.is_candidate(id, self.root).then_some(())?;
        let shape = search.shape(id)?;
        let is_in = |reader: NodeId| self.members.contains_key(&reader);
        if shape == self.shape {
            let outside: SmallVec<[NodeId; 4]> =
                graph.consumers(id).filter(|&reader| !is_in(reader)).collect();
            let is_output = search.kept.contains(&id) || !outside.is_empty();
            let fits = !is_output || self.outputs.len() < most;
            return (fits && !self.is_reached_from(graph, &outside)).then_some(Part::Whole);
        }
        // Each element is computed once: windows are read by the group alone, and there are not too many.
        let mut windows: HashSet<&Window> = HashSet::new();
        for reader in graph.consumers(id) {
            let is_free = !search.kept.contains(&reader) && graph.consumers(reader).all(is_in);
            windows.extend(self.views.get(&reader).filter(|_| is_free)?);
        }
        let n_elements = windows.len().checked_mul(self.shape.num_elements())?;
        let fits = !search.kept.contains(&id) && n_elements <= shape.num_elements();
        fits.then_some(Part::Windows)
    }

    /// Whether a path leads from one of some nodes to the group; also where that takes long to find out.
    fn is_reached_from(&self, graph: &Graph, starts: &[NodeId]) -> bool {
        let mut seen: FastSet<NodeId> = starts.iter().copied().collect();
        let mut queue: Vec<NodeId> = starts.to_vec();
        while let Some(id) = queue.pop() {
            for next in graph.consumers(id) {
                if self.members.contains_key(&next) || seen.len() > MOST_LOOKED_AT {
                    return true;
                }
                if seen.insert(next) {
                    queue.push(next);
                }
            }
        }
        false
    }

    /// The expressions of the group; `None` where it is too large, or no better than its calls.
    fn joined(&self, graph: &Graph) -> Option<Joined> {
        let mut build = Build { graph, group: self, inputs: Vec::new(), known: HashMap::new() };
        let mut exprs = Vec::with_capacity(self.outputs.len());
        for &output in &self.outputs {
            exprs.push(build.value(output.into(), smallvec::smallvec![0; self.shape.rank()])?);
        }
        let (root, others) = exprs.split_first()?;
        let expr = Expr::joined(root, others);
        let inputs = build.inputs;
        let views: Option<Vec<StridedView>> =
            inputs.iter().map(|(input, window)| self.view(graph, *input, window)).collect();
        let views = views?;
        let fits = (1..=MAX_INPUTS).contains(&inputs.len()) && expr.nodes().len() <= MAX_OPERATIONS;
        // Contiguous windows cost nothing as they are, and all else was fused before.
        let is_better = self.outputs.len() > 1
            || !self.views.is_empty()
                && (self.members.len() > 1 || !views.iter().all(StridedView::is_contiguous));
        let inputs = inputs.into_iter().map(|(input, _)| input).collect();
        (fits && is_better).then_some(Joined { expr, inputs, views })
    }

    /// The elements of an input, or of a window of it, at the positions of the results.
    fn view(&self, graph: &Graph, input: Outlet, window: &Window) -> Option<StridedView> {
        let own = graph.ty(input)?.shape.known()?;
        let (strides, missing) = (own.strides(), self.shape.rank().checked_sub(own.rank())?);
        let mut view = StridedView { offset: 0, dims: SmallVec::new() };
        for (axis, &size) in self.shape.iter().enumerate() {
            let own_axis = axis.checked_sub(missing).filter(|&axis| own[axis] != 1);
            let stride = own_axis.map_or(0, |axis| strides[axis] as isize);
            view.offset += own_axis.map_or(0, |axis| window[axis] as isize * stride);
            view.dims.push(crate::view::ViewDim { size, stride });
        }
        Some(view)
    }

    /// Makes what is asked for from outside the results of the root.
    fn move_results(&self, results: &mut [Outlet]) {
        for result in results {
            let index = self.outputs.iter().position(|&output| result.node == output);
            *result = index.map_or(*result, |index| Outlet::new(self.root, index));
        }
    }

    /// Makes the root compute all results.
    fn install(self, graph: &mut Graph, kept: &FastSet<NodeId>, node: NodeDef) -> Result<()> {
        let inputs = node.inputs().to_vec();
        let root = graph.node_mut(self.root);
        root.outputs.clear();
        root.outputs.extend(node.outputs().iter().cloned());
        (*root.op, *root.attrs, *root.expr) = (node.op, node.attrs, node.expr);
        graph.connect(self.root, inputs, [])?;
        for (index, &output) in self.outputs.iter().enumerate().skip(1) {
            graph.replace_uses(output.into(), Outlet::new(self.root, index));
        }
        // Those that nothing reads any more would count as readers of others.
        let mut over: Vec<NodeId> =
            self.members.into_keys().chain(self.views.into_keys()).collect();
        over.retain(|id| *id != self.root && !kept.contains(id));
        loop {
            let before = over.len();
            over.retain(|&id| graph.consumers(id).next().is_some() || graph.remove(id).is_err());
            if over.len() == before {
                return Ok(());
            }
        }
    }
}

impl Search<'_> {
    fn shape(&self, id: NodeId) -> Option<Shape> {
        self.graph[id].outputs().first()?.shape.known()
    }

    /// The nodes that a node reads, by their positions.
    fn sources(&self, id: NodeId) -> impl Iterator<Item = (usize, NodeId)> {
        let inputs = self.graph[id].inputs().iter();
        inputs.filter_map(|input| Some((*self.position.get(&input.node)?, input.node)))
    }

    /// Whether a node runs where the root does, and nothing but its results ties it to others.
    fn is_free(&self, id: NodeId, root: NodeId) -> bool {
        let node = &self.graph[id];
        let n_readers = self.graph.consumers(id).take(MAX_READERS + 1).count();
        node.controls().is_empty()
            && (n_readers <= MAX_READERS || id == root)
            && node.device == self.graph[root].device
            && self.graph.consumers(id).all(|reader| !self.graph[reader].controls().contains(&id))
    }

    /// Whether a node is an elementwise call of floats that may be a part of a group.
    fn is_candidate(&self, id: NodeId, root: NodeId) -> bool {
        let outputs = self.graph[id].outputs();
        outputs.len() == 1
            && outputs[0].dtype == DType::F32
            && self.is_free(id, root)
            && is_safe_elementwise(self.graph, id)
    }

    /// The windows of its input that the results of a node are, if a group may read through them.
    fn windows(&self, id: NodeId, group: &Group) -> Option<Vec<Window>> {
        let node = &self.graph[id];
        (node.outputs().len() <= MAX_READERS && self.is_free(id, group.root)).then_some(())?;
        let own = self.graph.ty(*node.inputs().first()?)?.shape.known()?;
        let views = call_views(self.graph, node)?;
        let outputs = node.outputs().iter().map(|output| output.shape.known());
        let window = |view, output: Option<Shape>| window(view, &output?, &own, &group.shape);
        views.iter().zip(outputs).map(|(view, output)| window(view, output)).collect()
    }
}

/// The window of a tensor of shape `own` that a view is, if it has no steps and the rank of the tensor, and if
/// none of its elements stands for several of the results of a group, which have the shape `results`.
fn window(view: &StridedView, output: &Shape, own: &Shape, results: &Shape) -> Option<Window> {
    let (strides, missing) = (own.strides(), results.rank().checked_sub(own.rank())?);
    let fits = view.dims.len() == own.rank() && output.rank() == own.rank();
    let mut rest = usize::try_from(view.offset).ok().filter(|_| fits)?;
    let mut window = Window::new();
    for (axis, dim) in view.dims.iter().enumerate() {
        let begin = rest.checked_div(strides[axis])?;
        rest -= begin * strides[axis];
        let has_steps = dim.size > 1 && dim.stride != strides[axis] as isize;
        let is_repeated = dim.size == 1 && own[axis] != 1 && results[missing + axis] != 1;
        let is_within = dim.size == output[axis] && begin + dim.size <= own[axis];
        if has_steps || is_repeated || !is_within {
            return None;
        }
        window.push(begin);
    }
    (rest == 0).then_some(window)
}

/// The expressions of a group, and what they are over.
struct Joined {
    expr: Expr,
    inputs: Vec<Outlet>,
    views: Vec<StridedView>,
}

impl Joined {
    /// The node that computes a group in place of its root.
    fn node(self, graph: &Graph, group: &Group, record: &'static OpDef) -> NodeDef {
        let numbers = self.views.iter().flat_map(|view| {
            let strides = view.dims.iter().map(|dim| dim.stride as i64);
            std::iter::once(view.offset as i64).chain(strides)
        });
        let outputs = group.outputs.iter().map(|_| ValueType::new(DType::F32, &group.shape));
        let root = &graph[group.root];
        let attrs = Attrs::new()
            .with("Tin", dtypes(graph, &self.inputs))
            .with("Tout", vec![DType::F32; group.outputs.len()])
            .with("shape", group.shape.iter().map(|&size| size as i64).collect::<Vec<_>>())
            .with("views", numbers.collect::<Vec<_>>());
        let mut node = NodeDef::new(root.name.clone(), record, attrs)
            .with_inputs(self.inputs)
            .with_outputs(outputs);
        node.device = root.device.clone();
        node.expr = Some(Arc::new(self.expr));
        node
    }
}

/// Makes the expressions of a group.
struct Build<'a> {
    graph: &'a Graph,
    group: &'a Group,
    inputs: Vec<(Outlet, Window)>,
    known: HashMap<(Outlet, Window), Expr>,
}

impl Build<'_> {
    /// The elements of a value from the first of a window on.
    fn value(&mut self, outlet: Outlet, window: Window) -> Option<Expr> {
        if let Some(windows) = self.group.views.get(&outlet.node) {
            let own = windows.get(outlet.index as usize)?;
            let moved = own.iter().zip(&window).map(|(own, inner)| own + inner).collect();
            return self.value(self.graph[outlet.node].inputs()[0], moved);
        }
        let key = (outlet, window);
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }
        let expr = match self.group.members.get(&outlet.node) {
            None => self.input(&key)?,
            // A window of what is a result as a whole would be computed twice.
            Some(Part::Whole) if key.1.iter().any(|&begin| begin > 0) => return None,
            Some(_) => self.member(&key)?,
        };
        // Chains of many readers would double it again and again.
        if expr.nodes().len() > MAX_OPERATIONS || self.inputs.len() > MAX_INPUTS {
            return None;
        }
        self.known.insert(key, expr.clone());
        Some(expr)
    }

    fn input(&mut self, key: &(Outlet, Window)) -> Option<Expr> {
        let dtype = self.graph.ty(key.0)?.dtype;
        let known = self.inputs.iter().position(|input| input == key);
        let position = known.unwrap_or(self.inputs.len());
        if known.is_none() {
            self.inputs.push(key.clone());
        }
        Some(Expr::input(position, dtype))
    }

    fn member(&mut self, (outlet, window): &(Outlet, Window)) -> Option<Expr> {
        let (expr, inputs) = formula(self.graph, outlet.node)?;
        let rank = window.len();
        let mut values = Vec::with_capacity(inputs.len());
        for input in inputs {
            let own = self.graph.ty(input)?.shape.known()?;
            let missing = rank.checked_sub(own.rank())?;
            let begins = own.iter().enumerate().map(|(axis, &size)| match size {
                1 => 0,
                _ => window[missing + axis],
            });
            values.push(self.value(input, begins.collect())?);
        }
        let replacements: Vec<Replacement<'_>> = values.iter().map(Replacement::Expr).collect();
        Some(expr.substitute(&replacements))
    }
}
