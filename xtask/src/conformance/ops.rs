//! Cases of single ops: a table with a line per op.

use super::{Counts, Outcome, PATIENCE, Status, entries};
use crate::worker::{Reply, Worker, WorkerProgram, on_workers};
use anyhow::Result;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};

const SUFFIX: &str = ".json.gz";

pub(super) fn run(
    program: &WorkerProgram,
    folder: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let files = entries(folder, SUFFIX, wanted)?;
    let ops = Mutex::new(Vec::new());
    on_workers(program, files, |worker, file| {
        let outcomes = run_op(worker, &file)?;
        ops.lock().expect("no thread panics with the list").push((op_name(&file), outcomes));
        Ok(())
    })?;
    let mut ops = ops.into_inner().expect("no thread panicked");
    ops.sort_by(|a, b| a.0.cmp(&b.0));
    print_table(&ops);
    Ok(ops.into_iter().flat_map(|(_, outcomes)| outcomes).collect())
}

fn op_name(file: &Path) -> String {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_default().trim_end_matches(SUFFIX).to_string()
}

fn run_op(worker: &mut Worker, file: &PathBuf) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    let mut from = 0;
    loop {
        worker.send(&json!({ "kind": "ops", "path": file, "from": from }))?;
        let mut at = from;
        let lost = loop {
            match worker.next(PATIENCE)? {
                Reply::Lost(why) => break why,
                Reply::Line(line) => match (line["begin"].as_u64(), line.get("done")) {
                    (Some(number), _) => at = number,
                    (None, Some(_)) => return Ok(outcomes),
                    (None, None) => outcomes.push(Outcome { json: line }),
                },
            }
        };
        let case = json!({ "op": op_name(file), "number": at, "case": at.to_string() });
        outcomes.push(Outcome::failed(case, &lost));
        from = at + 1;
    }
}

fn print_table(ops: &[(String, Vec<Outcome>)]) {
    let width = ops.iter().map(|(op, _)| op.len()).max().unwrap_or(0);
    println!("{:width$}  passed  failed  unsupported", "op");
    for (op, outcomes) in ops {
        let Counts { passed, failed, unsupported } = Counts::of(outcomes);
        println!("{op:width$}  {passed:6}  {failed:6}  {unsupported:11}");
        let of_interest = outcomes.iter().filter(|outcome| outcome.status() == Status::Failed);
        for outcome in of_interest {
            println!("    FAIL {}: {}", outcome.text("case"), outcome.text("why"));
        }
    }
}
