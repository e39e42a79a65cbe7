//! The services of a server: the eager service, and the part of the worker service that hands tensors over.

use super::{
    handoff::TensorHandoff,
    messages::{
        ContextRequest, CreateContextRequest, CreateContextResponse, EnqueueRequest,
        EnqueueResponse, KeepAliveResponse, RecvTensorRequest, RecvTensorResponse, UnreadMessage,
        UpdateContextRequest, UpdateContextResponse,
    },
    session::EagerSession,
};
use crate::{
    messages::{DeviceAttributes, Empty, GetStatusResponse},
    rpc::{Routes, RpcReply, refused, streaming, unary},
    status::status,
};
use ferroflow_format::convert::tensor_message;
use ferroflow_runtime::Context;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::{Status, body::Body, codegen::http};

/// Makes the context of a client.
pub(super) type NewContext = Arc<dyn Fn() -> Context + Send + Sync>;

/// The state of a server.
pub(super) struct ServerState {
    pub(super) device: DeviceAttributes,
    new_context: NewContext,
    handoff: Arc<TensorHandoff>,
    sessions: Mutex<HashMap<u64, OpenSession>>,
}

#[derive(Debug, Clone)]
struct OpenSession {
    session: Arc<EagerSession>,
    heard: Instant,
    /// The time that the client may be silent.
    patience: Duration,
}

/// No more clients than this are served at once.
const MOST_SESSIONS: usize = 1024;

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<server of {}>", self.device.name)
    }
}

impl ServerState {
    pub(super) fn new(device: DeviceAttributes, new_context: NewContext) -> ServerState {
        ServerState { device, new_context, handoff: Arc::default(), sessions: Mutex::default() }
    }

    fn create(&self, request: &CreateContextRequest) -> Result<CreateContextResponse, Status> {
        let CreateContextRequest { context_id, keep_alive_secs, .. } = request;
        // None is said by those that live as long as their connection.
        let seconds = u64::try_from(*keep_alive_secs).unwrap_or(0);
        let patience = Duration::from_secs(if seconds == 0 { 24 * 3600 } else { seconds });
        let handoff = self.handoff.clone();
        let context = (self.new_context)();
        let session = EagerSession::new(*context_id, &self.device.name, context, handoff);
        let session = Arc::new(session);
        let mut sessions = self.sessions.lock();
        sessions.retain(|id, open| {
            let lives = open.heard.elapsed() < open.patience;
            if !lives {
                self.handoff.forget(*id);
            }
            lives
        });
        if sessions.len() >= MOST_SESSIONS {
            let message = format!("{MOST_SESSIONS} clients are served already");
            return Err(Status::resource_exhausted(message));
        }
        sessions.insert(*context_id, OpenSession { session, heard: Instant::now(), patience });
        Ok(CreateContextResponse { device_attributes: vec![self.device.clone()] })
    }

    fn session(&self, id: u64) -> Result<Arc<EagerSession>, Status> {
        let mut sessions = self.sessions.lock();
        let open = sessions.get_mut(&id);
        let open = open.ok_or_else(|| Status::aborted(format!("there is no context {id:x}")))?;
        open.heard = Instant::now();
        Ok(open.session.clone())
    }

    fn close(&self, id: u64) {
        self.sessions.lock().remove(&id);
        self.handoff.forget(id);
    }

    /// Works on a queue, item by item. What fails ends it.
    async fn enqueue(self: Arc<Self>, request: EnqueueRequest) -> Result<EnqueueResponse, Status> {
        let session = self.session(request.context_id)?;
        let run = move || {
            let items = request.queue.into_iter().filter_map(|item| item.item);
            let queue_response = items.map(|item| session.run(item)).collect::<Result<_, _>>()?;
            Ok(EnqueueResponse { queue_response })
        };
        let ran = tokio::task::spawn_blocking(run).await;
        ran.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    async fn recv(
        self: Arc<Self>,
        request: RecvTensorRequest,
    ) -> Result<RecvTensorResponse, Status> {
        let (id, key) = (request.step_id as u64, &request.rendezvous_key);
        let lives = || self.sessions.lock().contains_key(&id);
        let tensor = self.handoff.take(id, key, lives).await?;
        let message = tensor_message(&tensor);
        let message = message.map_err(|error| status(error.code(), error.to_string()))?;
        Ok(RecvTensorResponse { tensor: Some(message) })
    }
}

/// Calls of ops and functions.
pub(super) struct EagerService;

/// Questions about a server's devices, and for tensors.
pub(super) struct TensorService;

impl Routes for EagerService {
    const NAME: &'static str = "tensorflow.eager.EagerService";
    type State = ServerState;

    fn route(state: Arc<ServerState>, method: &str, request: http::Request<Body>) -> RpcReply {
        match method {
            "CreateContext" => unary(request, move |request| async move { state.create(&request) }),
            "UpdateContext" => unary(request, move |request: UpdateContextRequest| async move {
                state.session(request.context_id)?;
                Ok(UpdateContextResponse { device_attributes: vec![state.device.clone()] })
            }),
            "Enqueue" => unary(request, move |request| state.enqueue(request)),
            "StreamingEnqueue" => streaming(request, move |request| state.clone().enqueue(request)),
            // Items have ended when they are answered.
            "WaitQueueDone" => unary(request, move |request: ContextRequest| async move {
                state.session(request.context_id).map(|_| UnreadMessage {})
            }),
            "KeepAlive" => unary(request, move |request: ContextRequest| async move {
                state.session(request.context_id).map(|_| KeepAliveResponse { context_view_id: 0 })
            }),
            "CloseContext" => unary(request, move |request: ContextRequest| async move {
                state.close(request.context_id);
                Ok(UnreadMessage {})
            }),
            other => refused("EagerService", other),
        }
    }
}

impl Routes for TensorService {
    const NAME: &'static str = "tensorflow.WorkerService";
    type State = ServerState;

    fn route(state: Arc<ServerState>, method: &str, request: http::Request<Body>) -> RpcReply {
        match method {
            "GetStatus" => unary(request, move |_: Empty| async move {
                Ok(GetStatusResponse { device_attributes: vec![state.device.clone()] })
            }),
            "RecvTensor" => unary(request, move |request| state.recv(request)),
            "MarkRecvFinished" | "Logging" | "CleanupAll" => {
                unary(request, |_: Empty| async { Ok(Empty {}) })
            }
            other => refused("WorkerService", other),
        }
    }
}
