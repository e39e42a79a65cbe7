//! `ferroflow worker`: a process that computes for others.

use super::Report;
use anyhow::{Context as _, Result};
use clap::Args;
use ferroflow::{
    cluster::{
        ClusterConfig,
        remote::{ServerOptions, WorkerServer},
    },
    runtime::{Context, ContextOptions, FileAccess},
    saved_model::add_ops,
};
use std::sync::Arc;

/// Arguments of the command.
#[derive(Args)]
pub(super) struct WorkerArguments {
    /// The address to listen on, that of this task in `TF_CONFIG` by default. Every process that reaches it
    /// may have this one compute.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// The job of the task.
    #[arg(long, default_value = "worker")]
    job: String,
    /// The number of the task in its job.
    #[arg(long, default_value_t = 0)]
    task: u32,
    /// Let clients read and write files with the rights of this process: they restore checkpoints on it.
    #[arg(long)]
    allow_files: bool,
}

pub(super) fn worker(arguments: WorkerArguments) -> Result<Report> {
    let WorkerArguments { address, job, task, allow_files } = arguments;
    let files = if allow_files { FileAccess::Any } else { FileAccess::default() };
    let new_context = move || {
        let context = Context::with_options(ContextOptions {
            files: files.clone(),
            ..ContextOptions::default()
        });
        add_ops(&context);
        context
    };
    let (address, task) = match address {
        Some(address) => (address, task),
        None => {
            let config = ClusterConfig::from_env().context("no --address is given")?;
            (config.tasks[config.index].clone(), u32::try_from(config.index)?)
        }
    };
    let server = WorkerServer::start(
        &address,
        &ServerOptions { job, task, new_context: Arc::new(new_context) },
    )?;
    println!("{} listens on {}", server.device(), server.address());
    server.join()
}
