//! `fuzz files`: mutated files of every kind that is read, in a child process with bounded memory.
//! A panic, an abort or a hang is a fault. Workers (`fuzz/files` of the root package) read the
//! files.

use super::{Seeds, calls::bounded};
use crate::{
    command::{self, BuildProfile},
    worker::{Reply, Worker, WorkerProgram, on_workers},
};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

#[derive(Args, Clone)]
pub(crate) struct FileFlags {
    /// The numbers of each target's mutants, `A..B`.
    #[arg(long, default_value = "0..2000")]
    mutants: Seeds,
    /// Another seed makes other mutants.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only these targets.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// A folder of further files that mutants begin as; the option may come several times.
    #[arg(long)]
    corpus: Vec<PathBuf>,
    /// Write the mutant of this number to `mutant` and read none; it takes one target.
    #[arg(long)]
    write: bool,
    /// End after so many hours; mutants go on beyond the numbers until then.
    #[arg(long)]
    hours: Option<f64>,
    /// The most address space of a worker, in MiB.
    #[arg(long, default_value_t = 6000)]
    memory: u64,
    /// Longest time of a worker for a mutant, in seconds.
    #[arg(long, default_value_t = 10)]
    patience: u64,
    /// Build the worker as tests are built: slower, but it checks arithmetic.
    #[arg(long)]
    dev: bool,
    /// A worker that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// Mutants that a worker is passed at once.
const CHUNK: u64 = 500;

/// Longest time of a worker before the first mutant of a job, in seconds.
const SETUP: u64 = 60;

/// A fault: a panic's position and message or how the worker was lost, and the mutant.
struct FileFault {
    what: String,
    target: String,
    number: u64,
}

#[derive(Default)]
struct FileTally {
    counts: BTreeMap<String, u64>,
    faults: Vec<FileFault>,
}

pub(crate) fn run(root: &Path, flags: &FileFlags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let path = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, "fuzz", &["fuzz"], profile)?,
    };
    let worker = bounded(&path, flags.memory);
    let absolute =
        |folder: &PathBuf| fs::canonicalize(folder).with_context(|| format!("{folder:?}"));
    let flags = &FileFlags {
        corpus: flags.corpus.iter().map(absolute).collect::<Result<_>>()?,
        ..flags.clone()
    };
    let targets = match flags.targets.is_empty() {
        true => known(&worker)?,
        false => flags.targets.clone(),
    };
    if flags.write {
        return write(&worker, root, flags, &targets);
    }
    let (start, tally) = (Instant::now(), Mutex::new(FileTally::default()));
    let limit = flags.hours.map(|hours| Duration::from_secs_f64(hours * 3600.0));
    let mut range = flags.mutants.0.clone();
    loop {
        let chunks = range.clone().step_by(CHUNK as usize).flat_map(|from| {
            let to = range.end.min(from + CHUNK);
            targets.iter().map(move |target| (target.clone(), from..to))
        });
        let is_over = || limit.is_some_and(|limit| start.elapsed() > limit);
        on_workers(&worker, chunks.collect(), |worker, (target, chunk)| {
            if is_over() { Ok(()) } else { part(worker, root, &target, chunk, flags, &tally) }
        })?;
        if limit.is_none() || is_over() {
            break;
        }
        range = range.end..range.end + range.clone().count() as u64;
    }
    let tally = tally.into_inner().expect("no thread panicked");
    report(&tally.faults);
    for (target, count) in &tally.counts {
        println!("{count:9} {target}");
    }
    let (hours, total) =
        (start.elapsed().as_secs_f64() / 3600.0, tally.counts.values().sum::<u64>());
    println!("files: {} faults in {total} mutants, {hours:.2} hours", tally.faults.len());
    ensure!(tally.faults.is_empty(), "{} mutants end the process", tally.faults.len());
    Ok(())
}

fn known(program: &WorkerProgram) -> Result<Vec<String>> {
    let mut worker = Worker::new(program);
    worker.send(&json!({ "kind": "targets" }))?;
    match worker.next(Duration::from_secs(60))? {
        Reply::Line(line) => Ok(serde_json::from_value(line["targets"].clone())?),
        Reply::Lost(how) => bail!("the worker is lost: {how}"),
    }
}

fn write(
    program: &WorkerProgram,
    root: &Path,
    flags: &FileFlags,
    targets: &[String],
) -> Result<()> {
    let [target] = targets else { bail!("--write takes one target") };
    let mut worker = Worker::new(program);
    let numbers = flags.mutants.0.start..flags.mutants.0.start + 1;
    let mut job = job(root, target, &numbers, flags);
    job["write"] = json!("mutant");
    worker.send(&job)?;
    worker.next(Duration::from_secs(60)).map(drop)
}

fn job(root: &Path, target: &str, numbers: &Range<u64>, flags: &FileFlags) -> Value {
    json!({
        "kind": "files",
        "root": root,
        "target": target,
        "corpus": flags.corpus,
        "seed": flags.seed,
        "from": numbers.start,
        "to": numbers.end,
    })
}

/// Has a worker read mutants, and another one go on after each that it is lost by.
fn part(
    worker: &mut Worker,
    root: &Path,
    target: &str,
    numbers: Range<u64>,
    flags: &FileFlags,
    tally: &Mutex<FileTally>,
) -> Result<()> {
    let fault = |what: String, number: u64| {
        let fault = FileFault { what, target: target.into(), number };
        tally.lock().expect("no thread panics with the tally").faults.push(fault);
    };
    let mut from = numbers.start;
    while from < numbers.end {
        worker.send(&job(root, target, &(from..numbers.end), flags))?;
        let mut at = None;
        from = loop {
            // The first one comes after the files that mutants begin as have been read.
            let patience = if at.is_none() { SETUP.max(flags.patience) } else { flags.patience };
            match worker.next(Duration::from_secs(patience))? {
                Reply::Line(line) if !line["done"].is_null() => break numbers.end,
                Reply::Line(line) => {
                    if let Value::String(what) = &line["panic"] {
                        fault(what.clone(), at.unwrap_or(from));
                    }
                    at = line["begin"].as_u64().or(at);
                }
                Reply::Lost(how) => {
                    let at = at.with_context(|| {
                        format!("the worker ends before a mutant of {target}: {how}")
                    })?;
                    fault(how, at);
                    break at + 1;
                }
            }
        };
    }
    let mut tally = tally.lock().expect("no thread panics with the tally");
    *tally.counts.entry(target.into()).or_default() += numbers.end - numbers.start;
    Ok(())
}

/// Prints a mutant of each kind of fault.
fn report(faults: &[FileFault]) {
    let mut by_kind = BTreeMap::<(&str, &str), Vec<&FileFault>>::new();
    for fault in faults {
        // The place of a panic tells faults apart; its message has numbers of the file.
        let location = fault.what.split(": ").next().unwrap_or("");
        by_kind.entry((&fault.target, location)).or_default().push(fault);
    }
    for ((target, _), faults) in by_kind {
        let FileFault { what, number, .. } = faults[0];
        println!("{:5} {target} {number}: {what}", faults.len());
    }
}
