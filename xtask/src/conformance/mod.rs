//! `conformance`: recorded cases against the worker of the root package.
//!
//! Cases run in worker processes, one per core. A worker that dies or hangs costs the case it was
//! at: that case fails, another worker goes on after it.

mod jax;
pub(crate) mod judge;
mod ops;
pub(crate) mod tensorflow;
mod zoo;

use crate::{
    command::{self, BuildProfile},
    worker::WorkerProgram,
};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Args)]
pub(crate) struct Flags {
    /// A folder of models, graphs and checkpoints with recorded answers.
    #[arg(long, required_unless_present_any = ["ops", "with_tensorflow", "with_jax"])]
    zoo: Option<PathBuf>,
    /// A folder of single ops with recorded results.
    #[arg(long)]
    ops: Option<PathBuf>,
    /// Have TensorFlow load what is saved here: the models of the zoo (`tests/zoo` unless another is
    /// given), and models written in Rust. TensorFlow is installed below the target folder.
    #[arg(long)]
    with_tensorflow: bool,
    /// Have XLA run what is written here as StableHLO: the artifacts of the zoo (`tests/zoo` unless another
    /// is given). JAX is installed below the target folder.
    #[arg(long)]
    with_jax: bool,
    /// Build the worker as tests are built, not for speed.
    #[arg(long)]
    dev: bool,
    /// A worker that is built already, on a machine that has a device but no compiler, say.
    #[arg(long, conflicts_with = "dev")]
    worker: Option<PathBuf>,
    /// Run the cases on this device, such as `WGPU`, and tell what ran there and what did not.
    #[arg(long)]
    device: Option<String>,
    /// Only these cases of the zoo or these ops: a name, or its beginning and `*`.
    #[arg(long)]
    case: Vec<String>,
    /// Write all results to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

impl Flags {
    /// Runs the ops of a folder, with the worker if there is one already.
    pub(crate) fn of_ops(ops: PathBuf, worker: Option<PathBuf>, dev: bool) -> Flags {
        Flags {
            zoo: None,
            ops: Some(ops),
            with_tensorflow: false,
            with_jax: false,
            dev,
            worker,
            device: None,
            case: Vec::new(),
            json: None,
        }
    }
}

/// Status of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Passed,
    Failed,
    Unsupported,
}

/// A result that a worker reported, or that the loss of a worker amounts to.
struct Outcome {
    json: Value,
}

impl Outcome {
    fn failed(mut json: Value, why: &str) -> Outcome {
        json["status"] = json!("fail");
        json["why"] = json!(why);
        Outcome { json }
    }

    fn text(&self, key: &str) -> &str {
        self.json[key].as_str().unwrap_or("")
    }

    fn status(&self) -> Status {
        match self.text("status") {
            "pass" => Status::Passed,
            "unsupported" => Status::Unsupported,
            _ => Status::Failed,
        }
    }
}

/// Counts of cases by status.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    passed: usize,
    failed: usize,
    unsupported: usize,
}

impl Counts {
    fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Counts {
        let mut counts = Counts::default();
        for outcome in outcomes {
            match outcome.status() {
                Status::Passed => counts.passed += 1,
                Status::Failed => counts.failed += 1,
                Status::Unsupported => counts.unsupported += 1,
            }
        }
        counts
    }

    fn line(self, what: &str) -> String {
        let Counts { passed, failed, unsupported } = self;
        let all = passed + failed + unsupported;
        format!("{what}: {passed} passed, {failed} failed, {unsupported} unsupported, of {all}")
    }
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let profile =
        if flags.with_tensorflow || flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    // Devices that wgpu reaches are there by default.
    let on = |kind: &str| flags.device.as_ref().is_some_and(|device| device.starts_with(kind));
    let features = if on("GPU") { "conformance,cuda" } else { "conformance" };
    let path = match &flags.worker {
        Some(path) => path.clone(),
        None => command::build_workers(root, features, &["conformance"], profile)?,
    };
    let device = flags.device.iter().flat_map(|device| ["--device".to_string(), device.clone()]);
    let program = WorkerProgram { path, arguments: device.collect() };
    let wanted = |name: &str| flags.case.is_empty() || flags.case.iter().any(|p| fits(p, name));
    let mut results = Vec::new();
    let mut failed = 0;
    if flags.with_tensorflow {
        let zoo = flags.zoo.clone().unwrap_or_else(|| root.join("tests").join("zoo"));
        let outcomes = tensorflow::run(root, &program, &zoo, &wanted)?;
        let counts = Counts::of(&outcomes);
        println!("{}", tensorflow::line(counts));
        failed += counts.failed + counts.unsupported;
        results.extend(outcomes);
    } else if flags.with_jax {
        let zoo = flags.zoo.clone().unwrap_or_else(|| root.join("tests").join("zoo"));
        let outcomes = jax::run(root, &program, &zoo, &wanted)?;
        let counts = Counts::of(&outcomes);
        println!("{}", counts.line("jax"));
        failed += counts.failed;
        results.extend(outcomes);
    } else if let Some(folder) = &flags.zoo {
        let outcomes = zoo::run(&program, folder, &wanted)?;
        let counts = Counts::of(&outcomes);
        println!("{}", counts.line("zoo"));
        failed += counts.failed;
        results.extend(outcomes);
    }
    if let Some(folder) = &flags.ops {
        let outcomes = ops::run(&program, folder, &wanted)?;
        let (gradients, values): (Vec<Outcome>, Vec<Outcome>) =
            outcomes.into_iter().partition(|outcome| outcome.text("case").ends_with(" gradients"));
        for (outcomes, what) in [(&values, "ops"), (&gradients, "gradients")] {
            let counts = Counts::of(outcomes);
            println!("{}", counts.line(what));
            failed += counts.failed;
        }
        let outcomes = values.into_iter().chain(gradients);
        results.extend(outcomes);
    }
    if let Some(device) = &flags.device {
        println!("{}", placed_line(device, &results));
    }
    if let Some(path) = &flags.json {
        let results: Vec<Value> = results.into_iter().map(|outcome| outcome.json).collect();
        let text = serde_json::to_string_pretty(&results)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    ensure!(failed == 0, "{failed} cases failed");
    Ok(())
}

/// Numbers of the calls that ran on the device, and of those that ran on the CPU: as the device
/// cannot hold what they compute, as such ops stay on the host, or for want of a kernel.
fn placed_line(device: &str, outcomes: &[Outcome]) -> String {
    let reports = || outcomes.iter().map(|outcome| &outcome.json["device"]);
    let placed: u64 = reports().filter_map(|report| report["placed"].as_u64()).sum();
    let sum = |why: &str| {
        let mut by_op = BTreeMap::<String, u64>::new();
        for (op, n) in reports().flat_map(|report| report[why].as_object()).flatten() {
            *by_op.entry(op.clone()).or_default() += n.as_u64().unwrap_or(0);
        }
        let ops: Vec<String> = by_op.iter().map(|(op, n)| format!("{op} {n}")).collect();
        (by_op.values().sum::<u64>(), ops.join(", "))
    };
    let ((unheld, of_types), (missing, ops)) = (sum("unheld"), sum("fallbacks"));
    let (hosted, of_hosts) = sum("hosted");
    format!(
        "{device}: {placed} calls ran there; of {unheld} it cannot hold a type: {of_types}\n\
         {device}: {hosted} are of ops that stay on the host: {of_hosts}\n\
         {device}: {missing} had no kernel: {ops}"
    )
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// The entries of a folder whose names `wanted` takes, sorted.
fn entries(folder: &Path, suffix: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in read {
        let path = fs::canonicalize(entry?.path())?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if name.strip_suffix(suffix).is_some_and(wanted) {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        bail!("there are no such cases in {}", folder.display());
    }
    Ok(paths)
}

/// Longest time of a case that is not malformed.
const PATIENCE: Duration = Duration::from_secs(120);
