//! Buffers of collectives: what a member puts where another one fetches it.
//!
//! Both sides derive the key of a buffer from the call. Members of this crate also say in words which call
//! they take it to be of, so that programs that differ are told.

use crate::{
    engine::LONGEST,
    error::Result as ClusterResult,
    group::ClusterGroup,
    messages::{RecvBufRequest, RecvBufRespExtra, RecvBufResponse},
    state::CallBuffer,
};
use bytes::Bytes;
use ferroflow_ir::{DType, HostTensor, PartialShape, Shape};
use ferroflow_runtime::{
    Result,
    collective::{CollectiveCall, CollectiveError, InstanceKey},
};
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;

/// The elements of a tensor as bytes.
struct TensorBytes(HostTensor);

impl AsRef<[u8]> for TensorBytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// The names by which members meet in a call.
pub(crate) struct CallNames {
    /// The beginning of the keys of its buffers.
    pub(crate) prefix: String,
    /// The call in words: members that call something else under the same keys are told.
    pub(crate) signature: String,
}

/// A buffer of another member that is on its way.
pub(crate) struct Fetch {
    answer: JoinHandle<ClusterResult<RecvBufResponse>>,
    from: usize,
    bytes: usize,
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

impl ClusterGroup {
    /// The names of a call, `what` with a tensor of this type.
    pub(crate) fn names(
        &self,
        call: &CollectiveCall<'_>,
        what: &str,
        dtype: DType,
        shape: &PartialShape,
    ) -> CallNames {
        let prefix = match &call.key {
            InstanceKey::Number(number) => format!("{}:{number}:0:0", self.name),
            InstanceKey::Name(name) => format!("{}:{name}:0:0", self.name),
        };
        CallNames { prefix, signature: format!("{what} of {dtype}{shape}") }
    }

    /// Puts a tensor where another member fetches it.
    pub(crate) fn put(&self, names: &CallNames, key: String, tensor: &HostTensor) {
        // It shares the memory of the tensor, which is copied before it is written to.
        let bytes = Bytes::from_owner(TensorBytes(tensor.clone()));
        self.shared.state.put(key, CallBuffer { bytes, signature: names.signature.clone() });
    }

    /// Asks another member for a buffer.
    pub(crate) fn fetch(
        &self,
        names: &CallNames,
        from: usize,
        key: String,
        bytes: usize,
    ) -> Result<Fetch> {
        let device = &self.members[from];
        let peer = self.shared.member(device)?.clone();
        let request = RecvBufRequest {
            step_id: 0,
            buf_rendezvous_key: key,
            num_bytes: bytes as i64,
            src_device: device.name.clone(),
            dst_device: self.shared.state.device.name.clone(),
            request_id: self.shared.requests.fetch_add(1, Ordering::Relaxed),
            src_incarnation: device.incarnation,
            signature: names.signature.clone(),
        };
        let method = "/tensorflow.WorkerService/RecvBuf";
        let call = async move { peer.call(method, request, LONGEST).await };
        Ok(Fetch { answer: self.shared.runtime.spawn(call), from, bytes })
    }

    /// Waits for a buffer.
    pub(crate) fn fetched(&self, call: &CollectiveCall<'_>, mut fetch: Fetch) -> Result<Bytes> {
        let peer = self.shared.member(&self.members[fetch.from])?;
        let missing = || vec![peer.name().to_string()];
        let answer = async {
            let answer = (&mut fetch.answer).await;
            answer.unwrap_or_else(|error| Err(peer.lost("RecvBuf", &error.to_string())))
        };
        let response = self.shared.wait(call, self.key, &missing, answer)?;
        let extra: Option<RecvBufRespExtra> =
            response.transport_options.and_then(|options| options.to());
        let mut content = extra.map(|extra| extra.tensor_content).unwrap_or_default();
        // Long buffers come in pieces.
        let content = if content.len() == 1 { content.remove(0) } else { content.concat().into() };
        if content.len() == fetch.bytes {
            return Ok(content);
        }
        let expected = format!("{} bytes", fetch.bytes);
        let found = format!("{} bytes", content.len());
        let (call, member) = (call.name(self.key), peer.name().to_string());
        Err(CollectiveError::Mismatch { call, member, expected, found }.into())
    }

    /// As [`fetched`](Self::fetched), a tensor.
    pub(crate) fn fetched_tensor(
        &self,
        call: &CollectiveCall<'_>,
        fetch: Fetch,
        dtype: DType,
        shape: &Shape,
    ) -> Result<HostTensor> {
        let bytes = self.fetched(call, fetch)?;
        Ok(HostTensor::from_bytes(dtype, shape.clone(), &bytes)?)
    }
}
