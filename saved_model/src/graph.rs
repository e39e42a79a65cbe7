//! Graphs as files hold them, ready to be taken apart by the names of their tensors.

use crate::{
    convert::{self, Definitions, FetchedValue, linked_sends, resource_variables},
    custom_gradient::add_gradients,
    proto,
};
use ferroflow_ir::{
    DType, Error, FunctionDef, FunctionLibrary, Graph, Limits, NodeDef, NodeId, OpRegistry, Outlet,
    PartialShape, Result, ValueType,
    hash::FastMap,
    pass::{
        carve::{Feed, OtherEffects, Subgraph},
        functionalize::functionalize,
    },
    tensor_name,
};
use std::{fmt, sync::Arc};

/// A graph with the functions it calls. Reference variables have become resource variables.
pub struct LoadedGraph {
    graph: Graph,
    /// The version of GraphDef that the writer knew.
    producer: i32,
    /// The values that are fetched instead of references and of values that are the memory of their variables.
    reads: FastMap<Outlet, FetchedValue>,
    library: Arc<FunctionLibrary>,
    limits: Limits,
}

/// Up to this version of GraphDef a placeholder of scalar shape takes values of any shape.
/// Source: the shape function of `Placeholder` in TensorFlow's `array_ops.cc`.
const VAGUE_PLACEHOLDERS: i32 = 21;

/// A part of a graph by names: of tensors that are fed and fetched, and of ops that run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// The tensors passed, in the order of the function's arguments.
    pub feeds: Vec<String>,
    /// The tensors asked for.
    pub fetches: Vec<String>,
    /// Ops that run although no tensor needs them.
    pub targets: Vec<String>,
}

impl Request {
    /// A request for these names.
    pub fn new(feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Request {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Request { feeds: owned(feeds), fetches: owned(fetches), targets: owned(targets) }
    }
}

impl fmt::Debug for LoadedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<graph of {} nodes>", self.graph.len())
    }
}

impl LoadedGraph {
    /// The graph of a message.
    ///
    /// # Errors
    ///
    /// When it is malformed, or would cost more than the limits allow.
    pub fn new(
        mut graph: proto::GraphDef,
        registry: &Arc<OpRegistry>,
        limits: &Limits,
    ) -> Result<LoadedGraph> {
        let functions = graph.library.take().unwrap_or_default();
        let definitions = Definitions::new(functions, registry.clone(), limits.clone())?;
        let definitions = Arc::new(definitions);
        let library = Arc::new(FunctionLibrary::new());
        convert::add_functions(&library, &definitions)?;
        add_gradients(&library, &definitions, None)?;
        LoadedGraph::with_library(&graph, &definitions, library)
    }

    /// The graph of a message whose functions are in a library already.
    pub(crate) fn with_library(
        graph: &proto::GraphDef,
        definitions: &Definitions,
        library: Arc<FunctionLibrary>,
    ) -> Result<LoadedGraph> {
        let producer = graph.versions.as_ref().map_or(0, |versions| versions.producer);
        let graph = linked_sends(convert::graph(&graph.node, definitions)?)?;
        let (graph, reads) = resource_variables(graph)?;
        let limits = definitions.limits().clone();
        Ok(LoadedGraph { graph, producer, reads, library, limits })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The functions it calls.
    pub fn library(&self) -> &Arc<FunctionLibrary> {
        &self.library
    }

    /// The part of the graph that a request needs, as a function. With
    /// [`OtherEffects::Keep`] every op of the graph that has effects runs. Branches and loops of
    /// TensorFlow 1 have become calls of functions, which are in the library then.
    ///
    /// # Errors
    ///
    /// When a name does not exist, or control flow of the part makes no sense.
    pub fn part(
        &self,
        name: &str,
        request: &Request,
        effects: OtherEffects,
    ) -> Result<FunctionDef> {
        let feeds = request.feeds.iter().map(|name| self.feed(name)).collect::<Result<_>>()?;
        let mut part = self.between(request, feeds)?;
        let targets = request.targets.iter().map(|name| self.node(name));
        part.targets.extend(targets.collect::<Result<Vec<_>>>()?);
        if effects == OtherEffects::Keep {
            part.targets.extend(self.library.effectful_nodes(&self.graph));
        }
        functionalize(part.carve(&self.graph, name)?, &self.library, &self.limits)
    }

    /// Part of the graph as [`part`](LoadedGraph::part), in which handles of state that nodes of an op
    /// make are further arguments; the names by which that state is known.
    pub(crate) fn part_with_handles(
        &self,
        name: &str,
        request: &Request,
        op: &str,
    ) -> Result<(FunctionDef, Vec<String>)> {
        let feeds = request.feeds.iter().map(|name| self.feed(name)).collect::<Result<_>>()?;
        let mut part = self.between(request, feeds)?;
        let fed: Vec<NodeId> = part.feeds.iter().map(|feed| feed.outlet.node).collect();
        let needed = self.graph.reachable_from(part.results.iter().map(|(_, outlet)| outlet.node));
        let makes = |(id, node): &(NodeId, &NodeDef)| {
            node.op.name() == op && needed.contains(id) && !fed.contains(id)
        };
        let mut handles = Vec::new();
        for (id, node) in self.graph.iter().filter(makes) {
            let ty = node.outputs()[0].clone();
            handles.push((node.attrs.string("shared_name")?, Feed { outlet: id.into(), ty }));
        }
        handles.sort_by_key(|(name, _)| *name);
        let (names, handles): (Vec<String>, Vec<Feed>) =
            handles.into_iter().map(|(name, feed)| (name.to_string(), feed)).unzip();
        part.feeds.extend(handles);
        let def = functionalize(part.carve(&self.graph, name)?, &self.library, &self.limits)?;
        Ok((def, names))
    }

    fn feed(&self, name: &str) -> Result<Feed> {
        let outlet = tensor_name::find(&self.graph, name)?;
        let absent = || Error::NotFound { kind: "tensor", name: name.into() };
        let ty = self.fed_type(outlet).ok_or_else(absent)?;
        Ok(Feed { outlet, ty })
    }

    /// Type of a value that may be fed in place of a tensor: what a placeholder says, whatever
    /// signatures say of it.
    fn fed_type(&self, outlet: Outlet) -> Option<ValueType> {
        let dtype = self.graph.ty(outlet)?.dtype;
        let node = &self.graph[outlet.node];
        let declared = node.attrs.shape("shape").ok().filter(|shape| {
            // Writers of old could not tell a scalar from any shape.
            let is_vague = self.producer <= VAGUE_PLACEHOLDERS && shape.rank() == Some(0);
            node.inputs().is_empty() && !is_vague
        });
        Some(ValueType::new(dtype, declared.cloned().unwrap_or(PartialShape::Unknown)))
    }

    /// The type of what may be fed in place of a tensor.
    ///
    /// # Errors
    ///
    /// When there is no such tensor.
    pub fn input_type(&self, name: &str) -> Result<ValueType> {
        self.feed(name).map(|feed| feed.ty)
    }

    /// The part between feeds and the results of a request, without targets. Results that are the memory of a
    /// variable are read last, unless such a value is fed.
    fn between(&self, request: &Request, feeds: Vec<Feed>) -> Result<Subgraph> {
        let is_memory_fed = feeds.iter().any(|feed| self.reads.contains_key(&feed.outlet));
        let (mut last, mut targets) = (Vec::new(), Vec::new());
        let value = |name: &String| {
            let (node, index) = tensor_name::parse(name);
            let outlet = self.graph.find(node).map(|node| Outlet { node, index });
            let is_reference = |outlet: &Outlet| {
                self.graph.ty(*outlet).is_some_and(|ty| ty.dtype == DType::Resource)
            };
            let memory = outlet.filter(|outlet| !is_memory_fed || is_reference(outlet));
            match memory.and_then(|outlet| self.reads.get(&outlet)) {
                Some(&FetchedValue { value, read }) => {
                    last.push(read);
                    // Whatever the value comes after runs, too.
                    targets.extend(outlet.filter(|own| !is_reference(own)).map(|own| own.node));
                    Ok((name.clone(), value))
                }
                None => Ok((name.clone(), tensor_name::find(&self.graph, name)?)),
            }
        };
        let results = request.fetches.iter().map(value).collect::<Result<_>>()?;
        Ok(Subgraph { feeds, results, targets, last })
    }

    fn node(&self, name: &str) -> Result<NodeId> {
        let name = name.strip_prefix('^').unwrap_or(name);
        let (node, _) = tensor_name::parse(name);
        self.graph.find(node).ok_or_else(|| Error::NotFound { kind: "op", name: name.into() })
    }
}
