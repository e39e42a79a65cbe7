//! Names of the files that a model is made of, for the code that downloads them.

use crate::error::WebError;
use ferroflow_ir::Limits;
use ferroflow_runtime::files::MemoryFolder;
use ferroflow_saved_model::{
    bundle::Reader,
    load::{assets, read_saved_model},
};
use wasm_bindgen::prelude::wasm_bindgen;

/// The paths of the assets that a `saved_model.pb` names, from the model's folder.
///
/// # Errors
///
/// When the file is damaged.
#[wasm_bindgen(js_name = assetFiles)]
pub fn asset_files(saved_model: Vec<u8>) -> Result<Vec<String>, WebError> {
    let folder = MemoryFolder::new([("saved_model.pb", saved_model)])?;
    let file = read_saved_model(&folder.path())?;
    let mut names = Vec::new();
    for meta_graph in &file.meta_graphs {
        let files = assets(&folder.path(), meta_graph)?;
        names.extend(files.iter().map(|file| format!("assets/{}", file.filename)));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// The names of the files that hold the values of a checkpoint, beside its index: those of
/// `variables.index`.
///
/// # Errors
///
/// When the index is damaged.
#[wasm_bindgen(js_name = dataFiles)]
pub fn data_files(index: Vec<u8>) -> Result<Vec<String>, WebError> {
    let folder = MemoryFolder::new([("variables.index", index)])?;
    let reader = Reader::open(folder.path().join("variables"), &Limits::default())?;
    let name = |path: &std::path::PathBuf| {
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    Ok(reader.data_files().iter().filter_map(name).collect())
}
