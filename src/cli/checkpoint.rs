//! `ferroflow checkpoint`: what a checkpoint holds.

use super::{Report, columns, progress, weights_file};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use ferroflow::{
    ir::{HostTensor, Limits},
    saved_model::{
        CheckpointState,
        bundle::{Entry, Reader, Writer},
    },
};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(super) enum CheckpointVerb {
    /// List the tensors of a checkpoint, or print one of them.
    Show(Show),
    /// Write a checkpoint of tensors of others, also under other names.
    Copy(CopyFlags),
}

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Show {
    /// The path of the checkpoint without suffix, its `.index` file, a folder with a `checkpoint`
    /// file (its latest is taken), a SavedModel, or a file of weights: `.keras`, `.h5`, `.safetensors`.
    prefix: PathBuf,
    /// Print this tensor. May be given more than once.
    #[arg(long, value_name = "NAME")]
    tensor: Vec<String>,
    /// Read every tensor and verify its checksum.
    #[arg(long)]
    verify: bool,
}

/// Arguments of the command: the tensors to copy, and their new dtype and names.
#[derive(Args)]
pub(super) struct CopyFlags {
    /// The checkpoints, named as for `show`. A name that several have is an error.
    #[arg(required = true)]
    from: Vec<PathBuf>,
    /// The path of the new checkpoint without suffix.
    #[arg(long, value_name = "PREFIX")]
    to: PathBuf,
    /// Names that begin with OLD begin with NEW. May be given more than once; the first that fits
    /// is taken.
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Leave out what begins with this. May be given more than once.
    #[arg(long, value_name = "START")]
    drop: Vec<String>,
    /// Take only what begins with this. May be given more than once.
    #[arg(long, value_name = "START")]
    only: Vec<String>,
}

pub(super) fn checkpoint(verb: CheckpointVerb) -> Result<Report> {
    match verb {
        CheckpointVerb::Show(arguments) => show(arguments),
        CheckpointVerb::Copy(arguments) => copy(&arguments),
    }
}

/// Where a checkpoint keeps what its objects are.
const OBJECTS: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

fn copy(arguments: &CopyFlags) -> Result<Report> {
    let rename: Result<Vec<(&str, &str)>> = arguments
        .rename
        .iter()
        .map(|pair| pair.split_once('=').with_context(|| format!("`{pair}` is not OLD=NEW")))
        .collect();
    let rename = rename?;
    // Objects know their tensors by name: they are those of one checkpoint, unchanged.
    let is_whole = arguments.from.len() == 1
        && rename.is_empty()
        && arguments.drop.is_empty()
        && arguments.only.is_empty();
    let mut writer = Writer::create(&arguments.to)?;
    let mut written = std::collections::BTreeSet::new();
    for from in &arguments.from {
        let reader = Reader::open(prefix(from)?, &Limits::default())?;
        let steps = progress::StepProgress::new("copying", reader.entries().len());
        for (key, _) in reader.entries() {
            steps.step();
            let begins = |starts: &[String]| starts.iter().any(|start| key.starts_with(start));
            let is_wanted = arguments.only.is_empty() || begins(&arguments.only);
            if !is_wanted || begins(&arguments.drop) || key == OBJECTS && !is_whole {
                continue;
            }
            let renamed = rename
                .iter()
                .find_map(|(old, new)| Some(format!("{new}{}", key.strip_prefix(old)?)))
                .unwrap_or_else(|| key.to_string());
            if !written.insert(renamed.clone()) {
                bail!("{}: there is a tensor `{renamed}` already", from.display());
            }
            writer.add(&renamed, &reader.read(key)?)?;
        }
    }
    writer.finish()?;
    let to = arguments.to.display().to_string();
    let text = format!("{to}: {} tensors", written.len());
    Ok(Report { text, json: json!({ "to": to, "tensors": written }) })
}

/// Copies a checkpoint; `value` may give another value for a tensor.
pub(super) fn copy_to(
    reader: &Reader,
    to: &Path,
    mut value: impl FnMut(&str, &Entry) -> Result<Option<HostTensor>>,
) -> Result<()> {
    let mut writer = Writer::create(to)?;
    for (key, entry) in reader.entries() {
        match value(key, entry)? {
            Some(tensor) => writer.add(key, &tensor)?,
            None => writer.add(key, &reader.read(key)?)?,
        }
    }
    Ok(writer.finish()?)
}

fn show(arguments: Show) -> Result<Report> {
    if let Some(tensors) = weights_file::read(&arguments.prefix)? {
        return weights_file::show(&arguments.prefix, &tensors, &arguments.tensor);
    }
    let prefix = prefix(&arguments.prefix)?;
    let reader = Reader::open(&prefix, &Limits::default())?;
    if !arguments.tensor.is_empty() {
        return tensors(&reader, &arguments.tensor);
    }
    if arguments.verify {
        verify(&reader)?;
    }
    Ok(list(&reader, &prefix, arguments.verify))
}

/// The path of a checkpoint, however it was named.
pub(super) fn prefix(path: &Path) -> Result<PathBuf> {
    if path.extension().is_some_and(|extension| extension == "index") {
        return Ok(path.with_extension(""));
    }
    if !path.is_dir() {
        return Ok(path.into());
    }
    let of_model = path.join("variables").join("variables");
    if of_model.with_extension("index").exists() {
        return Ok(of_model);
    }
    let state = CheckpointState::read(path)
        .with_context(|| format!("{}: neither checkpoint nor SavedModel", path.display()))?;
    Ok(state.model_checkpoint_path)
}

fn tensors(reader: &Reader, names: &[String]) -> Result<Report> {
    let mut found = Vec::new();
    for name in names {
        if reader.entry(name).is_none() {
            return Err(weights_file::no_tensor(name, reader.entries().map(|(entry, _)| entry)));
        }
        found.push((name.as_str(), reader.read(name)?));
    }
    Ok(weights_file::values(&found))
}

fn verify(reader: &Reader) -> Result<()> {
    let steps = progress::StepProgress::new("verifying", reader.entries().len());
    for (name, _) in reader.entries() {
        reader.read(name)?;
        steps.step();
    }
    Ok(())
}

fn list(reader: &Reader, prefix: &Path, verified: bool) -> Report {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    let mut bytes = 0;
    for (name, entry) in reader.entries() {
        let slices = match entry.slices.len() {
            0 => String::new(),
            n => format!(" in {n} slices"),
        };
        cells.push((name.to_string(), format!("{}{}{slices}", entry.dtype, entry.shape)));
        let slices: Vec<String> = entry.slices.iter().map(|slice| slice.to_string()).collect();
        rows.push(json!({
            "name": name, "dtype": entry.dtype.name(), "shape": entry.shape.dims(), "slices": slices,
        }));
        bytes += entry.dtype.size().unwrap_or(0) * entry.shape.num_elements();
    }
    let n = cells.len();
    let verified_text = if verified { ", all checksums verified" } else { "" };
    let end = format!("{n} tensors, {bytes} bytes of numbers{verified_text}");
    let text = if n == 0 { end } else { format!("{}\n{end}", columns(&cells, "")) };
    let json = json!({
        "prefix": prefix.display().to_string(), "tensors": rows, "verified": verified,
    });
    Report { text, json }
}
