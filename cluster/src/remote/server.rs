//! A process that computes for others.

use super::service::{EagerService, ServerState, TensorService};
use crate::{
    error::{Error, Result},
    messages::DeviceAttributes,
    rpc::{Routed, network},
    worker::listen,
};
use ferroflow_runtime::Context;
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Runtime, sync::oneshot};
use tonic::transport::server::TcpIncoming;

/// The name of a server's task, and what it does for clients.
#[derive(Clone)]
pub struct ServerOptions {
    /// The job, such as `worker`.
    pub job: String,
    /// The number of the task in it.
    pub task: u32,
    /// Makes the context of a client: its limits, its ops, the files that these reach.
    pub new_context: Arc<dyn Fn() -> Context + Send + Sync>,
}

impl fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<options of /job:{}/task:{}>", self.job, self.task)
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions { job: "worker".into(), task: 0, new_context: Arc::new(Context::new) }
    }
}

/// A process that runs ops and functions for clients, of this crate and of TensorFlow
/// (`tf.config.experimental_connect_to_host`). It ends when this is dropped.
///
/// Every process that reaches its address may have it compute: TensorFlow's protocol knows neither encryption nor
/// authentication. Clients reach no files unless [`ServerOptions::new_context`] says so.
pub struct WorkerServer {
    runtime: Option<Runtime>,
    address: String,
    device: String,
    stop: Option<oneshot::Sender<()>>,
}

impl fmt::Debug for WorkerServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<server of {} at {}>", self.device, self.address)
    }
}

impl WorkerServer {
    /// Listens on an address, `host:port`; port 0 is one that is free.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] when the address cannot be listened on.
    pub fn start(address: &str, options: &ServerOptions) -> Result<WorkerServer> {
        let ServerOptions { job, task, new_context } = options;
        let device = format!("/job:{job}/replica:0/task:{task}/device:CPU:0");
        let incarnation = RandomState::new().hash_one((&device, std::process::id()));
        let attributes = DeviceAttributes::cpu(device.clone(), incarnation);
        let runtime = network(2)?;
        let listener = runtime.block_on(listen(address))?;
        let failed = |error: std::io::Error| Error::Listen {
            address: address.into(),
            reason: error.to_string(),
        };
        let address = listener.local_addr().map_err(failed)?.to_string();
        let state = Arc::new(ServerState::new(attributes, new_context.clone()));
        let (stop, stopped) = oneshot::channel::<()>();
        let server = crate::worker::server()
            .add_service(Routed::<EagerService>::new(&state))
            .add_service(Routed::<TensorService>::new(&state));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = server.serve_with_incoming_shutdown(incoming, async {
            let _ = stopped.await;
        });
        runtime.spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!("the server has ended: {error}");
            }
        });
        Ok(WorkerServer { runtime: Some(runtime), address, device, stop: Some(stop) })
    }

    /// The address it listens on.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The name of its device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Serves until the process ends.
    pub fn join(&self) -> ! {
        loop {
            std::thread::park_timeout(Duration::from_secs(3600));
        }
    }
}

impl Drop for WorkerServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(200));
        }
    }
}
