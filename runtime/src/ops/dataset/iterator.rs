//! Iterators: runs over data sets as resources.

use super::{Components, Dataset, ElementSpec, Stream, end_of_sequence, function::ElementFunction};
use crate::{
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    ops::{RuntimeCall, none, one},
    resource::{Resource, ResourceHandle},
    scope::Scope,
    variant::{self, optional::Optional},
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use parking_lot::ReentrantMutex;
use std::{cell::RefCell, sync::Arc};

/// A run over a data set that ops take elements of.
///
/// Threads wait for each other. A function that asks for an element of the iterator that is calling it
/// gets an error.
#[derive(Debug)]
pub(super) struct DatasetIterator {
    signature: ElementSpec,
    run: ReentrantMutex<RefCell<Option<IteratorRun>>>,
}

/// A run, and how many elements were taken of it.
#[derive(Debug)]
struct IteratorRun {
    dataset: Dataset,
    stream: Stream,
    n_taken: u64,
}

impl Resource for DatasetIterator {
    fn kind(&self) -> &'static str {
        "an iterator"
    }
}

fn failed(message: &str) -> Error {
    Error::Status { code: Code::FailedPrecondition, message: message.into() }
}

impl DatasetIterator {
    fn of(call: &RuntimeCall<'_>) -> Result<Arc<DatasetIterator>> {
        let (signature, run) = (call.signature()?, ReentrantMutex::new(RefCell::new(None)));
        Ok(Arc::new(DatasetIterator { signature, run }))
    }

    /// The dtypes and shapes of elements.
    pub(super) fn signature(&self) -> &ElementSpec {
        &self.signature
    }

    /// Begins with a data set.
    pub(super) fn begin(&self, dataset: &Dataset) -> Result<()> {
        let (stream, dataset) = (dataset.stream(), dataset.clone());
        self.change(|run| {
            *run = Some(IteratorRun { dataset, stream, n_taken: 0 });
            Ok(())
        })
    }

    pub(super) fn next(&self, scope: Scope<'_>) -> Result<Option<Components>> {
        self.change(|run| {
            let run = run.as_mut().ok_or_else(not_begun)?;
            let element = run.stream.next(scope)?;
            run.n_taken += u64::from(element.is_some());
            Ok(element)
        })
    }

    /// The data set, and the number of elements that were taken.
    pub(super) fn position(&self) -> Result<(Dataset, u64)> {
        self.change(|run| {
            let run = run.as_ref().ok_or_else(not_begun)?;
            Ok((run.dataset.clone(), run.n_taken))
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Option<IteratorRun>) -> Result<T>) -> Result<T> {
        let run = self.run.lock();
        change(&mut *run.try_borrow_mut().map_err(|_| failed("the iterator is in use"))?)
    }
}

fn not_begun() -> Error {
    failed("the iterator has no data set yet")
}

/// A value in place of a resource that is not needed.
#[derive(Debug)]
pub(super) struct Dummy;

impl Resource for Dummy {
    fn kind(&self) -> &'static str {
        "nothing"
    }
}

/// A value in place of the end of a resource, which ends with its last handle.
pub(super) fn deleter() -> EagerTensor {
    variant::scalar(Optional(None)).into()
}

pub(super) fn dummy(_: &mut RuntimeCall<'_>) -> Result<Results> {
    one(ResourceHandle::owning("", Arc::new(Dummy)).to_tensor())
}

/// Resources end with their last handles.
pub(super) fn delete(_: &mut RuntimeCall<'_>) -> Result<Results> {
    none()
}

pub(super) fn anonymous(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut results = one(ResourceHandle::owning("", DatasetIterator::of(call)?).to_tensor())?;
    if call.op.outputs.len() > 1 {
        results.push(deleter());
    }
    Ok(results)
}

pub(super) fn named(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(call.named_resource(|| Ok(DatasetIterator::of(call)?))?.to_tensor())
}

/// A resource that changes nothing here.
pub(super) fn placeholder(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(call.named_resource(|| Ok(Arc::new(Dummy)))?.to_tensor())
}

pub(super) fn thread_pool(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_threads = call.attrs.int("num_threads")?;
    if n_threads < 0 {
        return Err(
            IrError::argument(call.op.name, "num_threads", "not negative", n_threads).into()
        );
    }
    placeholder(call)
}

/// The device of an iterator, which is in host memory.
pub(super) fn device(call: &mut RuntimeCall<'_>) -> Result<Results> {
    iterator(call, 0)?;
    one(HostTensor::scalar_string("/job:localhost/replica:0/task:0/device:CPU:0"))
}

/// The data set is made with the iterator, by a function without arguments.
pub(super) fn one_shot(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    let found = call.scope.resources.find(container, name).filter(|_| !name.is_empty());
    if let Some(found) = found {
        return one(ResourceHandle::owning(name, found).to_tensor());
    }
    let made = ElementFunction::of(call, "dataset_factory", 0..0)?.call(call.scope, [])?;
    let [dataset] = &made[..] else {
        let (expected, found) = ("a function of one result", made.len());
        return Err(IrError::argument(call.op.name, "dataset_factory", expected, found).into());
    };
    let iterator = DatasetIterator::of(call)?;
    iterator.begin(variant::value::<Dataset>(dataset, "a data set")?)?;
    if name.is_empty() {
        return one(ResourceHandle::owning(name, iterator).to_tensor());
    }
    let resource = call.scope.resources.find_or_create(container, name, || Ok(iterator))?;
    one(ResourceHandle::owning(name, resource).to_tensor())
}

fn iterator(call: &RuntimeCall<'_>, index: usize) -> Result<Arc<DatasetIterator>> {
    call.resource(index, "an iterator")
}

pub(super) fn make(call: &mut RuntimeCall<'_>) -> Result<Results> {
    iterator(call, 1)?.begin(&call.input_dataset(0)?)?;
    none()
}

/// The next element of the iterator of a call, of the types that the call tells.
fn next(call: &RuntimeCall<'_>) -> Result<Option<Components>> {
    let signature: ElementSpec = call.signature()?;
    let element = iterator(call, 0)?.next(call.scope)?;
    if let Some(element) = &element {
        signature.check(call.op.name, element)?;
    }
    Ok(element)
}

pub(super) fn get_next(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let element = next(call)?.ok_or_else(end_of_sequence)?;
    Ok(element.into_iter().map(EagerTensor::from).collect())
}

pub(super) fn get_next_as_optional(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(variant::scalar(Optional(next(call)?)))
}
