//! Parts of a graph as functions, while the graph is being taken apart.

use super::Scope;
use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Error, Result},
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    op::OpDef,
    ops::names,
    shape::{PartialShape, Shape},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

/// A graph to which calls are added, with what stands for what. Its own edges stay as they were:
/// who reads them asks here what they mean by now.
pub(super) struct Wiring<'a> {
    pub(super) graph: Graph,
    /// The name of the function that is being taken apart.
    pub(super) name: Arc<str>,
    pub(super) scope: Scope<'a>,
    outlets: FastMap<Outlet, Outlet>,
    controls: FastMap<NodeId, Option<NodeId>>,
    exports: FastMap<Outlet, Outlet>,
}

/// A part of the graph that becomes a function.
#[derive(Default)]
pub(super) struct OutlinedRegion {
    pub(super) name: String,
    /// The outlets that are passed as arguments.
    pub(super) args: Vec<Outlet>,
    /// The nodes, in the order they shall have.
    pub(super) members: Vec<NodeId>,
    pub(super) results: Vec<OutlinedResult>,
    /// Members that run though no result needs them.
    pub(super) controls: Vec<NodeId>,
}

/// Result of a function.
#[derive(Clone)]
pub(super) enum OutlinedResult {
    /// The value of an outlet.
    Value(Outlet),
    Constant(HostTensor),
    /// A value that is never read.
    Dead(DType),
    /// A value that must not be asked for; the text says why.
    Fails(DType, String),
}

/// A part as a function.
pub(super) struct Outline {
    pub(super) function: FunctionDef,
    /// The members as nodes of the function.
    pub(super) moved: FastMap<NodeId, NodeId>,
}

/// A predicate as the scalar that `Switch` asks for; one of another shape is an error of the run,
/// as calls of functions would take it for whether there are elements.
pub(super) fn scalar(graph: &mut Graph, predicate: Outlet, dtype: DType) -> Result<Outlet> {
    let ty = ValueType::new(dtype, PartialShape::scalar());
    if graph.ty(predicate) == Some(&ty) {
        return Ok(predicate);
    }
    let op = super::record("EnsureShape");
    let attrs = Attrs::new().with("T", dtype).with("shape", PartialShape::scalar());
    let name = graph.unique_name(&format!("{}/predicate", graph[predicate.node].name));
    let node = NodeDef::new(name, op, op.complete_attrs(attrs)?);
    let id = graph.add(node.with_inputs([predicate]).with_outputs([ty]))?;
    Ok(id.into())
}

impl<'a> Wiring<'a> {
    pub(super) fn new(graph: Graph, name: Arc<str>, scope: Scope<'a>) -> Wiring<'a> {
        let (outlets, controls, exports) = Default::default();
        Wiring { graph, name, scope, outlets, controls, exports }
    }

    /// From now on `outlet` means `meaning`.
    pub(super) fn redirect(&mut self, outlet: Outlet, meaning: Outlet) {
        self.outlets.insert(outlet, meaning);
    }

    /// From now on, running after `id` means running after `meaning`, if that is anything.
    pub(super) fn redirect_control(&mut self, id: NodeId, meaning: Option<NodeId>) {
        self.controls.insert(id, meaning);
    }

    /// Outside the part that has the node of `outlet`, it is to be had as `meaning`.
    pub(super) fn export(&mut self, outlet: Outlet, meaning: Outlet) {
        self.exports.insert(outlet, meaning);
    }

    /// Value that an outlet stands for.
    pub(super) fn resolve(&self, mut outlet: Outlet) -> Outlet {
        while let Some(&meaning) = self.outlets.get(&outlet) {
            outlet = meaning;
        }
        outlet
    }

    /// Value that an outlet stands for outside the part that has its node.
    pub(super) fn resolve_outside(&self, outlet: Outlet) -> Outlet {
        let outlet = self.resolve(outlet);
        self.exports.get(&outlet).copied().unwrap_or(outlet)
    }

    /// Node that a control edge from a node stands for.
    pub(super) fn resolve_control(&self, id: NodeId) -> Option<NodeId> {
        let mut meaning = id;
        while let Some(&next) = self.controls.get(&meaning) {
            meaning = next?;
        }
        Some(meaning)
    }

    /// Adds a call of functions.
    pub(super) fn call(
        &mut self,
        name: &str,
        op: &'static OpDef,
        attrs: Attrs,
        inputs: Vec<Outlet>,
        outputs: Vec<ValueType>,
    ) -> Result<NodeId> {
        let name = self.graph.unique_name(name);
        let attrs = op.complete_attrs(attrs)?;
        self.graph.add(NodeDef::new(name, op, attrs).with_inputs(inputs).with_outputs(outputs))
    }

    /// The type of an outlet: of its shape nothing is promised.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a result of an op that nobody here knows.
    pub(super) fn ty(&self, outlet: Outlet) -> Result<ValueType> {
        match self.graph.ty(outlet) {
            Some(ty) => Ok(ValueType { shape: PartialShape::Unknown, ..ty.clone() }),
            None => {
                let what = "its results have no type that could be passed on";
                Err(super::irregular(&self.graph[outlet.node], what))
            }
        }
    }

    /// A part as a function.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for a member that uses what is neither a member nor an argument.
    pub(super) fn outline(&self, part: OutlinedRegion) -> Result<Outline> {
        let mut copy = Copy { wiring: self, graph: Graph::new(), args: FastMap::default() };
        let mut moved = FastMap::with_capacity_and_hasher(part.members.len(), Default::default());
        for &id in &part.members {
            let node = self.graph[id].clone().with_inputs([]).with_controls([]);
            moved.insert(id, copy.graph.add(node)?);
        }
        let args = part.args.iter().enumerate().map(|(index, &arg)| copy.add_arg(index, arg));
        let args: Vec<NodeId> = args.collect::<Result<_>>()?;
        for id in &part.members {
            copy.connect(*id, &moved)?;
        }
        let mut control_results: Vec<NodeId> = part
            .controls
            .iter()
            .filter_map(|&id| moved.get(&id).or_else(|| moved.get(&self.resolve_control(id)?)))
            .copied()
            .collect();
        let mut results = Vec::with_capacity(part.results.len());
        for (index, outcome) in part.results.into_iter().enumerate() {
            let outlet = copy.outcome(outcome, &moved, &mut control_results)?;
            results.push((format!("result_{index}"), outlet));
        }
        control_results.sort();
        control_results.dedup();
        let (graph, name, attrs) = (copy.graph, part.name.into(), Attrs::new());
        let function = FunctionDef { name, graph, args, results, control_results, attrs };
        Ok(Outline { function, moved })
    }
}

/// A function in the making.
struct Copy<'a> {
    wiring: &'a Wiring<'a>,
    graph: Graph,
    args: FastMap<Outlet, Outlet>,
}

impl Copy<'_> {
    fn add_arg(&mut self, index: usize, outlet: Outlet) -> Result<NodeId> {
        let ty = self.wiring.ty(outlet)?;
        let name = self.graph.unique_name(&self.wiring.graph[outlet.node].name);
        let attrs = Attrs::new().with("T", ty.dtype).with("index", index as i64);
        let node = NodeDef::new(name, super::record("_Arg"), attrs).with_outputs([ty]);
        let id = self.graph.add(node)?;
        self.args.insert(outlet, id.into());
        Ok(id)
    }

    fn connect(&mut self, id: NodeId, moved: &FastMap<NodeId, NodeId>) -> Result<()> {
        let node = &self.wiring.graph[id];
        let mut inputs: SmallVec<[Outlet; 4]> = SmallVec::new();
        for &input in node.inputs() {
            inputs.push(self.value(input, moved).ok_or_else(|| {
                super::irregular(node, "it uses a value of a loop or branch that it is not in")
            })?);
        }
        let control = |&id: &NodeId| {
            moved.get(&id).or_else(|| moved.get(&self.wiring.resolve_control(id)?)).copied()
        };
        let controls: SmallVec<[NodeId; 4]> =
            node.controls().iter().filter_map(control).filter(|&c| c != moved[&id]).collect();
        self.graph.connect(moved[&id], inputs, controls)
    }

    fn value(&self, outlet: Outlet, moved: &FastMap<NodeId, NodeId>) -> Option<Outlet> {
        let inside = self.wiring.resolve(outlet);
        if let Some(&node) = moved.get(&inside.node) {
            return Some(Outlet { node, index: inside.index });
        }
        let outside = self.wiring.resolve_outside(outlet);
        self.args.get(&outside).copied()
    }

    fn outcome(
        &mut self,
        outcome: OutlinedResult,
        moved: &FastMap<NodeId, NodeId>,
        control_results: &mut Vec<NodeId>,
    ) -> Result<Outlet> {
        match outcome {
            OutlinedResult::Value(outlet) => self.value(outlet, moved).ok_or_else(|| {
                let node = &self.wiring.graph[outlet.node];
                super::irregular(node, "its value is inside a loop or branch and not given out")
            }),
            OutlinedResult::Constant(value) => self.constant(value),
            OutlinedResult::Dead(dtype) => self.dead(dtype),
            OutlinedResult::Fails(dtype, text) => {
                let never = self.constant(HostTensor::scalar_bool(false))?;
                let text = self.constant(HostTensor::scalar_string(text))?;
                let op = super::record(names::REQUIRE);
                let types: &[DType] = &[DType::String];
                let attrs = op.complete_attrs(Attrs::new().with("T", types))?;
                let name = self.graph.unique_name("dead");
                let node = NodeDef::new(name, op, attrs).with_inputs([never, text]);
                control_results.push(self.graph.add(node)?);
                self.dead(dtype)
            }
        }
    }

    fn dead(&mut self, dtype: DType) -> Result<Outlet> {
        match dtype {
            DType::Resource | DType::Variant => {
                let what = "a handle that may be dead cannot leave the branch it is made in".into();
                Err(Error::Unsupported { op: "Switch".into(), what })
            }
            _ => self.constant(HostTensor::zeros(dtype, Shape::scalar())?),
        }
    }

    fn constant(&mut self, value: HostTensor) -> Result<Outlet> {
        let name = self.graph.unique_name("constant");
        self.graph.add(constant(name, value)).map(Outlet::from)
    }
}

/// A constant.
pub(super) fn constant(name: String, value: HostTensor) -> NodeDef {
    let ty = ValueType::new(value.dtype(), value.shape());
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    NodeDef::new(name, super::record("Const"), attrs).with_outputs([ty])
}

/// The `nodes` in an order in which each comes after those of them that `sources` returns; among
/// nodes that could come next, the one added first does.
pub(super) fn order(
    graph: &Graph,
    nodes: &[NodeId],
    mut sources: impl FnMut(NodeId, &mut Vec<NodeId>),
) -> Result<Vec<NodeId>> {
    let present: FastSet<NodeId> = nodes.iter().copied().collect();
    let mut waiting_for: FastMap<NodeId, usize> = FastMap::default();
    let mut users: FastMap<NodeId, Vec<NodeId>> = FastMap::default();
    let mut ready = BinaryHeap::new();
    let mut found = Vec::new();
    for &id in nodes {
        found.clear();
        sources(id, &mut found);
        found.retain(|source| present.contains(source));
        found.iter().for_each(|&source| users.entry(source).or_default().push(id));
        waiting_for.insert(id, found.len());
        if found.is_empty() {
            ready.push(Reverse(id));
        }
    }
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for user in users.get(&id).into_iter().flatten() {
            let left = waiting_for.get_mut(user).expect("every node is counted");
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse(*user));
            }
        }
    }
    match nodes.iter().find(|id| waiting_for[id] > 0) {
        None => Ok(order),
        Some(&id) => {
            let rule = "no node depends on its own result, but in a loop".into();
            Err(Error::Malformed { node: graph[id].name.to_string(), rule })
        }
    }
}
