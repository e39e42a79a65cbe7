//! Iterators whose elements go to several devices in turn.
//!
//! Source: `multi_device_iterator_ops.cc` of TensorFlow.

use super::{Components, ElementSpec, KeptBytes, Stream, end_of_sequence, iterator::deleter};
use crate::{
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    ops::{RuntimeCall, one},
    resource::{Resource, ResourceHandle},
    scope::Scope,
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use parking_lot::ReentrantMutex;
use std::{cell::RefCell, collections::VecDeque, sync::Arc};

/// A run over a data set whose elements are dealt out to shards, one for each device.
#[derive(Debug)]
pub(super) struct DeviceShards {
    signature: ElementSpec,
    n_shards: usize,
    run: ReentrantMutex<RefCell<ShardRun>>,
}

/// The run since the last initialisation.
#[derive(Debug, Default)]
struct ShardRun {
    /// The number of initialisations.
    incarnation: i64,
    stream: Option<Stream>,
    /// The shard of the element that comes next.
    turn: usize,
    /// Elements that came before those of other shards were asked for.
    waiting: Vec<VecDeque<Components>>,
    kept: KeptBytes,
}

impl Resource for DeviceShards {
    fn kind(&self) -> &'static str {
        "an iterator of several devices"
    }
}

impl ShardRun {
    fn next(&mut self, scope: Scope<'_>, shard: usize) -> Result<Option<Components>> {
        if let Some(element) = self.waiting[shard].pop_front() {
            self.kept.remove(&element);
            return Ok(Some(element));
        }
        loop {
            let Some(stream) = &mut self.stream else { return Ok(None) };
            let Some(element) = stream.next(scope)? else {
                self.stream = None;
                return Ok(None);
            };
            let turn = self.turn;
            self.turn = (turn + 1) % self.waiting.len();
            if turn == shard {
                return Ok(Some(element));
            }
            self.kept.add(scope, &element)?;
            self.waiting[turn].push_back(element);
        }
    }
}

impl DeviceShards {
    fn of(call: &RuntimeCall<'_>) -> Result<Arc<DeviceShards>> {
        let n_shards = call.attrs.strings("devices")?.len();
        Ok(Arc::new(DeviceShards {
            signature: call.signature()?,
            n_shards,
            run: ReentrantMutex::new(RefCell::new(ShardRun::default())),
        }))
    }

    /// The dtypes and shapes of elements.
    pub(super) fn signature(&self) -> &ElementSpec {
        &self.signature
    }

    fn change<T>(&self, change: impl FnOnce(&mut ShardRun) -> Result<T>) -> Result<T> {
        let run = self.run.lock();
        let code = Code::FailedPrecondition;
        let in_use = |_| Error::Status { code, message: "the iterator is in use".into() };
        change(&mut *run.try_borrow_mut().map_err(in_use)?)
    }
}

fn shards(call: &RuntimeCall<'_>, index: usize) -> Result<Arc<DeviceShards>> {
    call.resource(index, "an iterator of several devices")
}

pub(super) fn anonymous(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut results = one(ResourceHandle::owning("", DeviceShards::of(call)?).to_tensor())?;
    if call.op.outputs.len() > 1 {
        results.push(deleter());
    }
    Ok(results)
}

pub(super) fn named(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(call.named_resource(|| Ok(DeviceShards::of(call)?))?.to_tensor())
}

/// Begins with a data set; the result is the number of this incarnation.
pub(super) fn init(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let stream = call.input_dataset(0)?.stream();
    call.integer_named(2, "max_buffer_size")?;
    let shards = shards(call, 1)?;
    let incarnation = shards.change(|run| {
        let waiting = vec![VecDeque::new(); shards.n_shards];
        let incarnation = run.incarnation + 1;
        *run = ShardRun { incarnation, stream: Some(stream), waiting, ..ShardRun::default() };
        Ok(incarnation)
    })?;
    one(HostTensor::scalar(incarnation))
}

pub(super) fn get_next(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (op, scope, signature) = (call.op.name, call.scope, call.signature()?);
    let (shards, incarnation) = (shards(call, 0)?, call.integer_named(2, "incarnation_id")?);
    let number = call.integer_named(1, "shard_num")?;
    let element = shards.change(|run| {
        if run.incarnation != incarnation {
            let expected = run.incarnation.to_string();
            return Err(IrError::argument(op, "incarnation_id", expected, incarnation).into());
        }
        let shard = usize::try_from(number).ok().filter(|shard| *shard < run.waiting.len());
        let Some(shard) = shard else {
            let expected = format!("one of {} shards", run.waiting.len());
            return Err(IrError::argument(op, "shard_num", expected, number).into());
        };
        run.next(scope, shard)
    })?;
    let element = element.ok_or_else(end_of_sequence)?;
    signature.check(op, &element)?;
    Ok(element.into_iter().map(EagerTensor::from).collect())
}
