//! Models and checkpoints whose files are in memory.

use ferroflow_ir::{HostTensor, Limits, Shape};
use ferroflow_runtime::{Context, Error as RuntimeError, files::MemoryFolder};
use ferroflow_saved_model::{
    Error, LoadOptions, SavedModel, bundle::Reader, load, load::assets, load::read_saved_model,
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn zoo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/zoo").join(name).join("model")
}

/// The files of a model, by their paths from its folder.
fn files(root: &Path, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        match entry.path().is_dir() {
            true => found.extend(files(root, &name)),
            false => found.push((name, fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn in_memory(name: &str) -> MemoryFolder {
    MemoryFolder::new(files(&zoo(name), "")).unwrap()
}

fn call(model: &SavedModel, inputs: &[(&str, HostTensor)]) -> BTreeMap<String, HostTensor> {
    let inputs = inputs.iter().map(|(name, value)| (name.to_string(), value.clone().into()));
    let outputs = model.call_signature("serving_default", &inputs.collect()).unwrap();
    outputs.into_iter().map(|(name, value)| (name, value.into_host().unwrap())).collect()
}

#[test]
fn a_model_in_memory_gives_what_it_gives_from_the_disk() {
    let (context, options) = (Context::new(), LoadOptions::default());
    let folder = in_memory("k3_mlp");
    let loaded = load(&context, folder.path(), &options).unwrap();
    folder.remove(|path| path.starts_with("variables"));
    let x = HostTensor::from_slice(Shape::new([1, 8]).unwrap(), &[1.0f32; 8]).unwrap();
    let inputs = [("keras_tensor", x)];
    let from_disk = load(&context, zoo("k3_mlp"), &options).unwrap();
    assert_eq!(call(&loaded, &inputs), call(&from_disk, &inputs));
    let outputs = loaded.signature_outputs("serving_default").unwrap();
    let (name, ty) = &outputs[0];
    assert_eq!((name.as_str(), outputs.len()), ("output_0", 1));
    assert_eq!(ty.as_ref().unwrap().to_string(), "float32[?,4]");
}

#[test]
fn tables_read_assets_in_memory() {
    let folder = in_memory("v1_noinit_tables");
    let model = load(&Context::new(), folder.path(), &LoadOptions::default()).unwrap();
    let words = HostTensor::from_strings(Shape::new([2]).unwrap(), vec!["b".into(), "y".into()]);
    let found = call(&model, &[("x", words.unwrap())]);
    assert_eq!(found.len(), 2);
    let file = read_saved_model(&folder.path()).unwrap();
    let listed = assets(&folder.path(), &file.meta_graphs[0]).unwrap();
    let names: Vec<&str> = listed.iter().map(|asset| asset.filename.as_str()).collect();
    // Two tables read it.
    assert_eq!(names, ["words.txt"; 2]);
    assert_eq!(model.signature_outputs("serving_default").unwrap().len(), 2);
}

#[test]
fn a_checkpoint_tells_its_files() {
    let folder = in_memory("k3_mlp");
    let prefix = folder.path().join("variables/variables");
    let reader = Reader::open(&prefix, &Limits::default()).unwrap();
    let data = folder.path().join("variables/variables.data-00000-of-00001");
    assert_eq!(reader.data_files(), [data]);
    let (name, _) = reader.entries().find(|(_, entry)| entry.shape.rank() == 2).unwrap();
    assert!(reader.read(name).is_ok());
}

#[test]
fn missing_files_are_errors_and_nobody_writes_in_memory() {
    let others = files(&zoo("k3_mlp"), "").into_iter().filter(|(name, _)| !name.contains(".data-"));
    let folder = MemoryFolder::new(others).unwrap();
    let context = Context::new();
    let missing = load(&context, folder.path(), &LoadOptions::default());
    assert_eq!(missing.unwrap_err().code(), ferroflow_ir::Code::NotFound);
    let empty = MemoryFolder::new([("readme.txt", "")]).unwrap();
    let missing = load(&context, empty.path(), &LoadOptions::default());
    assert!(matches!(missing.unwrap_err(), Error::Io { .. }));
    let denied = context.check_file(&folder.path().join("variables/variables"));
    assert!(matches!(denied.unwrap_err(), RuntimeError::Denied { .. }));
}
