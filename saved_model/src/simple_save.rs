//! SavedModels of sessions: a graph, its variables, one signature.
//!
//! What is written is what loaders of TensorFlow 1 and TF Serving read: a MetaGraph tagged `serve`
//! with the signature `serving_default`, whose graph restores its variables itself.

use crate::{
    convert::{self, partial_shape_message},
    error::{Error, Result},
    file::write_message,
    graph::Request,
    load::{LoadOptions, load_session},
    proto::{self, tensor_info::Encoding},
    saver::add_saver,
    session::Session,
};
use ferroflow_ir::{
    ValueType,
    pass::{carve::OtherEffects, infer_types::infer_types},
};
use ferroflow_runtime::Context;
use std::{collections::BTreeMap, io, path::Path};

/// The tag of models that are served, and the key of their signature.
const TAG: &str = "serve";
const SIGNATURE: &str = "serving_default";

/// Writes the graph of a session with the values of its variables as a SavedModel whose signature
/// has these inputs and outputs: names for callers, and names of tensors.
///
/// # Errors
///
/// When the folder holds something already, a tensor does not exist, a variable has no value, or
/// the graph holds what no file can.
pub fn simple_save(
    session: &Session,
    folder: impl AsRef<Path>,
    inputs: &[(&str, &str)],
    outputs: &[(&str, &str)],
) -> Result<()> {
    let folder = folder.as_ref();
    check_new(folder)?;
    let signature = signature(session, inputs, outputs)?;
    let mut graph = session.graph().graph().clone();
    let saver_def = add_saver(&mut graph)?;
    let graph_def = convert::graph_message(&graph, session.graph().library())?;
    session.save_variables(folder.join("variables").join("variables"))?;
    let info = proto::meta_graph_def::MetaInfoDef { tags: vec![TAG.into()], ..Default::default() };
    let meta_graph = proto::MetaGraphDef {
        meta_info_def: Some(info),
        graph_def: Some(graph_def),
        saver_def,
        signature_def: [(SIGNATURE.to_string(), signature)].into(),
        ..Default::default()
    };
    let model = proto::SavedModel { saved_model_schema_version: 1, meta_graphs: vec![meta_graph] };
    Ok(write_message(&folder.join("saved_model.pb"), &model)?)
}

/// A model that [`simple_save`] has written, or any other with its tag and signature.
#[derive(Debug)]
pub struct SimpleModel {
    /// The graph with its variables.
    pub session: Session,
    /// The tensors to feed, by the names of the inputs.
    pub inputs: BTreeMap<String, String>,
    /// The tensors to fetch, by the names of the outputs.
    pub outputs: BTreeMap<String, String>,
}

/// Loads a model that [`simple_save`] has written.
///
/// # Errors
///
/// Those of [`load_session`]; [`Error::NoSignature`] when there is no `serving_default`.
pub fn simple_load(context: &Context, folder: impl AsRef<Path>) -> Result<SimpleModel> {
    let session = load_session(context, folder, &LoadOptions::tags([TAG]))?;
    let signature = session.signature(SIGNATURE)?;
    let names = |tensors: &BTreeMap<String, proto::TensorInfo>| {
        let named = tensors.iter().filter_map(|(key, info)| match &info.encoding {
            Some(Encoding::Name(name)) => Some((key.clone(), name.clone())),
            Some(Encoding::CooSparse(_) | Encoding::CompositeTensor(_)) | None => None,
        });
        named.collect()
    };
    let (inputs, outputs) = (names(&signature.inputs), names(&signature.outputs));
    Ok(SimpleModel { session, inputs, outputs })
}

fn check_new(folder: &Path) -> Result<()> {
    let taken = || io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty");
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Io { path: folder.into(), source: taken() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Io { path: folder.into(), source }),
    }
}

fn signature(
    session: &Session,
    inputs: &[(&str, &str)],
    outputs: &[(&str, &str)],
) -> Result<proto::SignatureDef> {
    let (fed, fetched): (Vec<&str>, Vec<&str>) =
        (inputs.iter().map(|input| input.1).collect(), outputs.iter().map(|out| out.1).collect());
    let request = Request::new(&fed, &fetched, &[]);
    let mut part = session.graph().part(SIGNATURE, &request, OtherEffects::Drop)?;
    infer_types(&mut part.graph)?;
    let arg = |(index, (key, name)): (usize, &(&str, &str))| {
        (key.to_string(), tensor_info(name, part.arg_type(index)))
    };
    let mut results = BTreeMap::new();
    for ((key, name), (_, outlet)) in outputs.iter().zip(&part.results) {
        let ty = part.graph.ty(*outlet);
        let ty = ty.ok_or_else(|| ferroflow_ir::Error::NotFound {
            kind: "type of tensor",
            name: name.to_string(),
        })?;
        results.insert(key.to_string(), tensor_info(name, ty));
    }
    Ok(proto::SignatureDef {
        inputs: inputs.iter().enumerate().map(arg).collect(),
        outputs: results,
        method_name: "tensorflow/serving/predict".into(),
        ..Default::default()
    })
}

fn tensor_info(name: &str, ty: &ValueType) -> proto::TensorInfo {
    let name = if name.contains(':') { name.to_string() } else { format!("{name}:0") };
    proto::TensorInfo {
        dtype: ty.dtype.number(),
        tensor_shape: Some(partial_shape_message(&ty.shape)),
        encoding: Some(Encoding::Name(name)),
    }
}
