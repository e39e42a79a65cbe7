//! Processes of Ballista that know the function and the table of this crate.

use super::codec::codecs;
use crate::error::{Error, Result};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::{
    cluster::BallistaCluster, config::SchedulerConfig, scheduler_process::start_server,
};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

/// Settings of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Silence after which an executor counts as lost; its tasks run again elsewhere. At least twice
    /// the heartbeat of executors.
    pub timeout: Duration,
}

/// Settings of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Host and port of the scheduler.
    pub scheduler: (String, u16),
    /// The address that rows are fetched from.
    pub address: SocketAddr,
    /// The port that tasks come to, of the same host.
    pub task_port: u16,
    /// Name of the host for other processes; the address's own, if `None`.
    pub external_host: Option<String>,
    /// Tasks at the same time; one per processor if `None`.
    pub tasks: Option<NonZeroUsize>,
    /// Folder of rows between stages; a temporary one if `None`.
    pub folder: Option<PathBuf>,
    /// The time between signs of life, in whole seconds.
    pub heartbeat: Duration,
}

/// Runs a scheduler until the process is ended.
///
/// Ballista's connections are neither encrypted nor authenticated, and executors read the files that
/// plans name: use it on networks that are trusted.
///
/// # Errors
///
/// [`Error::Process`] when the address cannot be listened on.
pub async fn serve_scheduler(options: &SchedulerOptions) -> Result<()> {
    let (logical, physical) = codecs();
    let timeout = options.timeout.as_secs().max(1);
    let config = SchedulerConfig {
        bind_host: options.address.ip().to_string(),
        bind_port: options.address.port(),
        executor_timeout_seconds: timeout,
        expire_dead_executor_interval_seconds: (timeout / 4).max(1),
        no_executors_grace_period_seconds: timeout,
        override_logical_codec: Some(logical),
        override_physical_codec: Some(physical),
        ..SchedulerConfig::default()
    };
    let failed = |error| Error::Process { what: "scheduler", source: Box::new(error) };
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    start_server(cluster, options.address, Arc::new(config)).await.map_err(failed)
}

/// Runs an executor until the process is ended. See [`serve_scheduler`] for what to take care of.
///
/// # Errors
///
/// [`Error::Process`] when an address cannot be listened on, or the scheduler is not there.
pub async fn serve_executor(options: &ExecutorOptions) -> Result<()> {
    let (logical, physical) = codecs();
    let config = ExecutorProcessConfig {
        bind_host: options.address.ip().to_string(),
        port: options.address.port(),
        grpc_port: options.task_port,
        external_host: options.external_host.clone(),
        scheduler_host: options.scheduler.0.clone(),
        scheduler_port: options.scheduler.1,
        scheduler_connect_timeout_seconds: 30,
        vcores: options.tasks.map_or(0, NonZeroUsize::get),
        work_dir: options.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned()),
        executor_heartbeat_interval_seconds: options.heartbeat.as_secs().max(1),
        override_logical_codec: Some(logical),
        override_physical_codec: Some(physical),
        ..ExecutorProcessConfig::default()
    };
    let failed = |error| Error::Process { what: "executor", source: Box::new(error) };
    start_executor_process(Arc::new(config)).await.map_err(failed)
}
