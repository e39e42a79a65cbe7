//! `interleavings`: models of concurrency, run under many schedules (`ir/src/sync.rs` has what they assume).

use crate::command;
use anyhow::{Result, ensure};
use clap::Args;
use std::{env, path::Path, process::Command};

#[derive(Args)]
pub(crate) struct InterleavingFlags {
    /// Multiplies the number of schedules of each model.
    #[arg(long, default_value_t = 1)]
    schedules: u32,
    /// Chooses the schedules.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Models whose path has this in it, such as `queue`.
    #[arg(default_value = "")]
    model: String,
}

/// The crates that have models.
const CRATES: &[&str] = &["ferroflow-kernels", "ferroflow-runtime", "ferroflow-tracer"];

/// The modules of models.
const MODULES: &str = "interleavings::";

pub(crate) fn run(root: &Path, flags: &InterleavingFlags) -> Result<()> {
    let mut list = test(root);
    list.args([MODULES, "--list"]);
    let listed = String::from_utf8(command::output(list)?)?;
    let models = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let models: Vec<&str> = models.filter(|model| model.contains(&flags.model)).collect();
    ensure!(!models.is_empty(), "there are no models of `{}`", flags.model);
    println!("{} models", models.len());
    let mut test = test(root);
    test.arg("--exact").args(&models);
    test.env("FERROFLOW_SCHEDULES", flags.schedules.to_string());
    test.env("FERROFLOW_SEED", flags.seed.to_string());
    command::run(test)
}

/// Tests of crates that are compiled for the model checker, apart from what other builds made.
fn test(root: &Path) -> Command {
    let mut test = command::cargo(root, &["test", "--quiet", "--lib", "--no-default-features"]);
    test.args(CRATES.iter().flat_map(|name| ["--package", name]));
    test.arg("--target-dir").arg(root.join("target/interleavings")).arg("--");
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    test.env("RUSTFLAGS", format!("{flags} --cfg shuttle"));
    test
}
