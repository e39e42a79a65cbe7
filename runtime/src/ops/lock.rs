//! Locks of critical sections.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    lock::{HeldLock, SharedLock},
    resource::Resource,
    variant,
};
use std::sync::Arc;

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let make = || Ok(Arc::<SharedLock>::default() as Arc<dyn Resource>);
    one(call.named_resource(make)?.to_tensor())
}

fn take(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let lock: Arc<SharedLock> = call.resource(0, "a mutex")?;
    one(variant::scalar(lock.take()?))
}

fn release(call: &mut RuntimeCall<'_>) -> Result<Results> {
    variant::value::<HeldLock>(call.host(0)?, "a mutex that is held")?.release();
    none()
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] =
    &[("ConsumeMutexLock", release), ("MutexLock", take), ("MutexV2", new)];
