//! The graph that session-style loaders see: state, files, initialisation, signatures, the saver.

use super::{
    nodes::{Nodes, call, constant_attrs, placeholder_attrs},
    objects::{Objects, loaded},
    saver::{Saved, SavedState, SavedValue},
    signature::WrittenSignature,
};
use crate::{
    checkpoint::{Keyed, Stored},
    convert::{self, partial_shape_message, rename_in_node},
    error::{Error, Result},
    proto::{
        self, TensorInfo, saved_object::Kind as SavedKind, saver_def::CheckpointFormatVersion,
        tensor_info::Encoding,
    },
    restore::OBJECT_GRAPH_KEY,
    session::INIT_OP,
};
use ferroflow_ir::{
    Attrs, DType, FunctionDef, FunctionLibrary, HostTensor, PartialShape, tensor_name,
};
use ferroflow_runtime::trackable::ObjectKind;
use prost::Message;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The messages of defaults of a signature.
fn default_messages(
    defaults: &BTreeMap<String, HostTensor>,
) -> Result<BTreeMap<String, proto::TensorProto>> {
    let message = |(name, value): (&String, _)| Ok((name.clone(), convert::tensor_message(value)?));
    defaults.iter().map(message).collect()
}

/// The collection where loaders look for the op that initialises a model.
const MAIN_OP: &str = "saved_model_main_op";

/// The parts of a MetaGraph that session-style loaders use.
pub(super) struct MainGraph {
    pub(super) nodes: Vec<proto::NodeDef>,
    pub(super) saver_def: proto::SaverDef,
    pub(super) signatures: BTreeMap<String, proto::SignatureDef>,
    pub(super) assets: Vec<proto::AssetFileDef>,
    pub(super) collections: BTreeMap<String, proto::CollectionDef>,
}

/// Writes the graph of objects, files of these names, and signatures.
pub(super) fn main_graph(
    objects: &mut Objects<'_>,
    keyed: &Keyed,
    signatures: &[WrittenSignature],
    asset_names: &[String],
) -> Result<MainGraph> {
    let mut writer = Writer { objects, nodes: Nodes::default(), tensors: HashMap::new() };
    writer.constants()?;
    let (assets, assigned) = writer.assets(asset_names)?;
    writer.state()?;
    let init_op = writer.initializers(assigned)?;
    let mut signature_defs = BTreeMap::new();
    for signature in signatures {
        signature_defs.insert(signature.key.clone(), writer.signature(signature)?);
    }
    let info = TensorInfo {
        tensor_shape: Some(partial_shape_message(&PartialShape::Unknown)),
        encoding: Some(Encoding::Name(init_op.clone())),
        ..TensorInfo::default()
    };
    let init_def =
        proto::SignatureDef { outputs: [(INIT_OP.to_string(), info)].into(), ..Default::default() };
    signature_defs.insert(INIT_OP.into(), init_def);
    let list = proto::collection_def::NodeList { value: vec![init_op] };
    let kind = Some(proto::collection_def::Kind::NodeList(list));
    let saver_def = writer.saver(keyed)?;
    Ok(MainGraph {
        nodes: writer.nodes.list,
        saver_def,
        signatures: signature_defs,
        assets,
        collections: [(MAIN_OP.to_string(), proto::CollectionDef { kind })].into(),
    })
}

struct Writer<'w, 'g> {
    objects: &'w mut Objects<'g>,
    nodes: Nodes,
    /// The tensors of objects: their handles, paths or values.
    tensors: HashMap<usize, String>,
}

impl Writer<'_, '_> {
    fn constants(&mut self) -> Result<()> {
        for (id, tensor) in std::mem::take(&mut self.objects.constants) {
            let Some(SavedKind::Constant(constant)) = &self.objects.list[id].kind else { continue };
            let operation = constant.operation.clone();
            let name = self.nodes.add(&operation, "Const", [], &constant_attrs(&tensor))?;
            self.tensors.insert(id, name);
        }
        Ok(())
    }

    /// A placeholder for the path of each file, and a variable that takes it over; what must run
    /// for that.
    fn assets(&mut self, names: &[String]) -> Result<(Vec<proto::AssetFileDef>, Vec<String>)> {
        let (mut defs, mut assigned) = (Vec::new(), Vec::new());
        let assets: Vec<usize> = self.objects.assets.iter().map(|(id, _)| *id).collect();
        for (id, filename) in assets.into_iter().zip(names) {
            let path = placeholder_attrs(DType::String, &PartialShape::scalar());
            let path = self.nodes.add("asset_path_initializer", "Placeholder", [], &path)?;
            let handle = self.nodes.free_name("asset_path");
            let attrs = placeholder_attrs(DType::String, &PartialShape::scalar())
                .with("shared_name", handle.as_str());
            self.nodes.list.push(super::nodes::node(&handle, "VarHandleOp", [], &attrs)?);
            let dtype = Attrs::new().with("dtype", DType::String);
            let inputs = [handle.clone(), path.clone()];
            let assign =
                self.nodes.add(&format!("{handle}/Assign"), "AssignVariableOp", inputs, &dtype)?;
            let inputs = [handle.clone(), format!("^{assign}")];
            let read =
                self.nodes.add(&format!("{handle}/Read"), "ReadVariableOp", inputs, &dtype)?;
            self.tensors.insert(id, read);
            assigned.push(assign);
            let info = TensorInfo {
                dtype: DType::String.number(),
                tensor_shape: Some(partial_shape_message(&PartialShape::scalar())),
                encoding: Some(Encoding::Name(format!("{path}:0"))),
            };
            defs.push(proto::AssetFileDef { tensor_info: Some(info), filename: filename.clone() });
        }
        Ok((defs, assigned))
    }

    /// The handles of variables and of other resources.
    fn state(&mut self) -> Result<()> {
        for id in 0..self.objects.list.len() {
            match self.objects.list[id].kind.clone() {
                Some(SavedKind::Variable(variable)) => {
                    let base = if variable.name.is_empty() { "Variable" } else { &variable.name };
                    let name = self.nodes.free_name(base);
                    let dtype = convert::value_dtype(variable.dtype)?;
                    let shape = convert::optional_shape(variable.shape.as_ref())?;
                    let attrs = placeholder_attrs(dtype, &shape).with("shared_name", name.as_str());
                    self.nodes.list.push(super::nodes::node(&name, "VarHandleOp", [], &attrs)?);
                    let read = format!("{name}/Read/ReadVariableOp");
                    let attrs = Attrs::new().with("dtype", dtype);
                    self.nodes.add(&read, "ReadVariableOp", [name.clone()], &attrs)?;
                    self.tensors.insert(id, name);
                }
                Some(SavedKind::Resource(_)) => {
                    let handle = self.resource(id)?;
                    self.tensors.insert(id, handle);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The child of a resource that is a function with one trace.
    fn function_of(&self, id: usize, name: &str) -> Option<(usize, String)> {
        let children = &self.objects.list[id].children;
        let child = children.iter().find(|child| child.local_name == name)?;
        let child = child.node_id as usize;
        self.objects.concrete_names(child).first().map(|name| (child, name.to_string()))
    }

    /// The nodes that make a resource: those of the function that does, so that they are made once
    /// in a session.
    fn resource(&mut self, id: usize) -> Result<String> {
        let absent = || Error::Object {
            id,
            rule: "a resource has the child `_create_resource`, a function that makes it".into(),
        };
        let (child, name) = self.function_of(id, "_create_resource").ok_or_else(absent)?;
        let inlined = match self.definition(child)? {
            Some((def, library)) => self.inlined(&def, &library)?,
            None => None,
        };
        match inlined {
            Some(handle) => Ok(handle),
            None => self.call_of(&name),
        }
    }

    /// The program of the only trace of a function.
    fn definition(&self, child: usize) -> Result<Option<(Arc<FunctionDef>, Arc<FunctionLibrary>)>> {
        let Some(node) = self.objects.graph.nodes.get(child) else { return Ok(None) };
        if let Some(object) = loaded(node) {
            let names = match object.kind() {
                Some(SavedKind::Function(function)) => &function.concrete_functions[..],
                Some(SavedKind::BareConcreteFunction(function)) => {
                    std::slice::from_ref(&function.concrete_function_name)
                }
                _ => return Ok(None),
            };
            let Some(name) = names.first() else { return Ok(None) };
            let library = object.model().library();
            return Ok(Some((library.get(name)?, library.clone())));
        }
        match &node.kind {
            ObjectKind::Function(function) | ObjectKind::ConcreteFunction(function) => {
                let trace = function.traces()?.into_iter().next();
                Ok(trace.map(|trace| (trace.def, trace.library)))
            }
            _ => Ok(None),
        }
    }

    /// Adds the nodes of a function without arguments; `None` if it has some, or calls others.
    fn inlined(&mut self, def: &FunctionDef, library: &FunctionLibrary) -> Result<Option<String>> {
        let [(_, result)] = &def.results[..] else { return Ok(None) };
        if !def.args.is_empty() {
            return Ok(None);
        }
        let Ok(message) = convert::graph_message(&def.graph, library) else { return Ok(None) };
        if message.library.is_some() {
            return Ok(None);
        }
        let mut names: HashMap<String, String> = HashMap::new();
        for node in &message.node {
            let base = format!("resource/{}", node.name);
            names.insert(node.name.clone(), self.nodes.free_name(&base));
        }
        let renamed = |input: &str| renamed_input(input, &names);
        for mut node in message.node {
            node.name = renamed(&node.name);
            node.input.iter_mut().for_each(|input| *input = renamed(input));
            self.nodes.list.push(node);
        }
        let tensor = renamed(&tensor_name::of(&def.graph, *result));
        Ok(Some(tensor.strip_suffix(":0").unwrap_or(&tensor).to_string()))
    }

    /// The tensors of what a function captures.
    fn bound(&self, function: &str) -> Result<Vec<String>> {
        let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: function.into() };
        let concrete = self.objects.concrete.get(function).ok_or_else(absent)?;
        let tensor = |&id: &i32| {
            let found = usize::try_from(id).ok().and_then(|id| self.tensors.get(&id));
            found.cloned().ok_or_else(|| Error::Object {
                id: id.max(0) as usize,
                rule: format!("function `{function}` captures it, so it has a tensor"),
            })
        };
        concrete.bound_inputs.iter().map(tensor).collect()
    }

    /// Adds a call of a function that takes no arguments.
    fn call_of(&mut self, function: &str) -> Result<String> {
        let inputs = self.bound(function)?;
        let absent = || ferroflow_ir::Error::NotFound { kind: "function", name: function.into() };
        let (op, attrs) = call(self.objects.library.get(function).ok_or_else(absent)?);
        self.nodes.add(op, op, inputs, &attrs)
    }

    /// The op that sets the paths of files and fills resources.
    fn initializers(&mut self, mut ops: Vec<String>) -> Result<String> {
        for id in 0..self.objects.list.len() {
            if matches!(self.objects.list[id].kind, Some(SavedKind::Resource(_)))
                && let Some((_, name)) = self.function_of(id, "_initialize")
            {
                ops.push(self.call_of(&name)?);
            }
        }
        let controls = ops.into_iter().map(|op| format!("^{op}"));
        self.nodes.add("NoOp", "NoOp", controls, &Attrs::new())
    }

    fn signature(&mut self, signature: &WrittenSignature) -> Result<proto::SignatureDef> {
        let original = signature.loaded.as_ref().and_then(|object| {
            let known = object.model().meta_graph().signature_def.get(&signature.key)?;
            Some((object, known.clone()))
        });
        // What a session sees of a loaded signature may differ from what its function says.
        if let Some((object, message)) = &original
            && let Some(copied) = self.copied(signature, object, message.clone())?
        {
            return Ok(copied);
        }
        let known = signature.known.as_ref().ok_or_else(|| Error::NotASignature {
            signature: signature.key.clone(),
            function: signature.function.clone(),
            rule: "what it takes and gives has no tensors of their own".into(),
        })?;
        let mut inputs = Vec::new();
        let mut input_infos = BTreeMap::new();
        for (name, spec) in &known.inputs {
            let base = format!("{}_{name}", signature.key);
            let attrs = placeholder_attrs(spec.dtype, &spec.shape);
            let placeholder = match signature.defaults.get(name) {
                None => self.nodes.add(&base, "Placeholder", [], &attrs)?,
                Some(value) => {
                    let input = format!("{base}/input");
                    let input = self.nodes.add(&input, "Const", [], &constant_attrs(value))?;
                    self.nodes.add(&base, "PlaceholderWithDefault", [input], &attrs)?
                }
            };
            input_infos.insert(name.clone(), info(format!("{placeholder}:0"), spec));
            inputs.push(placeholder);
        }
        inputs.extend(self.bound(&signature.function)?);
        let absent =
            || ferroflow_ir::Error::NotFound { kind: "function", name: signature.function.clone() };
        let def = self.objects.library.get(&signature.function).ok_or_else(absent)?;
        let (op, attrs) = call(def);
        let node = self.nodes.add(op, op, inputs, &attrs)?;
        let outputs = known.outputs.iter().enumerate();
        let outputs = outputs
            .map(|(index, (name, spec))| (name.clone(), info(format!("{node}:{index}"), spec)));
        Ok(proto::SignatureDef {
            inputs: input_infos,
            outputs: outputs.collect(),
            method_name: "tensorflow/serving/predict".into(),
            defaults: match original {
                Some((_, original)) => original.defaults,
                None => default_messages(&signature.defaults)?,
            },
        })
    }

    /// A signature of a loaded model with the nodes it has there: placeholders and a call.
    fn copied(
        &mut self,
        signature: &WrittenSignature,
        object: &crate::model::Object,
        mut message: proto::SignatureDef,
    ) -> Result<Option<proto::SignatureDef>> {
        let Some(SavedKind::BareConcreteFunction(function)) = object.kind() else {
            return Ok(None);
        };
        let old_name = &function.concrete_function_name;
        let Some(graph) = &object.model().meta_graph().graph_def else { return Ok(None) };
        let calls_it = |node: &&proto::NodeDef| {
            let f = node.attr.get("f").and_then(|attr| attr.value.as_ref());
            matches!(f, Some(proto::attr_value::Value::Func(f)) if f.name == *old_name)
        };
        let Some(old_call) = graph.node.iter().find(calls_it) else { return Ok(None) };
        let bound = self.bound(&signature.function)?;
        let data = old_call.input.iter().filter(|input| !input.starts_with('^')).count();
        let Some(n_args) = data.checked_sub(bound.len()) else { return Ok(None) };
        let mut renamed = HashMap::new();
        let mut inputs = Vec::new();
        for input in &old_call.input[..n_args] {
            if !self.copy_with_inputs(&graph.node, input, &mut renamed) {
                return Ok(None);
            }
            inputs.push(renamed_input(input, &renamed));
        }
        let mut node = old_call.clone();
        node.name = self.nodes.free_name(&old_call.name);
        node.input = inputs.into_iter().chain(bound).collect();
        let names = [(old_name.clone(), signature.function.clone())].into();
        rename_in_node(&mut node, &names);
        renamed.insert(old_call.name.clone(), node.name.clone());
        self.nodes.list.push(node);
        let infos = message.inputs.values_mut().chain(message.outputs.values_mut());
        infos.for_each(|info| rename_tensors(info, &renamed));
        Ok(Some(message))
    }

    /// Copies a node of another graph and what it takes, such as a placeholder and its default;
    /// `false` if there is no such node.
    fn copy_with_inputs(
        &mut self,
        nodes: &[proto::NodeDef],
        name: &str,
        renamed: &mut HashMap<String, String>,
    ) -> bool {
        let (mut waiting, mut found) = (vec![node_name(name).to_string()], Vec::new());
        while let Some(name) = waiting.pop() {
            if renamed.contains_key(&name) {
                continue;
            }
            let Some(node) = nodes.iter().find(|node| node.name == name) else { return false };
            renamed.insert(name, self.nodes.free_name(&node.name));
            waiting.extend(node.input.iter().map(|input| node_name(input).to_string()));
            found.push(node);
        }
        for old in found {
            let mut node = old.clone();
            node.name = renamed[&old.name].clone();
            node.input.iter_mut().for_each(|input| *input = renamed_input(input, renamed));
            self.nodes.list.push(node);
        }
        true
    }

    fn saver(&mut self, keyed: &Keyed) -> Result<proto::SaverDef> {
        let mut saved = Saved {
            values: Vec::new(),
            states: Vec::new(),
            object_graph: HostTensor::scalar_string(keyed.message.encode_to_vec()),
            object_graph_key: OBJECT_GRAPH_KEY,
        };
        for keep in &keyed.values {
            match &keep.value {
                Stored::Variable(_) => {
                    let Some(SavedKind::Variable(variable)) = &self.objects.list[keep.node].kind
                    else {
                        continue;
                    };
                    saved.values.push(SavedValue {
                        key: keep.key.clone(),
                        handle: self.tensors[&keep.node].clone(),
                        variable: variable.clone(),
                    });
                }
                Stored::Saveable(saveable) => {
                    let functions = &self.objects.list[keep.node].saveable_objects;
                    let Some(functions) = functions.get(saveable.name()) else { continue };
                    let restore = functions.restore_function as usize;
                    let name = self.objects.concrete_names(restore).first().map(|n| n.to_string());
                    let Some(name) = name else { continue };
                    let tensors = saveable.tensors()?.into_iter();
                    let tensors =
                        tensors.map(|(end, tensor)| (format!("{}{end}", keep.key), tensor.dtype()));
                    let captures = self.bound(&name)?;
                    let Some(restore) = self.objects.library.get(&name).cloned() else { continue };
                    saved.states.push(SavedState { tensors: tensors.collect(), restore, captures });
                }
            }
        }
        let attrs = placeholder_attrs(DType::String, &PartialShape::scalar());
        let filename = self.nodes.add("saver_filename", "Placeholder", [], &attrs)?;
        let name = self.objects.library.numbered("__inference__traced_save");
        let save = saved.save_function(&name)?;
        let save = self.saver_call(save, &filename, saved.save_inputs())?;
        let name = self.objects.library.numbered("__inference__traced_restore");
        let restore = saved.restore_function(&name)?;
        let restore = self.saver_call(restore, &filename, saved.restore_inputs())?;
        Ok(proto::SaverDef {
            filename_tensor_name: format!("{filename}:0"),
            save_tensor_name: format!("{save}:0"),
            restore_op_name: restore,
            version: CheckpointFormatVersion::V2.into(),
            ..Default::default()
        })
    }

    fn saver_call(
        &mut self,
        function: proto::FunctionDef,
        filename: &str,
        inputs: Vec<String>,
    ) -> Result<String> {
        let (_, attrs) = call(&function);
        self.objects.library.add(function);
        let op = "StatefulPartitionedCall";
        let inputs = std::iter::once(filename.to_string()).chain(inputs);
        self.nodes.add(op, op, inputs, &attrs)
    }
}

/// The node that an input of another comes from.
fn node_name(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split_once(':').map_or(input, |(node, _)| node)
}

/// An input of a node where nodes have other names.
fn renamed_input(input: &str, names: &HashMap<String, String>) -> String {
    let node = node_name(input);
    match names.get(node) {
        Some(new) => input.replacen(node, new, 1),
        None => input.into(),
    }
}

fn info(name: String, spec: &ferroflow_ir::TensorSpec) -> TensorInfo {
    TensorInfo {
        dtype: spec.dtype.number(),
        tensor_shape: Some(partial_shape_message(&spec.shape)),
        encoding: Some(Encoding::Name(name)),
    }
}

fn rename_tensors(info: &mut TensorInfo, names: &HashMap<String, String>) {
    let rename = |tensor: &mut String| {
        if let Some((node, output)) = tensor.split_once(':')
            && let Some(new) = names.get(node)
        {
            *tensor = format!("{new}:{output}");
        }
    };
    match &mut info.encoding {
        Some(Encoding::Name(name)) => rename(name),
        Some(Encoding::CooSparse(parts)) => {
            rename(&mut parts.values_tensor_name);
            rename(&mut parts.indices_tensor_name);
            rename(&mut parts.dense_shape_tensor_name);
        }
        Some(Encoding::CompositeTensor(parts)) => {
            parts.components.iter_mut().for_each(|part| rename_tensors(part, names));
        }
        None => {}
    }
}
