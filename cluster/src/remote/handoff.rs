//! Tensors on their way to a client: an op `_Send` leaves one, `RecvTensor` takes it.

use ferroflow_ir::HostTensor;
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::sync::Notify;
use tonic::Status;

/// Tensors by the context and the key that both sides derive from the call.
#[derive(Debug, Default)]
pub(super) struct TensorHandoff {
    waiting: Mutex<HashMap<(u64, String), HostTensor>>,
    changed: Notify,
}

/// The key of a tensor that goes from one device to another, as TensorFlow's rendezvous makes it.
pub(super) fn rendezvous_key(from: &str, incarnation: u64, to: &str, name: &str) -> String {
    format!("{from};{incarnation:016x};{to};{name};0:0")
}

impl TensorHandoff {
    pub(super) fn put(&self, context: u64, key: String, tensor: HostTensor) {
        self.waiting.lock().insert((context, key), tensor);
        self.changed.notify_waiters();
    }

    /// Waits for a tensor. Fails when `lives` does not hold any more.
    pub(super) async fn take(
        &self,
        context: u64,
        key: &str,
        lives: impl Fn() -> bool,
    ) -> Result<HostTensor, Status> {
        let key = (context, key.to_string());
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(tensor) = self.waiting.lock().remove(&key) {
                return Ok(tensor);
            }
            if !lives() {
                return Err(Status::aborted("the context of the tensor has ended"));
            }
            changed.await;
        }
    }

    /// Forgets what a context has left.
    pub(super) fn forget(&self, context: u64) {
        self.waiting.lock().retain(|(of, _), _| *of != context);
        self.changed.notify_waiters();
    }
}
