//! Graphs of op calls. This is the only file that knows petgraph.

use crate::{
    attr::{AttrValue, Attrs},
    error::{Error, Result, SourceLocation},
    expr::Expr,
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    op::{Effect, OpDef},
    spec::ValueType,
};
use petgraph::{
    Direction,
    stable_graph::{EdgeIndex, NodeIndex, StableDiGraph},
    visit::EdgeRef,
};
use smallvec::SmallVec;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    fmt,
    sync::Arc,
};

/// A node of a [`Graph`]. Ids stay valid while other nodes come and go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The id as an index; ids are dense, but for removed nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    fn petgraph(self) -> NodeIndex {
        NodeIndex::new(self.index())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A result of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Outlet {
    /// The node.
    pub node: NodeId,
    /// Index among its results.
    pub index: u32,
}

impl Outlet {
    /// Result `index` of `node`.
    pub fn new(node: NodeId, index: usize) -> Outlet {
        Outlet { node, index: index as u32 }
    }
}

impl From<NodeId> for Outlet {
    fn from(node: NodeId) -> Outlet {
        Outlet { node, index: 0 }
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}:{}", self.node.0, self.index)
    }
}

/// The op of a node: a record, or the bare name of an unknown op.
#[derive(Clone)]
pub enum OpRef {
    /// An op with a record.
    Known(&'static OpDef),
    /// An op without one. It can be loaded, printed and saved, but not run.
    Foreign(Arc<str>),
}

impl OpRef {
    /// The op's name.
    pub fn name(&self) -> &str {
        match self {
            OpRef::Known(op) => op.name,
            OpRef::Foreign(name) => name,
        }
    }

    /// The op's record, if there is one.
    pub fn def(&self) -> Option<&'static OpDef> {
        match self {
            OpRef::Known(op) => Some(op),
            OpRef::Foreign(_) => None,
        }
    }

    /// Effect of the op; an unknown op may touch anything.
    pub fn effect(&self) -> Effect {
        self.def().map_or(Effect::Stateful, |op| op.effect)
    }
}

impl PartialEq for OpRef {
    fn eq(&self, other: &OpRef) -> bool {
        match (self, other) {
            (OpRef::Known(lhs), OpRef::Known(rhs)) => std::ptr::eq(*lhs, *rhs),
            (lhs, rhs) => lhs.name() == rhs.name(),
        }
    }
}

impl From<&'static OpDef> for OpRef {
    fn from(op: &'static OpDef) -> OpRef {
        OpRef::Known(op)
    }
}

impl fmt::Debug for OpRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An op call in a graph.
#[derive(Clone, Debug)]
pub struct NodeDef {
    /// The name, unique in its graph.
    pub name: Box<str>,
    /// The op.
    pub op: OpRef,
    /// The attributes, complete where the op has a record.
    pub attrs: Arc<Attrs>,
    /// The device asked for; empty when none is.
    pub device: Box<str>,
    /// The function the call was written in, once it has been inlined elsewhere.
    pub function: Option<Arc<str>>,
    /// Where the call was written, of nodes that were traced.
    pub location: Option<SourceLocation>,
    /// For fused nodes, the scalar expression they compute: of an elementwise node the whole, of
    /// attention what happens to its scores.
    pub expr: Option<Arc<Expr>>,
    inputs: SmallVec<[Outlet; 3]>,
    controls: SmallVec<[NodeId; 1]>,
    outputs: SmallVec<[ValueType; 2]>,
}

impl NodeDef {
    /// A call that is not connected yet.
    pub fn new(
        name: impl Into<Box<str>>,
        op: impl Into<OpRef>,
        attrs: impl Into<Arc<Attrs>>,
    ) -> NodeDef {
        NodeDef {
            name: name.into(),
            op: op.into(),
            attrs: attrs.into(),
            device: "".into(),
            function: None,
            location: None,
            expr: None,
            inputs: SmallVec::new(),
            controls: SmallVec::new(),
            outputs: SmallVec::new(),
        }
    }

    /// Each node that an edge comes from, in order.
    fn sources(&self) -> SmallVec<[(Edge, NodeId); 4]> {
        let data = self.inputs.iter().map(|input| (Edge::Data, input.node));
        let controls = self.controls.iter().map(|&control| (Edge::Control, control));
        let mut sources: SmallVec<[(Edge, NodeId); 4]> = data.chain(controls).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }

    /// The same call with these inputs.
    #[must_use]
    pub fn with_inputs(mut self, inputs: impl IntoIterator<Item = Outlet>) -> NodeDef {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// The same call, to run after these nodes.
    #[must_use]
    pub fn with_controls(mut self, controls: impl IntoIterator<Item = NodeId>) -> NodeDef {
        self.controls = controls.into_iter().collect();
        self
    }

    /// The same call with the types of its results.
    #[must_use]
    pub fn with_outputs(mut self, outputs: impl IntoIterator<Item = ValueType>) -> NodeDef {
        self.outputs = outputs.into_iter().collect();
        self
    }

    /// The inputs, in the order of the op's arguments.
    pub fn inputs(&self) -> &[Outlet] {
        &self.inputs
    }

    /// Nodes that run before this one although it does not use their results.
    pub fn controls(&self) -> &[NodeId] {
        &self.controls
    }

    /// The types of the results, as far as they have been inferred.
    pub fn outputs(&self) -> &[ValueType] {
        &self.outputs
    }

    /// Sets the types of the results.
    pub fn set_outputs(&mut self, outputs: impl IntoIterator<Item = ValueType>) {
        self.outputs = outputs.into_iter().collect();
    }

    /// The value of a constant: of a node with an attribute `value` whose op has no inputs.
    pub fn constant(&self) -> Option<&HostTensor> {
        let is_source = self.op.def().is_some_and(|op| op.inputs.is_empty());
        match self.attrs.get("value").filter(|_| is_source)? {
            AttrValue::Tensor(value) => Some(value),
            _ => None,
        }
    }

    /// Adds to an error that it happened at this node, in `function` unless the node remembers
    /// another.
    pub fn locate<'a>(&'a self, function: &'a str) -> impl Fn(Error) -> Error + use<'a> {
        move |error| {
            let function = self.function.as_deref().unwrap_or(function);
            error.at_node(&self.name, self.op.name(), function).written_at(self.location)
        }
    }
}

/// Meaning of an edge of the petgraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    /// The target uses a result of the source.
    Data,
    /// The target runs after the source.
    Control,
}

/// Nodes that are removed one by one; where more go, the edges of those that stay are made anew.
const FEW_NODES: usize = 256;

/// A graph of op calls.
///
/// Every node owns its ordered inputs and control inputs; the petgraph beneath mirrors them for
/// walks along and against the edges. All changes go through the methods here, which keep the two
/// in step.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: StableDiGraph<NodeDef, Edge>,
    by_name: HashMap<Box<str>, NodeId>,
    /// Where the search for a free name goes on.
    suffixes: HashMap<Box<str>, usize>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Adds a node; its inputs and control inputs must be in the graph.
    ///
    /// # Errors
    ///
    /// [`Error::Duplicate`] for a name that is taken, [`Error::Malformed`] for an input that is
    /// not in the graph.
    pub fn add(&mut self, node: NodeDef) -> Result<NodeId> {
        if self.by_name.contains_key(&node.name) {
            return Err(Error::Duplicate { kind: "node", name: node.name.into() });
        }
        self.check_sources(&node.name, &node.inputs, &node.controls)?;
        let name = node.name.clone();
        let id = NodeId(self.nodes.add_node(node).index() as u32);
        self.by_name.insert(name, id);
        self.add_edges(id);
        Ok(id)
    }

    /// Replaces inputs and control inputs of a node.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for an input that is not in the graph.
    pub fn connect(
        &mut self,
        id: NodeId,
        inputs: impl IntoIterator<Item = Outlet>,
        controls: impl IntoIterator<Item = NodeId>,
    ) -> Result<()> {
        let inputs: SmallVec<[Outlet; 3]> = inputs.into_iter().collect();
        let mut controls: SmallVec<[NodeId; 1]> = controls.into_iter().collect();
        controls.sort();
        controls.dedup();
        self.check_sources(&self[id].name, &inputs, &controls)?;
        let before = self[id].sources();
        let node = &mut self.nodes[id.petgraph()];
        (node.inputs, node.controls) = (inputs, controls);
        let after = self[id].sources();
        // The edges of a source are a list, which takes long to find one in where a thousand nodes use it:
        // those that stay are left alone.
        let edges = self.nodes.edges_directed(id.petgraph(), Direction::Incoming);
        let is_over = |source: NodeIndex, kind: Edge| {
            after.binary_search(&(kind, NodeId(source.index() as u32))).is_err()
        };
        let over: SmallVec<[EdgeIndex; 4]> = edges
            .filter(|edge| is_over(edge.source(), *edge.weight()))
            .map(|edge| edge.id())
            .collect();
        for edge in over {
            self.nodes.remove_edge(edge);
        }
        for (kind, source) in after {
            if before.binary_search(&(kind, source)).is_err() {
                self.nodes.add_edge(source.petgraph(), id.petgraph(), kind);
            }
        }
        Ok(())
    }

    fn check_sources(&self, name: &str, inputs: &[Outlet], controls: &[NodeId]) -> Result<()> {
        let sources = inputs.iter().map(|outlet| outlet.node).chain(controls.iter().copied());
        for source in sources {
            if !self.nodes.contains_node(source.petgraph()) {
                let rule = "every input is a node of the same graph".into();
                return Err(Error::Malformed { node: name.into(), rule });
            }
        }
        Ok(())
    }

    fn add_edges(&mut self, id: NodeId) {
        for (kind, source) in self[id].sources() {
            self.nodes.add_edge(source.petgraph(), id.petgraph(), kind);
        }
    }

    /// Removes a node. Inputs of other nodes that named it must have been replaced before.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when another node still uses it.
    pub fn remove(&mut self, id: NodeId) -> Result<NodeDef> {
        if self.consumers(id).next().is_some() {
            let rule = "a node that is used is not removed".into();
            return Err(Error::Malformed { node: self[id].name.to_string(), rule });
        }
        let node = self.nodes.remove_node(id.petgraph());
        let node = node.ok_or(Error::NotFound { kind: "node", name: format!("{id:?}") })?;
        self.by_name.remove(&node.name);
        Ok(node)
    }

    /// Keeps the nodes for which `keep` holds; the others must not be used by any that stay.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when a node that stays uses one that goes.
    pub fn retain(&mut self, keep: &FastSet<NodeId>) -> Result<()> {
        for id in keep {
            let node = &self[*id];
            let mut sources =
                node.inputs.iter().map(|x| x.node).chain(node.controls.iter().copied());
            if sources.any(|source| !keep.contains(&source)) {
                let rule = "a node that is used is not removed".into();
                return Err(Error::Malformed { node: node.name.to_string(), rule });
            }
        }
        let gone: Vec<NodeId> = self.ids().filter(|id| !keep.contains(id)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        // Each edge of a node that goes has to be found in the list of its source.
        let is_many = gone.len() > FEW_NODES;
        if is_many {
            self.nodes.clear_edges();
        }
        for id in gone {
            self.nodes.remove_node(id.petgraph());
        }
        if is_many {
            self.ids().collect::<Vec<_>>().into_iter().for_each(|id| self.add_edges(id));
        }
        self.by_name.retain(|_, id| keep.contains(id));
        Ok(())
    }

    /// Makes every user of `from` use `to` instead.
    pub fn replace_uses(&mut self, from: Outlet, to: Outlet) {
        let users: Vec<NodeId> = self.consumers(from.node).collect();
        for user in users {
            let node = &self[user];
            if !node.inputs.contains(&from) {
                continue;
            }
            let inputs: SmallVec<[Outlet; 3]> =
                node.inputs.iter().map(|&input| if input == from { to } else { input }).collect();
            let controls = node.controls.clone();
            self.connect(user, inputs, controls).expect("the new source is in the graph");
        }
    }

    /// Makes a node use the values that some of its inputs have been replaced by.
    pub fn replace_inputs(&mut self, id: NodeId, replaced: &FastMap<Outlet, Outlet>) {
        let node = &self[id];
        if !node.inputs.iter().any(|input| replaced.contains_key(input)) {
            return;
        }
        let new = |input: &Outlet| replaced.get(input).copied().unwrap_or(*input);
        let inputs: SmallVec<[Outlet; 3]> = node.inputs.iter().map(new).collect();
        let controls = node.controls.clone();
        self.connect(id, inputs, controls).expect("the new sources are in the graph");
    }

    /// Makes every node that runs after `from` run after `to` instead.
    pub fn replace_controls(&mut self, from: NodeId, to: &[NodeId]) {
        let users: Vec<NodeId> = self.consumers(from).collect();
        for user in users {
            let node = &self[user];
            if !node.controls.contains(&from) {
                continue;
            }
            let kept = node.controls.iter().copied().filter(|&control| control != from);
            let controls: Vec<NodeId> =
                kept.chain(to.iter().copied()).filter(|&c| c != user).collect();
            let inputs = node.inputs.clone();
            self.connect(user, inputs, controls).expect("the new sources are in the graph");
        }
    }

    /// Replaces a node by another: what used its results or ran after it now does so of the
    /// new one.
    ///
    /// # Errors
    ///
    /// As [`add`](Graph::add).
    pub fn replace(&mut self, old: NodeId, node: NodeDef) -> Result<NodeId> {
        let n_results = self[old].outputs.len();
        let new = self.add(node)?;
        for index in 0..n_results {
            self.replace_uses(Outlet::new(old, index), Outlet::new(new, index));
        }
        self.replace_controls(old, &[new]);
        self.remove(old)?;
        Ok(new)
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.node_count()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// End of the [`NodeId::index`] in use.
    pub fn id_bound(&self) -> usize {
        use petgraph::visit::NodeIndexable;
        self.nodes.node_bound()
    }

    /// The nodes, in the order they were added.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.node_indices().map(|index| NodeId(index.index() as u32))
    }

    /// The nodes with their definitions, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &NodeDef)> {
        self.ids().map(|id| (id, &self[id]))
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// A node to be changed; its connections are changed through the graph.
    pub fn node_mut(&mut self, id: NodeId) -> NodeMut<'_> {
        let node = &mut self.nodes[id.petgraph()];
        NodeMut {
            op: &mut node.op,
            attrs: &mut node.attrs,
            device: &mut node.device,
            expr: &mut node.expr,
            outputs: &mut node.outputs,
        }
    }

    /// Whether the node is in the graph.
    pub fn contains(&self, id: NodeId) -> bool {
        self.nodes.contains_node(id.petgraph())
    }

    /// The nodes that use results of `id` or run after it, each once per kind of use.
    pub fn consumers(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let neighbors = self.nodes.neighbors_directed(id.petgraph(), Direction::Outgoing);
        neighbors.map(|index| NodeId(index.index() as u32))
    }

    /// The nodes that use results of `id`.
    pub fn data_consumers(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let edges = self.nodes.edges_directed(id.petgraph(), Direction::Outgoing);
        edges
            .filter(|edge| *edge.weight() == Edge::Data)
            .map(|edge| NodeId(edge.target().index() as u32))
    }

    /// The type of a result; `None` when it has not been inferred.
    pub fn ty(&self, outlet: Outlet) -> Option<&ValueType> {
        self[outlet.node].outputs.get(outlet.index as usize)
    }

    /// The nodes that must run so that `roots` can, themselves included.
    pub fn reachable_from(&self, roots: impl IntoIterator<Item = NodeId>) -> FastSet<NodeId> {
        let mut reached: FastSet<NodeId> = FastSet::default();
        let mut stack: Vec<NodeId> = roots.into_iter().collect();
        while let Some(id) = stack.pop() {
            if reached.insert(id) {
                let node = &self[id];
                stack.extend(node.inputs.iter().map(|input| input.node));
                stack.extend(node.controls.iter().copied());
            }
        }
        reached
    }

    /// The nodes in an order in which each comes after its inputs; among nodes that could come
    /// next, the one added first does.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] naming a node on a cycle.
    pub fn topological_order(&self) -> Result<Vec<NodeId>> {
        let mut waiting_for = vec![0usize; self.id_bound()];
        let mut ready: BinaryHeap<Reverse<NodeId>> = BinaryHeap::new();
        for id in self.ids() {
            let count = self.nodes.edges_directed(id.petgraph(), Direction::Incoming).count();
            waiting_for[id.index()] = count;
            if count == 0 {
                ready.push(Reverse(id));
            }
        }
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(id)) = ready.pop() {
            order.push(id);
            for user in self.consumers(id) {
                waiting_for[user.index()] -= 1;
                if waiting_for[user.index()] == 0 {
                    ready.push(Reverse(user));
                }
            }
        }
        if order.len() == self.len() {
            return Ok(order);
        }
        let stuck = self.ids().find(|id| waiting_for[id.index()] > 0).expect("some node is left");
        let rule = "no node depends on its own result".into();
        Err(Error::Malformed { node: self[stuck].name.to_string(), rule })
    }

    /// A name that is free, made from `base`: itself, or with `_1`, `_2`, … appended.
    pub fn unique_name(&mut self, base: &str) -> String {
        if !self.by_name.contains_key(base) {
            return base.into();
        }
        let first = self.suffixes.get(base).copied().unwrap_or(1);
        let (number, name) = (first..)
            .map(|number| (number, format!("{base}_{number}")))
            .find(|(_, name)| !self.by_name.contains_key(name.as_str()))
            .expect("there are more numbers than nodes");
        self.suffixes.insert(base.into(), number + 1);
        name
    }
}

impl std::ops::Index<NodeId> for Graph {
    type Output = NodeDef;

    fn index(&self, id: NodeId) -> &NodeDef {
        &self.nodes[id.petgraph()]
    }
}

/// The parts of a node that may be changed in place.
#[derive(Debug)]
pub struct NodeMut<'a> {
    /// The op.
    pub op: &'a mut OpRef,
    /// The attributes.
    pub attrs: &'a mut Arc<Attrs>,
    /// The device asked for.
    pub device: &'a mut Box<str>,
    /// The fused expression.
    pub expr: &'a mut Option<Arc<Expr>>,
    /// The types of the results.
    pub outputs: &'a mut SmallVec<[ValueType; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, inputs: impl IntoIterator<Item = Outlet>) -> NodeDef {
        let op = crate::registry::find("IdentityN").expect("a known op");
        NodeDef::new(name, op, Attrs::new()).with_inputs(inputs)
    }

    /// Compares the edges with the inputs of the nodes.
    fn check(graph: &Graph) {
        let mut by_nodes: FastMap<NodeId, Vec<NodeId>> = FastMap::default();
        for (user, node) in graph.iter() {
            for (_, source) in node.sources() {
                by_nodes.entry(source).or_default().push(user);
            }
        }
        for id in graph.ids() {
            let mut by_edges: Vec<NodeId> = graph.consumers(id).collect();
            by_edges.sort();
            assert_eq!(by_edges, by_nodes.remove(&id).unwrap_or_default(), "users of {id:?}");
        }
    }

    #[test]
    fn edges_tell_of_few_and_of_many_changes() {
        let mut graph = Graph::new();
        let first = graph.add(node("first", [])).unwrap();
        let second = graph.add(node("second", [first.into()])).unwrap();
        let n_users = 4 * FEW_NODES;
        let inputs = [Outlet::new(first, 0), Outlet::new(first, 1), Outlet::new(second, 0)];
        let user = |n: usize| node(&format!("user{n}"), inputs).with_controls([first]);
        let users: Vec<NodeId> = (0..n_users).map(|n| graph.add(user(n)).unwrap()).collect();
        check(&graph);
        // A use as input goes, another and the one as control stay; and the other way round.
        graph.connect(users[0], [inputs[0]], [first]).unwrap();
        graph.connect(users[1], [inputs[2]], []).unwrap();
        graph.connect(users[2], [inputs[2], inputs[2]], [first, first, second]).unwrap();
        check(&graph);
        graph.replace_uses(inputs[2], inputs[0]);
        assert_eq!(graph.data_consumers(second).count(), 0);
        check(&graph);
        for kept in [n_users - 10, n_users - 2 * FEW_NODES, 1] {
            let keep = [first, second].into_iter().chain(users[..kept].iter().copied());
            graph.retain(&keep.collect()).unwrap();
            assert_eq!(graph.len(), kept + 2);
            check(&graph);
        }
    }
}
