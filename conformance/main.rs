//! The worker of `cargo xtask conformance`: runs cases, one JSON line per result.
//!
//! It reads jobs from standard input, one JSON object a line: `{"kind": "ops", "path": FILE,
//! "from": NUMBER}` for the cases of an op, `{"kind": "derivatives", "path": ""}` for gradients
//! against differences (of all ops, or those in a list `only`), `{"kind": "zoo", "path": FOLDER}`
//! for a case of the zoo, `{"kind": "save", "path": FOLDER, "to": FOLDER}` for a case whose model is
//! loaded and saved again, `{"kind": "models", "path": FOLDER, "to": FOLDER}` for the models that are
//! written here, whose cases go to the one folder and whose files to the other, `{"kind": "mutants",
//! "path": FILE, "op": NAME, "seed": NUMBER, "from": A, "to": B}` for hostile calls of an op. It answers with
//! lines of JSON on standard output: results, and `{"done": PATH}` after the last of a job. With
//! `--device NAME` cases run there, and results tell what did. A case that brings the process down
//! costs that case only: whoever drives the worker starts another and goes on after it.

mod compare;
mod derivatives;
mod device;
mod models;
mod mutants;
mod ops;
mod outcome;
mod zoo;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() -> Result<()> {
    device::read_arguments()?;
    let stdin = std::io::stdin();
    let mut stdout = std::io::stdout();
    for line in stdin.lock().lines() {
        let job: Value = serde_json::from_str(&line?).context("a job is a JSON object")?;
        let path = job["path"].as_str().context("a job has a path")?;
        let mut report = |mut result: Value| {
            if result["status"].is_string() {
                result["device"] = device::report();
            }
            writeln!(stdout, "{result}")?;
            Ok(stdout.flush()?)
        };
        match job["kind"].as_str() {
            Some("ops") => {
                ops::run_file(path.as_ref(), job["from"].as_u64().unwrap_or(0), &mut report)?;
            }
            Some("derivatives") => derivatives::run(job.get("only"), &mut report)?,
            Some("zoo") => report(zoo::run(path.as_ref())?)?,
            Some("models") => {
                let to = job["to"].as_str().context("a job says where to save")?;
                models::run(path.as_ref(), to.as_ref(), &mut report)?;
            }
            Some("mutants") => mutants::run(&job, &mut report)?,
            Some("save") => {
                let to = job["to"].as_str().context("a job says where to save")?;
                report(zoo::save(path.as_ref(), to.as_ref())?)?;
            }
            other => bail!("unknown kind of job {other:?}"),
        }
        report(json!({ "done": path }))?;
    }
    Ok(())
}
