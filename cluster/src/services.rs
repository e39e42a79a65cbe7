//! The services that a task offers to others: `WorkerService` and, on the leader,
//! `CoordinationService`.

use crate::{
    messages::{
        Any, BROADCAST, CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest,
        CompleteInstanceResponse, CoordinatedTask, DeviceInfo, Empty, GetStatusResponse,
        HeartbeatRequest, HeartbeatResponse, RecvBufRequest, RegisterTaskRequest,
        RegisterTaskResponse, SentBuffer, ShutdownTaskRequest, WaitForAllTasksRequest,
        WaitForAllTasksResponse,
    },
    rpc::{Routes, RpcReply, refused, unary},
    state::{CallBuffer, WorkerState},
};
use std::sync::Arc;
use tonic::{Status, body::Body, codegen::http};

/// The service by which tasks exchange tensors.
pub(crate) struct WorkerService;

/// The service by which tasks find each other, of the leader.
pub(crate) struct CoordinationService;

impl Routes for WorkerService {
    const NAME: &'static str = "tensorflow.WorkerService";
    type State = WorkerState;

    fn route(state: Arc<WorkerState>, method: &str, request: http::Request<Body>) -> RpcReply {
        match method {
            "GetStatus" => unary(request, move |_: Empty| async move {
                Ok(GetStatusResponse { device_attributes: vec![state.device.clone()] })
            }),
            "RecvBuf" => unary(request, move |request| receive(state, request)),
            "CompleteGroup" => unary(request, move |request| complete_group(state, request)),
            "CompleteInstance" => unary(request, move |request| complete_instance(state, request)),
            other => refused("WorkerService", other),
        }
    }
}

async fn receive(state: Arc<WorkerState>, request: RecvBufRequest) -> Result<SentBuffer, Status> {
    if request.src_incarnation != 0 && request.src_incarnation != state.device.incarnation {
        return Err(Status::failed_precondition("this task has begun anew"));
    }
    let CallBuffer { bytes, signature } = state.take(&request.buf_rendezvous_key).await?;
    if !request.signature.is_empty() && request.signature != signature {
        let asked = &request.signature;
        return Err(Status::invalid_argument(format!("{signature}, and there {asked}")));
    }
    if usize::try_from(request.num_bytes) != Ok(bytes.len()) {
        let (key, found) = (request.buf_rendezvous_key, bytes.len());
        let asked = request.num_bytes;
        return Err(Status::invalid_argument(format!("{key} has {found} bytes, not {asked}")));
    }
    Ok(SentBuffer(bytes))
}

async fn complete_group(
    state: Arc<WorkerState>,
    request: CompleteGroupRequest,
) -> Result<CompleteGroupResponse, Status> {
    let device_attributes = state.complete_group(&request).await?;
    let CompleteGroupRequest { group_key, group_size, device_type, .. } = request;
    let num_tasks = device_attributes.len() as i32;
    Ok(CompleteGroupResponse { group_key, group_size, device_type, num_tasks, device_attributes })
}

/// The leader's answer about a call: the rank of the member that sends in a broadcast.
async fn complete_instance(
    state: Arc<WorkerState>,
    request: CompleteInstanceRequest,
) -> Result<CompleteInstanceResponse, Status> {
    let source_rank = match request.r#type {
        BROADCAST => state.complete_broadcast(&request).await?,
        _ => -1,
    };
    Ok(CompleteInstanceResponse { instance_key: request.instance_key, source_rank })
}

impl Routes for CoordinationService {
    const NAME: &'static str = "tensorflow.CoordinationService";
    type State = WorkerState;

    fn route(state: Arc<WorkerState>, method: &str, request: http::Request<Body>) -> RpcReply {
        match method {
            "RegisterTask" => unary(request, move |request: RegisterTaskRequest| async move {
                state.register(&task(request.source_task)?, request.incarnation)?;
                Ok(RegisterTaskResponse { leader_incarnation: state.device.incarnation })
            }),
            "Heartbeat" => unary(request, move |request: HeartbeatRequest| async move {
                state.hear(&task(request.source_task)?, request.incarnation)?;
                Ok(HeartbeatResponse { leader_incarnation: state.device.incarnation })
            }),
            "WaitForAllTasks" => unary(request, move |request| all_tasks(state, request)),
            "PollForError" => unary(request, move |_: Empty| poll_for_error(state)),
            "ShutdownTask" => unary(request, move |request: ShutdownTaskRequest| async move {
                state.shut_down(&task(request.source_task)?).map(|()| Empty {})
            }),
            "ResetTask" | "CancelBarrier" | "ReportErrorToService" => {
                unary(request, |_: Empty| async { Ok(Empty {}) })
            }
            other => refused("CoordinationService", other),
        }
    }
}

async fn all_tasks(
    state: Arc<WorkerState>,
    request: WaitForAllTasksRequest,
) -> Result<WaitForAllTasksResponse, Status> {
    let task = task(request.source_task)?;
    let devices = request.device_info.unwrap_or_default().device;
    let devices = devices.iter().filter_map(Any::to).collect();
    let all = state.all_devices(task.task_id, devices).await?;
    let device_info = Some(DeviceInfo { device: all.iter().map(Any::of).collect() });
    Ok(WaitForAllTasksResponse { leader_incarnation: state.device.incarnation, device_info })
}

/// Answers when there is an error.
async fn poll_for_error(state: Arc<WorkerState>) -> Result<Empty, Status> {
    state.take("").await.map(|_| Empty {})
}

fn task(task: Option<CoordinatedTask>) -> Result<CoordinatedTask, Status> {
    task.ok_or_else(|| Status::invalid_argument("a request of no task"))
}
