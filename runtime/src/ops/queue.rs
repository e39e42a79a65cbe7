//! Queues and staging areas.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    queue::{Queue, QueueKind, QueueOptions},
    resource::{Resource, ResourceHandle},
    staging::StagingArea,
};
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, PartialShape};
use std::sync::Arc;

fn queue(call: &RuntimeCall<'_>) -> Result<Arc<Queue>> {
    call.resource(0, "a queue")
}

fn new(call: &RuntimeCall<'_>, kind: QueueKind) -> Result<Results> {
    let mut dtypes = call.attrs.types("component_types")?.to_vec();
    let mut shapes = call.attrs.shapes("shapes")?.to_vec();
    if kind == QueueKind::Priority {
        dtypes.insert(0, DType::I64);
        shapes.insert(0, PartialShape::scalar());
    }
    let capacity = usize::try_from(call.attrs.int("capacity")?).unwrap_or(usize::MAX);
    let options = QueueOptions { kind, dtypes, shapes, capacity };
    let make = || Ok(Arc::new(Queue::new(options.clone())?) as Arc<dyn Resource>);
    let handle = call.named_resource(make)?;
    let found = handle.downcast::<Queue>("a queue")?;
    if *found.options() != options {
        let (expected, found) = (format!("{options:?}"), format!("{:?}", found.options()));
        return Err(IrError::argument(call.op.name, "shared_name", expected, found).into());
    }
    one(handle.to_tensor())
}

fn fifo(call: &mut RuntimeCall<'_>) -> Result<Results> {
    new(call, QueueKind::Fifo)
}

fn padding(call: &mut RuntimeCall<'_>) -> Result<Results> {
    new(call, QueueKind::Padding)
}

fn priority(call: &mut RuntimeCall<'_>) -> Result<Results> {
    new(call, QueueKind::Priority)
}

fn shuffle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let kept = call.attrs.int("min_after_dequeue")?;
    let wrong = |_| IrError::argument(call.op.name, "min_after_dequeue", "not negative", kept);
    let kept = usize::try_from(kept).map_err(wrong)?;
    let seeds = [call.attrs.int("seed")?, call.attrs.int("seed2")?];
    new(call, QueueKind::Shuffle { kept, seeds })
}

fn close(call: &mut RuntimeCall<'_>) -> Result<Results> {
    queue(call)?.close(call.attrs.bool("cancel_pending_enqueues")?)?;
    none()
}

/// The queue in input 0. As in TensorFlow, no time to wait can be set.
fn without_timeout(call: &RuntimeCall<'_>) -> Result<Arc<Queue>> {
    let timeout = call.attrs.int("timeout_ms")?;
    if timeout != -1 {
        return Err(IrError::argument(call.op.name, "timeout_ms", "-1", timeout).into());
    }
    queue(call)
}

/// Inputs from `first` on, released by the call.
fn tensors(call: &mut RuntimeCall<'_>, first: usize) -> Result<Vec<HostTensor>> {
    call.inputs.drain(first..).map(|input| input.into_host()).collect()
}

fn results(tensors: Vec<HostTensor>) -> Results {
    tensors.into_iter().map(Into::into).collect()
}

fn enqueue(call: &mut RuntimeCall<'_>) -> Result<Results> {
    without_timeout(call)?.enqueue(tensors(call, 1)?)?;
    none()
}

fn enqueue_many(call: &mut RuntimeCall<'_>) -> Result<Results> {
    without_timeout(call)?.enqueue_many(&tensors(call, 1)?)?;
    none()
}

/// The queue in input 0, of which the caller knows what is in it.
fn to_dequeue(call: &RuntimeCall<'_>) -> Result<Arc<Queue>> {
    let queue = without_timeout(call)?;
    queue.check_dtypes(call.attrs.types("component_types")?.iter().copied())?;
    Ok(queue)
}

fn dequeue(call: &mut RuntimeCall<'_>) -> Result<Results> {
    Ok(results(to_dequeue(call)?.dequeue()?))
}

fn dequeue_many(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n = call.host(1)?.as_scalar::<i32>()?.into();
    Ok(results(to_dequeue(call)?.dequeue_many(call.context(), n, false)?))
}

fn dequeue_up_to(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n = call.host(1)?.as_scalar::<i32>()?.into();
    Ok(results(to_dequeue(call)?.dequeue_many(call.context(), n, true)?))
}

fn is_closed(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar_bool(queue(call)?.is_closed()))
}

fn size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(queue(call)?.len() as i32))
}

/// The staging area of the call's name, made when it is used first.
fn staging_area(call: &RuntimeCall<'_>) -> Result<Arc<StagingArea>> {
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    let limit = |name: &str| -> Result<Option<usize>> {
        let limit = usize::try_from(call.attrs.int(name)?).ok();
        Ok(limit.filter(|&limit| limit > 0))
    };
    let (capacity, bytes) = (limit("capacity")?, limit("memory_limit")?);
    let make = || Ok(Arc::new(StagingArea::new(capacity, bytes)) as Arc<dyn Resource>);
    let resource = call.scope.resources.find_or_create(container, name, make)?;
    ResourceHandle::owning(name, resource).downcast("a staging area")
}

fn stage(call: &mut RuntimeCall<'_>) -> Result<Results> {
    staging_area(call)?.put(tensors(call, 0)?)?;
    none()
}

fn stage_clear(call: &mut RuntimeCall<'_>) -> Result<Results> {
    staging_area(call)?.clear();
    none()
}

fn stage_size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(staging_area(call)?.len() as i32))
}

fn stage_peek(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let index = call.host(0)?.as_scalar::<i32>()?;
    let position = usize::try_from(index)
        .map_err(|_| IrError::argument(call.op.name, "index", "not negative", index))?;
    let found = staging_area(call)?.peek(position)?;
    unstaged(call, found)
}

fn unstage(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let found = staging_area(call)?.take()?;
    unstaged(call, found)
}

fn unstaged(call: &RuntimeCall<'_>, tensors: Vec<HostTensor>) -> Result<Results> {
    let expected = call.attrs.types("dtypes")?;
    if tensors.iter().map(HostTensor::dtype).ne(expected.iter().copied()) {
        let detail = format!("the staged tensors are not of the dtypes {expected:?}");
        let op = call.op.name.into();
        return Err(IrError::Status { code: Code::InvalidArgument, op, detail }.into());
    }
    Ok(results(tensors))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("FIFOQueueV2", fifo),
    ("PaddingFIFOQueueV2", padding),
    ("PriorityQueueV2", priority),
    ("QueueCloseV2", close),
    ("QueueDequeueManyV2", dequeue_many),
    ("QueueDequeueUpToV2", dequeue_up_to),
    ("QueueDequeueV2", dequeue),
    ("QueueEnqueueManyV2", enqueue_many),
    ("QueueEnqueueV2", enqueue),
    ("QueueIsClosedV2", is_closed),
    ("QueueSizeV2", size),
    ("RandomShuffleQueueV2", shuffle),
    ("Stage", stage),
    ("StageClear", stage_clear),
    ("StagePeek", stage_peek),
    ("StageSize", stage_size),
    ("Unstage", unstage),
];
