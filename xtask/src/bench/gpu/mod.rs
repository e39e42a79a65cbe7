//! `bench gpu`: functions on a device, beside PyTorch on the same machine.
//!
//! Ours is the worker of `bench` with `--device`, the other side `bench/peer_torch.py`, once for
//! each way in which PyTorch runs functions. All compute the same from the same seeds, which their
//! checks prove for each row.

mod agreement;
mod row;

use super::{
    chosen,
    side::{self, BenchSide},
};
use crate::command::{self, BuildProfile};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use row::ReportRow;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

#[derive(Args)]
pub(super) struct Flags {
    /// Our device: `GPU:0` (beside PyTorch's `cuda`), `WGPU:0` or `CPU:0` (beside its `cpu`).
    #[arg(long, default_value = "GPU:0")]
    device: String,
    /// Tiny sizes, which try the command out and say nothing of speed.
    #[arg(long)]
    small: bool,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    peer_python: PathBuf,
    /// PyTorch's device, such as `cuda:0`; that of ours by default.
    #[arg(long)]
    peer_device: Option<String>,
    /// Modes in which PyTorch runs functions; all that its device has by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    modes: Vec<Mode>,
    /// Ours alone, without PyTorch.
    #[arg(long, conflicts_with_all = ["modes", "peer_python", "peer_device"])]
    alone: bool,
    /// Only rows whose names begin with one of these, with commas between them.
    #[arg(long, default_value = "")]
    only: String,
    /// Number of turns of each side.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Threads of each side on the host; one per processor by default.
    #[arg(long)]
    threads: Option<usize>,
    /// Build ours as tests are, which is quick to build and slow to run.
    #[arg(long)]
    dev: bool,
    /// Ours, built already, on a machine that has a device but no compiler, say.
    #[arg(long, conflicts_with = "dev")]
    worker: Option<PathBuf>,
    /// Write all figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Modes in which PyTorch runs functions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Op by op, as Python calls them.
    Eager,
    /// Through `torch.compile`.
    Compile,
    /// Captured as CUDA graphs.
    Graph,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Eager => "eager",
            Mode::Compile => "compile",
            Mode::Graph => "graph",
        }
    }
}

pub(super) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    // With CUDA compiled in, whatever the device: what is missing is told by its reason.
    let program = match &flags.worker {
        Some(path) => path.clone(),
        None => command::build_workers(root, "bench,cuda", &["bench"], profile)?,
    };
    let names = chosen(names(root, &program, flags)?, &flags.only)?;
    let mut sides = vec![BenchSide::start("ours", with_flags(ours(&program, flags), flags))?];
    if !flags.alone {
        let peers = peers(root, flags, &sides[0])?;
        sides.extend(peers);
    }
    sides.iter().for_each(introduce);
    let mut rows = Vec::new();
    for name in names {
        let row = ReportRow::measured(&name, &mut sides, flags.rounds)?;
        print!("{}", row.text());
        rows.push(row);
        if let Some(path) = &flags.json {
            write(path, &sides, &rows)?;
        }
    }
    let n_differ = rows.iter().filter(|row| row.differs()).count();
    ensure!(n_differ == 0, "the sides do not agree on the results of {n_differ} rows");
    Ok(())
}

/// PyTorch on the device that ours is, once for each way of running functions.
fn peers(root: &Path, flags: &Flags, ours: &BenchSide) -> Result<Vec<BenchSide>> {
    let same = peer_device(ours.facts["device"].as_str().unwrap_or_default());
    let device = flags.peer_device.clone().unwrap_or_else(|| same.clone());
    let modes = default_modes(&device);
    let modes = if flags.modes.is_empty() { modes } else { &flags.modes };
    let mut peers = Vec::new();
    for mode in modes {
        let mut command = peer(root, flags);
        command.args(["--device", &device, "--mode", mode.name()]);
        let name = if *mode == Mode::Eager { "torch" } else { mode.name() };
        let side = BenchSide::start(name, with_flags(command, flags))?;
        let [model, our_model] = [&side.facts["model"], &ours.facts["model"]];
        ensure!(
            device != same || device == "cpu" || model == our_model,
            "PyTorch's {device} is {model}, ours is {our_model}"
        );
        peers.push(side);
    }
    Ok(peers)
}

/// PyTorch's name of the device that is to be measured beside ours.
fn peer_device(ours: &str) -> String {
    match ours.split_once("/device:GPU:") {
        Some((_, index)) => format!("cuda:{index}"),
        None => "cpu".into(),
    }
}

/// Modes of PyTorch on a device by default.
fn default_modes(device: &str) -> &'static [Mode] {
    match device.starts_with("cuda") {
        true => &[Mode::Eager, Mode::Compile, Mode::Graph],
        false => &[Mode::Eager],
    }
}

/// Writes all that is known until now, so that it is kept if a later row fails.
fn write(path: &Path, sides: &[BenchSide], rows: &[ReportRow]) -> Result<()> {
    let facts: serde_json::Map<String, Value> =
        sides.iter().map(|side| (side.name.clone(), side.facts.clone())).collect();
    let rows: Vec<Value> = rows.iter().map(ReportRow::json).collect();
    let all = json!({ "sides": facts, "rows": rows });
    std::fs::write(path, format!("{all:#}\n")).with_context(|| path.display().to_string())
}

/// The rows, which both sides list.
fn names(root: &Path, program: &Path, flags: &Flags) -> Result<Vec<String>> {
    let list = |mut command: Command| {
        command.arg("--list").args(flags.small.then_some("--small"));
        side::names(command)
    };
    let names = list(ours(program, flags))?;
    if !flags.alone {
        let theirs = list(peer(root, flags))?;
        ensure!(names == theirs, "the sides list different rows: {names:?} and {theirs:?}");
    }
    Ok(names)
}

fn ours(program: &Path, flags: &Flags) -> Command {
    let mut command = Command::new(program);
    command.args(["--device", &flags.device]);
    command
}

fn peer(root: &Path, flags: &Flags) -> Command {
    let mut command = Command::new(&flags.peer_python);
    command.arg(root.join("bench/peer_torch.py"));
    command
}

fn with_flags(mut command: Command, flags: &Flags) -> Command {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = flags.threads.unwrap_or_else(processors);
    command.args(["--threads", &threads.to_string()]).args(flags.small.then_some("--small"));
    command
}

/// Says who measures what.
fn introduce(side: &BenchSide) {
    let fact = |name: &str| side.facts[name].as_str();
    let (ready, device) = (fact("ready").unwrap_or("?"), fact("device").unwrap_or("?"));
    let model = fact("model").map(|model| format!(", {model}")).unwrap_or_default();
    println!("{}: {ready} on {device}{model}", side.name);
    if side.facts["is_optimized"] == false {
        println!("{}: built without optimisation, so its figures mean nothing", side.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_runs_on_the_same_device() {
        let devices = ["/device:GPU:1", "/device:CPU:0", "/device:WGPU:0"].map(peer_device);
        assert_eq!(devices, ["cuda:1", "cpu", "cpu"]);
        assert_eq!(devices.each_ref().map(|device| default_modes(device).len()), [3, 1, 1]);
    }
}
