//! `ferroflow checkpoint`: what a checkpoint holds.

use super::{
    Report, columns,
    file_kind::FileKind,
    progress,
    recognize::{check_readable, check_target},
    weights_file,
};
use anyhow::{Context as _, Result, bail, ensure};
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
    /// file (its latest is taken), a SavedModel, or a file of weights: `.keras`, `.h5`,
    /// `.safetensors`.
    prefix: PathBuf,
    /// Print this tensor. May be passed more than once.
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
    /// Names that begin with OLD begin with NEW. May be passed more than once; the first that fits
    /// is taken.
    #[arg(long, value_name = "OLD=NEW")]
    rename: Vec<String>,
    /// Leave out what begins with this. May be passed more than once.
    #[arg(long, value_name = "START")]
    drop: Vec<String>,
    /// Take only what begins with this. May be passed more than once.
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
    check_target(&arguments.to)?;
    let mut writer = Writer::create(&arguments.to)?;
    let mut written = std::collections::BTreeSet::new();
    for from in &arguments.from {
        let reader = open(from)?;
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
    ensure!(!written.is_empty(), "no tensor has a name that is asked for");
    writer.finish()?;
    let to = arguments.to.display().to_string();
    let text = format!("{to}: {} tensors", written.len());
    Ok(Report { text, json: json!({ "to": to, "tensors": written }) })
}

/// Copies a checkpoint; `value` may return another value for a tensor.
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
    let reader = open(&arguments.prefix)?;
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
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some((stem, _)) = name.rsplit_once(".data-").or(name.rsplit_once(".index")) {
        return Ok(path.with_file_name(stem));
    }
    if FileKind::of(path) == FileKind::SavedModelFile {
        return prefix(path.parent().unwrap_or(path));
    }
    if !path.is_dir() {
        return Ok(path.into());
    }
    let of_model = path.join("variables").join("variables");
    if of_model.with_extension("index").exists() {
        return Ok(of_model);
    }
    if path.join("checkpoint").is_file() {
        return Ok(CheckpointState::read(path)?.model_checkpoint_path);
    }
    match &prefixes_in(path)[..] {
        [] => bail!("{} is a folder without a checkpoint", path.display()),
        [only] => Ok(only.clone()),
        several => bail!(
            "{} has several checkpoints; give one of them: {}",
            path.display(),
            several
                .iter()
                .map(|prefix| prefix.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// The checkpoints whose index is in a folder, sorted.
fn prefixes_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let indices = paths.filter(|path| path.extension().is_some_and(|end| end == "index"));
    let mut prefixes: Vec<PathBuf> = indices.map(|path| path.with_extension("")).collect();
    prefixes.sort();
    prefixes
}

/// Opens a checkpoint, however it was named.
///
/// # Errors
///
/// When there is none; of a file of another kind the error names the kind and the way on.
pub(super) fn open(path: &Path) -> Result<Reader> {
    check_readable(path)?;
    let name = || path.display().to_string();
    match FileKind::of(path) {
        FileKind::SavedModel | FileKind::Folder | FileKind::Checkpoint | FileKind::Absent => {}
        // Of the first format, whose files have no name of their own.
        FileKind::Unknown => {
            return Reader::open(path, &Limits::default())
                .with_context(|| format!("{} is no checkpoint", name()));
        }
        FileKind::SavedModelFile => {}
        kind => bail!("{} is {kind} and no checkpoint: {}", name(), kind.advice()),
    }
    Ok(Reader::open(prefix(path)?, &Limits::default())?)
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
