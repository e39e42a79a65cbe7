//! Graphs that are run piece by piece: feeds in, fetches out, as TensorFlow 1 does.
//!
//! A session makes a function of the part of the graph that a run needs, and keeps it. Variables
//! and tables live in the session. Reference variables have become resource variables when the
//! graph was converted.

use crate::{
    convert::{self, Definitions, graph as convert_graph, parse_tensor_name, resource_variables},
    error::{Error, Result},
    file::read_message,
    load::Parts,
    proto::{self, tensor_info::Encoding},
};
use ferroflow_ir::{
    Attrs, FunctionDef, FunctionLibrary, Graph, HostTensor, Lowering, NodeDef, NodeId, Outlet,
    PartialShape, TensorSpec, ValueType,
};
use ferroflow_runtime::{ConcreteFunction, Context, EagerTensor, ResourceManager};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// A graph with its state.
pub struct Session {
    context: Context,
    graph: Graph,
    /// The version of GraphDef that the writer knew.
    producer: i32,
    /// Where the values are that references referred to.
    reads: HashMap<Outlet, Outlet>,
    library: Arc<FunctionLibrary>,
    resources: Arc<ResourceManager>,
    signatures: BTreeMap<String, proto::SignatureDef>,
    functions: Mutex<HashMap<Request, ConcreteFunction>>,
    /// What kept the state from being restored; runs fail with it.
    failure: Option<ferroflow_runtime::Error>,
}

/// Up to this version of GraphDef a placeholder of scalar shape takes values of any shape.
/// Source: the shape function of `Placeholder` in TensorFlow's `array_ops.cc`.
const VAGUE_PLACEHOLDERS: i32 = 21;

/// What a run asks for: names of tensors fed and fetched, and of ops to run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Request {
    feeds: Vec<String>,
    fetches: Vec<String>,
    targets: Vec<String>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<session of {} nodes>", self.graph.len())
    }
}

impl Session {
    /// The session of a GraphDef in a file.
    ///
    /// # Errors
    ///
    /// When the file is missing or damaged, or the graph is malformed.
    pub fn of_graph(context: &Context, path: impl AsRef<Path>) -> Result<Session> {
        Session::of_graph_def(context, read_message(path.as_ref())?)
    }

    /// The session of a GraphDef.
    ///
    /// # Errors
    ///
    /// When the graph is malformed.
    pub fn of_graph_def(context: &Context, mut graph: proto::GraphDef) -> Result<Session> {
        let library = graph.library.take().unwrap_or_default();
        let (registry, limits) = (context.registry().clone(), context.limits().clone());
        let definitions = Arc::new(Definitions::new(library, registry, limits)?);
        let library = Arc::new(FunctionLibrary::new());
        convert::add_functions(&library, &definitions)?;
        let resources = Arc::new(ResourceManager::new());
        Session::new(context, Some(&graph), &definitions, library, resources, BTreeMap::new())
    }

    fn new(
        context: &Context,
        graph: Option<&proto::GraphDef>,
        definitions: &Definitions,
        library: Arc<FunctionLibrary>,
        resources: Arc<ResourceManager>,
        signatures: BTreeMap<String, proto::SignatureDef>,
    ) -> Result<Session> {
        let nodes = graph.map_or(&[][..], |graph| &graph.node);
        let versions = graph.and_then(|graph| graph.versions.as_ref());
        let producer = versions.map_or(0, |versions| versions.producer);
        let (graph, reads) = resource_variables(convert_graph(nodes, definitions)?)?;
        Ok(Session {
            context: context.clone(),
            graph,
            producer,
            reads,
            library,
            resources,
            signatures,
            functions: Mutex::default(),
            failure: None,
        })
    }

    /// The session of a MetaGraph, with variables restored and initialisers run.
    pub(crate) fn load(parts: Parts) -> Result<Session> {
        let graph = parts.meta_graph.graph_def.as_ref();
        let (library, resources) = (parts.library.clone(), parts.resources.clone());
        let signatures = parts.meta_graph.signature_def.clone();
        let mut session = Session::new(
            &parts.context,
            graph,
            &parts.definitions,
            library,
            resources,
            signatures,
        )?;
        match session.restore(&parts) {
            // What cannot be restored here may never be needed here.
            Err(Error::Runtime(error)) if error.code() == ferroflow_ir::Code::Unimplemented => {
                session.failure = Some(*error);
                Ok(session)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(session),
        }
    }

    /// Restores the checkpoint and runs the initialiser, with the paths of assets fed.
    fn restore(&self, parts: &Parts) -> Result<()> {
        let mut assets = Vec::new();
        for (index, file) in parts.meta_graph.asset_file_def.iter().enumerate() {
            let name = file.tensor_info.as_ref().and_then(|info| match &info.encoding {
                Some(Encoding::Name(name)) => Some(name.as_str()),
                _ => None,
            });
            let path = parts.asset(index as i32)?;
            if let Some(name) = name {
                assets.push((name, path_tensor(&path)));
            }
        }
        let variables = parts.variables();
        if let Some(saver) = &parts.meta_graph.saver_def
            && !saver.restore_op_name.is_empty()
            && variables.with_extension("index").exists()
        {
            let mut feeds = assets.clone();
            feeds.push((&saver.filename_tensor_name, path_tensor(&variables)));
            self.run(&feeds, &[], &[&saver.restore_op_name])?;
        }
        match initializer(&parts.meta_graph) {
            Some(name) => self.run(&assets, &[], &[&name]).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The names of the signatures.
    pub fn signatures(&self) -> impl Iterator<Item = &str> {
        self.signatures.keys().map(String::as_str).filter(|key| *key != INIT_OP)
    }

    /// The message of a signature.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature(&self, key: &str) -> Result<&proto::SignatureDef> {
        self.signatures.get(key).filter(|_| key != INIT_OP).ok_or_else(|| Error::NoSignature {
            name: key.into(),
            available: self.signatures().map(str::to_string).collect(),
        })
    }

    /// The inputs of a signature: names and specs, sorted by name. The parts of a sparse tensor
    /// are inputs of their own.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature_inputs(&self, key: &str) -> Result<Vec<(String, TensorSpec)>> {
        let mut inputs = Vec::new();
        for (name, info) in &self.signature(key)?.inputs {
            for part in parts_of(name, info)? {
                let outlet = self.outlet(part.tensor)?;
                let ty = self.fed_type(outlet).ok_or_else(|| unknown_tensor(part.tensor))?;
                inputs.push((part.key, TensorSpec::new(ty.dtype, ty.shape)));
            }
        }
        Ok(inputs)
    }

    /// Runs a signature: inputs and outputs by name.
    ///
    /// # Errors
    ///
    /// When the inputs are not those of the signature, or whatever fails in the run.
    pub fn call_signature(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<BTreeMap<String, EagerTensor>> {
        let signature = self.signature(key)?;
        let mut feeds: Vec<(&str, EagerTensor)> = Vec::new();
        let mut given: HashSet<&str> = inputs.keys().map(String::as_str).collect();
        for (name, info) in &signature.inputs {
            for part in parts_of(name, info)? {
                let value = inputs.get(&part.key);
                let value = value.ok_or_else(|| wrong_inputs(key, signature, inputs))?;
                let ty = self.fed_type(self.outlet(part.tensor)?);
                let spec = ty.map(|ty| TensorSpec::new(ty.dtype, ty.shape));
                if let Some(spec) = spec.filter(|spec| !spec.accepts(&value.spec())) {
                    return Err(Error::SignatureInput {
                        signature: key.into(),
                        input: part.key.clone(),
                        expected: spec.to_string(),
                        found: value.spec().to_string(),
                    });
                }
                given.remove(part.key.as_str());
                feeds.push((part.tensor, value.clone()));
            }
        }
        if !given.is_empty() {
            return Err(wrong_inputs(key, signature, inputs));
        }
        let mut outputs = Vec::new();
        for (name, info) in &signature.outputs {
            outputs.extend(parts_of(name, info)?);
        }
        let fetches: Vec<&str> = outputs.iter().map(|part| part.tensor).collect();
        let results = self.run(&feeds, &fetches, &[])?;
        Ok(outputs.into_iter().map(|part| part.key).zip(results).collect())
    }

    /// Runs what `fetches` and `targets` need, with the tensors in `feeds` replaced. Tensors are
    /// named `node:output`, ops by their names.
    ///
    /// # Errors
    ///
    /// When a name does not exist, or whatever fails in the run.
    pub fn run(
        &self,
        feeds: &[(&str, EagerTensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<EagerTensor>> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone().into());
        }
        let own = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let request = Request {
            feeds: feeds.iter().map(|(name, _)| name.to_string()).collect(),
            fetches: own(fetches),
            targets: own(targets),
        };
        let args: Vec<EagerTensor> = feeds.iter().map(|(_, value)| value.clone()).collect();
        Ok(self.function(request)?.call(&args)?)
    }

    fn function(&self, request: Request) -> Result<ConcreteFunction> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(&request) {
            return Ok(function.clone());
        }
        let def = Arc::new(self.part(&request)?);
        let (library, resources) = (self.library.clone(), self.resources.clone());
        let function =
            ConcreteFunction::with_captures(&self.context, def, library, resources, Vec::new());
        functions.insert(request, function.clone());
        Ok(function)
    }

    fn outlet(&self, name: &str) -> Result<Outlet> {
        let (node, index) = parse_tensor_name(name);
        let found = self.graph.find(node).map(|id| Outlet { node: id, index });
        let outlet = found.filter(|&outlet| {
            self.graph.ty(outlet).is_some() || self.graph[outlet.node].op.def().is_none()
        });
        outlet.ok_or_else(|| unknown_tensor(name))
    }

    /// What may be fed in place of a tensor: what a placeholder says, whatever signatures say of it.
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

    /// The outlet with the value of a tensor, which may be a reference.
    fn value(&self, name: &str) -> Result<Outlet> {
        let (node, index) = parse_tensor_name(name);
        let reference = self.graph.find(node).map(|id| Outlet { node: id, index });
        match reference.and_then(|reference| self.reads.get(&reference)) {
            Some(&read) => Ok(read),
            None => self.outlet(name),
        }
    }

    fn node(&self, name: &str) -> Result<NodeId> {
        let name = name.strip_prefix('^').unwrap_or(name);
        let (node, _) = parse_tensor_name(name);
        self.graph
            .find(node)
            .ok_or_else(|| ferroflow_ir::Error::NotFound { kind: "op", name: name.into() }.into())
    }

    /// The part of the graph that a request needs, as a function.
    fn part(&self, request: &Request) -> Result<FunctionDef> {
        let feeds: Vec<Outlet> =
            request.feeds.iter().map(|name| self.outlet(name)).collect::<Result<_>>()?;
        let fetches: Vec<Outlet> =
            request.fetches.iter().map(|name| self.value(name)).collect::<Result<_>>()?;
        let targets: Vec<NodeId> =
            request.targets.iter().map(|name| self.node(name)).collect::<Result<_>>()?;
        let mut part = Part {
            source: &self.graph,
            graph: Graph::new(),
            fed: HashMap::new(),
            moved: HashMap::new(),
        };
        let mut args = Vec::new();
        for (index, (&feed, name)) in feeds.iter().zip(&request.feeds).enumerate() {
            let ty = self.fed_type(feed).ok_or_else(|| unknown_tensor(name))?;
            args.push(part.feed(feed, ty, name, index)?);
        }
        let roots: Vec<NodeId> = fetches
            .iter()
            .filter(|fetch| !part.fed.contains_key(fetch))
            .map(|fetch| fetch.node)
            .chain(targets.iter().copied())
            .collect();
        part.copy(&roots)?;
        part.check_order()?;
        let results = request
            .fetches
            .iter()
            .zip(&fetches)
            .map(|(name, &fetch)| (name.clone(), part.outlet(fetch)))
            .collect();
        let control_results = targets.iter().map(|target| part.moved[target]).collect();
        let name = request.fetches.first().or(request.targets.first()).map_or("", String::as_str);
        Ok(FunctionDef {
            name: format!("run of {name}").into(),
            graph: part.graph,
            args,
            results,
            control_results,
            attrs: Attrs::new(),
        })
    }
}

/// A part of a graph under construction.
struct Part<'a> {
    source: &'a Graph,
    graph: Graph,
    fed: HashMap<Outlet, Outlet>,
    moved: HashMap<NodeId, NodeId>,
}

impl Part<'_> {
    fn feed(&mut self, feed: Outlet, ty: ValueType, name: &str, index: usize) -> Result<NodeId> {
        let op = ferroflow_ir::registry::find("_Arg")
            .ok_or_else(|| ferroflow_ir::Error::NotFound { kind: "op", name: "_Arg".into() })?;
        let attrs = Attrs::new().with("T", ty.dtype).with("index", index as i64);
        let arg = self.graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?;
        self.fed.insert(feed, arg.into());
        Ok(arg)
    }

    /// Copies `roots` and all they need, up to what is fed.
    fn copy(&mut self, roots: &[NodeId]) -> Result<()> {
        let mut needed: HashSet<NodeId> = HashSet::new();
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            if needed.insert(id) {
                let node = &self.source[id];
                let inputs = node.inputs().iter().filter(|input| !self.fed.contains_key(input));
                stack.extend(inputs.map(|input| input.node).chain(node.controls().iter().copied()));
            }
        }
        for id in self.source.ids().filter(|id| needed.contains(id)) {
            let node = self.source[id].clone().with_inputs([]).with_controls([]);
            self.moved.insert(id, self.graph.add(node)?);
        }
        for (&from, &to) in &self.moved {
            let node = &self.source[from];
            let inputs: Vec<Outlet> =
                node.inputs().iter().map(|&input| self.outlet(input)).collect();
            let controls: Vec<NodeId> = node.controls().iter().map(|id| self.moved[id]).collect();
            self.graph.connect(to, inputs, controls)?;
        }
        Ok(())
    }

    fn outlet(&self, outlet: Outlet) -> Outlet {
        match self.fed.get(&outlet) {
            Some(&fed) => fed,
            None => Outlet { node: self.moved[&outlet.node], index: outlet.index },
        }
    }

    /// A loop of the 1.x kind is reported as what it is: an op nobody runs.
    fn check_order(&self) -> Result<()> {
        convert::check_frames(&self.graph)?;
        let Err(cycle) = self.graph.topological_order() else { return Ok(()) };
        let unknown = |node: &NodeDef| {
            node.op.def().is_none_or(|op| matches!(op.lowering, Lowering::Interface))
        };
        match self.graph.iter().find(|(_, node)| unknown(node)) {
            Some((_, node)) => {
                let op = node.op.name().to_string().into();
                let what = "loops of TensorFlow 1 cannot run here".into();
                let error = ferroflow_ir::Error::Unsupported { op, what };
                Err(error.at_node(&node.name, node.op.name(), "").into())
            }
            None => Err(cycle.into()),
        }
    }
}

/// A tensor of a signature's input or output.
struct SignaturePart<'a> {
    /// The name callers use.
    key: String,
    /// The name in the graph.
    tensor: &'a str,
}

/// The tensors of an input or output: one, or three of a sparse tensor.
fn parts_of<'a>(name: &str, info: &'a proto::TensorInfo) -> Result<Vec<SignaturePart<'a>>> {
    let part =
        |suffix: &str, tensor: &'a str| SignaturePart { key: format!("{name}{suffix}"), tensor };
    match &info.encoding {
        Some(Encoding::Name(tensor)) => Ok(vec![part("", tensor)]),
        Some(Encoding::CooSparse(sparse)) => Ok(vec![
            part("_indices", &sparse.indices_tensor_name),
            part("_values", &sparse.values_tensor_name),
            part("_dense_shape", &sparse.dense_shape_tensor_name),
        ]),
        Some(Encoding::CompositeTensor(composite)) => {
            let mut parts = Vec::new();
            for (index, component) in composite.components.iter().enumerate() {
                let suffix = if index == 0 { name.to_string() } else { format!("{name}_{index}") };
                parts.extend(parts_of(&suffix, component)?);
            }
            Ok(parts)
        }
        None => Err(Error::Program(Box::new(ferroflow_ir::Error::NotFound {
            kind: "tensor of",
            name: name.into(),
        }))),
    }
}

fn unknown_tensor(name: &str) -> Error {
    ferroflow_ir::Error::NotFound { kind: "tensor", name: name.into() }.into()
}

fn wrong_inputs(
    key: &str,
    signature: &proto::SignatureDef,
    inputs: &BTreeMap<String, EagerTensor>,
) -> Error {
    let names = |names: Vec<&String>| format!("{names:?}");
    Error::SignatureInput {
        signature: key.into(),
        input: "the inputs".into(),
        expected: names(signature.inputs.keys().collect()),
        found: names(inputs.keys().collect()),
    }
}

/// The key of the signature that names the initialiser.
pub(crate) const INIT_OP: &str = "__saved_model_init_op";

/// The op that initialises a MetaGraph: that of the signature, or of one of two collections.
fn initializer(meta_graph: &proto::MetaGraphDef) -> Option<String> {
    let signature = meta_graph.signature_def.get(INIT_OP);
    let from_signature = signature.and_then(|signature| signature.outputs.get(INIT_OP));
    if let Some(Encoding::Name(name)) = from_signature.and_then(|info| info.encoding.as_ref()) {
        return Some(name.clone());
    }
    ["saved_model_main_op", "legacy_init_op"].into_iter().find_map(|key| {
        match meta_graph.collection_def.get(key)?.kind.as_ref()? {
            proto::collection_def::Kind::NodeList(list) => list.value.first().cloned(),
            _ => None,
        }
    })
}

pub(crate) fn path_tensor(path: &Path) -> EagerTensor {
    HostTensor::scalar_string(path.to_string_lossy().into_owned()).into()
}
