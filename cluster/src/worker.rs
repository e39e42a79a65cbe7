//! A process as a task of a cluster: it listens, finds the others, and tells the leader that it lives.

use crate::{
    client::{Peer, task_name},
    config::{ClusterConfig, JOB},
    engine::{ClusterEngine, REDUCTIONS, Shared, device_name},
    error::{Error, Result},
    messages::{
        Any, CoordinatedTask, DeviceAttributes, DeviceInfo, HeartbeatRequest, HeartbeatResponse,
        OURS, RegisterTaskRequest, RegisterTaskResponse, WaitForAllTasksRequest,
        WaitForAllTasksResponse,
    },
    rpc::{FRAME, Routed, WINDOWS, network},
    services::{CoordinationService, WorkerService},
    state::{SILENCE, WorkerState},
};
use ferroflow_runtime::collective::{CommunicationThreads, Engine};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    net::ToSocketAddrs,
    sync::{Arc, OnceLock, atomic::AtomicI64},
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, sync::oneshot};
use tonic::transport::{Server, server::TcpIncoming};

/// The time between two heartbeats of a task.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// Options of a process that joins a cluster.
#[derive(Debug, Clone)]
pub struct JoinOptions {
    /// Longest wait of the process for all others.
    pub timeout: Duration,
}

impl Default for JoinOptions {
    fn default() -> JoinOptions {
        JoinOptions { timeout: Duration::from_secs(300) }
    }
}

/// This process as a task of a cluster. The task ends when the worker and all strategies made of it are
/// dropped; the others then see it go.
#[derive(Debug)]
pub struct ClusterWorker {
    shared: Arc<Shared>,
}

impl ClusterWorker {
    /// Joins the cluster: returns when all its tasks have come. Task 0 leads.
    ///
    /// # Errors
    ///
    /// [`Error::Listen`] when the address of this task cannot be listened on, [`Error::Task`] when the
    /// leader does not come in time, or refuses.
    pub fn join(config: &ClusterConfig, options: &JoinOptions) -> Result<ClusterWorker> {
        let runtime = network(2)?;
        let index = config.index;
        let incarnation = RandomState::new().hash_one((index, std::process::id(), Instant::now()));
        let device = DeviceAttributes::cpu(device_name(index), incarnation);
        let state = Arc::new(WorkerState::new(device, config.tasks.len()));
        let guard = runtime.enter();
        let peers = config.tasks.iter().enumerate().map(|(n, address)| Peer::new(n, address));
        let peers = peers.collect::<Result<Vec<Peer>>>()?;
        drop(guard);
        let listener = runtime.block_on(listen(&config.tasks[index]))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let mut server = server().add_service(Routed::<WorkerService>::new(&state));
        if index == 0 {
            server = server.add_service(Routed::<CoordinationService>::new(&state));
        }
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = server.serve_with_incoming_shutdown(incoming, async {
            let _ = stopped.await;
        });
        let failing = state.clone();
        let server = Some(runtime.spawn(async move {
            if let Err(error) = serving.await {
                failing.fail("the server of this task", &error.to_string());
            }
        }));
        let (groups, sources) = (Mutex::new(HashMap::new()), Mutex::new(HashMap::new()));
        // Tasks know calls that come twice by their numbers, so those of different tasks must differ.
        let (requests, stop) = (AtomicI64::new((incarnation >> 2) as i64), Some(stop));
        let (is_ours, communication) = (OnceLock::new(), CommunicationThreads::new(REDUCTIONS));
        let shared = Shared {
            runtime,
            state,
            peers,
            index,
            groups,
            sources,
            requests,
            is_ours,
            communication,
            stop,
            server,
        };
        let worker = ClusterWorker { shared: Arc::new(shared) };
        if let Err(error) = worker.meet(options.timeout) {
            worker.shared.state.fail("this task", &error.to_string());
            return Err(error);
        }
        Ok(worker)
    }

    /// Registers with the leader, and waits for all others.
    fn meet(&self, timeout: Duration) -> Result<()> {
        let Shared { runtime, state, peers, index, .. } = &*self.shared;
        let leader = peers[0].clone();
        let begun = Instant::now();
        let source_task = Some(CoordinatedTask { job_name: JOB.into(), task_id: *index as i32 });
        let incarnation = state.device.incarnation;
        let request = RegisterTaskRequest { incarnation, source_task: source_task.clone() };
        runtime.block_on(async {
            let method = "/tensorflow.CoordinationService/RegisterTask";
            let _: RegisterTaskResponse = leader.call_when_ready(method, request, timeout).await?;
            let request = HeartbeatRequest { incarnation, source_task: source_task.clone() };
            runtime.spawn(live(leader.clone(), state.clone(), request, *index));
            let device = vec![Any::of(&state.device)];
            let device_info = Some(DeviceInfo { device });
            let request = WaitForAllTasksRequest { source_task, device_info };
            let method = "/tensorflow.CoordinationService/WaitForAllTasks";
            let left = timeout.saturating_sub(begun.elapsed());
            let all: WaitForAllTasksResponse = leader.call(method, request, left).await?;
            let devices = all.device_info.map(|info| info.device).unwrap_or_default();
            let is_ours = |device: &Any| {
                let device: Option<DeviceAttributes> = device.to();
                device.is_some_and(|device| device.physical_device_desc == OURS)
            };
            let _ = self.shared.is_ours.set(!devices.is_empty() && devices.iter().all(is_ours));
            Ok(())
        })
    }

    /// The number of this process's task.
    pub fn index(&self) -> usize {
        self.shared.index
    }

    /// By what the replica of this process meets those of the others.
    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(ClusterEngine(self.shared.clone()))
    }
}

pub(crate) async fn listen(address: &str) -> Result<TcpListener> {
    let failed = |reason: String| Error::Listen { address: address.into(), reason };
    let resolved = address.to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let mut reason = "it has no address".to_string();
    for socket in resolved {
        match TcpListener::bind(socket).await {
            Ok(listener) => return Ok(listener),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(failed(reason))
}

/// A server of large messages.
pub(crate) fn server() -> Server {
    Server::builder()
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_frame_size(FRAME)
}

/// Tells the leader that this task lives; the leader looks who is silent. Ends when the leader is gone.
async fn live(leader: Peer, state: Arc<WorkerState>, request: HeartbeatRequest, index: usize) {
    let method = "/tensorflow.CoordinationService/Heartbeat";
    let mut last = Instant::now();
    loop {
        let beat = leader.call::<_, HeartbeatResponse>(method, request.clone(), HEARTBEAT);
        match beat.await {
            Ok(_) => last = Instant::now(),
            Err(Error::Task { reason, code, .. }) => {
                let is_late = code == ferroflow_ir::Code::DeadlineExceeded;
                if !is_late || last.elapsed() > SILENCE {
                    state.fail(leader.name(), &reason);
                    return;
                }
                // The time between two heartbeats has passed in waiting.
                if index != 0 {
                    continue;
                }
            }
            Err(error) => {
                state.fail(leader.name(), &error.to_string());
                return;
            }
        }
        if let Some(task) = state.silent().filter(|_| index == 0) {
            state.fail(&task_name(task as usize), "it has been silent");
            return;
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}
