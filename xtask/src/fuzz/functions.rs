//! `fuzz functions`: random functions, compiled and run in batches by the tests of the tracer.

use super::Seeds;
use crate::{command, functions};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::{fs, path::Path, process::Command};

#[derive(Args)]
pub(crate) struct FunctionFlags {
    /// The seeds of the functions, `A..B`.
    #[arg(long, default_value = "1000..1100")]
    seeds: Seeds,
    /// Functions that are compiled together.
    #[arg(long, default_value_t = 100)]
    batch: u64,
    /// Print the functions, and run none.
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(root: &Path, flags: &FunctionFlags) -> Result<()> {
    let range = flags.seeds.0.clone();
    let mut failed = Vec::new();
    for from in range.clone().step_by(flags.batch.max(1) as usize) {
        let seeds = from..range.end.min(from + flags.batch.max(1));
        let source = command::rustfmt(root, &functions::source(seeds.clone()))?;
        if flags.print {
            print!("{source}");
        } else if !passes(root, &source)? {
            failed.push(seeds);
        }
    }
    ensure!(failed.is_empty(), "functions failed, among those of the seeds {failed:?}");
    Ok(())
}

/// Whether the functions compile and compute the same in all ways.
fn passes(root: &Path, source: &str) -> Result<bool> {
    let folder = root.join("target/fuzz_functions");
    fs::create_dir_all(&folder)?;
    let path = folder.join("functions.rs");
    fs::write(&path, source).with_context(|| format!("cannot write {}", path.display()))?;
    let status = Command::new(env!("CARGO"))
        .args([
            "test",
            "--quiet",
            "--all-features",
            "-p",
            "ferroflow-tracer",
            "--test",
            "generated",
        ])
        .env("FERROFLOW_GENERATED_FUNCTIONS", &path)
        .current_dir(root)
        .status()
        .context("cargo does not run")?;
    Ok(status.success())
}
