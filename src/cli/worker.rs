//! `ferroflow worker`: a process that computes for others.

use super::Report;
use anyhow::{Context, Result};
use clap::Args;
use ferroflow::cluster::{
    ClusterConfig,
    remote::{ServerOptions, WorkerServer},
};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct WorkerArguments {
    /// The address to listen on; that of this task in `TF_CONFIG` where none is given. Whoever reaches it
    /// may have this process compute.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// The job of the task.
    #[arg(long, default_value = "worker")]
    job: String,
    /// The number of the task in its job.
    #[arg(long, default_value_t = 0)]
    task: u32,
}

pub(super) fn worker(arguments: WorkerArguments) -> Result<Report> {
    let WorkerArguments { address, job, task } = arguments;
    let (address, task) = match address {
        Some(address) => (address, task),
        None => {
            let config = ClusterConfig::from_env().context("no --address is given")?;
            (config.tasks[config.index].clone(), u32::try_from(config.index)?)
        }
    };
    let server = WorkerServer::start(&address, &ServerOptions { job, task })?;
    println!("{} listens on {}", server.device(), server.address());
    server.join()
}
