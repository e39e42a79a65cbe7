//! The file `saved_model.pb`: MetaGraphs, their tags and assets.

use crate::{
    error::{Error, Result},
    file::{decode_message, read_message},
    proto::{self, AssetFileDef, MetaGraphDef, collection_def::Kind},
};
use ferroflow_ir::files;
use std::path::Path;

/// The `saved_model.pb` of a folder, or its `saved_model.pbtxt`.
///
/// # Errors
///
/// When it is missing, damaged or in a form that is not supported.
pub fn read_saved_model(folder: &Path) -> Result<proto::SavedModel> {
    let [path, text, parts] =
        ["saved_model.pb", "saved_model.pbtxt", "saved_model.cpb"].map(|name| folder.join(name));
    let [has_binary, has_text, has_parts] = [&path, &text, &parts].map(|path| files::exists(path));
    if !has_binary && !has_text && has_parts {
        let what = "messages that are cut into parts cannot be read".into();
        return Err(Error::Unsupported { path: parts, what });
    }
    let path = if !has_binary && has_text { text } else { path };
    let file: proto::SavedModel = read_message(&path)?;
    if file.meta_graphs.is_empty() {
        return Err(Error::Damaged { path, offset: 0, what: "it holds no MetaGraph".into() });
    }
    if file.saved_model_schema_version != 1 {
        let what = format!("schema version {}", file.saved_model_schema_version).into();
        return Err(Error::Unsupported { path, what });
    }
    Ok(file)
}

/// The tags of a MetaGraph.
pub fn tags(meta_graph: &MetaGraphDef) -> &[String] {
    meta_graph.meta_info_def.as_ref().map_or(&[], |info| &info.tags)
}

/// The assets of a MetaGraph of the model in `folder`.
///
/// # Errors
///
/// [`Error::Message`] when their list is damaged.
pub fn assets(folder: &Path, meta_graph: &MetaGraphDef) -> Result<Vec<AssetFileDef>> {
    match &meta_graph.asset_file_def[..] {
        [] => collected_assets(folder, meta_graph),
        files => Ok(files.to_vec()),
    }
}

/// The assets in the collection where writers of 1.x put them.
fn collected_assets(folder: &Path, meta_graph: &MetaGraphDef) -> Result<Vec<AssetFileDef>> {
    let collection = meta_graph.collection_def.get("saved_model_assets");
    let Some(Kind::AnyList(list)) = collection.and_then(|collection| collection.kind.as_ref())
    else {
        return Ok(Vec::new());
    };
    let path = folder.join("saved_model.pb");
    list.value.iter().map(|any| decode_message(&path, any.value.clone().into())).collect()
}
