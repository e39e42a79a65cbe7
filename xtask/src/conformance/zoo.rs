//! Cases of a zoo: one line each.

use super::{Outcome, PATIENCE, Status, entries};
use crate::worker::{Reply, Worker, WorkerProgram, on_workers};
use anyhow::Result;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

/// Longest time of a malformed case.
const MALFORMED_PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(
    program: &WorkerProgram,
    folder: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let mut folders = entries(folder, "", wanted)?;
    folders.retain(|folder| folder.join("case.json").exists());
    let outcomes = Mutex::new(Vec::new());
    on_workers(program, folders, |worker, folder| {
        let outcome = run_case(worker, &folder)?;
        println!("{}", line(&outcome));
        outcomes.lock().expect("no thread panics with the list").push(outcome);
        Ok(())
    })?;
    let mut outcomes = outcomes.into_inner().expect("no thread panicked");
    outcomes.sort_by(|a, b| a.text("case").cmp(b.text("case")));
    Ok(outcomes)
}

fn run_case(worker: &mut Worker, folder: &PathBuf) -> Result<Outcome> {
    let case: Value = serde_json::from_str(&fs::read_to_string(folder.join("case.json"))?)?;
    let is_malformed = case["kind"].as_str() == Some("malformed");
    if is_malformed {
        // What it takes of memory is measured on a process that has done nothing yet.
        worker.stop()?;
    }
    let patience = if is_malformed { MALFORMED_PATIENCE } else { PATIENCE };
    worker.send(&json!({ "kind": "zoo", "path": folder }))?;
    let name = json!({ "case": case["name"], "kind": case["kind"] });
    let outcome = match worker.next(patience)? {
        Reply::Lost(why) => return Ok(Outcome::failed(name, &why)),
        Reply::Line(json) => Outcome { json },
    };
    match worker.next(patience)? {
        Reply::Lost(why) => Ok(Outcome::failed(name, &why)),
        Reply::Line(_) => Ok(outcome),
    }
}

fn line(outcome: &Outcome) -> String {
    let (name, why) = (outcome.text("case"), outcome.text("why"));
    match outcome.status() {
        Status::Passed if why.is_empty() => format!("pass         {name}"),
        Status::Passed => format!("pass         {name}: {why}"),
        Status::Failed => format!("FAIL         {name}: {why}"),
        Status::Unsupported => {
            let missing = outcome.json["missing"].as_array().map_or(&[][..], Vec::as_slice);
            let ops: Vec<&str> = missing.iter().filter_map(Value::as_str).collect();
            let ops = if ops.is_empty() { String::new() } else { format!(" [{}]", ops.join(", ")) };
            format!("unsupported  {name}:{ops} {why}")
        }
    }
}
