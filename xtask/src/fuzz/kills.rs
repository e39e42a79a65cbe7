//! `fuzz kills`: savers that are killed at random moments, over one name, by merging over one name, and
//! by a manager, with a reader beside them. A read that finds no whole checkpoint is a fault, and so is a
//! file that is left behind after the next save.

use crate::{
    command::{self, BuildProfile},
    worker::{Reply, Worker, WorkerProgram},
};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

#[derive(Args)]
pub(crate) struct KillFlags {
    /// Number of savers that are killed in each way.
    #[arg(long, default_value_t = 1000)]
    kills: u64,
    /// Another seed kills at other moments.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Build the worker as tests are built.
    #[arg(long)]
    dev: bool,
    /// A worker that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// The longest life of a saver, in microseconds.
const LONGEST: u64 = 40_000;

pub(crate) fn run(root: &Path, flags: &KillFlags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let path = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, "fuzz", &["fuzz"], profile)?,
    };
    let program = WorkerProgram { path, arguments: Vec::new() };
    let mut faults = Vec::new();
    for way in ["name", "merge", "manager"] {
        let folder = std::env::temp_dir().join(format!("kills-{way}-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let (n_reads, found) = of_way(&program, way, &folder, flags)?;
        println!("{way}: {} kills, {n_reads} reads, {} faults", flags.kills, found.len());
        faults.extend(found);
        fs::remove_dir_all(&folder)?;
    }
    faults.iter().take(20).for_each(|fault| println!("{fault}"));
    ensure!(faults.is_empty(), "{} faults", faults.len());
    Ok(())
}

fn of_way(
    program: &WorkerProgram,
    way: &str,
    folder: &Path,
    flags: &KillFlags,
) -> Result<(u64, Vec<String>)> {
    let job = |kind: &str| json!({ "kind": kind, "way": way, "folder": folder });
    let mut reader = Worker::new(program);
    let (mut n_reads, mut faults) = (0, Vec::new());
    answer(&mut reader, with(job("save"), "saves", 1, 1))?;
    for number in 0..flags.kills {
        let life = moment(flags.seed, number) % LONGEST;
        let mut saver = Worker::new(program);
        saver.send(&with(job("save"), "saves", u64::MAX >> 1, 1 + number * 100))?;
        reader.send(&with(job("watch"), "ms", life / 1000, 0))?;
        thread::sleep(Duration::from_micros(life));
        saver.kill()?;
        let seen = next(&mut reader)?;
        n_reads += seen["reads"].as_u64().unwrap_or(0);
        let found = seen["faults"].as_array().into_iter().flatten();
        faults.extend(found.map(|fault| format!("{way}, kill {number}: {fault}")));
        if number % 50 == 49 {
            answer(&mut reader, with(job("save"), "saves", 1, number * 100))?;
            let left = answer(&mut reader, job("leftovers"))?;
            if left["left"].as_array().is_some_and(|left| !left.is_empty()) {
                faults.push(format!("{way}, kill {number}: left behind: {}", left["left"]));
            }
        }
    }
    Ok((n_reads, faults))
}

fn with(mut job: Value, key: &str, value: u64, first: u64) -> Value {
    job[key] = json!(value);
    job["first"] = json!(first);
    job
}

fn answer(worker: &mut Worker, job: Value) -> Result<Value> {
    worker.send(&job)?;
    next(worker)
}

fn next(worker: &mut Worker) -> Result<Value> {
    match worker.next(Duration::from_secs(60)).context("a worker that reads")? {
        Reply::Line(line) => Ok(line),
        Reply::Lost(how) => bail!("the worker that reads is lost: {how}"),
    }
}

/// A random number for each kill.
fn moment(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}
