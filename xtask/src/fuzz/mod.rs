//! `fuzz`: random programs and hostile calls, run in all ways there are.

mod calls;
mod files;
mod functions;
mod graphs;
mod growth;
mod kills;
mod ops;
mod programs;
mod shrink;

use anyhow::{Context, Result};
use clap::Subcommand;
use std::{ops::Range, path::Path, str::FromStr};

#[derive(Subcommand)]
pub(crate) enum FuzzVerb {
    /// Compare programs run eagerly with the same programs traced, in all ways there are.
    Programs(programs::Flags),
    /// Compare functions that TensorFlow wrote with its answers. TensorFlow is installed below the
    /// target folder unless `FERROFLOW_TENSORFLOW_PYTHON` names a Python that has it.
    Graphs(graphs::Flags),
    /// Change recorded calls of ops at random, and compare with what TensorFlow computes.
    Ops(ops::OpFlags),
    /// Compile random functions with `#[function]`, and compare tensors with numbers.
    Functions(functions::FunctionFlags),
    /// Make hostile calls of every op: a panic, an abort or a hang is a fault.
    Calls(calls::CallFlags),
    /// Read mutated files of every kind: a panic, an abort or a hang is a fault.
    Files(files::FileFlags),
    /// Read, compile and run graphs of two sizes: a stage whose time grows faster than the nodes is a fault.
    Growth(growth::GrowthFlags),
    /// Kill savers of checkpoints at random moments: a reader must find a whole one at every moment.
    Kills(kills::KillFlags),
}

pub(crate) fn run(root: &Path, verb: &FuzzVerb) -> Result<()> {
    match verb {
        FuzzVerb::Programs(flags) => programs::run(root, flags),
        FuzzVerb::Graphs(flags) => graphs::run(root, flags),
        FuzzVerb::Ops(flags) => ops::run(root, flags),
        FuzzVerb::Functions(flags) => functions::run(root, flags),
        FuzzVerb::Calls(flags) => calls::run(root, flags),
        FuzzVerb::Files(flags) => files::run(root, flags),
        FuzzVerb::Growth(flags) => growth::run(root, flags),
        FuzzVerb::Kills(flags) => kills::run(root, flags),
    }
}

/// Seeds, as `A..B`: from `A` to before `B`; `A` alone is one.
#[derive(Clone, Debug)]
struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Seeds> {
        let number = |text: &str| text.parse::<u64>().with_context(|| format!("`{text}`"));
        Ok(Seeds(match text.split_once("..") {
            Some((from, to)) => number(from)?..number(to)?,
            None => number(text)?..number(text)? + 1,
        }))
    }
}
