//! The command line of batch inference.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
