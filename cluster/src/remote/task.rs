//! The connection to a process that computes for this one.

use super::{
    device::RemoteDevice,
    handoff::rendezvous_key,
    messages::{
        ClusterDef, ContextRequest, CreateContextRequest, CreateContextResponse, EnqueueRequest,
        EnqueueResponse, JobDef, KeepAliveResponse, QueueItem, QueueItemKind, RecvTensorRequest,
        RecvTensorResponse, RemoteInput, RemoteInputKind, RemoteOperation, RemoteTensorHandle,
        SendTensorOp, ServerDef, UnreadMessage,
    },
};
use crate::{client::Peer, error::Result, messages::DeviceAttributes, rpc::network};
use ferroflow_format::{
    convert::{tensor, tensor_message},
    proto::{AttrValue, VersionDef, attr_value::Value},
};
use ferroflow_ir::{Code, DType, HostTensor, Limits};
use ferroflow_runtime::Context;
use parking_lot::Mutex;
use prost::Message;
use std::{
    collections::HashMap,
    fmt,
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// Longest time of a call: of a function, say.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The time that a server keeps what it holds for a silent client, and that between signs of life.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(600), Duration::from_secs(60));

/// The name of this process's device in the names of tensors on their way.
const LOCAL: &str = "/job:localhost/replica:0/task:0/device:CPU:0";

/// The release of TensorFlow's graphs that this crate writes, and the least that reads them.
const GRAPH_VERSION: i32 = 2348;

/// The name of a process that is connected to, and the time it may take.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The job.
    pub job: String,
    /// The number of the task in the job.
    pub task: u32,
    /// Longest wait until the process answers, which may have to start.
    pub timeout: Duration,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions { job: "worker".into(), task: 0, timeout: Duration::from_secs(30) }
    }
}

/// Connects a context with a process, a [`WorkerServer`](super::WorkerServer) or one of TensorFlow
/// (`tf.distribute.Server`). Its CPUs become devices of the context, whose names are returned.
///
/// # Errors
///
/// [`Error::Task`](crate::Error::Task) when the process does not answer, or refuses.
pub fn connect_to_host(
    context: &Context,
    address: &str,
    options: &ConnectOptions,
) -> Result<Vec<String>> {
    let task = RemoteTask::connect(address, options, context.limits())?;
    let is_cpu = |device: &&DeviceAttributes| device.device_type == "CPU";
    let devices: Vec<DeviceAttributes> = task.devices.iter().filter(is_cpu).cloned().collect();
    let names = devices.iter().map(|device| device.name.clone()).collect();
    for device in devices {
        context.add_device(Arc::new(RemoteDevice::new(task.clone(), device)));
    }
    Ok(names)
}

/// A process that computes for this one.
pub(super) struct RemoteTask {
    runtime: Runtime,
    peer: Peer,
    context_id: u64,
    devices: Vec<DeviceAttributes>,
    limits: Limits,
    next_op: AtomicI64,
    /// Tensors that are needed no more.
    released: Mutex<Vec<RemoteTensorHandle>>,
}

impl fmt::Debug for RemoteTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<connection to {}>", self.peer.name())
    }
}

impl RemoteTask {
    fn connect(
        address: &str,
        options: &ConnectOptions,
        limits: &Limits,
    ) -> Result<Arc<RemoteTask>> {
        let ConnectOptions { job, task, timeout } = options;
        let runtime = network(1)?;
        let guard = runtime.enter();
        let peer = Peer::named(format!("/job:{job}/task:{task}"), address)?;
        drop(guard);
        let random = RandomState::new().hash_one((address, std::process::id(), Instant::now()));
        let tasks = HashMap::from([(*task as i32, address.to_string())]);
        let local = HashMap::from([(0, "127.0.0.1:1".to_string())]);
        let jobs = [(job.as_str(), tasks), ("localhost", local)];
        let job_of = |(name, tasks): (&str, _)| JobDef { name: name.into(), tasks };
        let request = CreateContextRequest {
            server_def: Some(ServerDef {
                cluster: Some(ClusterDef { job: jobs.map(job_of).to_vec() }),
                job_name: job.clone(),
                task_index: *task as i32,
                protocol: "grpc".into(),
            }),
            keep_alive_secs: KEEP_ALIVE.0.as_secs() as i64,
            version_def: Some(VersionDef { producer: GRAPH_VERSION, ..VersionDef::default() }),
            // Positive as a signed number too: it is the number of a step.
            context_id: random >> 2 | 1,
            context_view_id: 0,
        };
        let (context_id, released) = (request.context_id, Mutex::default());
        let (next_op, limits) = (AtomicI64::new(1), limits.clone());
        let mut task = RemoteTask {
            runtime,
            peer,
            context_id,
            devices: Vec::new(),
            limits,
            next_op,
            released,
        };
        let method = "/tensorflow.eager.EagerService/CreateContext";
        let peer = task.peer.clone();
        let timeout = *timeout;
        let ready = async move { peer.call_when_ready(method, request, timeout).await };
        let response: CreateContextResponse = task.wait(method, ready)?;
        task.devices = response.device_attributes;
        task.runtime.spawn(keep_alive(task.peer.clone(), context_id));
        Ok(Arc::new(task))
    }

    /// The name of the process in messages.
    pub(super) fn name(&self) -> &str {
        self.peer.name()
    }

    /// Calls a method. This thread waits, be it one of another runtime of tasks or none.
    fn call<Q, R>(&self, method: &'static str, request: Q, timeout: Duration) -> Result<R>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let peer = self.peer.clone();
        self.wait(method, async move { peer.call(method, request, timeout).await })
    }

    fn wait<R: Send + 'static>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<R>> + Send + 'static,
    ) -> Result<R> {
        let (send, answer) = mpsc::channel();
        self.runtime.spawn(async move {
            // Nobody waits any more where this fails.
            let _ = send.send(call.await);
        });
        answer.recv().unwrap_or_else(|error| Err(self.peer.lost(method, &error.to_string())))
    }

    fn enqueue(&self, item: QueueItemKind) -> Result<()> {
        let released = std::mem::take(&mut *self.released.lock());
        let items = released.into_iter().map(QueueItemKind::Decref).chain([item]);
        let queue = items.map(|item| QueueItem { item: Some(item) }).collect();
        let request = EnqueueRequest { context_id: self.context_id, queue };
        let method = "/tensorflow.eager.EagerService/Enqueue";
        self.call::<_, EnqueueResponse>(method, request, LONGEST).map(drop)
    }

    /// The handle of output `output` of an op.
    fn handle(&self, device: &str, op: i64, output: usize, dtype: DType) -> RemoteTensorHandle {
        RemoteTensorHandle {
            op_id: op,
            output_num: output as i32,
            device: device.into(),
            op_device: device.into(),
            dtype: dtype.number(),
        }
    }

    /// Sends a tensor to a device.
    pub(super) fn send(&self, device: &str, value: &HostTensor) -> Result<RemoteTensorHandle> {
        let op_id = self.next_op.fetch_add(1, Ordering::Relaxed);
        let message = self.message(value)?;
        let (tensors, device_name) = (vec![message], device.to_string());
        self.enqueue(QueueItemKind::SendTensor(SendTensorOp { op_id, tensors, device_name }))?;
        Ok(self.handle(device, op_id, 0, value.dtype()))
    }

    fn message(&self, value: &HostTensor) -> Result<ferroflow_format::proto::TensorProto> {
        tensor_message(value).map_err(|error| self.peer.lost("SendTensor", &error.to_string()))
    }

    /// Runs an op on a device; its outputs.
    pub(super) fn operation(
        &self,
        device: &str,
        op: &str,
        attrs: HashMap<String, AttrValue>,
        inputs: Vec<RemoteInputKind>,
        outputs: &[DType],
    ) -> Result<Vec<RemoteTensorHandle>> {
        let id = self.next_op.fetch_add(1, Ordering::Relaxed);
        let op_inputs = inputs.into_iter().map(|input| RemoteInput { item: Some(input) }).collect();
        let (name, on) = (op.to_string(), device.to_string());
        let operation = RemoteOperation {
            id,
            name,
            attrs,
            device: on,
            op_inputs,
            ..RemoteOperation::default()
        };
        self.enqueue(QueueItemKind::Operation(operation))?;
        let handle = |(index, dtype): (usize, &DType)| self.handle(device, id, index, *dtype);
        Ok(outputs.iter().enumerate().map(handle).collect())
    }

    /// An input that travels with the call.
    pub(super) fn inline(&self, value: &HostTensor) -> Result<RemoteInputKind> {
        Ok(RemoteInputKind::Tensor(Box::new(self.message(value)?)))
    }

    /// The value of a tensor.
    pub(super) fn read(&self, handle: &RemoteTensorHandle) -> Result<HostTensor> {
        let device = self.devices.iter().find(|device| device.name == handle.device);
        let incarnation = device.map_or(0, |device| device.incarnation);
        let name = format!("{}:{}", handle.op_id, handle.output_num);
        let unique = self.next_op.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}/{unique}");
        let text = |text: &str| Value::S(text.as_bytes().to_vec().into());
        let attrs = [
            ("T", Value::Type(handle.dtype)),
            ("tensor_name", text(&name)),
            ("send_device", text(&handle.device)),
            ("send_device_incarnation", Value::I(incarnation as i64)),
            ("recv_device", text(LOCAL)),
            ("client_terminated", Value::B(false)),
        ];
        let attr = |(name, value): (&str, _)| (name.to_string(), AttrValue { value: Some(value) });
        let inputs = vec![RemoteInputKind::Handle(handle.clone())];
        let attrs = attrs.into_iter().map(attr).collect();
        self.operation(&handle.device, "_Send", attrs, inputs, &[])?;
        let request = RecvTensorRequest {
            step_id: self.context_id as i64,
            rendezvous_key: rendezvous_key(&handle.device, incarnation, LOCAL, &name),
            request_id: (self.context_id >> 1) as i64 ^ unique,
        };
        let method = "/tensorflow.WorkerService/RecvTensor";
        let response: RecvTensorResponse = self.call(method, request, LONGEST)?;
        let message = response.tensor.unwrap_or_default();
        tensor(&message, &self.limits).map_err(|error| self.peer.lost(method, &error.to_string()))
    }

    /// Notes that a tensor is needed no more; the next call says so.
    pub(super) fn release(&self, handle: RemoteTensorHandle) {
        self.released.lock().push(handle);
    }
}

impl Drop for RemoteTask {
    fn drop(&mut self) {
        let request = ContextRequest { context_id: self.context_id };
        let method = "/tensorflow.eager.EagerService/CloseContext";
        // A server that is gone holds nothing any more.
        let _ = self.call::<_, UnreadMessage>(method, request, Duration::from_secs(2));
    }
}

/// Tells the server that this client lives, for as long as it does.
async fn keep_alive(peer: Peer, context_id: u64) {
    let method = "/tensorflow.eager.EagerService/KeepAlive";
    loop {
        tokio::time::sleep(KEEP_ALIVE.1).await;
        let request = ContextRequest { context_id };
        let beat = peer.call::<_, KeepAliveResponse>(method, request, KEEP_ALIVE.1).await;
        if beat.is_err_and(|error| error.code() == Code::Aborted) {
            return;
        }
    }
}
