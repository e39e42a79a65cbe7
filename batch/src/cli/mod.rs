//! Verbs of the command line.

#[cfg(feature = "ballista")]
mod processes;
mod progress;
mod run;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// SavedModels over tables.
#[derive(Debug, Parser)]
#[command(name = "ferroflow-batch", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(Box<run::RunVerb>),
    #[cfg(feature = "ballista")]
    Scheduler(processes::SchedulerVerb),
    #[cfg(feature = "ballista")]
    Executor(processes::ExecutorVerb),
}

/// Does what the arguments say. Errors go to standard error.
pub(super) fn main() -> ExitCode {
    let ended = match Arguments::parse().verb {
        Verb::Run(verb) => verb.run(),
        #[cfg(feature = "ballista")]
        Verb::Scheduler(verb) => verb.run(),
        #[cfg(feature = "ballista")]
        Verb::Executor(verb) => verb.run(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
