//! `fuzz calls`: mutated calls of every op of the registry, in a child process with bounded memory. A
//! panic, an abort or a hang is a fault. Workers (`conformance/mutants`) make the calls.

use super::Seeds;
use crate::{
    command::{self, BuildProfile},
    worker::{Reply, Worker, WorkerProgram, on_workers},
};
use anyhow::{Context, Result, ensure};
use clap::Args;
use ferroflow_ir::OpRegistry;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

#[derive(Args)]
pub(crate) struct CallFlags {
    /// The numbers of each op's mutants, `A..B`.
    #[arg(long, default_value = "0..200")]
    mutants: Seeds,
    /// Another seed makes other mutants.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only ops whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    ops: Vec<String>,
    /// The most address space of a worker, in MiB.
    #[arg(long, default_value_t = 8000)]
    memory: u64,
    /// Longest time of a call, in seconds.
    #[arg(long, default_value_t = 20)]
    patience: u64,
    /// Build the worker as tests are built: slower, but it checks arithmetic.
    #[arg(long)]
    dev: bool,
    /// A worker that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// A fault: a panic's place and message or how the worker was lost, and the call.
struct CallFault {
    what: String,
    op: String,
    number: u64,
    text: String,
}

pub(crate) fn run(root: &Path, flags: &CallFlags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let path = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, "conformance", &["conformance"], profile)?,
    };
    let worker = bounded(&path, flags.memory);
    let registry = OpRegistry::default();
    let wanted = |name: &str| match flags.ops.is_empty() {
        true => name != ARG,
        false => flags.ops.iter().any(|part| name.contains(part)),
    };
    let ops: Vec<&str> =
        registry.implemented().iter().map(|op| op.name).filter(|name| wanted(name)).collect();
    let n_ops = ops.len();
    let faults = Mutex::new(Vec::new());
    on_workers(&worker, ops, |worker, op| {
        let found = of_op(worker, root, op, flags)?;
        worker.stop()?;
        faults.lock().expect("no thread panics with the list").extend(found);
        Ok(())
    })?;
    let faults = faults.into_inner().expect("no thread panicked");
    report(&faults);
    println!("calls: {} faults in {} mutants of each of {n_ops} ops", faults.len(), {
        flags.mutants.0.clone().count()
    });
    ensure!(faults.is_empty(), "{} calls end the process", faults.len());
    Ok(())
}

/// An argument of a function, which is no call.
const ARG: &str = "_Arg";

/// A program that has so many MiB of address space, so that no call takes the machine's memory.
pub(super) fn bounded(path: &Path, mebibytes: u64) -> WorkerProgram {
    let script = format!("ulimit -v {}; exec \"$0\"", mebibytes * 1024);
    let arguments = ["-c".into(), script, path.display().to_string()];
    WorkerProgram { path: "/bin/sh".into(), arguments: arguments.into() }
}

/// Makes the mutants of an op, one worker after another.
fn of_op(worker: &mut Worker, root: &Path, op: &str, flags: &CallFlags) -> Result<Vec<CallFault>> {
    let recorded = root.join("tests/ops").join(format!("{op}.json.gz"));
    let recorded = if recorded.exists() { recorded.display().to_string() } else { String::new() };
    let (mut from, to) = (flags.mutants.0.start, flags.mutants.0.end);
    let mut faults = Vec::new();
    while from < to {
        worker.send(&json!({
            "kind": "mutants",
            "path": recorded,
            "op": op,
            "seed": flags.seed,
            "from": from,
            "to": to,
        }))?;
        from = part(worker, op, to, flags, &mut faults)?;
    }
    Ok(faults)
}

/// Reads a worker's answers; the mutant to go on with.
fn part(
    worker: &mut Worker,
    op: &str,
    to: u64,
    flags: &CallFlags,
    faults: &mut Vec<CallFault>,
) -> Result<u64> {
    let mut at: Option<(u64, String)> = None;
    loop {
        let line = match worker.next(Duration::from_secs(flags.patience))? {
            Reply::Line(line) => line,
            Reply::Lost(what) => {
                let (number, text) =
                    at.with_context(|| format!("the worker ends before a call of {op}: {what}"))?;
                faults.push(CallFault { what, op: op.into(), number, text });
                return Ok(number + 1);
            }
        };
        let text = |key: &str| line[key].as_str().unwrap_or("").to_string();
        if let Some(number) = line["begin"].as_u64() {
            at = Some((number, text("text")));
        } else if !line["done"].is_null() {
            return Ok(to);
        } else if let (Value::String(what), Some((number, call))) = (&line["panic"], &at) {
            let (what, text) = (what.clone(), call.clone());
            faults.push(CallFault { what, op: op.into(), number: *number, text });
        }
    }
}

/// Prints a call of each kind of fault.
fn report(faults: &[CallFault]) {
    let mut by_kind = BTreeMap::<&str, Vec<&CallFault>>::new();
    for fault in faults {
        // The place of a panic tells faults apart; its message has numbers of the call.
        let place = fault.what.split(": ").next().unwrap_or("");
        let is_lost = place.starts_with("crash") || place.starts_with("no answer");
        by_kind.entry(if is_lost { &fault.op } else { place }).or_default().push(fault);
    }
    for (kind, faults) in by_kind {
        let Some(smallest) = faults.iter().min_by_key(|fault| fault.text.len()) else { continue };
        let CallFault { what, op, number, text } = smallest;
        println!("{:5} {kind}: {what}\n      {op} {number}: {text}", faults.len());
    }
}
