//! First values of variables that all processes of a strategy agree on: those of the first process.

use super::{Broadcast, CollectiveCall, Engine, InstanceKey, Replicas, WORLD};
use crate::{context::Context, eager_tensor::EagerTensor, error::Result};
use ferroflow_ir::budget;
use std::{cell::RefCell, sync::Arc};

thread_local! {
    /// The scopes of strategies that this thread is in; the innermost is last.
    static SCOPES: RefCell<Vec<StrategyScope>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone)]
struct StrategyScope {
    context: Context,
    replicas: Arc<Replicas>,
}

/// Runs `body` in the scope of a strategy: variables that are made in it begin with the values of the
/// first process.
pub fn agree_on_variables<R>(
    context: &Context,
    replicas: &Arc<Replicas>,
    body: impl FnOnce() -> R,
) -> R {
    let scope = StrategyScope { context: context.clone(), replicas: replicas.clone() };
    SCOPES.with(|scopes| scopes.borrow_mut().push(scope));
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
///
/// # Errors
///
/// When other processes do not come, or make another variable.
pub fn agreed_value(value: EagerTensor) -> Result<EagerTensor> {
    let Some(scope) = SCOPES.with(|scopes| scopes.borrow().last().cloned()) else {
        return Ok(value);
    };
    match scope.replicas.engine() {
        Some(engine) if engine.size() > 1 => scope.of_first(&**engine, &value),
        Some(_) | None => Ok(value),
    }
}

impl StrategyScope {
    fn of_first(&self, engine: &dyn Engine, value: &EagerTensor) -> Result<EagerTensor> {
        let key = InstanceKey::Number(self.replicas.take_key());
        let check = || Ok(budget::check()?);
        let call = CollectiveCall::new(&self.context, "the first value of a variable", key);
        let call = CollectiveCall { check: &check, ..call };
        let value = value.host()?.clone();
        let sent = match engine.rank() {
            0 => Broadcast::Send(value),
            _ => Broadcast::Receive(value.dtype(), value.shape().into()),
        };
        Ok(engine.resolve(WORLD, engine.size(), &call)?.broadcast(&call, sent)?.into())
    }
}
