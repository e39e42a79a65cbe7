//! The objects of a graph as the file describes them.

use super::{library::SavedLibrary, spec};
use crate::{
    construct::{INITIALIZED, INITIALIZER},
    convert::{StoredHandle, partial_shape_message, structured_message, structured_type},
    error::{Error, Result},
    model::{Model, Object},
    proto::{
        self, SavedBareConcreteFunction, SavedConcreteFunction, SavedObject, SavedUserObject,
        saved_object::Kind as SavedKind, trackable_object_graph::trackable_object::ObjectReference,
    },
    structured_value::StructuredValue,
};
use ferroflow_ir::{DType, HostTensor};
use ferroflow_runtime::{
    CapturedInput, EagerTensor,
    trackable::{
        Asset, ExportedFunction, ExportedParameter, ExportedTrace, ObjectGraph, ObjectKind,
        ObjectNode,
    },
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The type of objects that loaders need not know.
const GENERIC: &str = "_generic_user_object";

/// The name under which loaders know the type of captured constants.
const CONSTANT: &str = "tf.TrackableConstant";

/// Objects that an object leads to, by name.
type Edges = Vec<(String, usize)>;

/// The objects of a model being saved.
pub(super) struct Objects<'g> {
    pub(super) graph: &'g ObjectGraph,
    /// The objects of the graph in its order, then those that come with functions.
    pub(super) list: Vec<SavedObject>,
    pub(super) concrete: BTreeMap<String, SavedConcreteFunction>,
    pub(super) library: SavedLibrary,
    /// Captured tensors, and the nodes they have become.
    pub(super) constants: Vec<(usize, HostTensor)>,
    /// The files, each with its node.
    pub(super) assets: Vec<(usize, Asset)>,
    /// Functions without traces.
    pub(super) untraced: Vec<String>,
    /// Where resources are, by what their handles refer to.
    resources: HashMap<usize, usize>,
    /// Where captured tensors are, by where their elements are.
    places: HashMap<(usize, String), usize>,
    /// Where objects of loaded models are.
    loaded: HashMap<(usize, usize), usize>,
}

impl<'g> Objects<'g> {
    pub(super) fn new(graph: &'g ObjectGraph) -> Result<Objects<'g>> {
        let mut objects = Objects {
            graph,
            list: vec![SavedObject::default(); graph.nodes.len()],
            concrete: BTreeMap::new(),
            library: SavedLibrary::default(),
            constants: Vec::new(),
            assets: Vec::new(),
            untraced: Vec::new(),
            resources: HashMap::new(),
            places: HashMap::new(),
            loaded: HashMap::new(),
        };
        for (id, node) in graph.nodes.iter().enumerate() {
            match &node.kind {
                ObjectKind::Variable(variable) => {
                    objects.resources.insert(variable.handle().id(), id);
                }
                ObjectKind::Resource(handle) => {
                    objects.resources.insert(handle.id(), id);
                }
                ObjectKind::Asset(asset) => objects.assets.push((id, asset.clone())),
                _ => {}
            }
            if let Some(object) = loaded(node) {
                objects.loaded.insert((object.model().address(), object.number()), id);
            }
        }
        // What was loaded keeps its names, so it comes first.
        for (id, node) in graph.nodes.iter().enumerate() {
            if let Some(object) = loaded(node) {
                objects.list[id] = objects.of_loaded(object, &node.children)?;
            }
        }
        for (id, node) in graph.nodes.iter().enumerate() {
            if loaded(node).is_none() {
                objects.list[id] = objects.of_new(node)?;
            }
        }
        for (id, node) in graph.nodes.iter().enumerate() {
            for saveable in &node.saveables {
                if let Some(functions) = saveable.functions() {
                    let saveable_object = objects.saveable(&functions)?;
                    let named = &mut objects.list[id].saveable_objects;
                    named.insert(saveable.name().into(), saveable_object);
                }
            }
        }
        Ok(objects)
    }

    /// The functions that save and restore what is no variable, as objects.
    fn saveable(
        &mut self,
        [save, restore]: &[Arc<dyn ExportedFunction>; 2],
    ) -> Result<proto::SaveableObject> {
        let mut object = |function: &Arc<dyn ExportedFunction>| -> Result<i32> {
            let trace = function.traces()?.into_iter().next();
            let untraced = || Error::Untraced { function: function.name().into() };
            let object = self.trace_object(&**function, &trace.ok_or_else(untraced)?)?;
            Ok(self.add(object) as i32)
        };
        let (save_function, restore_function) = (object(save)?, object(restore)?);
        Ok(proto::SaveableObject { save_function, restore_function })
    }

    /// Adds an object, returning its number.
    pub(super) fn add(&mut self, object: SavedObject) -> usize {
        self.list.push(object);
        self.list.len() - 1
    }

    fn of_new(&mut self, node: &ObjectNode) -> Result<SavedObject> {
        let mut children = references(&node.children);
        let kind = match &node.kind {
            ObjectKind::Plain => user_object(GENERIC, ""),
            ObjectKind::Typed(ty) => user_object(&ty.identifier, &ty.metadata),
            ObjectKind::Variable(variable) => SavedKind::Variable(proto::SavedVariable {
                dtype: variable.dtype().number(),
                shape: Some(partial_shape_message(variable.shape())),
                trainable: variable.is_trainable(),
                synchronization: variable.annotations().synchronization.number(),
                aggregation: variable.annotations().aggregation.number(),
                name: variable.name().into(),
                ..Default::default()
            }),
            ObjectKind::Function(function) => {
                let (names, traces) = self.traces(&**function)?;
                children.extend(references(&traces));
                children.extend(references(&self.initializers(&**function)?));
                let function_spec = Some(spec::function_spec(&**function)?);
                SavedKind::Function(proto::SavedFunction {
                    concrete_functions: names,
                    function_spec,
                })
            }
            ObjectKind::ConcreteFunction(function) => {
                let traces = function.traces()?;
                let trace = traces
                    .first()
                    .ok_or_else(|| Error::Untraced { function: function.name().into() })?;
                let object = self.trace_object(&**function, trace)?;
                children.extend(object.children);
                object.kind.unwrap_or_else(|| user_object(GENERIC, ""))
            }
            ObjectKind::Asset(asset) => SavedKind::Asset(self.asset(asset)),
            ObjectKind::Resource(_) => SavedKind::Resource(proto::SavedResource::default()),
            ObjectKind::Constant(tensor) => {
                let id = self.constant(tensor.clone());
                return Ok(SavedObject { children, ..self.list[id].clone() });
            }
            ObjectKind::Foreign => user_object(GENERIC, ""),
        };
        let dependencies = dependencies(node)?;
        Ok(SavedObject { children, dependencies, kind: Some(kind), ..SavedObject::default() })
    }

    fn asset(&self, asset: &Asset) -> proto::SavedAsset {
        let index = self.assets.iter().position(|(_, other)| other.path() == asset.path());
        proto::SavedAsset { asset_file_def_index: index.unwrap_or(0) as i32 }
    }

    /// The traces of a function: their names and their objects.
    fn traces(&mut self, function: &dyn ExportedFunction) -> Result<(Vec<String>, Edges)> {
        let traces = function.traces()?;
        if traces.is_empty() {
            self.untraced.push(function.name().into());
        }
        let (mut names, mut objects) = (Vec::new(), Vec::new());
        for (index, trace) in traces.iter().enumerate() {
            let object = self.trace_object(function, trace)?;
            names.push(self.trace(function, trace)?);
            objects.push((format!("trace_{index}"), self.add(object)));
        }
        Ok((names, objects))
    }

    /// The functions that return variables their initial values which a function makes, as objects
    /// that lead to their variables.
    fn initializers(&mut self, function: &dyn ExportedFunction) -> Result<Edges> {
        let mut objects = Vec::new();
        for initializer in function.initializers()? {
            // A variable that nothing leads to cannot be made anew.
            let id = initializer.variable.id();
            let Some(&variable) = self.resources.get(&id) else { continue };
            let mut object = self.trace_object(function, &initializer.trace)?;
            object.children.extend(references(&[(INITIALIZED.into(), variable)]));
            objects.push((format!("{INITIALIZER}{}", objects.len()), self.add(object)));
        }
        Ok(objects)
    }

    fn trace_object(
        &mut self,
        function: &dyn ExportedFunction,
        trace: &ExportedTrace,
    ) -> Result<SavedObject> {
        let name = self.trace(function, trace)?;
        let n_args = trace.def.args.len() - trace.captures.len();
        let arg = |arg: &proto::op_def::ArgDef| arg.name.clone();
        let signature = self.library.get(&name).and_then(|def| def.signature.as_ref());
        let args = signature.map_or(&[][..], |signature| &signature.input_arg);
        let kind = SavedKind::BareConcreteFunction(SavedBareConcreteFunction {
            concrete_function_name: name.clone(),
            argument_keywords: args.iter().take(n_args).map(arg).collect(),
            allowed_positional_arguments: n_args as i64,
            function_spec: Some(spec::trace_spec(function.name(), &function.parameters())?),
        });
        let children = self.captured_children(&name);
        Ok(SavedObject { children, kind: Some(kind), ..SavedObject::default() })
    }

    /// The constants and files among what a function captures, as its children.
    pub(super) fn captured_children(&self, name: &str) -> Vec<ObjectReference> {
        let bound = self.concrete.get(name).map_or(&[][..], |concrete| &concrete.bound_inputs);
        let children = bound.iter().enumerate().filter_map(|(index, &node_id)| {
            let kind = self.list.get(node_id as usize)?.kind.as_ref()?;
            let is_value = matches!(kind, SavedKind::Constant(_) | SavedKind::Asset(_));
            let local_name = format!("capture_{index}");
            is_value.then_some(ObjectReference { node_id, local_name })
        });
        children.collect()
    }

    /// Adds a trace, and returns the name of its function.
    pub(super) fn trace(
        &mut self,
        function: &dyn ExportedFunction,
        trace: &ExportedTrace,
    ) -> Result<String> {
        let name = self.library.add_traced(&trace.def, &trace.library)?;
        if self.concrete.contains_key(&name) {
            return Ok(name);
        }
        let bound_inputs = trace
            .captures
            .iter()
            .map(|capture| Ok(self.captured(function.name(), capture)? as i32));
        let concrete = SavedConcreteFunction {
            bound_inputs: bound_inputs.collect::<Result<_>>()?,
            canonicalized_input_signature: Some(canonical(&function.parameters(), trace)?),
            output_signature: Some(structured_message(&output(trace)?)?),
        };
        self.concrete.insert(name.clone(), concrete);
        Ok(name)
    }

    /// The node of something that a function uses.
    fn captured(&mut self, function: &str, capture: &CapturedInput) -> Result<usize> {
        match capture {
            CapturedInput::Resource(handle) => {
                let resource = handle.resource()?;
                self.resources.get(&handle.id()).copied().ok_or_else(|| Error::Untracked {
                    function: function.into(),
                    kind: resource.kind(),
                    name: handle.name().into(),
                })
            }
            CapturedInput::Tensor(tensor) => self.captured_tensor(function, tensor),
        }
    }

    fn captured_tensor(&mut self, function: &str, tensor: &EagerTensor) -> Result<usize> {
        if let Some((id, _)) = self.assets.iter().find(|(_, asset)| asset.is_path(tensor)) {
            return Ok(*id);
        }
        let tensor = tensor.host()?;
        if lives_in_program(tensor)? {
            return Err(Error::HostValue { function: function.into() });
        }
        Ok(self.constant(tensor.clone()))
    }

    /// The node of a constant; one for each tensor, however often it is captured.
    fn constant(&mut self, tensor: HostTensor) -> usize {
        let slice = tensor.is_plain().then(|| {
            (tensor.bytes().as_ptr() as usize, format!("{}{}", tensor.dtype(), tensor.shape()))
        });
        if let Some(&known) = slice.as_ref().and_then(|place| self.places.get(place)) {
            return known;
        }
        let operation = match self.constants.len() {
            0 => "Const".to_string(),
            number => format!("Const_{number}"),
        };
        let id = self.add(SavedObject {
            kind: Some(SavedKind::Constant(proto::SavedConstant { operation })),
            registered_name: CONSTANT.into(),
            ..SavedObject::default()
        });
        self.constants.push((id, tensor));
        slice.map(|place| self.places.insert(place, id));
        id
    }

    /// An object of a loaded model, with these children.
    fn of_loaded(&mut self, object: &Object, children: &[(String, usize)]) -> Result<SavedObject> {
        let model = object.model();
        let message = object.message();
        let kind = match &message.kind {
            Some(SavedKind::Function(function)) => {
                let names = function.concrete_functions.iter();
                let concrete_functions = names.map(|name| self.loaded_function(model, name));
                SavedKind::Function(proto::SavedFunction {
                    concrete_functions: concrete_functions.collect::<Result<_>>()?,
                    function_spec: function.function_spec.clone(),
                })
            }
            Some(SavedKind::BareConcreteFunction(function)) => {
                let name = self.loaded_function(model, &function.concrete_function_name)?;
                SavedKind::BareConcreteFunction(SavedBareConcreteFunction {
                    concrete_function_name: name,
                    ..function.clone()
                })
            }
            Some(SavedKind::Asset(_)) => match &object.tensor()?.strings()? {
                [path, ..] => {
                    let path = String::from_utf8_lossy(path).into_owned();
                    SavedKind::Asset(self.asset(&Asset::new(path)))
                }
                [] => SavedKind::Asset(proto::SavedAsset::default()),
            },
            Some(SavedKind::Constant(_)) => {
                let operation = self.loaded_constant(object)?;
                SavedKind::Constant(proto::SavedConstant { operation })
            }
            Some(SavedKind::CapturedTensor(tensor)) => {
                let concrete_function =
                    self.library.add_loaded(model, &tensor.concrete_function)?;
                SavedKind::CapturedTensor(proto::CapturedTensor {
                    concrete_function,
                    ..tensor.clone()
                })
            }
            Some(kind) => kind.clone(),
            None => user_object(GENERIC, ""),
        };
        let mut saveable_objects = BTreeMap::new();
        for (name, functions) in &message.saveable_objects {
            let saveable = proto::SaveableObject {
                save_function: self.loaded_node(model, functions.save_function)? as i32,
                restore_function: self.loaded_node(model, functions.restore_function)? as i32,
            };
            saveable_objects.insert(name.clone(), saveable);
        }
        let dependencies = message.dependencies.iter().filter_map(|dependency| {
            let key = (model.address(), usize::try_from(dependency.node_id).ok()?);
            let node_id = *self.loaded.get(&key)? as i32;
            Some(ObjectReference { node_id, ..dependency.clone() })
        });
        let dependencies = dependencies.collect();
        Ok(SavedObject {
            children: references(children),
            dependencies,
            slot_variables: Vec::new(),
            saveable_objects,
            kind: Some(kind),
            ..message.clone()
        })
    }

    /// The name of the node of a loaded constant, which is an object already.
    fn loaded_constant(&mut self, object: &Object) -> Result<String> {
        let key = (object.model().address(), object.number());
        let id = self.loaded.get(&key).copied().unwrap_or(self.list.len());
        let operation = match self.constants.len() {
            0 => "Const".to_string(),
            number => format!("Const_{number}"),
        };
        self.constants.push((id, object.tensor()?));
        Ok(operation)
    }

    /// The node of an object of a loaded model. Constants and functions come along where they are
    /// needed; state must be led to.
    fn loaded_node(&mut self, model: &Model, number: i32) -> Result<usize> {
        let object = model.object(number)?;
        let key = (model.address(), object.number());
        if let Some(&id) = self.loaded.get(&key) {
            return Ok(id);
        }
        let found = object.variable().and_then(|v| self.resources.get(&v.handle().id()).copied());
        if let Some(id) = found {
            return Ok(id);
        }
        let untracked = |kind, name: &str| Error::Untracked {
            function: "of a loaded model".into(),
            kind,
            name: name.into(),
        };
        match object.kind() {
            Some(SavedKind::Variable(variable)) => Err(untracked("a variable", &variable.name)),
            Some(SavedKind::Resource(_)) => Err(untracked("a resource", &number.to_string())),
            Some(SavedKind::Asset(_)) => Err(untracked("an asset", &number.to_string())),
            _ => {
                let id = self.add(SavedObject::default());
                self.loaded.insert(key, id);
                self.list[id] = self.of_loaded(&object, &[])?;
                Ok(id)
            }
        }
    }

    /// Adds a function of a loaded model, and returns its name.
    pub(super) fn loaded_function(&mut self, model: &Model, name: &str) -> Result<String> {
        let new_name = self.library.add_loaded(model, name)?;
        if self.concrete.contains_key(&new_name) {
            return Ok(new_name);
        }
        let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: name.into() };
        let message = model.concrete_message(name).ok_or_else(absent)?;
        let mut concrete = message.clone();
        for input in &mut concrete.bound_inputs {
            let node = self.loaded_node(model, *input).map_err(|error| match error {
                Error::Untracked { kind, name: state, .. } => {
                    Error::Untracked { function: name.into(), kind, name: state }
                }
                error => error,
            });
            *input = node? as i32;
        }
        self.concrete.insert(new_name.clone(), concrete);
        // Gradients have captures too.
        for gradient in self.library.take_loaded(model) {
            if model.concrete_message(&gradient).is_some() {
                self.loaded_function(model, &gradient)?;
            }
        }
        Ok(new_name)
    }

    /// The functions of a node, if it is one.
    pub(super) fn concrete_names(&self, id: usize) -> Vec<&str> {
        match &self.list[id].kind {
            Some(SavedKind::Function(function)) => {
                function.concrete_functions.iter().map(String::as_str).collect()
            }
            Some(SavedKind::BareConcreteFunction(function)) => {
                vec![&function.concrete_function_name]
            }
            _ => Vec::new(),
        }
    }
}

/// The object of a loaded model that a node is.
pub(super) fn loaded(node: &ObjectNode) -> Option<&Object> {
    node.origin.as_ref()?.downcast_ref()
}

pub(super) fn user_object(identifier: &str, metadata: &str) -> SavedKind {
    let version = proto::VersionDef { producer: 1, min_consumer: 1, ..Default::default() };
    SavedKind::UserObject(SavedUserObject {
        identifier: identifier.into(),
        version: Some(version),
        metadata: metadata.into(),
    })
}

pub(super) fn references(children: &[(String, usize)]) -> Vec<ObjectReference> {
    let reference = |(name, id): &(String, usize)| ObjectReference {
        node_id: *id as i32,
        local_name: name.clone(),
    };
    children.iter().map(reference).collect()
}

/// The arguments of a trace as the file describes them: the positional ones and those by name.
fn canonical(
    parameters: &[ExportedParameter],
    trace: &ExportedTrace,
) -> Result<proto::StructuredValue> {
    use ferroflow_ir::function_type::ParameterKind;
    let (mut positional, mut named) = (Vec::new(), BTreeMap::new());
    for parameter in &trace.function_type.parameters {
        let ty = parameter.ty.as_ref().unwrap_or(&ferroflow_ir::TraceType::None);
        let ty = structured_type(ty, &parameter.name)?;
        let declared = parameters.iter().find(|declared| declared.name == parameter.name);
        match declared.map_or(parameter.kind, |declared| declared.kind) {
            ParameterKind::KeywordOnly => drop(named.insert(parameter.name.to_string(), ty)),
            ParameterKind::PositionalOnly
            | ParameterKind::PositionalOrKeyword
            | ParameterKind::VarPositional => positional.push(ty),
        }
    }
    let parts = vec![StructuredValue::Tuple(positional), StructuredValue::Dict(named)];
    Ok(structured_message(&StructuredValue::Tuple(parts))?)
}

/// The result of a trace as the file describes it.
fn output(trace: &ExportedTrace) -> Result<StructuredValue> {
    let none = ferroflow_ir::TraceType::None;
    let ty = trace.function_type.output.as_ref().unwrap_or(&none);
    Ok(structured_type(ty, "unknown")?)
}

/// The children that are loaded before an object.
fn dependencies(node: &ObjectNode) -> Result<Vec<ObjectReference>> {
    let child = |name: &String| match node.children.iter().find(|(child, _)| child == name) {
        Some(child) => Ok(child.clone()),
        None => Err(Error::NoObject {
            path: "what an object depends on".into(),
            name: name.clone(),
            available: node.children.iter().map(|(name, _)| name.clone()).collect(),
        }),
    };
    let found = node.dependencies.iter().map(child).collect::<Result<Vec<_>>>()?;
    Ok(references(&found))
}

/// Whether a tensor holds handles that were not read from a file.
fn lives_in_program(tensor: &HostTensor) -> Result<bool> {
    if !matches!(tensor.dtype(), DType::Variant | DType::Resource) {
        return Ok(false);
    }
    let handles = tensor.handles()?;
    Ok(handles.iter().any(|handle| !handle.as_any().is::<StoredHandle>()))
}
