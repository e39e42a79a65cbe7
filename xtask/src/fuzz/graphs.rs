//! `fuzz graphs`: the differential tester. A generator outside of the tree makes random functions,
//! TensorFlow writes them as models with its answers, workers of `conformance` run them.

use super::Seeds;
use crate::{
    command::{self, BuildProfile},
    conformance::{judge, tensorflow},
};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

#[derive(Args)]
pub(crate) struct Flags {
    /// The seeds of the generator, `A..B`.
    #[arg(long, default_value = "0..1")]
    seeds: Seeds,
    /// The profile of all programs; otherwise all profiles.
    #[arg(long)]
    profile: Option<String>,
    /// The number of programs for each seed, over all profiles.
    #[arg(long, default_value_t = 240)]
    programs: u64,
    /// The folder of the generator; `../shared/graphfuzz` if there is one.
    #[arg(long)]
    graphfuzz: Option<PathBuf>,
    /// The folder for models and reports; one below the target folder otherwise.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Shrink so many programs that fail.
    #[arg(long, default_value_t = 0)]
    shrink: usize,
    /// Build the worker as tests are built, not for speed.
    #[arg(long)]
    dev: bool,
    /// A worker of `conformance` that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// The profiles of the generator.
const PROFILES: &[&str] = &[
    "mix", "views", "dynamic", "alias", "control", "lists", "state", "grad", "outer", "nn",
    "calls", "strings",
];

/// The outcomes that are gaps and no faults: an error, typed and located, where TensorFlow has a
/// result. They are printed and counted, but a wrong value, a panic, a crash or a hang fails the run.
const GAPS: &[&str] = &["error", "unsupported"];

/// Programs of a seed and a profile.
struct Job {
    profile: String,
    seed: u64,
    programs: u64,
}

/// Programs that run the generator and the tests.
struct Tools {
    python: PathBuf,
    script: PathBuf,
    worker: PathBuf,
    out: PathBuf,
}

/// A program and what came of it.
struct Outcome {
    class: String,
    why: String,
    case: PathBuf,
    program: String,
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let tools = tools(root, flags)?;
    if tools.out.exists() {
        fs::remove_dir_all(&tools.out)?;
    }
    fs::create_dir_all(&tools.out)?;
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (queue, outcomes) = (Mutex::new(jobs(flags)), Mutex::new(Vec::new()));
    let next = || queue.lock().expect("no thread panics with the queue").pop_front();
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(job) = next() {
                let found = tools.run(&job)?;
                println!("{} seed {}: {}", job.profile, job.seed, counts(&found));
                outcomes.lock().expect("no thread panics with the list").extend(found);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("threads do not panic"))
    })?;
    let outcomes: Vec<Outcome> = outcomes.into_inner().expect("no thread panicked");
    let failures: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.class != "pass").collect();
    for failure in &failures {
        println!("---- {} {}: {}", failure.class, failure.name(), failure.why);
        println!("{}", failure.text()?);
    }
    for failure in failures.iter().take(flags.shrink) {
        tools.shrink(failure)?;
    }
    println!("{}", counts(&outcomes));
    let is_gap = |failure: &&&Outcome| GAPS.contains(&failure.class.as_str());
    let (gaps, n) = (failures.iter().filter(is_gap).count(), outcomes.len());
    let failed = failures.len() - gaps;
    let passed = n - failures.len();
    println!("graphs: {passed} passed, {failed} failed, {gaps} refused, of {n}");
    ensure!(n > 0, "the generator made no program");
    ensure!(failed == 0, "{failed} programs failed");
    Ok(())
}

fn tools(root: &Path, flags: &Flags) -> Result<Tools> {
    let beside = root.join("../shared/graphfuzz");
    let folder = flags.graphfuzz.clone().or_else(|| beside.exists().then_some(beside));
    let folder = folder.context(
        "there is no `../shared/graphfuzz`: name the folder of the generator with `--graphfuzz`",
    )?;
    let script = folder.join("graphfuzz.py");
    ensure!(script.exists(), "there is no {}", script.display());
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let worker = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, "conformance", &["conformance"], profile)?,
    };
    let out = flags.out.clone().unwrap_or_else(|| judge::target(root).join("fuzz-graphs"));
    Ok(Tools { python: tensorflow::python(root)?, script, worker, out })
}

fn jobs(flags: &Flags) -> VecDeque<Job> {
    let profiles = match &flags.profile {
        Some(profile) => vec![profile.clone()],
        None => PROFILES.iter().map(|name| (*name).to_string()).collect(),
    };
    let programs = flags.programs.div_ceil(profiles.len() as u64);
    let of_seed = |seed| profiles.iter().map(move |profile| (seed, profile.clone()));
    let all = flags.seeds.0.clone().flat_map(of_seed);
    all.map(|(seed, profile)| Job { profile, seed, programs }).collect()
}

fn counts(outcomes: &[Outcome]) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for outcome in outcomes {
        *counts.entry(&outcome.class).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(class, n)| format!("{n} {class}")).collect();
    counts.join(", ")
}

impl Tools {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(&self.script).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Makes the programs of a job, and runs them.
    fn run(&self, job: &Job) -> Result<Vec<Outcome>> {
        let folder = self.out.join(format!("{}_{}", job.profile, job.seed));
        let mut generate = self.command();
        generate.args(["--seed", &job.seed.to_string(), "--profile", &job.profile]);
        generate.args(["--programs", &job.programs.to_string()]).arg("--out").arg(&folder);
        command::run(generate)?;
        let report = folder.join("report.json");
        let mut check = self.command();
        check.arg("--check").arg(&folder).arg("--json").arg(&report);
        check.arg("--runner").arg(&self.worker);
        command::run(check)?;
        let rows: Vec<Value> = serde_json::from_str(&fs::read_to_string(report)?)?;
        let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("").to_string();
        let outcome = |row: &Value| Outcome {
            class: text(row, "class"),
            why: text(row, "why"),
            case: folder.join(text(row, "case")),
            program: text(row, "program"),
        };
        Ok(rows.iter().map(outcome).collect())
    }

    /// Prints a smaller program that fails in the same way.
    fn shrink(&self, outcome: &Outcome) -> Result<()> {
        let mut shrink = self.command();
        shrink.stdout(Stdio::inherit()).arg("--runner").arg(&self.worker);
        shrink.arg("--shrink").arg(&outcome.case).arg(&outcome.program);
        command::run(shrink)
    }
}

impl Outcome {
    fn name(&self) -> String {
        let case = self.case.file_name().unwrap_or_default().to_string_lossy();
        format!("{case} {}", self.program)
    }

    /// The program, as the generator wrote it beside the case.
    fn text(&self) -> Result<String> {
        let all = fs::read_to_string(self.case.join("program.txt"))?;
        let begin = format!("==== {}: ", self.program);
        let found = all.split("\n\n").find(|text| text.trim_start().starts_with(&begin));
        Ok(found.unwrap_or("").trim().to_string())
    }
}
