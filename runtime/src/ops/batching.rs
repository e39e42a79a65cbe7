//! Batches of what several runs want computed.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    batching::{BatchQueue, BatchTask, UnbatchGradState, UnbatchState},
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
    rows::{RowRun, join, row, stacked},
    runtime_call::infer_outputs,
};
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape, entropy, workspace};
use ferroflow_kernels::check_size;
use std::{sync::Arc, time::Duration};

/// The resource of the call's name, made when it is used first.
fn resource<T: Resource + Default>(
    call: &RuntimeCall<'_>,
    kind: &'static str,
    further: &str,
) -> Result<Arc<T>> {
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    let node = call.scope.origin.map_or("", |origin| &origin.node);
    let name = format!("{kind} {} {further}", if name.is_empty() { node } else { name });
    let make = || Ok(Arc::<T>::default() as Arc<dyn Resource>);
    let resource = call.scope.resources.find_or_create(container, &name, make)?;
    ResourceHandle::owning(name, resource).downcast(kind)
}

fn duration(call: &RuntimeCall<'_>, name: &str) -> Result<Duration> {
    Ok(Duration::from_micros(u64::try_from(call.attrs.int(name)?).unwrap_or_default()))
}

fn batch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    infer_outputs(call.op, call.attrs, &call.inputs)?;
    let most = usize::try_from(call.attrs.int("max_batch_size")?).unwrap_or_default();
    let tensors: Vec<HostTensor> =
        call.inputs.drain(..).map(|input| input.into_host()).collect::<Result<_>>()?;
    let n_rows = tensors.first().and_then(|tensor| tensor.shape().first().copied());
    let n_rows = n_rows.unwrap_or_default();
    let wrong = |expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, "in_tensors", expected, found).into()
    };
    let lengths = tensors.iter().map(|tensor| tensor.shape().first().copied());
    if let Some(other) = lengths.flatten().find(|&other| other != n_rows) {
        return Err(wrong(format!("{n_rows} rows each"), other.to_string()));
    }
    if n_rows > most {
        return Err(wrong(format!("at most {most} rows"), n_rows.to_string()));
    }
    if n_rows == 0 {
        let nothing = |dtype| HostTensor::zeros(dtype, Shape::new([0])?);
        let dtypes = tensors.iter().map(HostTensor::dtype).chain([DType::I64; 2]);
        return dtypes.map(|dtype| Ok(nothing(dtype)?.into())).collect();
    }
    let queue: Arc<BatchQueue> =
        resource(call, "a queue of batches", call.attrs.string("batching_queue")?)?;
    let id = entropy::unforeseen() as i64;
    let empty: Vec<HostTensor> = tensors.iter().map(|x| x.rows(0..0)).collect::<Result<_, _>>()?;
    let time = duration(call, "batch_timeout_micros")?;
    let tasks = queue.join(BatchTask { id, n_rows, tensors }, most, time)?;
    let (mut results, mut index) = (Results::new(), Vec::new());
    match tasks {
        None => results.extend(empty.into_iter().map(Into::into)),
        Some(tasks) => {
            let mut first = 0;
            for task in &tasks {
                index.extend([task.id, first as i64, (first + task.n_rows) as i64]);
                first += task.n_rows;
            }
            let padded = padded_size(call, first)?;
            for at in 0..empty.len() {
                results.push(gathered(call, &tasks, at, padded)?.into());
            }
        }
    }
    results.push(HostTensor::from_slice(Shape::new([index.len() / 3, 3])?, &index)?.into());
    results.push(HostTensor::scalar(id).into());
    Ok(results)
}

/// The number of rows that a batch of so many is filled up to.
fn padded_size(call: &RuntimeCall<'_>, n_rows: usize) -> Result<usize> {
    let sizes = call.attrs.ints("allowed_batch_sizes")?;
    let fits = sizes.iter().filter_map(|&size| usize::try_from(size).ok());
    Ok(fits.into_iter().find(|&size| size >= n_rows).unwrap_or(n_rows))
}

/// Tensor `at` of all tasks, filled up with the first row of the first.
fn gathered(
    call: &RuntimeCall<'_>,
    tasks: &[BatchTask],
    at: usize,
    n_rows: usize,
) -> Result<HostTensor> {
    let first = &tasks[0].tensors[at];
    let row_shape = first.shape().get(1..).unwrap_or_default();
    let shape = stacked(n_rows, row_shape)?;
    check_size(first.dtype(), &shape, call.context().limits().tensor_bytes)?;
    // Attributes say how many rows there are to be, and files what attributes say.
    let mut parts = workspace::reserve(tasks.len().saturating_add(n_rows))?;
    for task in tasks {
        let tensor = task.tensors.get(at).filter(|tensor| {
            tensor.dtype() == first.dtype() && tensor.shape().get(1..) == Some(row_shape)
        });
        parts.push(RowRun::Tensor(tensor.ok_or_else(|| {
            let found = task.tensors.get(at).map(|tensor| tensor.shape().to_string());
            let expected = format!("rows of shape {row_shape:?}, as in other runs");
            IrError::argument(call.op.name, "in_tensors", expected, found.unwrap_or_default())
        })?));
    }
    let own: usize = tasks.iter().map(|task| task.n_rows).sum();
    let filling = row(first, 0)?;
    parts.extend((own..n_rows).map(|_| RowRun::Tensor(&filling)));
    join(call.context(), first.dtype(), shape, &parts)
}

fn index_rows(call: &RuntimeCall<'_>) -> Result<Vec<[i64; 3]>> {
    let index = call.host(1)?.as_slice::<i64>()?;
    Ok(index.chunks_exact(3).map(|row| [row[0], row[1], row[2]]).collect())
}

fn unbatch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    infer_outputs(call.op, call.attrs, &call.inputs)?;
    let (index, data) = (index_rows(call)?, call.host(0)?);
    let n_rows = data.shape().first().copied().unwrap_or_default();
    let wrong = |expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, "batch_index", expected, found).into()
    };
    if index.len() > n_rows {
        return Err(wrong(format!("at most {n_rows} rows"), index.len().to_string()));
    }
    let (mut first, mut rows) = (0usize, Vec::with_capacity(index.len()));
    for [id, start, end] in index {
        let size = end.checked_sub(start).and_then(|size| usize::try_from(size).ok());
        let last = size.and_then(|size| first.checked_add(size)).filter(|&last| last <= n_rows);
        let last =
            last.ok_or_else(|| wrong(format!("within {n_rows} rows"), format!("{start}..{end}")))?;
        rows.push((id, data.rows(first..last)?));
        first = last;
    }
    let id = call.host(2)?.as_scalar::<i64>()?;
    let state: Arc<UnbatchState> = resource(call, "rows of batches", "")?;
    one(state.exchange(id, rows, duration(call, "timeout_micros")?)?)
}

fn unbatch_grad(call: &mut RuntimeCall<'_>) -> Result<Results> {
    infer_outputs(call.op, call.attrs, &call.inputs)?;
    let (index, id) = (index_rows(call)?, call.host(3)?.as_scalar::<i64>()?);
    let gradient = call.host(2)?.clone();
    let state: Arc<UnbatchGradState> = resource(call, "gradients of batches", "")?;
    state.put(id, gradient.clone())?;
    if call.host(0)?.is_empty() {
        return one(gradient.rows(0..0)?);
    }
    if index.is_empty() {
        let found = call.host(1)?.shape();
        let expected = "not empty, as the tensor is not";
        return Err(IrError::argument(call.op.name, "batch_index", expected, found).into());
    }
    let ids: Vec<i64> = index.iter().map(|[id, ..]| *id).collect();
    let parts = state.take(&ids)?;
    let n_rows = parts.iter().map(|part| part.shape().first().copied().unwrap_or(1)).sum();
    let row_shape = parts[0].shape().get(1..).unwrap_or_default();
    if let Some(other) = parts.iter().find(|part| part.shape().get(1..) != Some(row_shape)) {
        let expected = format!("rows of shape {row_shape:?}");
        return Err(IrError::argument(call.op.name, "grad", expected, other.shape()).into());
    }
    let runs: Vec<RowRun<'_>> = parts.iter().map(RowRun::Tensor).collect();
    one(join(call.context(), parts[0].dtype(), stacked(n_rows, row_shape)?, &runs)?)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] =
    &[("Batch", batch), ("Unbatch", unbatch), ("UnbatchGrad", unbatch_grad)];

#[cfg(test)]
mod tests {
    use crate::{Context, execute};
    use ferroflow_ir::{Attrs, Code, DType, HostTensor, Shape};

    #[test]
    fn batches_are_not_filled_up_beyond_the_limits() {
        let attrs = Attrs::new()
            .with("num_batch_threads", 1)
            .with("max_batch_size", 1i64 << 60)
            .with("batch_timeout_micros", 0)
            .with("grad_timeout_micros", 0)
            .with("allowed_batch_sizes", vec![1i64 << 60]);
        for row in [&[1usize, 2][..], &[1, 0]] {
            let x = HostTensor::zeros(DType::F32, Shape::new(row.iter().copied()).unwrap());
            let found = execute(&Context::new(), "Batch", attrs.clone(), &[x.unwrap().into()]);
            let code = found.unwrap_err().code();
            assert!([Code::InvalidArgument, Code::ResourceExhausted].contains(&code), "{code:?}");
        }
    }
}
