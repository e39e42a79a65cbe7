//! The engine between processes: groups that the leader completes. What a group does is in `group.rs`.

use crate::{
    client::{Peer, task_name},
    config::JOB,
    error::Error as ClusterError,
    group::ClusterGroup,
    messages::{
        CompleteGroupRequest, CompleteGroupResponse, CoordinatedTask, DeviceAttributes, Empty,
        ShutdownTaskRequest,
    },
    state::{TaskFailure, WorkerState, task_of},
};
use ferroflow_ir::{Code, Error as IrError};
use ferroflow_runtime::{
    Result,
    collective::{CollectiveCall, CollectiveError, CommunicationThreads, Engine, Group, GroupKey},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, OnceLock, atomic::AtomicI64},
    time::Duration,
};
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};

/// The time between two checks whether a waiting call is to end.
const NAP: Duration = Duration::from_millis(20);

/// The kind of collectives in TensorFlow's `CollectiveType` that groups are resolved for.
const REDUCTION: i32 = 0;

/// Bytes of a bucket of gradients: a tenth of a second on a slow network, and long beside what a message costs.
const BUCKET: usize = 4 << 20;

/// Reductions at a time: while one waits for the others, another sends.
pub(crate) const REDUCTIONS: NonZeroUsize = NonZeroUsize::new(2).expect("it is not 0");

/// Bytes of a bucket where TensorFlow takes part, which sends gradients all at once.
const BUCKET_OF_TENSORFLOW: usize = 50 << 20;

/// The state by which a process meets others.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) state: Arc<WorkerState>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) index: usize,
    /// The groups that are complete.
    pub(crate) groups: Mutex<HashMap<GroupKey, Arc<Vec<DeviceAttributes>>>>,
    /// The ranks of members that send, by the keys of broadcasts.
    pub(crate) sources: Mutex<HashMap<(GroupKey, i32), usize>>,
    pub(crate) requests: AtomicI64,
    /// Whether no task is TensorFlow's; known when all have come.
    pub(crate) is_ours: OnceLock<bool>,
    pub(crate) communication: CommunicationThreads,
    /// Ends the server.
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) server: Option<JoinHandle<()>>,
}

/// The time that an ending task waits for others to fetch their buffers.
const GRACE: Duration = Duration::from_secs(5);

impl Drop for Shared {
    fn drop(&mut self) {
        let (stop, server) = (self.stop.take(), self.server.take());
        let (state, leader, index) = (&self.state, &self.peers[0], self.index);
        self.runtime.block_on(async {
            let end = async {
                let drained = state.drained().await;
                match index {
                    _ if drained.is_err() => {}
                    0 => drop(state.all_done().await),
                    _ => {
                        let task = CoordinatedTask { job_name: JOB.into(), task_id: index as i32 };
                        let request = ShutdownTaskRequest { source_task: Some(task) };
                        let method = "/tensorflow.CoordinationService/ShutdownTask";
                        drop(leader.call::<_, Empty>(method, request, GRACE).await);
                    }
                }
            };
            if !std::thread::panicking() {
                let _ = tokio::time::timeout(GRACE, end).await;
            }
            drop(stop);
            if let Some(server) = server {
                let _ = tokio::time::timeout(Duration::from_millis(200), server).await;
            }
        });
    }
}

/// The side of the replica of this process.
#[derive(Debug, Clone)]
pub(crate) struct ClusterEngine(pub(crate) Arc<Shared>);

impl Shared {
    /// Waits for a call of another task as long as `call` may.
    pub(crate) fn wait<R>(
        &self,
        call: &CollectiveCall<'_>,
        group: GroupKey,
        missing: &dyn Fn() -> Vec<String>,
        answer: impl Future<Output = Result<R, ClusterError>>,
    ) -> Result<R> {
        self.runtime.block_on(async {
            tokio::pin!(answer);
            loop {
                (call.check)()?;
                if let Some(TaskFailure { task, reason }) = self.state.failure() {
                    let (call, member) = (call.name(group), task);
                    return Err(CollectiveError::Unavailable { call, member, reason }.into());
                }
                if call.left() == Some(Duration::ZERO) {
                    let waited_ms = call.begun.elapsed().as_millis() as u64;
                    let (call, missing) = (call.name(group), missing());
                    return Err(CollectiveError::Deadline { call, waited_ms, missing }.into());
                }
                if let Ok(answered) = tokio::time::timeout(NAP, &mut answer).await {
                    return answered.map_err(|error| self.failed(call, group, error));
                }
            }
        })
    }

    /// The error of a call that another task did not answer. A task that is gone ends the cluster: what
    /// waits for others fails at once.
    fn failed(
        &self,
        call: &CollectiveCall<'_>,
        group: GroupKey,
        error: ClusterError,
    ) -> ferroflow_runtime::Error {
        match error {
            ClusterError::Task {
                task,
                reason,
                code: Code::Unavailable | Code::Aborted | Code::Internal,
                ..
            } => {
                self.state.fail(&task, &reason);
                CollectiveError::Unavailable { call: call.name(group), member: task, reason }.into()
            }
            ClusterError::Task { task, reason, code: Code::InvalidArgument, .. } => {
                let (expected, found) = ("what others bring".into(), reason);
                CollectiveError::Mismatch { call: call.name(group), member: task, expected, found }
                    .into()
            }
            other => other.into(),
        }
    }

    pub(crate) fn member(&self, device: &DeviceAttributes) -> Result<&Peer> {
        let task = task_of(&device.name).and_then(|task| self.peers.get(task as usize));
        let unknown =
            || IrError::NotFound { kind: "task of the cluster", name: device.name.clone() };
        Ok(task.ok_or_else(unknown)?)
    }
}

/// No answer of another task is waited for longer, deadline or not; silence ends a call before.
pub(crate) const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Engine for ClusterEngine {
    fn rank(&self) -> usize {
        self.0.index
    }

    fn size(&self) -> usize {
        self.0.peers.len()
    }

    fn resolve(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> Result<Arc<dyn Group>> {
        let shared = &*self.0;
        let found = shared.groups.lock().get(&key).cloned();
        let members = match found {
            Some(members) => members,
            None => self.complete(key, size, call)?,
        };
        if members.len() != size {
            return Err(CollectiveError::Group {
                group: key,
                what: "the number of members",
                expected: members.len().to_string(),
                found: size.to_string(),
            }
            .into());
        }
        let own = &shared.state.device.name;
        let rank = members.iter().position(|member| member.name == *own);
        let absent = || IrError::NotFound { kind: "member of the group", name: own.clone() };
        let rank = rank.ok_or_else(absent)?;
        Ok(Arc::new(ClusterGroup::new(self.0.clone(), key, rank, members)))
    }

    fn bucket_bytes(&self) -> Option<usize> {
        let is_ours = self.0.is_ours.get().copied().unwrap_or(false);
        Some(if is_ours { BUCKET } else { BUCKET_OF_TENSORFLOW })
    }

    fn communication_threads(&self) -> Option<&CommunicationThreads> {
        Some(&self.0.communication)
    }

    fn leave(&self, _: &str) {
        // The others learn of a process that ends from its connections.
    }
}

impl ClusterEngine {
    /// Asks the leader for the members of a group.
    fn complete(
        &self,
        key: GroupKey,
        size: usize,
        call: &CollectiveCall<'_>,
    ) -> Result<Arc<Vec<DeviceAttributes>>> {
        let shared = &*self.0;
        let request = CompleteGroupRequest {
            group_key: key,
            group_size: i32::try_from(size).unwrap_or(i32::MAX),
            device_type: "CPU".into(),
            collective_type: REDUCTION,
            device_attributes: Some(shared.state.device.clone()),
        };
        let method = "/tensorflow.WorkerService/CompleteGroup";
        let missing = || vec![format!("other members of job {JOB}")];
        let leader = &shared.peers[0];
        let answer = leader.call::<_, CompleteGroupResponse>(method, request, LONGEST);
        let response = shared.wait(call, key, &missing, answer)?;
        let members = Arc::new(response.device_attributes);
        shared.groups.lock().insert(key, members.clone());
        Ok(members)
    }
}

/// The full name of the device of a task.
pub(crate) fn device_name(index: usize) -> String {
    let task = task_name(index).replace("/task", "/replica:0/task");
    format!("{task}/device:CPU:0")
}
