//! Loading models, and whole processes that load and call one.

use super::model;
use crate::{
    Bench,
    measure::{
        Unit::{Milliseconds, Seconds},
        Workload,
    },
};
use anyhow::{Context as _, Result, ensure};
use ferroflow::{
    npy,
    runtime::Context,
    saved_model::{LoadOptions, load},
};
use serde_json::json;
use std::{
    cell::Cell,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    rc::Rc,
};

pub(crate) fn find<'a>(bench: &'a Bench, name: &str) -> Result<Option<Workload<'a>>> {
    Ok(match name {
        "load.saved_model_resnet50" => Some(loading(bench, "resnet50")),
        "load.saved_model_mlp" => Some(loading(bench, "mlp")),
        "load.saved_model_500mb" => {
            Some(Workload { work: Some((500.0, "MB/s")), ..loading(bench, "big500") })
        }
        _ => match name.strip_prefix("cold.") {
            Some(model) => cold(bench, model)?,
            None => None,
        },
    })
}

fn loading<'a>(bench: &'a Bench, model: &str) -> Workload<'a> {
    let folder = bench.models.join(model);
    Workload::new(Milliseconds, move || {
        load(&Context::new(), &folder, &LoadOptions::default())?;
        Ok(Vec::new())
    })
    .once()
}

/// A whole process of the command line: start, load, one call.
fn cold<'a>(bench: &'a Bench, model: &str) -> Result<Option<Workload<'a>>> {
    let Some(input) = model::input(model, 1)? else { return Ok(None) };
    let array = bench.models.join(format!("{model}_x.npy"));
    npy::write(&array, input.host()?)?;
    let program = std::env::current_exe()?.with_file_name("ferroflow");
    ensure!(program.exists(), "{} must be built first", program.display());
    let (folder, argument) = (bench.models.join(model), format!("x={}", array.display()));
    let peak = Rc::new(Cell::new(0.0f64));
    let seen = Rc::clone(&peak);
    let body = move || {
        seen.set(seen.get().max(run(&program, &folder, &argument)?));
        Ok(Vec::new())
    };
    let mut workload = Workload::new(Seconds, body).once();
    workload.extra = Some(Box::new(move || ("peak_rss_mb", json!(peak.get()))));
    Ok(Some(workload))
}

/// Runs the process; its peak of resident memory in megabytes.
fn run(program: &PathBuf, folder: &Path, argument: &str) -> Result<f64> {
    let child = Command::new(program)
        .arg("run")
        .arg(folder)
        .args(["--inputs", argument])
        .stdout(Stdio::null())
        .spawn()?;
    let usage = wait(child)?;
    Ok(usage)
}

/// Waits for the end of the process, reading its peak of memory while it lives.
fn wait(mut child: std::process::Child) -> Result<f64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0f64;
    loop {
        if let Ok(text) = std::fs::read_to_string(&status)
            && let Some(line) = text.lines().find(|line| line.starts_with("VmHWM"))
        {
            let kilobytes =
                line.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok());
            peak = peak.max(kilobytes.context("a number of kilobytes")? / 1024.0);
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the process failed");
            return Ok(peak);
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}
