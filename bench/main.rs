//! The worker of `cargo xtask bench`: measures named workloads.
//!
//! It reads a name per line from standard input and answers with a line of JSON: `name`, `unit`,
//! `median` and `min` (time per op, element or call), `n` (samples), `threads`, where a rate means
//! something `rate`, `rate_best` and `rate_unit`, where the cost of a call is known `roofline` (the part of `min` that
//! the processor needs at least for it, by limits that are measured first), and `check`, the sum of the magnitudes of all
//! results, by which two programs can tell that they did the same work. Inputs are made of seeds by
//! [`inputs`], so that any program can make the same. The first line says that it is `ready`, or
//! what `error` keeps it from that.
//!
//! With `--device` it is the worker of `cargo xtask bench gpu`, which has rows and answers of its
//! own: [`gpu`].

mod builder;
mod gpu;
mod inputs;
mod measure;
mod workloads;

use anyhow::{Context as _, Result};
use ferroflow::{
    kernels::machine::MachineLimits,
    runtime::{CallCache, Context, ContextOptions},
};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    io::{BufRead, Write},
    num::NonZeroUsize,
    path::PathBuf,
};

/// Environment of the workloads.
pub(crate) struct Bench {
    pub(crate) context: Context,
    /// The eager calls that were compiled.
    pub(crate) calls: RefCell<CallCache>,
    /// Where the SavedModels are.
    pub(crate) models: PathBuf,
}

/// Command line of the worker.
struct Flags {
    threads: usize,
    models: PathBuf,
    device: Option<String>,
    is_small: bool,
    lists: bool,
}

impl Flags {
    fn read() -> Result<Flags> {
        let models = std::env::temp_dir().join("tf_bench_models");
        let mut flags = Flags { threads: 1, models, device: None, is_small: false, lists: false };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} takes a value"));
            match arg.as_str() {
                "--list" => flags.lists = true,
                "--small" => flags.is_small = true,
                "--device" => flags.device = Some(value()?),
                "--threads" => {
                    flags.threads = value()?.parse().context("--threads takes a number")?;
                }
                "--models" => flags.models = value()?.into(),
                other => anyhow::bail!("unknown flag {other}"),
            }
        }
        Ok(flags)
    }

    fn names(&self) -> &'static [&'static str] {
        match self.device {
            None => workloads::NAMES,
            Some(_) => gpu::names(self.is_small),
        }
    }
}

fn main() -> Result<()> {
    let flags = Flags::read()?;
    if flags.lists {
        flags.names().iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    match &flags.device {
        None => serve_workloads(&flags),
        Some(device) => match gpu::BenchRows::on(device, flags.threads, flags.is_small) {
            Ok(mut rows) => serve(&rows.facts(), |name| rows.answer(name)),
            Err(error) => answer(&json!({ "error": format!("{error:#}") })),
        },
    }
}

fn serve_workloads(flags: &Flags) -> Result<()> {
    let threads = flags.threads;
    let options =
        ContextOptions { threads: NonZeroUsize::new(threads), ..ContextOptions::default() };
    let bench = Bench {
        context: Context::with_options(options),
        calls: RefCell::default(),
        models: flags.models.clone(),
    };
    let _context = ferroflow::tracer::context::enter(&bench.context);
    let limits = MachineLimits::measure(bench.context.threads());
    serve(&json!({ "ready": format!("ferroflow {}", env!("CARGO_PKG_VERSION")) }), |name| {
        let mut row = measure::row(workloads::find(&bench, name)?, &limits)?;
        row["threads"] = json!(threads);
        Ok(row)
    })
}

/// Answers each name of standard input.
fn serve(ready: &Value, mut row: impl FnMut(&str) -> Result<Value>) -> Result<()> {
    answer(ready)?;
    for name in std::io::stdin().lock().lines() {
        let name = name?;
        let name = name.trim();
        let mut line = row(name).unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        line["name"] = json!(name);
        answer(&line)?;
    }
    Ok(())
}

fn answer(line: &Value) -> Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
