//! First values that all processes of a strategy agree on: those of the first process.

use crate::{context, error::Result};
use ferroflow_ir::budget;
use ferroflow_runtime::{
    EagerTensor,
    collective::{Broadcast, CollectiveCall, Engine, InstanceKey, Replicas, WORLD},
};
use std::{cell::RefCell, sync::Arc};

thread_local! {
    /// The replicas of the strategies whose scopes this thread is in; the innermost is last.
    static SCOPES: RefCell<Vec<Arc<Replicas>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `body` in the scope of replicas.
pub(super) fn within<R>(replicas: &Arc<Replicas>, body: impl FnOnce() -> R) -> R {
    SCOPES.with(|scopes| scopes.borrow_mut().push(replicas.clone()));
    let _left = Left;
    body()
}

struct Left;

impl Drop for Left {
    fn drop(&mut self) {
        SCOPES.with(|scopes| scopes.borrow_mut().pop());
    }
}

/// The first value of a variable that is made with `value` now: that of the first process, in the scope of
/// a strategy of several.
pub(crate) fn agreed(value: EagerTensor) -> Result<EagerTensor> {
    let replicas = SCOPES.with(|scopes| scopes.borrow().last().cloned());
    let engine = replicas.as_ref().and_then(|replicas| replicas.engine());
    match (&replicas, engine) {
        (Some(replicas), Some(engine)) if engine.size() > 1 => {
            of_first(replicas, &**engine, &value)
        }
        _ => Ok(value),
    }
}

fn of_first(replicas: &Replicas, engine: &dyn Engine, value: &EagerTensor) -> Result<EagerTensor> {
    let context = context::context();
    let key = InstanceKey::Number(replicas.take_key());
    let check = || Ok(budget::check()?);
    let call = CollectiveCall::new(&context, "the first value of a variable", key);
    let call = CollectiveCall { check: &check, ..call };
    let value = value.host()?.clone();
    let sent = match engine.rank() {
        0 => Broadcast::Send(value),
        _ => Broadcast::Receive(value.dtype(), value.shape().into()),
    };
    Ok(engine.resolve(WORLD, engine.size(), &call)?.broadcast(&call, sent)?.into())
}
