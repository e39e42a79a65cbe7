//! `ferroflow run`: one call of a signature.

use super::{ModelFolder, Report, array_json, inputs, progress, show::split_tags};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use ferroflow::{
    npy,
    runtime::{Context, EagerTensor},
    saved_model::{LoadOptions, load},
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What is asked for.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    folder: ModelFolder,
    /// The tags of the MetaGraph, with commas between them; may be left out where there is one.
    #[arg(long = "tag_set", alias = "tag-set", value_name = "TAGS")]
    tag_set: Option<String>,
    /// The signature to call.
    #[arg(
        long = "signature_def",
        alias = "signature-def",
        value_name = "NAME",
        default_value = "serving_default"
    )]
    signature_def: String,
    /// Inputs from files: `x=file.npy`, `y=file.npz[key]`; several with semicolons between them.
    #[arg(long, value_name = "NAME=FILE")]
    inputs: Vec<String>,
    /// Inputs as Python literals: `x=[[1.0, 2.0]]`; several with semicolons between them.
    #[arg(long = "input_exprs", alias = "input-exprs", value_name = "NAME=LITERAL")]
    input_exprs: Vec<String>,
    /// Write each output to `NAME.npy` in this folder, besides printing it.
    #[arg(long, value_name = "DIR")]
    outdir: Option<PathBuf>,
    /// Replace files that exist in that folder.
    #[arg(long, requires = "outdir")]
    overwrite: bool,
}

pub(super) fn run(arguments: Arguments) -> Result<Report> {
    let folder = arguments.folder.path();
    let tags = arguments.tag_set.as_deref().map(split_tags);
    let context = Context::new();
    let options = LoadOptions { tags, ..LoadOptions::default() };
    let model = progress::during("loading", || load(&context, &folder, &options))?;
    let key = &arguments.signature_def;
    let specs = model.signature_inputs(key)?;
    let given = inputs::inputs(&arguments.inputs, &arguments.input_exprs, &specs)?;
    let given = given.into_iter().map(|(name, tensor)| (name, EagerTensor::from(tensor))).collect();
    let outputs = progress::during("running", || model.call_signature(key, &given))?;
    if let Some(folder) = &arguments.outdir {
        write(folder, &outputs, arguments.overwrite)?;
    }
    report(&outputs)
}

fn report(outputs: &BTreeMap<String, EagerTensor>) -> Result<Report> {
    let mut texts = Vec::new();
    let mut fields = Map::new();
    for (name, tensor) in outputs {
        let tensor = tensor.host()?;
        texts.push(format!("{name}: {}{}\n{tensor}", tensor.dtype(), tensor.shape()));
        fields.insert(name.clone(), array_json::tensor(tensor));
    }
    Ok(Report { text: texts.join("\n"), json: Value::Object(fields) })
}

/// Writes all outputs, or none if one of the files must not be replaced.
fn write(folder: &Path, outputs: &BTreeMap<String, EagerTensor>, overwrite: bool) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for (name, tensor) in outputs {
        ensure!(!name.contains(['/', '\\', '\0']) && name != "..", "output `{name}` names no file");
        let path = folder.join(format!("{name}.npy"));
        if path.exists() && !overwrite {
            bail!("{}: the file exists; --overwrite replaces it", path.display());
        }
        files.push((path, tensor));
    }
    for (path, tensor) in files {
        npy::write(path, tensor.host()?)?;
    }
    Ok(())
}
