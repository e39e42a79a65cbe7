//! The worker of `cargo xtask fuzz programs`: makes random programs and compares all ways to run
//! them.
//!
//! It reads jobs from standard input, one JSON object a line, and answers with lines of JSON:
//! `{"kind": "seeds", "profile": NAME, "from": A, "to": B}` runs the programs of some seeds (a line
//! `{"begin": SEED}` before each, one with `status` after it), `{"kind": "check", "text": PROGRAM}` runs one,
//! `{"kind": "shrink", "text": PROGRAM}` looks for the smallest program with the same fault,
//! `{"kind": "variants", "text": PROGRAM}` lists programs that are smaller in one respect, and
//! `{"kind": "files", "target": NAME, "root": FOLDER, "seed": SEED, "from": A, "to": B}` reads mutated files,
//! `{"kind": "growth", "family": NAME, "nodes": N}` measures the stages of a graph,
//! `{"kind": "print", "profile": NAME, "seed": SEED}` shows one. Without a profile each
//! seed has one of all in turn. The last line of an answer has
//! `done`.

mod files;
mod growth;
mod kills;
mod programs;

use anyhow::{Context as _, Result, bail};
use programs::{
    PROFILES,
    check::{Divergence, RunSettings, Verdict, check, keep_panics, right_ways},
    generate,
    program::FuzzProgram,
    shrink::{shrink, variants},
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, Write},
    time::Duration,
};

fn main() -> Result<()> {
    keep_panics();
    let stdin = std::io::stdin();
    let mut stdout = std::io::stdout();
    for line in stdin.lock().lines() {
        let job: Value = serde_json::from_str(&line?).context("a job is a JSON object")?;
        let mut report = |line: Value| {
            writeln!(stdout, "{line}")?;
            Ok(stdout.flush()?)
        };
        let done = match job["kind"].as_str() {
            Some("seeds") => seeds(&job, &mut report)?,
            Some("save") => kills::save(&job)?,
            Some("watch") => kills::watch(&job)?,
            Some("leftovers") => kills::leftovers(&job)?,
            Some("files") => files::run(&job, &mut report)?,
            Some("growth") => growth::run(&job)?,
            Some("families") => json!({ "families": growth::names() }),
            Some("targets") => json!({ "targets": files::names() }),
            Some("check") => verdict(&mut program(&job)?, RunSettings::All),
            Some("shrink") => shrunk(&job)?,
            Some("variants") => {
                let texts: Vec<String> =
                    variants(&program(&job)?).iter().map(FuzzProgram::to_string).collect();
                json!({ "variants": texts })
            }
            Some("print") => {
                let seed = number(&job, "seed")?;
                let found = generate(seed, profile(&job, seed));
                json!({ "text": found.map(|program| program.to_string()) })
            }
            other => bail!("unknown kind of job {other:?}"),
        };
        let mut done = done;
        done["done"] = json!(true);
        report(done)?;
    }
    Ok(())
}

fn program(job: &Value) -> Result<FuzzProgram> {
    job["text"].as_str().context("a job has a program")?.parse()
}

/// The profile of a seed: the one that the job names, or one of all in turn.
fn profile(job: &Value, seed: u64) -> &str {
    let in_turn = PROFILES[(seed % PROFILES.len() as u64) as usize].name;
    job["profile"].as_str().unwrap_or(in_turn)
}

fn number(job: &Value, key: &str) -> Result<u64> {
    job[key].as_u64().with_context(|| format!("a job has a number `{key}`"))
}

/// Runs the programs of some seeds.
fn seeds(job: &Value, report: &mut dyn FnMut(Value) -> Result<()>) -> Result<Value> {
    for seed in number(job, "from")?..number(job, "to")? {
        report(json!({ "begin": seed }))?;
        report(match generate(seed, profile(job, seed)) {
            Some(mut program) => verdict(&mut program, settings(job, seed)),
            None => json!({ "status": "dropped", "why": "no statement fits" }),
        })?;
    }
    Ok(json!({}))
}

/// The settings of a seed: all if the job asks for it, or so many in turn.
fn settings(job: &Value, seed: u64) -> RunSettings {
    match job["settings"].as_u64() {
        Some(n) => RunSettings::Some { n: n as usize, turn: seed as usize },
        None => RunSettings::All,
    }
}

fn verdict(program: &mut FuzzProgram, settings: RunSettings) -> Value {
    match check(program, settings) {
        Verdict::Passed => json!({ "status": "pass" }),
        Verdict::Dropped(why) => json!({ "status": "dropped", "why": why }),
        Verdict::Unsupported(fault) | Verdict::Failed(fault) => failure(&fault, program),
    }
}

fn failure(fault: &Divergence, program: &FuzzProgram) -> Value {
    json!({
        "status": fault.class.to_string(),
        "mode": fault.mode(),
        "why": fault.detail,
        "signature": fault.signature(),
        "text": program.to_string(),
    })
}

/// The smallest program found with the fault of this one.
fn shrunk(job: &Value) -> Result<Value> {
    let mut program = program(job)?;
    let Verdict::Failed(fault) = check(&mut program, RunSettings::All) else {
        return Ok(json!({ "status": "pass" }));
    };
    let limit = Duration::from_secs(job["limit_s"].as_u64().unwrap_or(30));
    let (program, fault) = shrink(program, fault, limit);
    let mut line = failure(&fault, &program);
    line["right"] = json!(right_ways(&program));
    Ok(line)
}
