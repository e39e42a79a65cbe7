//! Models of TensorFlow 1, saved again as they were, with the values their variables have now.

use super::assets;
use crate::{
    error::{Error, Result},
    file::write_message,
    graph::Request,
    proto,
    session::{Session, path_tensor},
};
use ferroflow_ir::pass::carve::OtherEffects;
use ferroflow_runtime::{Asset, CallableFunction, Context, ContextOptions, FileAccess, files};
use std::{path::Path, sync::Arc};

/// Saves a session that was loaded from a SavedModel: the MetaGraph as it was in the file, and the
/// values that the model's own saver saves.
///
/// # Errors
///
/// [`Error::NotASavedModel`] for a session of a graph alone; when variables have no values, or the
/// files cannot be written.
pub fn save_session(session: &Session, folder: impl AsRef<Path>) -> Result<()> {
    let folder = std::path::absolute(folder.as_ref())
        .map_err(|source| Error::Io { path: folder.as_ref().into(), source })?;
    let parts = session.parts().ok_or(Error::NotASavedModel)?;
    let mut meta_graph = parts.meta_graph.clone();
    let graph = meta_graph.graph_def.get_or_insert_default();
    graph.library = Some(parts.definitions.library().clone());
    if let Some(saver) = &meta_graph.saver_def
        && !saver.save_tensor_name.is_empty()
        && files::exists(&parts.variables().with_extension("index"))
    {
        save_variables(session, saver, &folder)?;
    }
    let (mut files, mut names) = (Vec::new(), Vec::new());
    for (index, file) in meta_graph.asset_file_def.iter().enumerate() {
        let path = parts.asset(index as i32)?;
        // A model that came without one of its files stays without it.
        if files::exists(&path) {
            files.push(Asset::new(path));
            names.push(file.filename.clone());
        }
    }
    assets::copy(files.iter(), &names, &folder)?;
    assets::copy_extra(&parts.folder, &folder)?;
    let model = proto::SavedModel { saved_model_schema_version: 1, meta_graphs: vec![meta_graph] };
    Ok(write_message(&folder.join("saved_model.pb"), &model)?)
}

/// Runs the op that saves. It writes outside the model's folder, which programs of models may not,
/// so it runs in surroundings of its own.
fn save_variables(session: &Session, saver: &proto::SaverDef, folder: &Path) -> Result<()> {
    let (filename, saved) = (saver.filename_tensor_name.as_str(), saver.save_tensor_name.as_str());
    let request = Request::new(&[filename], &[saved], &[]);
    let def = session.graph().part("save", &request, OtherEffects::Drop)?;
    let options = ContextOptions {
        limits: session.context().limits().clone(),
        files: FileAccess::Any,
        ..ContextOptions::default()
    };
    let context = Context::with_options(options);
    crate::host_ops::add_ops(&context);
    let (library, resources) = (session.graph().library().clone(), session.resources().clone());
    let function =
        CallableFunction::with_captures(&context, Arc::new(def), library, resources, Vec::new());
    let variables = folder.join("variables");
    std::fs::create_dir_all(&variables)
        .map_err(|source| Error::Io { path: variables.clone(), source })?;
    function.call(&[path_tensor(&variables.join("variables"))])?;
    Ok(())
}
