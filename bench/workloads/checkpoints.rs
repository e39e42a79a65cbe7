//! Saving and restoring: 500 MB of variables, and a model of three layers.

use crate::{
    Bench,
    inputs::floats,
    measure::{Unit::Milliseconds, Workload},
};
use anyhow::{Context as _, Result};
use ferroflow::{
    Checkpoint,
    runtime::{Context, ResourceVariable},
    saved_model::{self, LoadOptions, SaveOptions, load},
};
use serde_json::json;
use std::fs;

/// Variables, and the shape of each.
const VARIABLES: u64 = 50;
const SHAPE: [usize; 2] = [2500, 1000];

/// Bytes of all variables, in megabytes.
const MEGABYTES: f64 = 500.0;

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    Ok(match name {
        "ckpt.save_500mb" => {
            let (checkpoint, prefix) = (checkpoint()?, prefix(bench, "save"));
            Some(measured(move || Ok(checkpoint.write(&prefix).map(drop)?)))
        }
        "ckpt.restore_500mb" => {
            let (checkpoint, prefix) = (checkpoint()?, prefix(bench, "restore"));
            checkpoint.write(&prefix)?;
            Some(measured(move || Ok(checkpoint.read(&prefix)?.assert_consumed().map(drop)?)))
        }
        "save.saved_model_mlp" => {
            let folder = bench.models.join("mlp");
            let model = load(&Context::new(), folder, &LoadOptions::default())?;
            let root = model.root().context("a model with objects")?;
            let to = bench.models.join("saved_mlp");
            let body = move || {
                saved_model::save(&root, &to, &SaveOptions::default())?;
                Ok(Vec::new())
            };
            Some(Workload::new(Milliseconds, body).once())
        }
        _ => None,
    })
}

fn prefix(bench: &Bench, name: &str) -> std::path::PathBuf {
    bench.models.join("ckpt500_ferroflow").join(name)
}

fn checkpoint() -> Result<Checkpoint<'static>> {
    let variable = |number| -> Result<ResourceVariable> {
        Ok(ResourceVariable::new(format!("v{number}"), floats(300 + number, &SHAPE, -1.0, 1.0)?))
    };
    let variables = (0..VARIABLES).map(variable).collect::<Result<Vec<_>>>()?;
    let each = variables.into_iter().enumerate();
    Ok(each.fold(Checkpoint::new(), |checkpoint, (number, variable)| {
        checkpoint.with(&format!("v{number}"), variable)
    }))
}

/// Times a transfer of all variables, and notes the most memory that the process took meanwhile.
fn measured<'a>(mut body: impl FnMut() -> Result<()> + 'a) -> Workload<'a> {
    let mut is_first = true;
    let body = move || {
        if std::mem::take(&mut is_first) {
            forget_peak();
        }
        body()?;
        Ok(Vec::new())
    };
    let workload = Workload::new(Milliseconds, body).once();
    let peak: Box<dyn FnMut() -> (&'static str, serde_json::Value)> =
        Box::new(|| ("peak_rss_mb", json!(peak())));
    Workload { work: Some((MEGABYTES, "MB/s")), extra: Some(peak), ..workload }
}

/// Has Linux note the peak of memory anew; elsewhere there is none to note.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most resident memory since then, in megabytes.
fn peak() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}
