//! Verbs and flags, and what they have in common.
//!
//! Each verb makes a [`Report`]: the same facts as text for people and as JSON for programs. A
//! failure is one line on standard error and exit code 1.

mod array_json;
mod bench;
mod checkpoint;
mod chrome_trace;
mod context;
mod convert;
mod examples;
mod file_kind;
mod graph;
mod graph_file;
mod inputs;
mod latency;
mod literal;
mod manual;
mod objects;
mod ops;
mod outputs;
mod progress;
mod recognize;
mod roofline;
mod run;
mod scan;
mod show;
mod signature;
mod stablehlo;
mod weights_file;
#[cfg(feature = "cluster")]
mod worker;

use clap::{Args, Parser, Subcommand};
use serde_json::Value;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Looks into TensorFlow models and checkpoints, and runs models.
#[derive(Parser)]
#[command(name = "ferroflow", version)]
struct Arguments {
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show what a SavedModel holds: MetaGraphs, signatures, objects.
    Show(show::ShowArguments),
    /// Run a signature of a SavedModel.
    Run(run::RunArguments),
    /// Measure how long the signatures of a SavedModel take, and which ops take it.
    Bench(bench::BenchArguments),
    /// List the ops of a SavedModel that reach outside of it: files, processes, other machines.
    Scan(scan::ScanArguments),
    /// Look into checkpoints, and change them.
    #[command(subcommand)]
    Checkpoint(checkpoint::CheckpointVerb),
    /// Write weights in another format.
    Convert(convert::ConvertArguments),
    /// List the ops that can run, or those a model needs.
    Ops(ops::OpsArguments),
    /// Print a script that completes verbs and flags in a shell.
    Completions(manual::CompletionsArguments),
    /// Print the manual page, or write the pages of all verbs.
    Man(manual::ManArguments),
    /// Compute for other processes, of ferroflow or of TensorFlow.
    #[cfg(feature = "cluster")]
    Worker(worker::WorkerArguments),
}

/// The folder of a SavedModel.
#[derive(Args)]
struct ModelFolder {
    /// The folder of the SavedModel, or the `saved_model.pb` in it.
    #[arg(value_name = "DIR", required_unless_present = "flag")]
    dir: Option<PathBuf>,
    /// The folder of the SavedModel.
    #[arg(long = "dir", id = "flag", value_name = "DIR", conflicts_with = "dir")]
    flag: Option<PathBuf>,
}

impl ModelFolder {
    fn path(&self) -> &Path {
        self.dir.as_deref().or(self.flag.as_deref()).unwrap_or(Path::new(""))
    }
}

/// Report of a verb.
struct Report {
    /// For people; without the last line break.
    text: String,
    /// For programs.
    json: Value,
}

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let report = match arguments.verb {
        Verb::Show(arguments) => show::show(arguments),
        Verb::Run(arguments) => run::run(arguments),
        Verb::Bench(arguments) => bench::bench(arguments),
        Verb::Scan(arguments) => scan::scan(arguments),
        Verb::Checkpoint(verb) => checkpoint::checkpoint(verb),
        Verb::Convert(arguments) => convert::convert(arguments),
        Verb::Ops(arguments) => ops::ops(arguments),
        Verb::Completions(arguments) => manual::completions(arguments),
        Verb::Man(arguments) => manual::man(arguments),
        #[cfg(feature = "cluster")]
        Verb::Worker(arguments) => worker::worker(arguments),
    };
    match report {
        Ok(report) => print(&report, arguments.json),
        Err(error) => {
            eprintln!("error: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Readers that stop early, such as `head`, are no failure.
fn print(report: &Report, json: bool) -> ExitCode {
    let text = if json { format!("{:#}", report.json) } else { report.text.clone() };
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            eprintln!("error: standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// An error with its causes, those left out that it names itself.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = format!("{text}{colon}{cause}");
        }
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Lines of two columns, the first as wide as its longest cell.
fn columns(rows: &[(String, String)], indent: &str) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let line = |(name, text): &(String, String)| {
        format!("{indent}{name:width$}  {text}").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
