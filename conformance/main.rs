//! The worker of `cargo xtask conformance`: runs cases, one JSON line per result.
//!
//! It reads jobs from standard input, one JSON object a line, and answers with lines of JSON on
//! standard output. A case that brings the process down costs that case only: whoever drives the
//! worker starts another and goes on after it.

mod compare;
mod ops;
mod value;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

fn main() -> Result<()> {
    let stdin = std::io::stdin();
    let mut stdout = std::io::stdout();
    for line in stdin.lock().lines() {
        let job: Value = serde_json::from_str(&line?).context("a job is a JSON object")?;
        let path = job["path"].as_str().context("a job has a path")?;
        let from = job["from"].as_u64().unwrap_or(0);
        match job["kind"].as_str() {
            Some("ops") => ops::run_file(path.as_ref(), from, &mut |result| {
                writeln!(stdout, "{result}")?;
                Ok(stdout.flush()?)
            })?,
            other => bail!("unknown kind of job {other:?}"),
        }
        writeln!(stdout, "{}", json!({ "done": path }))?;
        stdout.flush()?;
    }
    Ok(())
}
