//! Barriers.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{barrier::Barrier, eager_tensor::Results, error::Result, resource::Resource};
use ferroflow_ir::{Error as IrError, HostTensor, PartialShape, Shape};
use std::sync::Arc;

const A_BARRIER: &str = "a barrier";

fn barrier(call: &RuntimeCall<'_>) -> Result<Arc<Barrier>> {
    call.resource(0, A_BARRIER)
}

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wrong = |name: &'static str, expected: String, found: String| {
        IrError::argument(call.op.name, name, expected, found)
    };
    let capacity = call.attrs.int("capacity")?;
    if capacity != -1 {
        return Err(wrong("capacity", "-1".into(), capacity.to_string()).into());
    }
    let (dtypes, shapes) = (call.attrs.types("component_types")?, call.attrs.shapes("shapes")?);
    let known: Option<Vec<Shape>> = shapes.iter().map(PartialShape::known).collect();
    let shapes = known.filter(|shapes| shapes.len() == dtypes.len()).ok_or_else(|| {
        wrong("shapes", format!("{} known shapes", dtypes.len()), format!("{shapes:?}"))
    })?;
    let make = || {
        let made = Barrier::new(dtypes.to_vec(), shapes.clone());
        Ok(Arc::new(made) as Arc<dyn Resource>)
    };
    let handle = call.named_resource(make)?;
    if !handle.downcast::<Barrier>(A_BARRIER)?.is_of(dtypes, &shapes) {
        let expected = format!("a barrier of {dtypes:?}");
        return Err(wrong("shared_name", expected, handle.name().into()).into());
    }
    one(handle.to_tensor())
}

fn close(call: &mut RuntimeCall<'_>) -> Result<Results> {
    barrier(call)?.close(call.attrs.bool("cancel_pending_enqueues")?)?;
    none()
}

fn insert(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let component = call.attrs.int("component_index")?;
    barrier(call)?.insert(component, call.host(1)?.strings()?, call.host(2)?)?;
    none()
}

/// As in TensorFlow, no time to wait can be set, and tuples that are not complete are always
/// waited for.
fn take(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let timeout = call.attrs.int("timeout_ms")?;
    if timeout != -1 {
        return Err(IrError::argument(call.op.name, "timeout_ms", "-1", timeout).into());
    }
    let (barrier, fewer) = (barrier(call)?, call.attrs.bool("allow_small_batch")?);
    barrier.check_dtypes(call.attrs.types("component_types")?)?;
    let n = call.host(1)?.as_scalar::<i32>()?;
    let taken = barrier.take(call.context(), n, fewer)?;
    let keys = HostTensor::from_strings(Shape::new([taken.keys.len()])?, taken.keys)?;
    let mut results = Results::from_iter([HostTensor::vector(&taken.numbers)?.into(), keys.into()]);
    results.extend(taken.components.into_iter().map(Into::into));
    Ok(results)
}

fn n_ready(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(barrier(call)?.n_ready() as i32))
}

fn n_incomplete(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(barrier(call)?.n_incomplete() as i32))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("_Barrier", new),
    ("_BarrierClose", close),
    ("_BarrierIncompleteSize", n_incomplete),
    ("_BarrierInsertMany", insert),
    ("_BarrierReadySize", n_ready),
    ("_BarrierTakeMany", take),
];
