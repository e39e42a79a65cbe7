//! Savers that are killed at any moment, and readers beside them.

use anyhow::{Context as _, Result, ensure};
use ferroflow::{
    Checkpoint, CheckpointManager, ManagerOptions,
    ir::{HostTensor, Limits, Shape},
    latest_checkpoint,
    runtime::ResourceVariable,
    saved_model::bundle::{Reader, Writer, files_of, merge},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Elements of each tensor, all of the same value in a checkpoint that is whole.
const ELEMENTS: usize = 20_000;

fn tensor(value: f32) -> Result<HostTensor> {
    Ok(HostTensor::from_slice(Shape::new([ELEMENTS])?, &vec![value; ELEMENTS])?)
}

fn folder(job: &Value) -> Result<PathBuf> {
    Ok(job["folder"].as_str().context("a folder")?.into())
}

/// Saves again and again, until the process is killed or the job's number of saves is reached.
pub(crate) fn save(job: &Value) -> Result<Value> {
    let (folder, first) = (folder(job)?, job["first"].as_u64().context("a number")?);
    let n_saves = job["saves"].as_u64().unwrap_or(u64::MAX);
    for number in (first..).take(usize::try_from(n_saves).unwrap_or(usize::MAX)) {
        let value = number as f32;
        match job["way"].as_str() {
            Some("name") => write(&folder.join("m"), value)?,
            Some("merge") => merged(&folder, value)?,
            Some("manager") => managed(&folder, value)?,
            other => anyhow::bail!("unknown way {other:?}"),
        }
    }
    Ok(json!({ "saves": n_saves }))
}

fn write(prefix: &Path, value: f32) -> Result<()> {
    let mut writer = Writer::create(prefix)?;
    for name in ["a", "b", "c"] {
        writer.add(name, &tensor(value)?)?;
    }
    Ok(writer.finish()?)
}

/// Writes parts, and merges them over the checkpoint in place.
fn merged(folder: &Path, value: f32) -> Result<()> {
    let parts = ["a", "b", "c"].map(|name| folder.join(format!("part-{name}")));
    for (prefix, name) in parts.iter().zip(["a", "b", "c"]) {
        let mut writer = Writer::create(prefix)?;
        writer.add(name, &tensor(value)?)?;
        writer.finish()?;
    }
    Ok(merge(&parts, &folder.join("m"), false, &Limits::default())?)
}

fn managed(folder: &Path, value: f32) -> Result<()> {
    let [a, b] = ["a", "b"].map(|name| Some(ResourceVariable::new(name, tensor(value).ok()?)));
    let (a, b) = a.zip(b).context("two variables")?;
    let checkpoint = Checkpoint::new().with("a", &a).with("b", &b);
    let options = ManagerOptions { max_to_keep: 3.try_into().ok(), ..ManagerOptions::default() };
    CheckpointManager::new(checkpoint, folder, options)?.save()?;
    Ok(())
}

/// Reads for so many milliseconds; how often, and what was not whole.
pub(crate) fn watch(job: &Value) -> Result<Value> {
    let (folder, ms) = (folder(job)?, job["ms"].as_u64().context("a time")?);
    let is_managed = job["way"] == "manager";
    let end = Instant::now() + Duration::from_millis(ms);
    let (mut n_reads, mut faults) = (0, Vec::new());
    loop {
        n_reads += 1;
        let found = match is_managed {
            true => read_latest(&folder),
            false => read(&folder.join("m")),
        };
        faults.extend(found.err().map(|error| format!("{error:#}")));
        if Instant::now() >= end {
            return Ok(json!({ "reads": n_reads, "faults": faults }));
        }
    }
}

/// Reads the newest checkpoint of a manager. One that the manager removed meanwhile was not the newest
/// any more.
fn read_latest(folder: &Path) -> Result<()> {
    let newest = || latest_checkpoint(folder)?.context("a checkpoint");
    let prefix = newest()?;
    let found = read(&prefix);
    if found.is_err() && newest()? != prefix {
        return read_latest(folder);
    }
    found
}

fn read(prefix: &Path) -> Result<()> {
    let reader = Reader::open(prefix, &Limits::default())?;
    let keys: Vec<String> = reader.entries().map(|(key, _)| key.to_string()).collect();
    let mut values = Vec::new();
    for key in keys {
        if let Ok(elements) = reader.read(&key)?.as_slice::<f32>() {
            values.extend(elements.iter().copied().step_by(97));
        }
    }
    ensure!(values.len() > 100, "{} tensors are missing", prefix.display());
    ensure!(values.iter().all(|value| *value == values[0]), "a mixture of checkpoints");
    Ok(())
}

/// The files of a folder that no checkpoint in place has, after one more save.
pub(crate) fn leftovers(job: &Value) -> Result<Value> {
    let folder = folder(job)?;
    let mut known = vec![folder.join("checkpoint")];
    let mut prefixes = vec![folder.join("m")];
    if job["way"] == "manager" {
        let checkpoint = Checkpoint::new();
        let options = ManagerOptions::default();
        let manager = CheckpointManager::new(checkpoint, &folder, options)?;
        prefixes = manager.checkpoints().into_iter().map(Path::to_path_buf).collect();
    }
    for prefix in prefixes {
        known.extend(files_of(&prefix)?);
    }
    let mut left = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if !known.contains(&path) {
            left.push(path.display().to_string());
        }
    }
    Ok(json!({ "left": left }))
}
