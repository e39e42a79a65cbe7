//! Messages of the eager service, by the numbers of their fields.
//!
//! The numbers are facts of `eager_service.proto`, `remote_tensor_handle.proto`, `tensorflow_server.proto`,
//! `cluster.proto` and `worker.proto` of TensorFlow 2.21. Fields that nothing here reads or writes are left out.

use crate::messages::DeviceAttributes;
use ferroflow_format::proto::{
    AttrValue, FunctionDef, FunctionDefLibrary, TensorProto, TensorShapeProto, VersionDef,
};
use prost::{Message, Oneof};
use std::collections::HashMap;

/// A tensor on the side of a server.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RemoteTensorHandle {
    #[prost(int64, tag = "1")]
    pub(super) op_id: i64,
    #[prost(int32, tag = "2")]
    pub(super) output_num: i32,
    #[prost(string, tag = "3")]
    pub(super) device: String,
    #[prost(string, tag = "4")]
    pub(super) op_device: String,
    #[prost(int32, tag = "5")]
    pub(super) dtype: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RemoteInput {
    #[prost(oneof = "RemoteInputKind", tags = "1, 2")]
    pub(super) item: Option<RemoteInputKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum RemoteInputKind {
    #[prost(message, tag = "1")]
    Handle(RemoteTensorHandle),
    #[prost(message, boxed, tag = "2")]
    Tensor(Box<TensorProto>),
}

/// A call of an op or of a function.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RemoteOperation {
    #[prost(int64, tag = "1")]
    pub(super) id: i64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(map = "string, message", tag = "5")]
    pub(super) attrs: HashMap<String, AttrValue>,
    #[prost(string, tag = "6")]
    pub(super) device: String,
    #[prost(bool, tag = "7")]
    pub(super) is_component_function: bool,
    #[prost(bool, tag = "9")]
    pub(super) is_function: bool,
    #[prost(message, repeated, tag = "10")]
    pub(super) op_inputs: Vec<RemoteInput>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SendTensorOp {
    #[prost(int64, tag = "1")]
    pub(super) op_id: i64,
    #[prost(message, repeated, tag = "2")]
    pub(super) tensors: Vec<TensorProto>,
    #[prost(string, tag = "3")]
    pub(super) device_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RegisterFunctionOp {
    #[prost(message, optional, tag = "1")]
    pub(super) function_def: Option<FunctionDef>,
    #[prost(message, optional, tag = "3")]
    pub(super) library: Option<FunctionDefLibrary>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RemoveFunctionOp {
    #[prost(string, tag = "1")]
    pub(super) function_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueueItem {
    #[prost(oneof = "QueueItemKind", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    pub(super) item: Option<QueueItemKind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum QueueItemKind {
    #[prost(message, tag = "1")]
    Decref(RemoteTensorHandle),
    #[prost(message, tag = "2")]
    Operation(RemoteOperation),
    #[prost(message, tag = "3")]
    SendTensor(SendTensorOp),
    #[prost(message, boxed, tag = "4")]
    RegisterFunction(Box<RegisterFunctionOp>),
    #[prost(message, tag = "5")]
    CleanupFunction(UnreadMessage),
    #[prost(message, tag = "6")]
    SyncExecutor(UnreadMessage),
    #[prost(message, tag = "7")]
    SendPackedHandle(UnreadMessage),
    #[prost(message, tag = "8")]
    RemoveFunction(RemoveFunctionOp),
}

/// A message of which nothing is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UnreadMessage {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueueResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) shape: Vec<TensorShapeProto>,
    #[prost(string, repeated, tag = "3")]
    pub(super) device: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnqueueRequest {
    #[prost(fixed64, tag = "1")]
    pub(super) context_id: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) queue: Vec<QueueItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EnqueueResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) queue_response: Vec<QueueResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct JobDef {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(map = "int32, string", tag = "2")]
    pub(super) tasks: HashMap<i32, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClusterDef {
    #[prost(message, repeated, tag = "1")]
    pub(super) job: Vec<JobDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerDef {
    #[prost(message, optional, tag = "1")]
    pub(super) cluster: Option<ClusterDef>,
    #[prost(string, tag = "2")]
    pub(super) job_name: String,
    #[prost(int32, tag = "3")]
    pub(super) task_index: i32,
    #[prost(string, tag = "5")]
    pub(super) protocol: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateContextRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) server_def: Option<ServerDef>,
    #[prost(int64, tag = "3")]
    pub(super) keep_alive_secs: i64,
    #[prost(message, optional, tag = "4")]
    pub(super) version_def: Option<VersionDef>,
    #[prost(fixed64, tag = "7")]
    pub(super) context_id: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) context_view_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateContextResponse {
    #[prost(message, repeated, tag = "2")]
    pub(super) device_attributes: Vec<DeviceAttributes>,
}

/// The beginning of messages about a context: updates, signs of life, and its end.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ContextRequest {
    #[prost(fixed64, tag = "1")]
    pub(super) context_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateContextRequest {
    #[prost(fixed64, tag = "3")]
    pub(super) context_id: u64,
    #[prost(fixed64, tag = "4")]
    pub(super) context_view_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct UpdateContextResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) device_attributes: Vec<DeviceAttributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepAliveResponse {
    #[prost(fixed64, tag = "1")]
    pub(super) context_view_id: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RecvTensorRequest {
    #[prost(int64, tag = "1")]
    pub(super) step_id: i64,
    #[prost(string, tag = "2")]
    pub(super) rendezvous_key: String,
    #[prost(int64, tag = "7")]
    pub(super) request_id: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RecvTensorResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) tensor: Option<TensorProto>,
}
