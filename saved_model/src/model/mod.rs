//! A loaded MetaGraph of TensorFlow 2: objects with variables and functions.

use crate::{
    bundle::Reader,
    convert,
    error::{Error, Result},
    function::{RestoredFunction, Signature},
    load::Parts,
    partial,
    proto::{self, SavedConcreteFunction, SavedObject, saved_object::Kind},
    restore::{VARIABLE_VALUE, checkpoint_keys, object_graph},
    session::{INIT_OP, Session, path_tensor},
    structured_value::StructuredValue,
};
use ferroflow_ir::{HostTensor, TensorSpec};
use ferroflow_runtime::{
    Capture, ConcreteFunction, EagerTensor, ResourceHandle, ResourceManager, Variable,
};
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

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
    parts: Arc<Parts>,
    /// Resources by name.
    resources: Arc<ResourceManager>,
    objects: Arc<Vec<SavedObject>>,
    concrete: Arc<BTreeMap<String, SavedConcreteFunction>>,
    /// Which objects are loaded: all, unless a part was asked for.
    kept: Vec<bool>,
    /// What each object is while the program runs.
    live: Vec<Live>,
    functions: Mutex<HashMap<String, ConcreteFunction>>,
    session: OnceLock<Arc<Session>>,
    /// Held while variables get their first values.
    first_values: Arc<Mutex<()>>,
}

/// An object while the program runs.
enum Live {
    Variable(Variable),
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
    pub(crate) fn load(mut parts: Parts, only: Option<&[String]>) -> Result<Model> {
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

    /// Checks that objects refer to objects and functions that are there.
    fn check(&self) -> Result<()> {
        let state = &*self.0;
        for (id, object) in state.objects.iter().enumerate() {
            let children = object.children.iter().chain(&object.dependencies);
            for child in children {
                self.object(child.node_id).map_err(|_| Error::Object {
                    id,
                    rule: format!("`{}` refers to object {}", child.local_name, child.node_id),
                })?;
            }
            let names: Vec<&str> = match &object.kind {
                Some(Kind::Function(function)) => {
                    function.concrete_functions.iter().map(String::as_str).collect()
                }
                Some(Kind::BareConcreteFunction(function)) => {
                    vec![&function.concrete_function_name]
                }
                Some(Kind::Asset(asset)) => {
                    state.parts.asset(asset.asset_file_def_index)?;
                    Vec::new()
                }
                Some(Kind::Constant(constant)) => {
                    state.parts.constant(&constant.operation)?;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            for name in names {
                let known = state.concrete.contains_key(name) && state.parts.library.contains(name);
                if !known {
                    let name = name.to_string();
                    return Err(ferroflow_ir::Error::NotFound { kind: "function", name }.into());
                }
            }
        }
        for (name, function) in state.concrete.iter() {
            for &input in &function.bound_inputs {
                let object =
                    self.object(input).map_err(|_| bad_capture(name, input, "no object"))?;
                let can_be_bound = matches!(
                    object.kind(),
                    Some(
                        Kind::Variable(_)
                            | Kind::Constant(_)
                            | Kind::Asset(_)
                            | Kind::Resource(_)
                            | Kind::CapturedTensor(_)
                    )
                );
                if !can_be_bound {
                    return Err(bad_capture(name, input, "no tensor"));
                }
            }
        }
        Ok(())
    }

    /// Runs the functions that make resources. One that cannot run here leaves its error where
    /// the resource would be.
    fn create_resources(&self) {
        for (id, live) in self.0.live.iter().enumerate() {
            let Live::Resource(handle) = live else { continue };
            let made = self.resource_function(id, "_create_resource").and_then(|create| {
                let results = create.map_or_else(|| Ok(Vec::new()), |create| Ok(create.call(&[])?));
                results.map(|results| results.into_iter().next())
            });
            let made = match made {
                Ok(Some(handle)) => Ok(handle),
                Ok(None) => Err(no_creator(id)),
                Err(error) => Err(error.into_runtime()),
            };
            handle.get_or_init(|| made);
        }
    }

    fn resource_function(&self, id: usize, name: &str) -> Result<Option<ConcreteFunction>> {
        let child = self.at(id).child(name);
        child.map(|child| child.only_function()).transpose()
    }

    /// Runs the functions that fill resources.
    fn initialize(&self) -> Result<()> {
        for (id, live) in self.0.live.iter().enumerate() {
            let Live::Resource(handle) = live else { continue };
            if !matches!(handle.get(), Some(Ok(_))) {
                continue;
            }
            let initialize = self.resource_function(id, "_initialize");
            let initialized = initialize.and_then(|f| Ok(f.map(|f| f.call(&[])).transpose()?));
            tolerate_unimplemented(initialized)?;
        }
        Ok(())
    }

    /// Reads the values of variables and tables from the checkpoint, on several threads.
    fn restore(&self) -> Result<()> {
        let state = &*self.0;
        let variables: Vec<(usize, &Variable)> = state
            .live
            .iter()
            .enumerate()
            .filter_map(|(id, live)| match live {
                Live::Variable(variable) => Some((id, variable)),
                Live::Resource(_) | Live::Plain => None,
            })
            .collect();
        let mut objects = state.objects.iter().zip(&state.kept);
        let has_tables = objects.any(|(object, kept)| *kept && !object.saveable_objects.is_empty());
        if variables.is_empty() && !has_tables {
            return Ok(());
        }
        let reader = Reader::open(state.parts.variables(), state.parts.context.limits())?;
        let stored = object_graph(&reader)?;
        let keys = checkpoint_keys(&state.objects, &stored);
        let mut jobs = Vec::with_capacity(variables.len());
        let mut missing = Vec::new();
        for (id, variable) in variables {
            match keys.get(&id).and_then(|keys| keys.get(VARIABLE_VALUE)) {
                Some(&key) => jobs.push((variable, key)),
                None => missing.push(variable.name().to_string()),
            }
        }
        if !missing.is_empty() {
            return Err(Error::NotRestored { prefix: reader.prefix().into(), names: missing });
        }
        let failure = OnceLock::new();
        state.parts.context.threads().for_each(jobs.into_iter(), |(variable, key)| {
            let restored = reader.read(key).and_then(|value| Ok(variable.assign(value)?));
            if let Err(error) = restored {
                failure.get_or_init(|| error);
            }
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        self.restore_tables(&reader, &keys)
    }

    /// Objects that are no variables are restored by functions of their own.
    fn restore_tables(
        &self,
        reader: &Reader,
        keys: &HashMap<usize, HashMap<&str, &str>>,
    ) -> Result<()> {
        for (id, object) in self.0.objects.iter().enumerate().filter(|(id, _)| self.0.kept[*id]) {
            for (name, saveable) in &object.saveable_objects {
                let Some(&key) = keys.get(&id).and_then(|keys| keys.get(name.as_str())) else {
                    continue;
                };
                let parts = reader.entries().map(|(entry, _)| entry);
                let own = parts.filter(|entry| {
                    entry
                        .strip_prefix(key)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                });
                let values: Vec<EagerTensor> =
                    own.map(|entry| Ok(reader.read(entry)?.into())).collect::<Result<_>>()?;
                let restore = self.object(saveable.restore_function)?;
                let restored = restore.only_function().and_then(|f| Ok(f.call(&values)?));
                tolerate_unimplemented(restored)?;
            }
        }
        Ok(())
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

    /// What the file says of a concrete function.
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
        Signature::new(key, function, &self.saved_function(&name)?)
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
        let parts = Parts::new(&parts.context, &parts.folder, meta_graph)?;
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
    fn concrete_function(&self, name: &str) -> Result<ConcreteFunction> {
        let state = &*self.0;
        let known =
            state.functions.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(function) = known {
            return Ok(function);
        }
        let saved = state.concrete.get(name).ok_or_else(|| {
            Error::from(ferroflow_ir::Error::NotFound { kind: "function", name: name.into() })
        })?;
        let captures: Vec<Capture> = saved
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
        let function = ConcreteFunction::with_captures(
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
            Live::Variable(Variable::uninitialized(&*saved.name, dtype, shape, saved.trainable))
        }
        Some(Kind::Resource(_)) => Live::Resource(OnceLock::new()),
        _ => Live::Plain,
    })
}

/// What cannot be filled here stays empty; whoever uses it finds that out.
fn tolerate_unimplemented<T>(result: Result<T>) -> Result<()> {
    match result {
        Err(error) if error.code() != ferroflow_ir::Code::Unimplemented => Err(error),
        _ => Ok(()),
    }
}

fn bad_capture(function: &str, input: i32, found: &str) -> Error {
    let expected = "an object with a tensor";
    let found = format!("{found} (object {input})");
    ferroflow_ir::Error::argument(function.to_string(), "a capture", expected, found).into()
}

fn no_creator(id: usize) -> ferroflow_runtime::Error {
    let message = format!("resource object {id} has no function that creates it");
    ferroflow_runtime::Error::Status { code: ferroflow_ir::Code::NotFound, message }
}

/// An object of a loaded model. The model lives as long as any of its objects.
#[derive(Clone, Debug)]
pub struct Object {
    model: Model,
    id: usize,
}

impl Object {
    fn saved(&self) -> &SavedObject {
        &self.model.0.objects[self.id]
    }

    /// The model it belongs to.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Its number in the file.
    pub(crate) fn number(&self) -> usize {
        self.id
    }

    /// What the file says of it.
    pub(crate) fn message(&self) -> &SavedObject {
        self.saved()
    }

    /// What an edge leads to, whatever it is called.
    pub(crate) fn edge(&self, name: &str) -> Option<Object> {
        let child = self.saved().children.iter().find(|child| child.local_name == name)?;
        self.model.object(child.node_id).ok().filter(|_| self.is_kept(child.node_id))
    }

    fn is_kept(&self, id: i32) -> bool {
        usize::try_from(id).is_ok_and(|id| self.model.0.kept.get(id) == Some(&true))
    }

    /// The handle of a resource that could be made.
    pub(crate) fn handle(&self) -> Option<&EagerTensor> {
        match &self.model.0.live[self.id] {
            Live::Resource(handle) => handle.get()?.as_ref().ok(),
            Live::Variable(_) | Live::Plain => None,
        }
    }

    /// What the file says the object is.
    pub fn kind(&self) -> Option<&Kind> {
        self.saved().kind.as_ref()
    }

    /// The names of its children, in the order of the file.
    pub fn children(&self) -> Vec<String> {
        let children = self.saved().children.iter().filter(|child| self.is_kept(child.node_id));
        children.map(|child| child.local_name.clone()).collect()
    }

    /// A child by name. The elements of a list or tuple go by their numbers alone: TensorFlow
    /// forgets the field names of a named tuple when it loads one.
    pub fn child(&self, name: &str) -> Option<Object> {
        if self.is_sequence() && name.parse::<usize>().is_err() {
            return None;
        }
        self.edge(name)
    }

    fn is_sequence(&self) -> bool {
        matches!(self.kind(), Some(Kind::UserObject(object))
            if ["trackable_list_wrapper", "trackable_tuple_wrapper"]
                .contains(&object.identifier.as_str()))
    }

    /// The object that a path leads to: names of children with dots between them. The empty path
    /// is the object itself.
    ///
    /// # Errors
    ///
    /// [`Error::NoObject`] when the path leads nowhere.
    pub fn get(&self, path: &str) -> Result<Object> {
        let mut object = self.clone();
        let mut rest = path;
        while !rest.is_empty() {
            // A name may hold dots itself, so the longest name that fits is taken.
            let ends = rest.match_indices('.').map(|(at, _)| at).chain([rest.len()]);
            let found = ends.rev_by_length().find_map(|end| {
                object.child(&rest[..end]).map(|child| (child, rest.get(end + 1..).unwrap_or("")))
            });
            let (child, remaining) = found.ok_or_else(|| Error::NoObject {
                path: path.into(),
                name: rest.split('.').next().unwrap_or("").into(),
                available: object.children(),
            })?;
            (object, rest) = (child, remaining);
        }
        Ok(object)
    }

    /// The variable, if the object is one.
    pub fn variable(&self) -> Option<&Variable> {
        match &self.model.0.live[self.id] {
            Live::Variable(variable) => Some(variable),
            Live::Resource(_) | Live::Plain => None,
        }
    }

    /// The function, if the object is one or can be called.
    ///
    /// # Errors
    ///
    /// [`Error::NotAFunction`] when it is neither, or whatever is wrong with the function.
    pub fn function(&self) -> Result<RestoredFunction> {
        let limits = self.model.0.parts.definitions.limits();
        match self.kind() {
            Some(Kind::Function(function)) => {
                let mut traces = Vec::with_capacity(function.concrete_functions.len());
                for name in &function.concrete_functions {
                    let concrete = self.model.concrete_function(name)?;
                    traces.push((concrete, self.model.saved_function(name)?));
                }
                let restored =
                    RestoredFunction::new(function.function_spec.as_ref(), traces, limits)?;
                let first_values = self.first_values()?;
                Ok(restored.with_first_values(first_values, &self.model.0.first_values))
            }
            Some(Kind::BareConcreteFunction(function)) => {
                let traces = vec![self.described()?];
                RestoredFunction::new(function.function_spec.as_ref(), traces, limits)
            }
            _ => match self.child("__call__") {
                Some(call) => call.function(),
                None => Err(Error::NotAFunction { found: self.describe() }),
            },
        }
    }

    fn describe(&self) -> &'static str {
        match self.kind() {
            Some(Kind::UserObject(_)) => "an object",
            Some(Kind::Asset(_)) => "an asset",
            Some(Kind::Function(_) | Kind::BareConcreteFunction(_)) => "a function",
            Some(Kind::Variable(_)) => "a variable",
            Some(Kind::Constant(_)) => "a constant",
            Some(Kind::Resource(_)) => "a resource",
            Some(Kind::CapturedTensor(_)) => "a tensor of a function",
            None => "nothing",
        }
    }

    /// The concrete function, of an object that is one, with what it takes and gives.
    pub(crate) fn described(&self) -> Result<(ConcreteFunction, SavedSignature)> {
        let (name, function) = self.concrete()?;
        Ok((function, self.model.saved_function(&name)?))
    }

    /// The concrete function, of an object that is one, with its name.
    fn concrete(&self) -> Result<(String, ConcreteFunction)> {
        let Some(Kind::BareConcreteFunction(function)) = self.kind() else {
            return Err(Error::NotAFunction { found: self.describe() });
        };
        let name = function.concrete_function_name.clone();
        let concrete = self.model.concrete_function(&name)?;
        Ok((name, concrete))
    }

    /// The only concrete function of an object that takes no choice.
    pub(crate) fn only_function(&self) -> Result<ConcreteFunction> {
        match self.kind() {
            Some(Kind::Function(function)) => match &function.concrete_functions[..] {
                [only] => self.model.concrete_function(only),
                _ => Err(Error::NotAFunction { found: "a function with several traces" }),
            },
            _ => self.concrete().map(|(_, function)| function),
        }
    }

    /// The tensor that the object is, where it is one.
    ///
    /// # Errors
    ///
    /// When it is none, or its value cannot be had.
    pub fn tensor(&self) -> Result<HostTensor> {
        let parts = &self.model.0.parts;
        match self.kind() {
            Some(Kind::Constant(constant)) => parts.constant(&constant.operation),
            Some(Kind::Asset(asset)) => {
                let path = parts.asset(asset.asset_file_def_index)?;
                Ok(path_tensor(&path).into_host()?)
            }
            Some(Kind::Variable(_)) => match self.variable() {
                Some(variable) => Ok(variable.read()?),
                None => Err(Error::NotATensor { found: self.describe() }),
            },
            _ => Err(Error::NotATensor { found: self.describe() }),
        }
    }

    fn capture(&self) -> Result<Capture> {
        match &self.model.0.live[self.id] {
            Live::Variable(variable) => Ok(Capture::Resource(variable.handle())),
            Live::Resource(handle) => match handle.get() {
                Some(Ok(handle)) => match ResourceHandle::of(handle.host()?) {
                    Ok(found) => Ok(Capture::Resource(found.clone())),
                    Err(_) => Ok(Capture::Tensor(handle.clone())),
                },
                Some(Err(error)) => Err(error.clone().into()),
                None => Err(no_creator(self.id).into()),
            },
            Live::Plain => Ok(Capture::Tensor(self.tensor()?.into())),
        }
    }
}

/// Ends of names, the longest first.
trait ByLength: Iterator<Item = usize> + Sized {
    fn rev_by_length(self) -> std::vec::IntoIter<usize> {
        let mut ends: Vec<usize> = self.collect();
        ends.sort_by(|a, b| b.cmp(a));
        ends.into_iter()
    }
}

impl<I: Iterator<Item = usize>> ByLength for I {}
