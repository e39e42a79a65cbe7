//! Graphs that are run piece by piece: feeds in, fetches out, as TensorFlow 1 does.
//!
//! A session makes a function of the part of the graph that a run needs, and keeps it. Variables
//! and tables live in the session. Reference variables have become resource variables when the
//! graph was converted.

use crate::{
    defaults::default_of,
    error::{Error, Result},
    file::{decode_message, read_message},
    graph::{LoadedGraph, Request},
    load::LoadedParts,
    proto::{self, collection_def::Kind, tensor_info::Encoding},
};
use ferroflow_ir::{HostTensor, TensorSpec, ValueType, pass::carve::OtherEffects};
use ferroflow_runtime::{
    CallableFunction, Context, EagerTensor, MemoryEstimate, ResourceManager, RunMetadata,
    RunOptions, files, resource::value_type,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

/// A graph with its state.
pub struct Session {
    context: Context,
    graph: LoadedGraph,
    resources: Arc<ResourceManager>,
    signatures: BTreeMap<String, proto::SignatureDef>,
    functions: Mutex<HashMap<Request, CallableFunction>>,
    /// Error that kept the state from being restored; runs fail with it.
    failure: Option<ferroflow_runtime::Error>,
    /// The MetaGraph it was loaded from.
    parts: Option<LoadedParts>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<session of {} nodes>", self.graph.graph().len())
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
    pub fn of_graph_def(context: &Context, graph: proto::GraphDef) -> Result<Session> {
        Session::of_graph_sharing(context, graph, Arc::default())
    }

    /// The session of a GraphDef whose variables and other resources are those of other sessions,
    /// as sessions of one server share them in TensorFlow 1.
    ///
    /// # Errors
    ///
    /// When the graph is malformed.
    pub fn of_graph_sharing(
        context: &Context,
        graph: proto::GraphDef,
        resources: Arc<ResourceManager>,
    ) -> Result<Session> {
        crate::host_ops::add_ops(context);
        let graph = LoadedGraph::new(graph, context.registry(), context.limits())?;
        Ok(Session::new(context, graph, resources, BTreeMap::new()))
    }

    fn new(
        context: &Context,
        graph: LoadedGraph,
        resources: Arc<ResourceManager>,
        signatures: BTreeMap<String, proto::SignatureDef>,
    ) -> Session {
        let (context, functions, failure) = (context.clone(), Mutex::default(), None);
        Session { context, graph, resources, signatures, functions, failure, parts: None }
    }

    /// The session of a MetaGraph, with variables restored and initialisers run.
    pub(crate) fn load(parts: LoadedParts) -> Result<Session> {
        let empty = proto::GraphDef::default();
        let graph = parts.meta_graph.graph_def.as_ref().unwrap_or(&empty);
        let graph = LoadedGraph::with_library(graph, &parts.definitions, parts.library.clone())?;
        let signatures = parts.meta_graph.signature_def.clone();
        let mut session = Session::new(&parts.context, graph, parts.resources.clone(), signatures);
        match session.restore(&parts) {
            // What cannot be restored here may never be needed here.
            Err(Error::Runtime(error)) if error.code() == ferroflow_ir::Code::Unimplemented => {
                session.failure = Some(*error);
            }
            restored => restored?,
        }
        session.parts = Some(parts);
        Ok(session)
    }

    /// The MetaGraph it was loaded from, if it was.
    pub(crate) fn parts(&self) -> Option<&LoadedParts> {
        self.parts.as_ref()
    }

    /// The state it works on.
    pub(crate) fn resources(&self) -> &Arc<ResourceManager> {
        &self.resources
    }

    /// Restores the checkpoint and runs the initialiser, with the paths of assets fed.
    fn restore(&self, parts: &LoadedParts) -> Result<()> {
        let mut assets = Vec::new();
        for (index, file) in parts.meta_graph.asset_file_def.iter().enumerate() {
            let name = file.tensor_info.as_ref().and_then(|info| match &info.encoding {
                Some(Encoding::Name(name)) => Some(name.as_str()),
                _ => None,
            });
            let path = parts.asset(index as i32)?;
            if let Some(name) = name {
                // A tensor that is listed twice has the last of its files.
                assets.retain(|(listed, _)| *listed != name);
                assets.push((name, path_tensor(&path)));
            }
        }
        let variables = parts.variables();
        if let Some(saver) = &parts.meta_graph.saver_def
            && !saver.restore_op_name.is_empty()
            && files::exists(&variables.with_extension("index"))
        {
            let mut feeds = assets.clone();
            feeds.push((&saver.filename_tensor_name, path_tensor(&variables)));
            self.run(&feeds, &[], &[&saver.restore_op_name])?;
        }
        let initializers = initializers(&parts.folder, &parts.meta_graph)?;
        if initializers.is_empty() {
            return Ok(());
        }
        let targets: Vec<&str> = initializers.iter().map(String::as_str).collect();
        self.run(&assets, &[], &targets).map(|_| ())
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The graph.
    pub fn graph(&self) -> &LoadedGraph {
        &self.graph
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
                let ty = self.graph.input_type(part.tensor)?;
                inputs.push((part.key, TensorSpec::new(ty.dtype, ty.shape)));
            }
        }
        Ok(inputs)
    }

    /// The outputs of a signature: names, sorted, and what is known of each before a run. The parts
    /// of a sparse tensor are outputs of their own.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature_outputs(&self, key: &str) -> Result<Vec<(String, Option<ValueType>)>> {
        let mut outputs = Vec::new();
        for (name, info) in &self.signature(key)?.outputs {
            for part in parts_of(name, info)? {
                outputs.push((part.key, self.graph.input_type(part.tensor).ok()));
            }
        }
        Ok(outputs)
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
        let call = self.signature_call(key, inputs)?;
        Ok(call.outputs.into_iter().zip(call.function.call(&call.args)?).collect())
    }

    /// Runs a signature in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call_signature`](Session::call_signature).
    pub fn call_signature_with(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
        options: &RunOptions,
    ) -> Result<(BTreeMap<String, EagerTensor>, RunMetadata)> {
        let SignatureCall { function, args, outputs } = self.signature_call(key, inputs)?;
        let args: Vec<&EagerTensor> = args.iter().collect();
        let (results, metadata) = function.call_with_options(options, &args)?;
        Ok((outputs.into_iter().zip(results).collect(), metadata))
    }

    /// The memory that a call of a signature with inputs like these takes, as far as it is known
    /// before the call.
    ///
    /// # Errors
    ///
    /// As [`call_signature`](Session::call_signature), but for what depends on values.
    pub fn signature_memory(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<MemoryEstimate> {
        let call = self.signature_call(key, inputs)?;
        let types: Vec<ValueType> = call.args.iter().map(value_type).collect();
        Ok(call.function.memory_estimate(&types)?)
    }

    /// The call that a signature is with these inputs.
    fn signature_call(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<SignatureCall> {
        let signature = self.signature(key)?;
        let (mut feeds, mut args) = (Vec::new(), Vec::new());
        let mut fed: HashSet<&str> = inputs.keys().map(String::as_str).collect();
        for (name, info) in &signature.inputs {
            for part in parts_of(name, info)? {
                let value = match inputs.get(&part.key) {
                    Some(value) => Some(value.clone()),
                    None => default_of(signature, &part.key)?,
                };
                let value = value.ok_or_else(|| wrong_inputs(key, signature, inputs))?;
                let ty = self.graph.input_type(part.tensor)?;
                let spec = TensorSpec::new(ty.dtype, ty.shape);
                if !spec.accepts(&value.spec()) {
                    return Err(Error::SignatureInput {
                        signature: key.into(),
                        input: part.key.clone(),
                        expected: spec.to_string(),
                        found: value.spec().to_string(),
                    });
                }
                fed.remove(part.key.as_str());
                feeds.push(part.tensor);
                args.push(value);
            }
        }
        if !fed.is_empty() {
            return Err(wrong_inputs(key, signature, inputs));
        }
        let mut outputs = Vec::new();
        for (name, info) in &signature.outputs {
            outputs.extend(parts_of(name, info)?);
        }
        let fetches: Vec<&str> = outputs.iter().map(|part| part.tensor).collect();
        let function = self.function(&feeds, &fetches, &[])?;
        let outputs = outputs.into_iter().map(|part| part.key).collect();
        Ok(SignatureCall { function, args, outputs })
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
        let (names, args): (Vec<&str>, Vec<EagerTensor>) = feeds.iter().cloned().unzip();
        Ok(self.function(&names, fetches, targets)?.call(&args)?)
    }

    /// Function behind [`run`](Session::run), of the tensors that are fed. It works on the
    /// variables of the session.
    ///
    /// # Errors
    ///
    /// When a name does not exist, or the state of the session could not be restored.
    pub fn function(
        &self,
        feeds: &[&str],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<CallableFunction> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone().into());
        }
        let request = Request::new(feeds, fetches, targets);
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(&request) {
            return Ok(function.clone());
        }
        let name = request.fetches.first().or(request.targets.first()).map_or("", String::as_str);
        let name = format!("run of {name}");
        let def = Arc::new(self.graph.part(&name, &request, OtherEffects::Drop)?);
        let (library, resources) = (self.graph.library().clone(), self.resources.clone());
        let function =
            CallableFunction::with_captures(&self.context, def, library, resources, Vec::new());
        functions.insert(request, function.clone());
        Ok(function)
    }
}

/// A function of a session that does what a signature tells.
struct SignatureCall {
    function: CallableFunction,
    args: Vec<EagerTensor>,
    /// The names of its results.
    outputs: Vec<String>,
}

/// A tensor of a signature's input or output.
pub(crate) struct SignaturePart<'a> {
    /// The name callers use.
    pub(crate) key: String,
    /// The name in the graph.
    pub(crate) tensor: &'a str,
}

/// The tensors of an input or output: one, or three of a sparse tensor.
pub(crate) fn parts_of<'a>(
    name: &str,
    info: &'a proto::TensorInfo,
) -> Result<Vec<SignaturePart<'a>>> {
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

fn wrong_inputs(
    key: &str,
    signature: &proto::SignatureDef,
    inputs: &BTreeMap<String, EagerTensor>,
) -> Error {
    let names = |names: Vec<&str>| format!("[{}]", names.join(", "));
    Error::SignatureInput {
        signature: key.into(),
        input: "the inputs".into(),
        expected: names(signature.inputs.keys().map(String::as_str).collect()),
        found: names(inputs.keys().map(String::as_str).collect()),
    }
}

/// The key of the signature that names the initialiser.
pub(crate) const INIT_OP: &str = "__saved_model_init_op";

/// The ops that initialise a MetaGraph: that of the signature or of one of two collections, or else
/// those of its tables and local variables, as TensorFlow 2 loads a model that names none.
fn initializers(folder: &Path, meta_graph: &proto::MetaGraphDef) -> Result<Vec<String>> {
    let signature = meta_graph.signature_def.get(INIT_OP);
    let from_signature = signature.and_then(|signature| signature.outputs.get(INIT_OP));
    if let Some(Encoding::Name(name)) = from_signature.and_then(|info| info.encoding.as_ref()) {
        return Ok(vec![name.clone()]);
    }
    let named = |key| nodes_of(meta_graph, key).first().cloned();
    if let Some(name) = ["saved_model_main_op", "legacy_init_op"].into_iter().find_map(named) {
        return Ok(vec![name]);
    }
    let mut ops = nodes_of(meta_graph, "table_initializer").to_vec();
    if let Some(Kind::BytesList(variables)) = collection(meta_graph, "local_variables") {
        for bytes in &variables.value {
            let path = folder.join("saved_model.pb");
            let variable: proto::VariableDef = decode_message(&path, bytes.clone())?;
            ops.push(variable.initializer_name);
        }
    }
    ops.retain(|name| !name.is_empty());
    Ok(ops)
}

fn collection<'a>(meta_graph: &'a proto::MetaGraphDef, key: &str) -> Option<&'a Kind> {
    meta_graph.collection_def.get(key)?.kind.as_ref()
}

/// The names of nodes in a collection.
fn nodes_of<'a>(meta_graph: &'a proto::MetaGraphDef, key: &str) -> &'a [String] {
    match collection(meta_graph, key) {
        Some(Kind::NodeList(list)) => &list.value,
        _ => &[],
    }
}

pub(crate) fn path_tensor(path: &Path) -> EagerTensor {
    HostTensor::scalar_string(path.to_string_lossy().into_owned()).into()
}
