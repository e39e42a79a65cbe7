//! Messages of TensorFlow's cluster protocol, by the numbers of their fields.
//!
//! The numbers are facts of `tensorflow/core/protobuf/worker.proto`, `transport_options.proto`,
//! `tensorflow/core/framework/device_attributes.proto` and `xla/tsl/protobuf/coordination_service.proto`
//! of TensorFlow 2.21. Fields that nothing here reads or writes are left out.

use bytes::{Buf, BufMut, Bytes};
use ferroflow_format::proto::TensorShapeProto;
use prost::{
    DecodeError, Message, Name,
    encoding::{self, DecodeContext, WireType},
};

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
    /// Tells the members of a group which of them are of this crate.
    #[prost(string, tag = "7")]
    pub(crate) physical_device_desc: String,
}

impl DeviceAttributes {
    /// The attributes of a CPU of this process, which `random` tells from those of other processes.
    pub(crate) fn cpu(name: String, random: u64) -> DeviceAttributes {
        DeviceAttributes {
            name,
            device_type: "CPU".into(),
            memory_limit: 1 << 28,
            // Positive as a signed number too, as TensorFlow reads it in keys.
            incarnation: random >> 1 | 1,
            physical_device_desc: OURS.into(),
        }
    }
}

/// The description of devices of this crate.
pub(crate) const OURS: &str = "ferroflow";

impl Name for DeviceAttributes {
    const NAME: &'static str = "DeviceAttributes";
    const PACKAGE: &'static str = "tensorflow";

    fn type_url() -> String {
        format!("type.googleapis.com/{}", Self::full_name())
    }
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
        let type_url = M::type_url();
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
    /// The call that the buffer is of, as the member that asks sees it. TensorFlow knows no such field: it
    /// neither sends it nor minds it.
    #[prost(string, tag = "1000")]
    pub(crate) signature: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecvBufResponse {
    #[prost(int64, tag = "2")]
    pub(crate) num_bytes: i64,
    #[prost(message, optional, tag = "4")]
    pub(crate) transport_options: Option<Any>,
}

/// A [`RecvBufResponse`] to be sent. Its bytes are copied once, where derived messages copy them for each of
/// the three messages that are in each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SentBuffer(pub(crate) Bytes);

impl SentBuffer {
    /// The lengths of the message in [`Any`], and of [`Any`] itself.
    fn lengths(&self) -> (usize, usize) {
        let extra = field_len(self.0.len());
        (extra, field_len(RecvBufRespExtra::type_url().len()) + field_len(extra))
    }
}

/// The length of a field of bytes with a small number.
fn field_len(bytes: usize) -> usize {
    1 + encoding::encoded_len_varint(bytes as u64) + bytes
}

fn begin_bytes(tag: u32, len: usize, buffer: &mut impl BufMut) {
    encoding::encode_key(tag, WireType::LengthDelimited, buffer);
    encoding::encode_varint(len as u64, buffer);
}

impl Message for SentBuffer {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        let (extra, any) = self.lengths();
        if !self.0.is_empty() {
            encoding::int64::encode(2, &(self.0.len() as i64), buffer);
        }
        begin_bytes(4, any, buffer);
        encoding::string::encode(1, &RecvBufRespExtra::type_url(), buffer);
        begin_bytes(2, extra, buffer);
        begin_bytes(1, self.0.len(), buffer);
        buffer.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        // It is not read anywhere.
        encoding::skip_field(wire_type, tag, buffer, context)
    }

    fn encoded_len(&self) -> usize {
        // As with all numbers, 0 is not written.
        let number = match self.0.len() {
            0 => 0,
            len => encoding::int64::encoded_len(2, &(len as i64)),
        };
        number + field_len(self.lengths().1)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RecvBufRespExtra {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(crate) tensor_content: Vec<Bytes>,
}

impl Name for RecvBufRespExtra {
    const NAME: &'static str = "RecvBufRespExtra";
    const PACKAGE: &'static str = "tensorflow";

    fn type_url() -> String {
        format!("type.googleapis.com/{}", Self::full_name())
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sent_buffers_are_what_derived_messages_are() {
        for len in [0, 1, 127, 128, 70_000] {
            let content = Bytes::from(vec![7u8; len]);
            let extra = RecvBufRespExtra { tensor_content: vec![content.clone()] };
            let num_bytes = len as i64;
            let derived = RecvBufResponse { num_bytes, transport_options: Some(Any::of(&extra)) };
            let sent = SentBuffer(content).encode_to_vec();
            assert_eq!(sent.len(), derived.encoded_len());
            let read = RecvBufResponse::decode(&*sent).unwrap();
            let options = read.transport_options.clone().unwrap();
            assert_eq!(options.to::<RecvBufRespExtra>().unwrap(), extra);
            assert_eq!(read, derived);
        }
    }
}
