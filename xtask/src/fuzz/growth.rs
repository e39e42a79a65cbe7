//! `fuzz growth`: graphs of several families in two sizes, to find stages whose time grows faster
//! than the nodes do. Workers (`fuzz/growth` of the root package) read, compile and run the graphs.

use crate::{
    command::{self, BuildProfile},
    worker::{Reply, Worker, WorkerProgram},
};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Args, Clone)]
pub(crate) struct GrowthFlags {
    /// The nodes of the smaller graph of a family; the larger one has four times as many.
    #[arg(long, default_value_t = 10_000)]
    nodes: u64,
    /// Only these families.
    #[arg(long, value_delimiter = ',')]
    families: Vec<String>,
    /// A stage of the larger graph may take so many times as long as that of the smaller one. A
    /// linear one takes 4 times as long, a quadratic one 16 times.
    #[arg(long, default_value_t = 8.0)]
    factor: f64,
    /// Stages of fewer seconds are not looked at: they measure the machine.
    #[arg(long, default_value_t = 0.2)]
    least: f64,
    /// Longest time of a graph, in seconds.
    #[arg(long, default_value_t = 120)]
    patience: u64,
    /// Build the worker as tests are built.
    #[arg(long)]
    dev: bool,
    /// A worker that is built already.
    #[arg(long)]
    worker: Option<PathBuf>,
}

/// Seconds by stage, or why there are none.
type Stages = std::result::Result<Vec<(String, f64)>, String>;

pub(crate) fn run(root: &Path, flags: &GrowthFlags) -> Result<()> {
    let profile = if flags.dev { BuildProfile::Dev } else { BuildProfile::Release };
    let path = match &flags.worker {
        Some(worker) => fs::canonicalize(worker)?,
        None => command::build_workers(root, "fuzz", &["fuzz"], profile)?,
    };
    let program = WorkerProgram { path, arguments: Vec::new() };
    let mut worker = Worker::new(&program);
    let families = match flags.families.is_empty() {
        true => known(&mut worker)?,
        false => flags.families.clone(),
    };
    let mut faults = Vec::new();
    for family in &families {
        let small = stages(&mut worker, family, flags.nodes, flags)?;
        let large = stages(&mut worker, family, 4 * flags.nodes, flags)?;
        let (small, large) = match (small, large) {
            (Ok(small), Ok(large)) => (small, large),
            (Err(why), _) | (_, Err(why)) => {
                println!("{family:18} {why}");
                faults.push(family.clone());
                continue;
            }
        };
        print!("{family:18}");
        for ((stage, before), (_, after)) in small.iter().zip(&large) {
            let is_fault = *after > flags.least && after / before > flags.factor;
            let mark = if is_fault { "!" } else { " " };
            print!("  {stage} {after:7.3} s ({:4.1}){mark}", after / before);
            if is_fault {
                faults.push(format!("{family}: {stage}"));
            }
        }
        println!();
    }
    println!("growth: {} faults in {} families", faults.len(), families.len());
    ensure!(faults.is_empty(), "time grows faster than nodes: {}", faults.join(", "));
    Ok(())
}

fn known(worker: &mut Worker) -> Result<Vec<String>> {
    worker.send(&json!({ "kind": "families" }))?;
    match worker.next(Duration::from_secs(60))? {
        Reply::Line(line) => Ok(serde_json::from_value(line["families"].clone())?),
        Reply::Lost(how) => bail!("the worker is lost: {how}"),
    }
}

fn stages(worker: &mut Worker, family: &str, nodes: u64, flags: &GrowthFlags) -> Result<Stages> {
    worker.send(&json!({ "kind": "growth", "family": family, "nodes": nodes }))?;
    let line = match worker.next(Duration::from_secs(flags.patience))? {
        Reply::Line(line) => line,
        Reply::Lost(how) => return Ok(Err(format!("{nodes} nodes: {how}"))),
    };
    if let Value::String(why) = &line["why"] {
        return Ok(Err(format!("{nodes} nodes: {why}")));
    }
    Ok(Ok(serde_json::from_value(line["stages"].clone()).context("stages of a graph")?))
}
