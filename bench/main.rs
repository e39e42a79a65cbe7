//! The worker of `cargo xtask bench`: measures named workloads.
//!
//! It reads a name per line from standard input and answers with a line of JSON: `name`, `unit`,
//! `median` and `min` (time per op, element or call), `n` (samples), `threads`, where a rate means
//! something `rate`, `rate_best` and `rate_unit`, and `check`, the sum of the magnitudes of all
//! results, by which two programs can tell that they did the same work. Inputs are made of seeds by
//! [`inputs`], so that any program can make the same.

mod builder;
mod inputs;
mod measure;
mod workloads;

use anyhow::{Context as _, Result};
use ferroflow::runtime::{Context, ContextOptions};
use serde_json::{Value, json};
use std::{
    io::{BufRead, Write},
    num::NonZeroUsize,
    path::PathBuf,
};

/// What the workloads run in.
pub(crate) struct Bench {
    pub(crate) context: Context,
    /// Where the SavedModels are.
    pub(crate) models: PathBuf,
}

fn main() -> Result<()> {
    let mut threads = 1;
    let mut models = std::env::temp_dir().join("tf_bench_models");
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--list" {
            workloads::NAMES.iter().for_each(|name| println!("{name}"));
            return Ok(());
        }
        let value = args.next().with_context(|| format!("{arg} takes a value"))?;
        match arg.as_str() {
            "--threads" => threads = value.parse().context("--threads takes a number")?,
            "--models" => models = value.into(),
            other => anyhow::bail!("unknown flag {other}"),
        }
    }
    let options =
        ContextOptions { threads: NonZeroUsize::new(threads), ..ContextOptions::default() };
    let bench = Bench { context: Context::with_options(options), models };
    let _context = ferroflow::tracer::context::enter(&bench.context);
    answer(&json!({ "ready": format!("ferroflow {}", env!("CARGO_PKG_VERSION")) }))?;
    for name in std::io::stdin().lock().lines() {
        let name = name?;
        let name = name.trim();
        let row = workloads::find(&bench, name).and_then(measure::row);
        answer(&match row {
            Ok(mut row) => {
                row["name"] = json!(name);
                row["threads"] = json!(threads);
                row
            }
            Err(error) => json!({ "name": name, "error": format!("{error:#}") }),
        })?;
    }
    Ok(())
}

fn answer(line: &Value) -> Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
