//! Calls of other tasks.

use crate::{
    config::JOB,
    error::{Error, Result},
    rpc::{LARGEST, WINDOWS},
    status::code,
};
use ferroflow_ir::Code;
use prost::Message;
use std::time::{Duration, Instant};
use tonic::{
    Request, Status,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

/// Another task of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    name: String,
    address: String,
    channel: Channel,
}

/// The name of a task in messages.
pub(crate) fn task_name(index: usize) -> String {
    format!("/job:{JOB}/task:{index}")
}

impl Peer {
    /// The task of this number, which is connected to when it is first called.
    ///
    /// # Errors
    ///
    /// When the address is none.
    pub(crate) fn new(index: usize, address: &str) -> Result<Peer> {
        Peer::named(task_name(index), address)
    }

    /// As [`new`](Peer::new), the task of this name.
    ///
    /// # Errors
    ///
    /// As [`new`](Peer::new).
    pub(crate) fn named(name: String, address: &str) -> Result<Peer> {
        let wrong = |error: tonic::transport::Error| Error::Environment {
            variable: "cluster",
            problem: format!("`{address}` of {name}: {error}"),
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(wrong)?;
        let channel = endpoint
            .connect_timeout(Duration::from_secs(2))
            .tcp_nodelay(true)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .connect_lazy();
        Ok(Peer { name, address: address.into(), channel })
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Calls a method, such as `/tensorflow.WorkerService/RecvBuf`.
    ///
    /// # Errors
    ///
    /// [`Error::Task`] when the task does not answer within `timeout`, or refuses.
    pub(crate) async fn call<Q, R>(
        &self,
        method: &'static str,
        request: Q,
        timeout: Duration,
    ) -> Result<R>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let called = tokio::time::timeout(timeout, self.unary(method, request)).await;
        let late = || Status::deadline_exceeded(format!("nothing within {timeout:?}"));
        called.unwrap_or_else(|_| Err(late())).map_err(|status| self.failed(method, &status))
    }

    /// As [`call`](Peer::call); a task that does not listen yet is called again.
    ///
    /// # Errors
    ///
    /// As [`call`](Peer::call).
    pub(crate) async fn call_when_ready<Q, R>(
        &self,
        method: &'static str,
        request: Q,
        timeout: Duration,
    ) -> Result<R>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let begun = Instant::now();
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            match self.call(method, request.clone(), left).await {
                Err(Error::Task { code: Code::Unavailable, .. }) if begun.elapsed() < timeout => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                answered => return answered,
            }
        }
    }

    async fn unary<Q, R>(&self, method: &'static str, request: Q) -> Result<R, Status>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut client = Grpc::new(self.channel.clone())
            .max_decoding_message_size(LARGEST)
            .max_encoding_message_size(LARGEST);
        let not_ready = |error: tonic::transport::Error| Status::unavailable(error.to_string());
        client.ready().await.map_err(not_ready)?;
        let codec = ProstCodec::<Q, R>::default();
        let path = PathAndQuery::from_static(method);
        Ok(client.unary(Request::new(request), path, codec).await?.into_inner())
    }

    /// The error of a call whose answer was lost in this process.
    pub(crate) fn lost(&self, call: &'static str, reason: &str) -> Error {
        let (task, address) = (self.name.clone(), self.address.clone());
        Error::Task { task, address, call, reason: reason.into(), code: Code::Internal }
    }

    fn failed(&self, method: &'static str, status: &Status) -> Error {
        Error::Task {
            task: self.name.clone(),
            address: self.address.clone(),
            call: method,
            reason: format!("{:?}: {}", status.code(), status.message()),
            code: code(status.code()),
        }
    }
}
