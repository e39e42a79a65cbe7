//! Saving objects as SavedModels, which TensorFlow loads like its own.
//!
//! What is saved is what one object leads to: variables, functions with all their traces, files,
//! resources, and objects of loaded models, which stay as they were. The file describes it twice:
//! as objects, for loaders of TensorFlow 2, and as a graph with signatures, for session-style
//! loaders such as TF Serving's. Both are in one MetaGraph and share its functions: two MetaGraphs
//! would hold every function twice, in a file that may have 2 GiB at most.
//!
//! What there is was built in the order of priorities of the RFC: export, models of TensorFlow 1,
//! objects with functions that save and restore them, layers, types, files, optimizers, and new
//! objects of loaded ones. Distribution has its place between types and files, and waits.

mod assets;
mod fingerprint;
mod gradients;
mod library;
mod main_graph;
mod nodes;
mod objects;
mod op_policy;
mod order;
mod saver;
mod session;
mod signature;
mod spec;
mod variables;

pub use session::save_session;

pub use op_policy::DebugOps;
pub use variables::VariablePolicy;

use crate::{
    checkpoint::{Snapshot, WriteOptions, keyed},
    error::{Error, Result},
    file::write_message,
    output_file::hold,
    proto,
};
use ferroflow_runtime::trackable::{ObjectGraph, ObjectKind, ObjectNode, Trackable};
use objects::Objects;
use signature::{DEFAULT_KEY, SIGNATURES, WrittenSignature};
use std::path::Path;

/// The tag of models that are served.
const TAG: &str = "serve";

/// The version of TensorFlow whose format is written.
const TENSORFLOW_VERSION: &str = "2.21.0";

/// The version of GraphDef that is written, and the oldest that readers may have.
const VERSIONS: (i32, i32) = (2474, 12);

/// Options of saving a model.
#[derive(Debug, Clone)]
pub struct SaveOptions {
    signatures: Signatures,
    /// The tags of the MetaGraph.
    pub tags: Vec<String>,
    /// Treatment of functions without any trace.
    pub untraced: Untraced,
    /// Options of writing the values of variables.
    pub write: WriteOptions,
    /// Record of the devices of variables in the file.
    pub variable_policy: VariablePolicy,
    /// Treatment of assertions, numeric checks and prints.
    pub debug_ops: DebugOps,
    /// The namespaces of ops that may be saved, such as `Acme` of `Acme>Twice`; all if `None`. Programs
    /// that load the model must know their ops.
    pub op_namespaces: Option<Vec<String>>,
    aliases: Vec<(String, ObjectNode)>,
}

/// Treatment of functions without any trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untraced {
    /// They are saved, and cannot be called where the model is loaded; the report names them.
    Keep,
    /// Saving fails.
    Refuse,
}

/// Where signatures come from.
#[derive(Debug, Clone)]
enum Signatures {
    /// Those that a loaded model has, or the only function that can be one.
    Inferred,
    /// These.
    Given(Vec<(String, ObjectNode)>),
}

impl Default for SaveOptions {
    fn default() -> SaveOptions {
        SaveOptions {
            signatures: Signatures::Inferred,
            tags: vec![TAG.into()],
            untraced: Untraced::Keep,
            write: WriteOptions::default(),
            variable_policy: VariablePolicy::default(),
            debug_ops: DebugOps::default(),
            op_namespaces: None,
            aliases: Vec::new(),
        }
    }
}

impl SaveOptions {
    /// With a function as the signature `serving_default`: one that has an input signature, a
    /// trace, or a function of a loaded model that has one trace.
    ///
    /// # Errors
    ///
    /// When the function cannot tell what it is.
    pub fn signature(self, function: &dyn Trackable) -> Result<SaveOptions> {
        self.named_signature(DEFAULT_KEY, function)
    }

    /// With a function as the signature of this name, besides others.
    ///
    /// # Errors
    ///
    /// As [`signature`](SaveOptions::signature).
    pub fn named_signature(mut self, key: &str, function: &dyn Trackable) -> Result<SaveOptions> {
        let entry = (key.to_string(), described(function)?);
        match &mut self.signatures {
            Signatures::Given(given) => given.push(entry),
            Signatures::Inferred => self.signatures = Signatures::Given(vec![entry]),
        }
        Ok(self)
    }

    /// Where functions without any trace are refused.
    #[must_use]
    pub fn refuse_untraced(self) -> SaveOptions {
        SaveOptions { untraced: Untraced::Refuse, ..self }
    }

    /// Without signatures.
    #[must_use]
    pub fn without_signatures(self) -> SaveOptions {
        SaveOptions { signatures: Signatures::Given(Vec::new()), ..self }
    }

    /// With a name under which loaders find the traces of a function.
    ///
    /// # Errors
    ///
    /// As [`signature`](SaveOptions::signature).
    pub fn alias(mut self, alias: &str, function: &dyn Trackable) -> Result<SaveOptions> {
        self.aliases.push((alias.into(), described(function)?));
        Ok(self)
    }
}

/// Description of an object by itself.
fn described(object: &dyn Trackable) -> Result<ObjectNode> {
    let mut nodes = ObjectGraph::of(object)?.nodes;
    Ok(nodes.swap_remove(0))
}

/// Report on a model that was saved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SaveReport {
    /// The functions that were saved without any trace.
    pub untraced: Vec<String>,
    /// The names of the signatures.
    pub signatures: Vec<String>,
}

/// Saves an object, and all it leads to, as a SavedModel.
///
/// The same object gives the same bytes. `saved_model.pb` appears last, when everything else is on
/// the disk.
///
/// # Errors
///
/// [`Error::Untracked`] when a function uses state that the object does not lead to,
/// [`Error::NotASignature`] for a function that cannot be one, [`Error::SignaturesTaken`],
/// [`Error::Untraced`], [`Error::OpNamespace`]; when a function or type of arguments is such that no file can hold it, a
/// variable has no value, or the files cannot be written. Nothing is written unless all of the
/// model can be.
pub fn save(
    root: &dyn Trackable,
    folder: impl AsRef<Path>,
    options: &SaveOptions,
) -> Result<SaveReport> {
    let mut graph = with_slots_as_children(ObjectGraph::of_model(root)?);
    let kept = take_signatures(&mut graph, options)?;
    trace_all(&graph, options)?;
    let mut objects = Objects::new(&graph)?;
    variables::apply(options.variable_policy, &graph, &mut objects.list);
    if let (Untraced::Refuse, Some(function)) = (options.untraced, objects.untraced.first()) {
        return Err(Error::Untraced { function: function.clone() });
    }
    let signatures = match (&options.signatures, kept) {
        (Signatures::Given(given), _) => objects.add_signatures(given)?,
        (Signatures::Inferred, Some(Kept::Loaded(map))) => objects.kept_signatures(map)?,
        (Signatures::Inferred, Some(Kept::Proposed(given))) => objects.add_signatures(&given)?,
        (Signatures::Inferred, None) => {
            let inferred = inferred_signature(&graph, &mut objects)?;
            objects.add_signatures(&Vec::from_iter(inferred))?
        }
    };
    objects.add_traced_gradients()?;
    let keyed = keyed(&graph);
    let snapshot = Snapshot::of_keyed(&keyed)?;
    let names = assets::names(objects.assets.iter().map(|(_, asset)| asset));
    let model = message(&mut objects, &keyed, &signatures, &names, options)?;
    write(folder.as_ref(), &objects, &snapshot, &names, &model, options)?;
    let signatures = signatures.into_iter().map(|signature| signature.key).collect();
    Ok(SaveReport { untraced: objects.untraced, signatures })
}

/// Traces the functions that have an input signature. Others may get traces by that, which are
/// saved as well.
fn trace_all(graph: &ObjectGraph, options: &SaveOptions) -> Result<()> {
    let signatures = match &options.signatures {
        Signatures::Given(given) => &given[..],
        Signatures::Inferred => &[],
    };
    for node in graph.nodes.iter().chain(signatures.iter().map(|(_, node)| node)) {
        if let ObjectKind::Function(function) = &node.kind
            && function.input_signature().is_some()
        {
            function.traces()?;
        }
    }
    Ok(())
}

/// The graph with variables that objects keep for others as plain children: TensorFlow 2.21 loads
/// no model that has such variables.
fn with_slots_as_children(mut graph: ObjectGraph) -> ObjectGraph {
    for node in &mut graph.nodes {
        for (index, slot) in std::mem::take(&mut node.slots).into_iter().enumerate() {
            if !node.children.iter().any(|(_, child)| *child == slot.slot) {
                node.children.push((format!("_{}_{index}", slot.name), slot.slot));
            }
        }
    }
    graph.prune();
    graph
}

/// The signatures that the root has under the name for them.
enum Kept {
    /// Those of a loaded model, below this node.
    Loaded(usize),
    /// Functions that the object itself proposes.
    Proposed(Vec<(String, ObjectNode)>),
}

/// The signatures that the root has. They are taken off where others come instead.
fn take_signatures(graph: &mut ObjectGraph, options: &SaveOptions) -> Result<Option<Kept>> {
    let Some(map) = graph.nodes[0].child(SIGNATURES) else { return Ok(None) };
    match &graph.nodes[map].kind {
        ObjectKind::Typed(ty) if ty.identifier == "signature_map" => {}
        kind => return Err(Error::SignaturesTaken { found: format!("{kind:?}") }),
    }
    let is_inferred = matches!(options.signatures, Signatures::Inferred);
    if is_inferred && objects::loaded(&graph.nodes[map]).is_some() {
        return Ok(Some(Kept::Loaded(map)));
    }
    graph.nodes[0].children.retain(|(name, _)| name != SIGNATURES);
    let children = graph.nodes[map].children.iter();
    let proposed = children.map(|(key, child)| (key.clone(), graph.nodes[*child].clone()));
    let proposed = proposed.collect();
    graph.prune();
    Ok(is_inferred.then_some(Kept::Proposed(proposed)))
}

/// The function of the root that can be a signature, if there is only one: it has an input
/// signature or is a trace, and takes and gives tensors. Functions of other kinds do not count.
fn inferred_signature(
    graph: &ObjectGraph,
    objects: &mut Objects<'_>,
) -> Result<Option<(String, ObjectNode)>> {
    let mut found = Vec::new();
    for (_, child) in &graph.nodes[0].children {
        let node = &graph.nodes[*child];
        let is_typed = match &node.kind {
            ObjectKind::Function(function) => function.input_signature().is_some(),
            ObjectKind::ConcreteFunction(_) => true,
            ObjectKind::Plain
            | ObjectKind::Typed(_)
            | ObjectKind::Variable(_)
            | ObjectKind::Asset(_)
            | ObjectKind::Resource(_)
            | ObjectKind::Constant(_)
            | ObjectKind::Foreign => false,
        };
        if is_typed && objects.can_be_signature(node)? {
            found.push((DEFAULT_KEY.to_string(), node.clone()));
        }
    }
    Ok(found.pop().filter(|_| found.is_empty()))
}

fn message(
    objects: &mut Objects<'_>,
    keyed: &crate::checkpoint::Keyed,
    signatures: &[WrittenSignature],
    asset_names: &[String],
    options: &SaveOptions,
) -> Result<proto::SavedModel> {
    let function_aliases = aliases(objects, &options.aliases)?;
    let main = main_graph::main_graph(objects, keyed, signatures, asset_names)?;
    let (producer, min_consumer) = VERSIONS;
    let versions = proto::VersionDef { producer, min_consumer, ..Default::default() };
    let mut nodes = main.nodes;
    nodes::strip_defaults(&mut nodes, &ferroflow_ir::OpRegistry::default());
    let mut graph_def = proto::GraphDef {
        node: nodes,
        versions: Some(versions),
        library: Some(std::mem::take(&mut objects.library).into_message()),
        ..Default::default()
    };
    if let Some(allowed) = &options.op_namespaces {
        op_policy::check_namespaces(&graph_def, allowed)?;
    }
    if options.debug_ops == DebugOps::Strip {
        op_policy::strip_debug_ops(&mut graph_def);
    }
    let info = proto::meta_graph_def::MetaInfoDef {
        tags: options.tags.clone(),
        tensorflow_version: TENSORFLOW_VERSION.into(),
        stripped_default_attrs: true,
        function_aliases,
        ..Default::default()
    };
    let mut object_graph = proto::SavedObjectGraph {
        nodes: std::mem::take(&mut objects.list),
        concrete_functions: std::mem::take(&mut objects.concrete),
    };
    order::breadth_first(&mut object_graph);
    let meta_graph = proto::MetaGraphDef {
        meta_info_def: Some(info),
        graph_def: Some(graph_def),
        saver_def: Some(main.saver_def),
        collection_def: main.collections,
        signature_def: main.signatures,
        asset_file_def: main.assets,
        object_graph_def: Some(object_graph),
    };
    Ok(proto::SavedModel { saved_model_schema_version: 1, meta_graphs: vec![meta_graph] })
}

/// The names of functions, with the aliases that were passed for them.
fn aliases(
    objects: &mut Objects<'_>,
    given: &[(String, ObjectNode)],
) -> Result<std::collections::BTreeMap<String, String>> {
    let mut aliases = std::collections::BTreeMap::new();
    for node in &objects.graph.nodes {
        let Some(object) = objects::loaded(node) else { continue };
        let Some(info) = &object.model().meta_graph().meta_info_def else { continue };
        for (name, alias) in &info.function_aliases {
            if object.model().concrete_message(name).is_some() {
                let name = objects.loaded_function(object.model(), name)?;
                aliases.insert(name, alias.clone());
            }
        }
    }
    for (alias, node) in given {
        let (ObjectKind::Function(function) | ObjectKind::ConcreteFunction(function)) = &node.kind
        else {
            let (function, rule) = (format!("{:?}", node.kind), "it is no function".to_string());
            return Err(Error::NotASignature { signature: alias.clone(), function, rule });
        };
        for trace in function.traces()? {
            aliases.insert(objects.trace(&**function, &trace)?, alias.clone());
        }
    }
    Ok(aliases)
}

/// Writes everything but `saved_model.pb`, then that.
fn write(
    folder: &Path,
    objects: &Objects<'_>,
    snapshot: &Snapshot,
    asset_names: &[String],
    model: &proto::SavedModel,
    options: &SaveOptions,
) -> Result<()> {
    let variables = folder.join("variables").join("variables");
    std::fs::create_dir_all(folder).map_err(|source| Error::Io { path: folder.into(), source })?;
    // The files of a model belong together.
    let _held = hold(folder);
    snapshot.write(&variables, &options.write.to_disk())?;
    assets::copy(objects.assets.iter().map(|(_, asset)| asset), asset_names, folder)?;
    if let Some(root) = objects::loaded(&objects.graph.nodes[0]) {
        assets::copy_extra(root.model().folder(), folder)?;
    }
    let fingerprint = fingerprint::fingerprint(model, &variables)?;
    write_message(&folder.join("fingerprint.pb"), &fingerprint)?;
    Ok(write_message(&folder.join("saved_model.pb"), model)?)
}
