//! `scheduler` and `executor`: the processes of a cluster.

use clap::Args;
use ferroflow_batch::{
    Error,
    distributed::{ExecutorOptions, SchedulerOptions, serve_executor, serve_scheduler},
};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};
use tokio::runtime;

/// Shares the parts of runs among executors, until it is ended.
///
/// Connections are neither encrypted nor authenticated: for networks that are trusted.
#[derive(Debug, Args)]
pub(super) struct SchedulerVerb {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:50050")]
    address: SocketAddr,
    /// Seconds of silence after which an executor counts as lost.
    #[arg(long, default_value_t = 20)]
    timeout: u64,
}

/// Works on parts of runs that a scheduler shares out, until it is ended.
///
/// It reads models and inputs by the paths that the run has. Connections are neither encrypted nor
/// authenticated: for networks that are trusted.
#[derive(Debug, Args)]
pub(super) struct ExecutorVerb {
    /// Host and port of the scheduler.
    #[arg(long, default_value = "localhost:50050", value_parser = parse_host)]
    scheduler: (String, u16),
    /// Address that rows are fetched from.
    #[arg(long, default_value = "127.0.0.1:50051")]
    address: SocketAddr,
    /// Port that tasks come to, of the same host; by default the next one.
    #[arg(long)]
    task_port: Option<u16>,
    /// Name of this host for other processes; by default the address's own.
    #[arg(long)]
    external_host: Option<String>,
    /// Tasks at the same time; by default one per processor.
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Folder of results that are yet to be fetched; by default a temporary one.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Seconds between signs of life.
    #[arg(long, default_value_t = 5)]
    heartbeat: u64,
}

fn parse_host(text: &str) -> Result<(String, u16), String> {
    let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
    let port = port.parse().map_err(|error| format!("{port}: {error}"))?;
    Ok((host.into(), port))
}

impl SchedulerVerb {
    pub(super) fn run(self) -> Result<(), Error> {
        let timeout = Duration::from_secs(self.timeout);
        let options = SchedulerOptions { address: self.address, timeout };
        runtime()?.block_on(serve_scheduler(&options))
    }
}

impl ExecutorVerb {
    pub(super) fn run(self) -> Result<(), Error> {
        let options = ExecutorOptions {
            scheduler: self.scheduler,
            address: self.address,
            task_port: self.task_port.unwrap_or(self.address.port().saturating_add(1)),
            external_host: self.external_host,
            tasks: self.threads,
            folder: self.folder,
            heartbeat: Duration::from_secs(self.heartbeat),
        };
        runtime()?.block_on(serve_executor(&options))
    }
}

fn runtime() -> Result<runtime::Runtime, Error> {
    let io = |source| Error::Io { path: "threads".into(), source };
    runtime::Builder::new_multi_thread().enable_all().build().map_err(io)
}
