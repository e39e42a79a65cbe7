//! `fuzz ops`: recorded calls of ops, changed at random. TensorFlow says what it computes of them
//! (`conformance/tensorflow/op_mutants.py`), workers of `conformance` make the same calls.

use super::Seeds;
use crate::{
    command,
    conformance::{self, judge, tensorflow},
};
use anyhow::Result;
use clap::Args;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[derive(Args)]
pub(crate) struct OpFlags {
    /// The seeds of the changes, `A..B`.
    #[arg(long, default_value = "0..1")]
    seeds: Seeds,
    /// The number of changed calls of each op, for each seed; those that TensorFlow refuses are left out.
    #[arg(long, default_value_t = 20)]
    mutants: u64,
    /// Only this op.
    #[arg(long)]
    op: Vec<String>,
    /// Infinities, NaN and the limits of dtypes among the values: TensorFlow's own results for them may depend on
    /// the shape.
    #[arg(long)]
    edges: bool,
    /// The folder of recorded calls (by default `tests/ops`).
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Build the worker as tests are built, not for speed.
    #[arg(long)]
    dev: bool,
    /// A worker of `conformance` that is built already.
    #[arg(long, conflicts_with = "dev")]
    worker: Option<PathBuf>,
}

pub(crate) fn run(root: &Path, flags: &OpFlags) -> Result<()> {
    let python = tensorflow::python(root)?;
    let script = root.join("conformance").join("tensorflow").join("op_mutants.py");
    let cases = flags.cases.clone().unwrap_or_else(|| root.join("tests").join("ops"));
    let n_parts = std::thread::available_parallelism().map_or(1, |n| n.get());
    for seed in flags.seeds.0.clone() {
        let folder = judge::target(root).join("fuzz-ops").join(seed.to_string());
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let of_part = |part: usize| {
            let mut command = Command::new(&python);
            command.arg(&script).stderr(Stdio::null());
            command.arg("--cases").arg(&cases).arg("--out").arg(&folder);
            command.args(["--seed", &seed.to_string(), "--mutants", &flags.mutants.to_string()]);
            command.args(["--part", &format!("{part}/{n_parts}")]);
            command.args(flags.op.iter().flat_map(|op| ["--op", op]));
            command.args(flags.edges.then_some("--edges"));
            command
        };
        std::thread::scope(|scope| {
            let run = |part| scope.spawn(move || command::run(of_part(part)));
            let parts: Vec<_> = (0..n_parts).map(run).collect();
            parts.into_iter().try_for_each(|part| part.join().expect("threads do not panic"))
        })?;
        println!("seed {seed}");
        conformance::run(
            root,
            &conformance::Flags::of_ops(folder, flags.worker.clone(), flags.dev),
        )?;
    }
    Ok(())
}
