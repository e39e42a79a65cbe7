//! Development chores: `cargo xtask <verb>`.

#![forbid(unsafe_code)]

mod alone;
mod bench;
mod ci;
mod cluster;
mod codegen;
mod command;
mod conformance;
mod emulated;
mod functions;
mod fuzz;
mod interleavings;
mod metrics;
mod msrv;
mod op_names;
mod package;
mod sbom;
mod simulated;
mod source;
mod spec;
mod tidy;
mod web;
mod worker;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::{path::PathBuf, process::ExitCode};

#[derive(Parser)]
#[command(about = "Development chores of the workspace")]
struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run programs that use one crate each, outside of this workspace.
    Alone,
    /// Measure, alone or beside other programs.
    Bench(bench::Flags),
    /// Run programs of several processes, and compare.
    Cluster(cluster::ClusterFlags),
    /// Write generated code.
    Codegen(codegen::Flags),
    /// Run recorded cases and compare.
    Conformance(conformance::Flags),
    /// Run Cargo for processors of other families, on an emulator of one: the kernels' tests.
    Emulated(emulated::EmulatedFlags),
    /// Run random programs and compare.
    #[command(subcommand)]
    Fuzz(fuzz::FuzzVerb),
    /// Run models of concurrency under many schedules.
    Interleavings(interleavings::InterleavingFlags),
    /// Print measures of the source.
    Metrics(metrics::Flags),
    /// Check the crates that are published by the oldest compiler that they promise.
    Msrv,
    /// Pack the crates as they would be published.
    Package,
    /// Write the list of all dependencies (SPDX).
    Sbom(sbom::SbomFlags),
    /// Run a command with NVIDIA's driver and compiler simulated.
    Simulated(simulated::Flags),
    /// Note in the specification which test holds which line.
    Spec(spec::Flags),
    /// Check the house rules that the compiler does not.
    Tidy,
    /// Build the browser's package, and test it.
    Web(web::WebFlags),
    /// Check everything CI checks, cheapest first.
    Ci,
}

fn main() -> ExitCode {
    match run(Flags::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    let root = workspace_root()?;
    match verb {
        Verb::Alone => alone::run(&root),
        Verb::Bench(flags) => bench::run(&root, &flags),
        Verb::Cluster(flags) => cluster::run(&root, &flags),
        Verb::Codegen(flags) => codegen::run(&root, &flags),
        Verb::Conformance(flags) => conformance::run(&root, &flags),
        Verb::Emulated(flags) => emulated::run(&root, &flags),
        Verb::Fuzz(verb) => fuzz::run(&root, &verb),
        Verb::Interleavings(flags) => interleavings::run(&root, &flags),
        Verb::Metrics(flags) => metrics::run(&root, &flags),
        Verb::Msrv => msrv::run(&root),
        Verb::Package => package::run(&root),
        Verb::Sbom(flags) => sbom::run(&root, &flags),
        Verb::Simulated(flags) => simulated::run(&root, &flags),
        Verb::Spec(flags) => spec::run(&root, &flags),
        Verb::Tidy => tidy::run(&root),
        Verb::Web(flags) => web::run(&root, &flags),
        Verb::Ci => ci::run(&root),
    }
}

fn workspace_root() -> Result<PathBuf> {
    // Cargo says where the workspace lies now; a program that was built elsewhere would not know.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    Ok(here.parent().context("this crate lies in the workspace's folder")?.to_path_buf())
}
