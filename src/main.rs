//! The command line: looks into models and checkpoints, and runs signatures.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
