//! A loaded MetaGraph of TensorFlow 2: objects with variables and functions.

mod check;
mod load_order;
mod object;
mod resources;

use crate::{
    convert,
    defaults::defaults_of,
    error::{Error, Result},
    function::Signature,
    load::LoadedParts,
    partial,
    proto::{self, SavedConcreteFunction, SavedObject, saved_object::Kind},
    session::{INIT_OP, Session},
    structured_value::StructuredValue,
};
use ferroflow_ir::{TensorSpec, ValueType};
use ferroflow_runtime::{
    CallableFunction, CapturedInput, EagerTensor, MemoryEstimate, ResourceManager,
    ResourceVariable, RunMetadata, RunOptions,
    mirrored::{VariableAggregation, VariableSynchronization},
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

pub use object::Object;

/// A loaded SavedModel.
#[derive(Debug, Clone)]
pub enum SavedModel {
    /// Objects with variables and functions, as TensorFlow 2 saves them.
    Objects(Model),
    /// A graph with signatures, as TensorFlow 1 saves it.
    Session(Arc<Session>),
}

impl SavedModel {
    /// The names of the signatures, sorted.
    pub fn signatures(&self) -> Vec<String> {
        match self {
            SavedModel::Objects(model) => model.signatures(),
            SavedModel::Session(session) => session.signatures().map(str::to_string).collect(),
        }
    }

    /// Calls a signature: inputs and outputs by name.
    ///
    /// # Errors
    ///
    /// When there is no such signature, the inputs are not those it takes, or whatever fails in it.
    pub fn call_signature(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<BTreeMap<String, EagerTensor>> {
        match self {
            SavedModel::Objects(model) => model.signature(key)?.call(inputs),
            SavedModel::Session(session) => session.call_signature(key, inputs),
        }
    }

    /// Calls a signature in this way; also tells what the run did.
    ///
    /// # Errors
    ///
    /// As [`call_signature`](SavedModel::call_signature).
    pub fn call_signature_with(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
        options: &RunOptions,
    ) -> Result<(BTreeMap<String, EagerTensor>, RunMetadata)> {
        match self {
            SavedModel::Objects(model) => model.signature(key)?.call_with(inputs, options),
            SavedModel::Session(session) => session.call_signature_with(key, inputs, options),
        }
    }

    /// The memory that a call of a signature with inputs like these takes, as far as it is known before
    /// the call.
    ///
    /// # Errors
    ///
    /// As [`call_signature`](SavedModel::call_signature), but for what depends on values.
    pub fn signature_memory(
        &self,
        key: &str,
        inputs: &BTreeMap<String, EagerTensor>,
    ) -> Result<MemoryEstimate> {
        match self {
            SavedModel::Objects(model) => model.signature(key)?.memory_estimate(inputs),
            SavedModel::Session(session) => session.signature_memory(key, inputs),
        }
    }

    /// The inputs of a signature: names and specs, sorted by name.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature_inputs(&self, key: &str) -> Result<Vec<(String, TensorSpec)>> {
        match self {
            SavedModel::Objects(model) => Ok(model.signature(key)?.inputs().to_vec()),
            SavedModel::Session(session) => session.signature_inputs(key),
        }
    }

    /// The outputs of a signature: names, sorted, and what is known of each before a call.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature_outputs(&self, key: &str) -> Result<Vec<(String, Option<ValueType>)>> {
        match self {
            SavedModel::Objects(model) => {
                let signature = model.signature(key)?;
                Ok(signature.outputs().map(|(name, ty)| (name.to_string(), ty)).collect())
            }
            SavedModel::Session(session) => session.signature_outputs(key),
        }
    }

    /// The root object, if the model has objects.
    pub fn root(&self) -> Option<Object> {
        match self {
            SavedModel::Objects(model) => Some(model.root()),
            SavedModel::Session(_) => None,
        }
    }

    /// The model's graph as a session, as loaders of TensorFlow 1 see it. A model with objects
    /// gets state of its own there, restored once more.
    ///
    /// # Errors
    ///
    /// When the graph is malformed or its state cannot be restored.
    pub fn session(&self) -> Result<Arc<Session>> {
        match self {
            SavedModel::Objects(model) => model.session(),
            SavedModel::Session(session) => Ok(session.clone()),
        }
    }
}

/// The objects of a MetaGraph. Cheap to clone; clones are the same objects.
#[derive(Clone)]
pub struct Model(Arc<State>);

struct State {
    parts: Arc<LoadedParts>,
    /// Resources by name.
    resources: Arc<ResourceManager>,
    objects: Arc<Vec<SavedObject>>,
    concrete: Arc<BTreeMap<String, SavedConcreteFunction>>,
    /// Objects that are loaded: all, unless a part was asked for.
    kept: Vec<bool>,
    /// State of each object while the program runs.
    live: Vec<Live>,
    functions: Mutex<HashMap<String, CallableFunction>>,
    session: OnceLock<Arc<Session>>,
    /// Held while variables get their first values.
    first_values: Arc<Mutex<()>>,
}

/// An object while the program runs.
enum Live {
    Variable(ResourceVariable),
    /// The handle, once the creator has run; or why there is none.
    Resource(OnceLock<Result<EagerTensor, ferroflow_runtime::Error>>),
    Plain,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<model of {} objects>", self.0.objects.len())
    }
}

impl Model {
    pub(crate) fn load(mut parts: LoadedParts, only: Option<&[String]>) -> Result<Model> {
        let saved = parts.meta_graph.object_graph_def.take().unwrap_or_default();
        let kept = match only {
            Some(paths) => partial::kept(&saved, paths)?,
            None => vec![true; saved.nodes.len()],
        };
        let model = Model(Arc::new(State {
            resources: parts.resources.clone(),
            parts: Arc::new(parts),
            live: live_objects(&saved.nodes, &kept)?,
            objects: Arc::new(saved.nodes),
            concrete: Arc::new(saved.concrete_functions),
            kept,
            functions: Mutex::default(),
            session: OnceLock::new(),
            first_values: Arc::default(),
        }));
        model.check()?;
        model.create_resources();
        model.restore()?;
        model.initialize()?;
        Ok(model)
    }

    /// The same objects with state of their own: variables have no values yet.
    pub(crate) fn anew(&self, kept: Vec<bool>) -> Result<Model> {
        let state = &*self.0;
        let model = Model(Arc::new(State {
            parts: state.parts.clone(),
            resources: Arc::new(ResourceManager::of_folder(&state.parts.folder)),
            live: live_objects(&state.objects, &kept)?,
            objects: state.objects.clone(),
            concrete: state.concrete.clone(),
            kept,
            functions: Mutex::default(),
            session: OnceLock::new(),
            first_values: Arc::default(),
        }));
        model.create_resources();
        model.initialize()?;
        Ok(model)
    }

    /// The objects as the file has them.
    pub(crate) fn messages(&self) -> &[SavedObject] {
        &self.0.objects
    }

    /// The root object.
    pub fn root(&self) -> Object {
        self.at(0)
    }

    /// Where it is, of all its clones.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The folder it was loaded from.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.0.parts.folder
    }

    /// The functions as the file has them.
    pub(crate) fn definitions(&self) -> &crate::convert::Definitions {
        &self.0.parts.definitions
    }

    /// The functions, converted as they are asked for.
    pub(crate) fn library(&self) -> &Arc<ferroflow_ir::FunctionLibrary> {
        &self.0.parts.library
    }

    /// The MetaGraph, but for its objects and functions.
    pub(crate) fn meta_graph(&self) -> &proto::MetaGraphDef {
        &self.0.parts.meta_graph
    }

    /// Message of the file about a concrete function.
    pub(crate) fn concrete_message(&self, name: &str) -> Option<&SavedConcreteFunction> {
        self.0.concrete.get(name)
    }

    pub(crate) fn at(&self, id: usize) -> Object {
        Object { model: self.clone(), id }
    }

    pub(crate) fn object(&self, id: i32) -> Result<Object> {
        let id = usize::try_from(id).ok().filter(|&id| id < self.0.objects.len());
        let n_objects = self.0.objects.len();
        let rule = || format!("there are {n_objects} objects");
        id.map(|id| self.at(id)).ok_or_else(|| Error::Object { id: n_objects, rule: rule() })
    }

    /// The names of the signatures, sorted.
    pub fn signatures(&self) -> Vec<String> {
        match self.root().child("signatures") {
            Some(signatures) => {
                let mut names = signatures.children();
                names.sort();
                names
            }
            None => Vec::new(),
        }
    }

    /// A signature.
    ///
    /// # Errors
    ///
    /// [`Error::NoSignature`] when there is none of this name.
    pub fn signature(&self, key: &str) -> Result<Signature> {
        let found = self.root().child("signatures").and_then(|signatures| signatures.child(key));
        let available = || self.signatures();
        let object =
            found.ok_or_else(|| Error::NoSignature { name: key.into(), available: available() })?;
        let (name, function) = object.concrete()?;
        let defaults = defaults_of(self.signature_def(key))?;
        Signature::new(key, function, &self.saved_function(&name)?, defaults)
    }

    /// The message of a signature, with what a session knows of it.
    pub fn signature_def(&self, key: &str) -> Option<&proto::SignatureDef> {
        self.0.parts.meta_graph.signature_def.get(key).filter(|_| key != INIT_OP)
    }

    fn session(&self) -> Result<Arc<Session>> {
        if let Some(session) = self.0.session.get() {
            return Ok(session.clone());
        }
        let parts = &self.0.parts;
        let mut meta_graph = parts.meta_graph.clone();
        let graph = meta_graph.graph_def.get_or_insert_default();
        graph.library = Some(parts.definitions.library().clone());
        let parts = LoadedParts::new(&parts.context, &parts.folder, meta_graph)?;
        let session = Arc::new(Session::load(parts)?);
        Ok(self.0.session.get_or_init(|| session).clone())
    }

    /// The signature of a concrete function.
    fn saved_function(&self, name: &str) -> Result<SavedSignature> {
        let saved = self.0.concrete.get(name).ok_or_else(|| {
            Error::from(ferroflow_ir::Error::NotFound { kind: "function", name: name.into() })
        })?;
        let limits = self.0.parts.definitions.limits();
        let structure = |value: &Option<proto::StructuredValue>, kind| match value {
            Some(value) => Ok(convert::structured_value(value, limits)?),
            None => Err(Error::from(ferroflow_ir::Error::NotFound { kind, name: name.into() })),
        };
        Ok(SavedSignature {
            inputs: structure(&saved.canonicalized_input_signature, "input signature of function")?,
            outputs: structure(&saved.output_signature, "output signature of function")?,
        })
    }

    /// A concrete function with its captures.
    fn concrete_function(&self, name: &str) -> Result<CallableFunction> {
        let state = &*self.0;
        let known =
            state.functions.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(function) = known {
            return Ok(function);
        }
        let saved = state.concrete.get(name).ok_or_else(|| {
            Error::from(ferroflow_ir::Error::NotFound { kind: "function", name: name.into() })
        })?;
        let captures: Vec<CapturedInput> = saved
            .bound_inputs
            .iter()
            .map(|&input| self.object(input)?.capture())
            .collect::<Result<_>>()?;
        let def = state.parts.library.get(name)?;
        if def.args.len() < captures.len() {
            let found = format!("{} arguments for {} captures", def.args.len(), captures.len());
            let (name, expected) = (name.to_string(), "an argument for each capture");
            return Err(ferroflow_ir::Error::argument(name, "captures", expected, found).into());
        }
        let (library, resources) = (state.parts.library.clone(), state.resources.clone());
        let function = CallableFunction::with_captures(
            &state.parts.context,
            def,
            library,
            resources,
            captures,
        );
        let mut functions = state.functions.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(functions.entry(name.into()).or_insert(function).clone())
    }
}

/// The arguments and results of a concrete function, as the file describes them.
#[derive(Debug, Clone)]
pub(crate) struct SavedSignature {
    pub(crate) inputs: StructuredValue,
    pub(crate) outputs: StructuredValue,
}

fn live_objects(objects: &[SavedObject], kept: &[bool]) -> Result<Vec<Live>> {
    let live = |(object, &is_kept): (&SavedObject, &bool)| match is_kept {
        true => live(object),
        false => Ok(Live::Plain),
    };
    objects.iter().zip(kept).map(live).collect()
}

fn live(object: &SavedObject) -> Result<Live> {
    Ok(match &object.kind {
        Some(Kind::Variable(saved)) => {
            let dtype = convert::value_dtype(saved.dtype)?;
            let shape = match &saved.shape {
                Some(shape) => convert::shape(shape)?,
                None => ferroflow_ir::PartialShape::Unknown,
            };
            let variable =
                ResourceVariable::uninitialized(&*saved.name, dtype, shape, saved.trainable);
            let (synchronization, aggregation) = annotations(saved)?;
            variable.annotate(synchronization, aggregation);
            Live::Variable(variable)
        }
        Some(Kind::Resource(_)) => Live::Resource(OnceLock::new()),
        _ => Live::Plain,
    })
}

/// Annotations of a file about a variable, for strategies.
fn annotations(
    saved: &proto::SavedVariable,
) -> Result<(VariableSynchronization, VariableAggregation)> {
    let wrong = |what: &'static str, found: i32| {
        let variable = format!("variable `{}`", saved.name);
        ferroflow_ir::Error::argument(variable, what, "a mode from 0 to 3", found)
    };
    let (synchronization, aggregation) = (saved.synchronization, saved.aggregation);
    Ok((
        VariableSynchronization::from_number(synchronization)
            .ok_or_else(|| wrong("its synchronization", synchronization))?,
        VariableAggregation::from_number(aggregation)
            .ok_or_else(|| wrong("its aggregation", aggregation))?,
    ))
}

fn bad_capture(function: &str, input: i32, found: &str) -> Error {
    let expected = "an object with a tensor";
    let found = format!("{found} (object {input})");
    ferroflow_ir::Error::argument(function.to_string(), "a capture", expected, found).into()
}
