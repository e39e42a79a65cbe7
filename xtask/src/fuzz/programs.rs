//! `fuzz programs`: the metamorphic tester. Workers (`fuzz/` of the root package) make the programs
//! and compare; this drives them.

use super::{
    Seeds,
    shrink::{self, Failure, PATIENCE},
};
use crate::{
    command::{self, BuildProfile},
    worker::{Reply, Worker, WorkerProgram, on_workers},
};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

#[derive(Args)]
pub(crate) struct Flags {
    /// The seeds of the programs, `A..B`.
    #[arg(long, default_value = "0..1000")]
    seeds: Seeds,
    /// The profile of all programs; otherwise each seed has one of them, in turn.
    #[arg(long)]
    profile: Option<String>,
    /// End after so many seconds.
    #[arg(long)]
    time_limit: Option<u64>,
    /// Print the program of each seed, and run none.
    #[arg(long)]
    print: bool,
    /// Run the program in this file, as printed, in place of random ones.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Shrink so many programs that fail.
    #[arg(long, default_value_t = 12)]
    shrink: usize,
    /// Run each program in so many settings besides the plain one, in turn; in all if 0.
    #[arg(long, default_value_t = 3)]
    settings: usize,
    /// Build the worker as tests are built, not for speed.
    #[arg(long)]
    dev: bool,
    /// Build the worker with NVIDIA's devices too.
    #[arg(long)]
    cuda: bool,
    /// A worker that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// Seeds that a worker is given at once.
const CHUNK: u64 = 100;

/// Tally of the results of some seeds.
#[derive(Default)]
struct Tally {
    passed: u64,
    dropped: u64,
    /// Counts of unsupported programs, by message.
    unsupported: BTreeMap<String, u64>,
    failures: Vec<Failure>,
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let features = if flags.cuda { "fuzz,cuda" } else { "fuzz" };
    let path = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, features, &["fuzz"], profile)?,
    };
    let worker = WorkerProgram { path, arguments: Vec::new() };
    if flags.print {
        return print(&worker, flags);
    }
    let tally = match &flags.program {
        Some(path) => file(&worker, path)?,
        None => seeds(&worker, flags)?,
    };
    report(&worker, &tally.failures, flags.shrink)?;
    let (passed, failed) = (tally.passed, tally.failures.len() as u64);
    for (why, n) in &tally.unsupported {
        println!("{n:5} unsupported {why}");
    }
    let unsupported: u64 = tally.unsupported.values().sum();
    println!(
        "not counted: {} have no results to compare, {unsupported} are not supported in some way",
        tally.dropped,
    );
    println!("programs: {passed} passed, {failed} failed, of {}", passed + failed);
    ensure!(failed == 0, "{failed} programs failed");
    Ok(())
}

/// Runs the programs of the seeds.
fn seeds(worker: &WorkerProgram, flags: &Flags) -> Result<Tally> {
    let (start, tally) = (Instant::now(), Mutex::new(Tally::default()));
    let limit = flags.time_limit.map(Duration::from_secs);
    let range = flags.seeds.0.clone();
    let chunks = range.clone().step_by(CHUNK as usize);
    let chunks = chunks.map(|from| from..range.end.min(from + CHUNK)).collect();
    on_workers(worker, chunks, |worker, chunk: std::ops::Range<u64>| {
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            return Ok(());
        }
        let mut from = chunk.start;
        while from < chunk.end {
            let settings = (flags.settings > 0).then_some(flags.settings);
            let job = json!({
                "kind": "seeds",
                "profile": flags.profile,
                "from": from,
                "to": chunk.end,
                "settings": settings,
            });
            from = part(worker, &job, &tally)?.map_or(chunk.end, |lost| lost + 1);
        }
        Ok(())
    })?;
    let mut tally = tally.into_inner().expect("no thread panicked");
    tally.failures.sort_by_key(|failure| failure.seed);
    let n = tally.passed + tally.dropped + tally.failures.len() as u64;
    let n = n + tally.unsupported.values().sum::<u64>();
    let seconds = start.elapsed().as_secs_f64();
    println!("{n} programs in {seconds:.1} s, {:.0} per second", n as f64 / seconds);
    Ok(tally)
}

/// Runs a job of several seeds; the seed at which the worker was lost, if it was.
fn part(worker: &mut Worker, job: &Value, tally: &Mutex<Tally>) -> Result<Option<u64>> {
    worker.send(job)?;
    let mut at = None;
    loop {
        let reply = worker.next(PATIENCE)?;
        let mut tally = tally.lock().expect("no thread panics with the tally");
        let line = match reply {
            Reply::Line(line) => line,
            Reply::Lost(why) => {
                let seed = at.context("a worker begins with a program")?;
                let status = if why.starts_with("crash") { "crash" } else { "hang" };
                let profile = job["profile"].clone();
                let line = json!({ "status": status, "why": why, "profile": profile });
                tally.failures.push(Failure { seed, line });
                return Ok(Some(seed));
            }
        };
        if let Some(seed) = line["begin"].as_u64() {
            at = Some(seed);
        } else if line["done"] == true {
            return Ok(None);
        } else {
            match line["status"].as_str() {
                Some("pass") => tally.passed += 1,
                Some("dropped") => tally.dropped += 1,
                Some("unsupported") => {
                    let why = line["signature"].as_str().unwrap_or("").to_string();
                    *tally.unsupported.entry(why).or_default() += 1;
                }
                _ => {
                    let failure = Failure { seed: at.unwrap_or(0), line };
                    let (status, why) = (failure.text("status"), failure.text("signature"));
                    eprintln!("seed {}: {status} {why}", failure.seed);
                    tally.failures.push(failure);
                }
            }
        }
    }
}

/// Runs the program in a file.
fn file(worker: &WorkerProgram, path: &Path) -> Result<Tally> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let line = shrink::check(&mut Worker::new(worker), &text)?;
    let mut tally = Tally::default();
    match line["status"].as_str() {
        Some("pass") => tally.passed = 1,
        Some("dropped") => println!("it has no results to compare: {}", line["why"]),
        _ => tally.failures.push(Failure { seed: 0, line }),
    }
    Ok(tally)
}

fn print(worker: &WorkerProgram, flags: &Flags) -> Result<()> {
    let mut worker = Worker::new(worker);
    for seed in flags.seeds.0.clone() {
        println!("# seed {seed}\n{}", shrink::text(&mut worker, flags.profile.as_deref(), seed)?);
    }
    Ok(())
}

/// Prints what failed, by kind, each with its smallest program.
fn report(worker: &WorkerProgram, failures: &[Failure], n_shrunk: usize) -> Result<()> {
    let mut by_kind = BTreeMap::<(String, String), Vec<&Failure>>::new();
    for failure in failures {
        let key = (failure.text("status").to_string(), failure.text("signature").to_string());
        by_kind.entry(key).or_default().push(failure);
    }
    // A few of each kind.
    let mut chosen: Vec<&Failure> = Vec::new();
    for round in 0..n_shrunk {
        chosen.extend(by_kind.values().filter_map(|failures| failures.get(round)));
    }
    chosen.truncate(n_shrunk);
    let found = Mutex::new(BTreeMap::<String, Vec<(u64, Value)>>::new());
    on_workers(worker, chosen, |worker, failure| {
        let smallest = shrink::shrink(worker, failure)?;
        let key = shape(smallest["text"].as_str().unwrap_or(""));
        let mut found = found.lock().expect("no thread panics with the list");
        found.entry(key).or_default().push((failure.seed, smallest));
        Ok(())
    })?;
    for alike in found.into_inner().expect("no thread panicked").values() {
        let seeds: Vec<String> = alike.iter().map(|(seed, _)| seed.to_string()).collect();
        show(&seeds.join(", "), &alike[0].1);
    }
    for ((status, signature), failures) in &by_kind {
        let seeds: Vec<String> =
            failures.iter().take(12).map(|failure| failure.seed.to_string()).collect();
        println!("{:5} {status:6} {signature}  (seeds {})", failures.len(), seeds.join(", "));
    }
    Ok(())
}

fn show(seeds: &str, line: &Value) {
    let text = |key: &str| line[key].as_str().unwrap_or("").to_string();
    println!("---- {} with {}: {}", text("status"), text("mode"), text("why"));
    println!("# seeds {seeds}");
    if let Some(right) = line["right"].as_array().filter(|right| !right.is_empty()) {
        let right: Vec<&str> = right.iter().filter_map(Value::as_str).collect();
        println!("# right with: {}", right.join("; "));
    }
    println!("{}", text("text"));
}

/// The ops of a program, by which programs of one fault are told.
fn shape(text: &str) -> String {
    let calls = text.lines().filter(|line| line.starts_with(' '));
    let ops = calls.filter_map(|line| line.split('(').next()?.split_whitespace().last());
    ops.collect::<Vec<_>>().join(" ")
}
