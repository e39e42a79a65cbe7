//! Messages of TensorFlow's cluster protocol, by the numbers of their fields.
//!
//! The numbers are facts of `tensorflow/core/protobuf/worker.proto`, `transport_options.proto`,
//! `tensorflow/core/framework/device_attributes.proto` and `xla/tsl/protobuf/coordination_service.proto`
//! of TensorFlow 2.21. Fields that nothing here reads or writes are left out.

use bytes::Bytes;
use ferroflow_format::proto::TensorShapeProto;
use prost::{Message, Name};

/// TensorFlow's number of broadcasts among its kinds of collectives (`CollectiveType`).
pub(crate) const BROADCAST: i32 = 1;

/// A device of a task.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceAttributes {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) device_type: String,
    #[prost(int64, tag = "4")]
    pub(crate) memory_limit: i64,
    #[prost(fixed64, tag = "6")]
    pub(crate) incarnation: u64,
}

impl Name for DeviceAttributes {
    const NAME: &'static str = "DeviceAttributes";
    const PACKAGE: &'static str = "tensorflow";
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

impl Any {
    pub(crate) fn of<M: Message + Name>(message: &M) -> Any {
        let type_url = format!("type.googleapis.com/{}", M::full_name());
        Any { type_url, value: message.encode_to_vec().into() }
    }

    /// The message in it, if it is one of this type.
    pub(crate) fn to<M: Message + Name + Default>(&self) -> Option<M> {
        let is_of = self.type_url.rsplit('/').next() == Some(M::full_name().as_str());
        is_of.then(|| M::decode(self.value.clone()).ok()).flatten()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetStatusResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) device_attributes: Vec<DeviceAttributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecvBufRequest {
    #[prost(int64, tag = "1")]
    pub(crate) step_id: i64,
    #[prost(string, tag = "2")]
    pub(crate) buf_rendezvous_key: String,
    #[prost(int64, tag = "3")]
    pub(crate) num_bytes: i64,
    #[prost(string, tag = "8")]
    pub(crate) src_device: String,
    #[prost(string, tag = "9")]
    pub(crate) dst_device: String,
    #[prost(int64, tag = "10")]
    pub(crate) request_id: i64,
    #[prost(uint64, tag = "11")]
    pub(crate) src_incarnation: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecvBufResponse {
    #[prost(int64, tag = "2")]
    pub(crate) num_bytes: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) transport_options: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecvBufRespExtra {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) tensor_content: Vec<Bytes>,
}

impl Name for RecvBufRespExtra {
    const NAME: &'static str = "RecvBufRespExtra";
    const PACKAGE: &'static str = "tensorflow";
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompleteGroupRequest {
    #[prost(int32, tag = "1")]
    pub(crate) group_key: i32,
    #[prost(int32, tag = "2")]
    pub(crate) group_size: i32,
    #[prost(string, tag = "3")]
    pub(crate) device_type: String,
    #[prost(int32, tag = "5")]
    pub(crate) collective_type: i32,
    #[prost(message, optional, tag = "6")]
    pub(crate) device_attributes: Option<DeviceAttributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompleteGroupResponse {
    #[prost(int32, tag = "1")]
    pub(crate) group_key: i32,
    #[prost(int32, tag = "2")]
    pub(crate) group_size: i32,
    #[prost(string, tag = "3")]
    pub(crate) device_type: String,
    #[prost(int32, tag = "4")]
    pub(crate) num_tasks: i32,
    #[prost(message, repeated, tag = "8")]
    pub(crate) device_attributes: Vec<DeviceAttributes>,
}

/// A task of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(crate) struct CoordinatedTask {
    #[prost(string, tag = "1")]
    pub(crate) job_name: String,
    #[prost(int32, tag = "2")]
    pub(crate) task_id: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeviceInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) device: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegisterTaskRequest {
    #[prost(fixed64, tag = "3")]
    pub(crate) incarnation: u64,
    #[prost(message, optional, tag = "5")]
    pub(crate) source_task: Option<CoordinatedTask>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegisterTaskResponse {
    #[prost(fixed64, tag = "1")]
    pub(crate) leader_incarnation: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeartbeatRequest {
    #[prost(fixed64, tag = "3")]
    pub(crate) incarnation: u64,
    #[prost(message, optional, tag = "4")]
    pub(crate) source_task: Option<CoordinatedTask>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeartbeatResponse {
    #[prost(fixed64, tag = "1")]
    pub(crate) leader_incarnation: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WaitForAllTasksRequest {
    #[prost(message, optional, tag = "5")]
    pub(crate) source_task: Option<CoordinatedTask>,
    #[prost(message, optional, tag = "6")]
    pub(crate) device_info: Option<DeviceInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WaitForAllTasksResponse {
    #[prost(fixed64, tag = "1")]
    pub(crate) leader_incarnation: u64,
    #[prost(message, optional, tag = "4")]
    pub(crate) device_info: Option<DeviceInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ShutdownTaskRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) source_task: Option<CoordinatedTask>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompleteInstanceRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) r#type: i32,
    #[prost(int32, tag = "3")]
    pub(crate) data_type: i32,
    #[prost(message, optional, tag = "4")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "5")]
    pub(crate) group_key: i32,
    #[prost(int32, tag = "6")]
    pub(crate) group_size: i32,
    #[prost(int32, tag = "7")]
    pub(crate) instance_key: i32,
    #[prost(string, tag = "8")]
    pub(crate) device_type: String,
    #[prost(string, tag = "10")]
    pub(crate) device: String,
    #[prost(bool, tag = "11")]
    pub(crate) is_source: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompleteInstanceResponse {
    #[prost(int32, tag = "1")]
    pub(crate) instance_key: i32,
    #[prost(int32, tag = "2")]
    pub(crate) source_rank: i32,
}
