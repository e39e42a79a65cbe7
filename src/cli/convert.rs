//! `ferroflow convert`: weights from one format to another, and models as graphs.

use super::{
    Report,
    checkpoint::{self, copy_to},
    progress,
    recognize::{check_target, model_folder},
    stablehlo, weights_file,
};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    ir::HostTensor,
    runtime::Context,
    safetensors,
    saved_model::{
        FrozenGraph, LoadOptions, bundle::Writer, freeze, load_session,
        output_file::temporary_name, write_message,
    },
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// Suffix of the keys of the variables of objects.
const VALUE: &str = "/.ATTRIBUTES/VARIABLE_VALUE";

/// Arguments of the command.
#[derive(Args)]
pub(super) struct ConvertArguments {
    /// A SavedModel, a checkpoint, a `.safetensors` file, or a `.keras` or `.h5` file of Keras.
    from: PathBuf,
    /// A `.safetensors` file, or the path of a checkpoint without suffix; a `.pb` or `.pbtxt` file for
    /// the graph of a signature in which variables are constants; an `.mlir` or `.mlirbc` file for that
    /// signature as the text or the portable artifact of StableHLO; with `--like` the folder of a
    /// SavedModel.
    to: PathBuf,
    /// The signature that becomes a graph.
    #[arg(long, value_name = "KEY", default_value = "serving_default")]
    signature: String,
    /// The shape of an input of the signature, for StableHLO: `x=1,28,28`. Inputs of known shape need none.
    #[arg(long = "shape", value_name = "NAME=SIZES")]
    shapes: Vec<String>,
    /// Write a copy of this SavedModel whose variables have the values that are read.
    #[arg(long, value_name = "DIR")]
    like: Option<PathBuf>,
}

pub(super) fn convert(arguments: ConvertArguments) -> Result<Report> {
    let ConvertArguments { from, to, signature, shapes, like } = arguments;
    if like.is_none() {
        check_target(&to)?;
    }
    if like.is_none() && is_graph(&to) {
        return graph(&from, &to, &signature);
    }
    if like.is_none() && stablehlo::is_target(&to) {
        return stablehlo::write(&from, &to, &signature, &shapes);
    }
    let read = Weights::read(&from)?;
    if let Some(like) = like {
        return fill(&like, &to, &read);
    }
    let n_tensors = read.tensors.len();
    if is_safetensors(&to) {
        safetensors::write(&to, &read.tensors)?;
    } else {
        let mut writer = Writer::create(&to)?;
        for (name, tensor) in &read.tensors {
            writer.add(name, tensor)?;
        }
        writer.finish()?;
    }
    Ok(read.report(&to, n_tensors))
}

fn is_graph(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pb" || extension == "pbtxt")
}

/// Writes a signature of a model as a graph without state.
fn graph(from: &Path, to: &Path, signature: &str) -> Result<Report> {
    let session = load_session(&Context::new(), &model_folder(from)?, &LoadOptions::default())?;
    let FrozenGraph { graph_def, inputs, outputs } = freeze(&session, signature)?;
    write_message(to, &graph_def)?;
    let list = |tensors: &BTreeMap<String, String>| {
        let each = tensors.iter().map(|(name, tensor)| format!("{name}={tensor}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let (path, n_nodes) = (to.display().to_string(), graph_def.node.len());
    let text = format!("{path}: {n_nodes} nodes, from {} to {}", list(&inputs), list(&outputs));
    let json = json!({ "to": path, "nodes": n_nodes, "inputs": inputs, "outputs": outputs });
    Ok(Report { text, json })
}

fn is_safetensors(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "safetensors")
}

/// Tensors by the paths of their objects, sorted.
struct Weights {
    tensors: Vec<(String, HostTensor)>,
    /// Parts that the formats do not share.
    left_out: Vec<String>,
}

impl Weights {
    fn read(from: &Path) -> Result<Weights> {
        if let Some(tensors) = weights_file::read(from)? {
            return Ok(Weights { tensors, left_out: Vec::new() });
        }
        let reader = checkpoint::open(from)?;
        let steps = progress::StepProgress::new("reading", reader.entries().len());
        let mut weights = Weights { tensors: Vec::new(), left_out: Vec::new() };
        for (key, entry) in reader.entries() {
            if safetensors::supports(entry.dtype) {
                let name = key.strip_suffix(VALUE).unwrap_or(key);
                weights.tensors.push((name.to_string(), reader.read(key)?));
            } else {
                weights.left_out.push(key.to_string());
            }
            steps.step();
        }
        Ok(weights)
    }

    fn report(&self, to: &Path, n_tensors: usize) -> Report {
        let mut text = format!("{}: {n_tensors} tensors", to.display());
        if !self.left_out.is_empty() {
            text.push_str(&format!(
                "; left out, as they are no numbers: {}",
                self.left_out.join(", ")
            ));
        }
        let json = json!({
            "to": to.display().to_string(), "tensors": n_tensors, "left_out": self.left_out,
        });
        Report { text, json }
    }
}

/// Copies a SavedModel with other values for its variables.
fn fill(like: &Path, to: &Path, weights: &Weights) -> Result<Report> {
    ensure!(!to.exists(), "{} exists already", to.display());
    let mut values: BTreeMap<&str, &HostTensor> =
        weights.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let reader = checkpoint::open(like)?;
    let temporary = beside(to)?;
    let mut filled = || -> Result<usize> {
        copy_model(like, &temporary)?;
        let mut n_filled = 0;
        copy_to(&reader, &temporary.join("variables/variables"), |key, entry| {
            let Some(value) = values.remove(key.strip_suffix(VALUE).unwrap_or(key)) else {
                return Ok(None);
            };
            let found = (value.dtype(), value.shape());
            ensure!(
                found == (entry.dtype, &entry.shape),
                "`{key}` is {}{}, the value given {}{}",
                entry.dtype,
                entry.shape,
                found.0,
                found.1
            );
            n_filled += 1;
            Ok(Some(value.clone()))
        })?;
        if let Some(name) = values.keys().next() {
            bail!("{} has no variable `{name}`", like.display());
        }
        fs::rename(&temporary, to).with_context(|| to.display().to_string())?;
        Ok(n_filled)
    };
    let n_filled = filled().inspect_err(|_| {
        // The first failure is the one to report.
        let _ = fs::remove_dir_all(&temporary);
    })?;
    Ok(weights.report(to, n_filled))
}

/// The name a folder has until it is complete.
fn beside(to: &Path) -> Result<PathBuf> {
    to.file_name().context("a folder needs a name")?;
    Ok(temporary_name(to))
}

/// Copies all of a SavedModel but its checkpoint.
fn copy_model(from: &Path, to: &Path) -> Result<()> {
    copy_folder(from, to, &|name| name != "variables")
}

/// Copies the files of a folder, and those of the folders in it whose names are wanted.
fn copy_folder(from: &Path, to: &Path, is_wanted: &dyn Fn(&OsStr) -> bool) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() && is_wanted(&entry.file_name()) {
            copy_folder(&source, &target, &|_| true)?;
        } else if kind.is_file() {
            fs::copy(&source, &target).with_context(|| source.display().to_string())?;
        }
    }
    Ok(())
}
