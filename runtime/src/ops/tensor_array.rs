//! Arrays and stacks of tensors.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    execute::execute,
    resource::{Resource, ResourceHandle},
    rows::{RowRun, join, row, split, stacked},
    tensor_array::{ArrayOptions, TensorArrayResource, TensorStack},
};
use ferroflow_ir::{
    Attrs, Code, Error as IrError, HostTensor, PartialShape, shape::counted, workspace,
};
use smallvec::SmallVec;
use std::sync::Arc;

fn array(call: &RuntimeCall<'_>) -> Result<Arc<TensorArrayResource>> {
    call.resource(0, "a tensor array")
}

fn stack(call: &RuntimeCall<'_>) -> Result<Arc<TensorStack>> {
    call.resource(0, "a stack")
}

fn handle(name: &str, resource: Arc<dyn Resource>) -> HostTensor {
    ResourceHandle::owning(name, resource).to_tensor()
}

fn int(call: &RuntimeCall<'_>, index: usize) -> Result<i64> {
    Ok(call.host(index)?.as_scalar::<i32>()?.into())
}

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let options = ArrayOptions {
        dtype: call.attrs.dtype("dtype")?,
        grows: call.attrs.bool("dynamic_size")?,
        clears: call.attrs.bool("clear_after_read")?,
        identical: call.attrs.bool("identical_element_shapes")?,
        adds: false,
        limit: call.context().limits().tensor_bytes,
    };
    let shape = call.attrs.shape("element_shape")?.clone();
    let array = Arc::new(TensorArrayResource::new(options, shape, int(call, 0)?)?);
    with_flow(handle(call.attrs.string("tensor_array_name")?, array), HostTensor::scalar(0.0f32))
}

fn with_flow(handle: HostTensor, flow: HostTensor) -> Result<Results> {
    Ok(SmallVec::from_iter([handle.into(), flow.into()]))
}

/// The value of the flow input, which is the last.
fn flow(call: &RuntimeCall<'_>) -> Result<Results> {
    one(call.host(call.inputs.len() - 1)?.clone())
}

fn write_all(
    call: &RuntimeCall<'_>,
    array: &TensorArrayResource,
    items: impl IntoIterator<Item = Result<(i64, HostTensor)>>,
) -> Result<Results> {
    let sum = |a: &HostTensor, b: &HostTensor| {
        let inputs = [a.clone().into(), b.clone().into()];
        execute(call.context(), "AddN", Attrs::new(), &inputs)?.remove(0).into_host()
    };
    for item in items {
        let (index, value) = item?;
        array.write(index, value, &sum)?;
    }
    flow(call)
}

fn write(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (index, value) = (int(call, 1)?, call.host(2)?.clone());
    write_all(call, &*array(call)?, [Ok((index, value))])
}

fn scatter(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (indices, value) = (call.host(1)?.to_i64s()?, call.host(2)?);
    if value.shape().first() != Some(&indices.len()) {
        let expected = format!("of {} rows", indices.len());
        return Err(IrError::argument(call.op.name, "value", expected, value.shape()).into());
    }
    let items = indices.iter().enumerate().map(|(at, &index)| Ok((index, row(value, at)?)));
    write_all(call, &*array(call)?, items)
}

fn split_value(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (array, value) = (array(call)?, call.host(1)?);
    let parts = split(value, &call.host(2)?.to_i64s()?)?;
    let size = array.size()?;
    if parts.len() != size && !array.grows() {
        let expected = format!("of {size} parts, one for each element");
        return Err(IrError::argument(call.op.name, "lengths", expected, parts.len()).into());
    }
    let items = parts.into_iter().enumerate().map(|(at, part)| Ok((at as i64, part)));
    write_all(call, &array, items)
}

fn read(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let array = array(call)?;
    check_dtype(call, &array)?;
    one(array.read(int(call, 1)?)?)
}

fn check_dtype(call: &RuntimeCall<'_>, array: &TensorArrayResource) -> Result<()> {
    let (expected, found) = (array.options.dtype, call.attrs.dtype("dtype")?);
    if expected == found {
        return Ok(());
    }
    Err(IrError::argument(call.op.name, "dtype", expected.name(), found).into())
}

fn gather(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (array, indices) = (array(call)?, call.host(1)?.to_i64s()?);
    check_dtype(call, &array)?;
    let expected = array.expect_shape(call.attrs.shape("element_shape")?)?;
    let values: Vec<HostTensor> =
        indices.iter().map(|&index| array.read(index)).collect::<Result<_>>()?;
    let shape = match values.first() {
        Some(value) => value.shape().clone(),
        None => expected.known().ok_or_else(|| unknown_shape(call, &expected))?,
    };
    if let Some(other) = values.iter().find(|value| *value.shape() != shape) {
        let expected = format!("of one shape, {shape}");
        return Err(IrError::argument(call.op.name, "elements", expected, other.shape()).into());
    }
    let parts: Vec<RowRun<'_>> = values.iter().map(RowRun::Tensor).collect();
    one(join(call.context(), array.options.dtype, stacked(values.len(), &shape)?, &parts)?)
}

fn unknown_shape(call: &RuntimeCall<'_>, shape: &PartialShape) -> crate::Error {
    let detail = format!("nothing tells the shape {shape} of elements that are not there");
    IrError::Status { code: Code::Unimplemented, op: call.op.name.into(), detail }.into()
}

fn concat(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let array = array(call)?;
    check_dtype(call, &array)?;
    let size = array.size()?;
    let values: Vec<HostTensor> =
        (0..size).map(|index| array.read(index as i64)).collect::<Result<_>>()?;
    let wrong = |expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, "elements", expected, found).into()
    };
    let scalar = || wrong("of rank 1 or more".into(), "scalars".into());
    let rest = match values.first() {
        Some(value) => value.shape().get(1..).ok_or_else(scalar)?.to_vec(),
        None => {
            let expected = call.attrs.shape("element_shape_except0")?;
            expected.known().ok_or_else(|| unknown_shape(call, expected))?.to_vec()
        }
    };
    let mut lengths = workspace::reserve(size)?;
    for value in &values {
        let (length, other) = value.shape().split_first().ok_or_else(scalar)?;
        if *other != rest[..] {
            return Err(wrong(format!("of rows of shape {rest:?}"), value.shape().to_string()));
        }
        lengths.push(*length as i64);
    }
    let n_rows = counted(lengths.iter().sum());
    let parts: Vec<RowRun<'_>> = values.iter().map(RowRun::Tensor).collect();
    let joined = join(call.context(), array.options.dtype, stacked(n_rows, &rest)?, &parts)?;
    Ok(SmallVec::from_iter([joined.into(), HostTensor::vector(&lengths)?.into()]))
}

fn size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(array(call)?.size()? as i32))
}

fn close(call: &mut RuntimeCall<'_>) -> Result<Results> {
    array(call)?.close();
    none()
}

fn gradient(call: &mut RuntimeCall<'_>) -> Result<Results> {
    gradient_of(call, &[])
}

fn gradient_with_shape(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let prepended = call.host(2)?.to_i64s()?;
    gradient_of(call, &prepended)
}

fn gradient_of(call: &RuntimeCall<'_>, prepended: &[i64]) -> Result<Results> {
    let source = call.attrs.string("source")?;
    let gradient = array(call)?.gradient(source, prepended)?;
    with_flow(handle(source, gradient), call.host(1)?.clone())
}

fn new_stack(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let capacity = usize::try_from(int(call, 0)?).ok();
    let stack = TensorStack::new(call.attrs.dtype("elem_type")?, capacity);
    one(handle(call.attrs.string("stack_name")?, Arc::new(stack)))
}

/// A stack of TensorFlow 1 takes any number of tensors.
fn new_unbounded_stack(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let stack = TensorStack::new(call.attrs.dtype("elem_type")?, None);
    one(handle(call.attrs.string("stack_name")?, Arc::new(stack)))
}

fn push(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = call.host(1)?.clone();
    stack(call)?.push(value.clone())?;
    one(value)
}

fn pop(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = stack(call)?.pop()?;
    value.check(call.attrs.dtype("elem_type")?)?;
    one(value)
}

fn close_stack(call: &mut RuntimeCall<'_>) -> Result<Results> {
    stack(call)?.close();
    none()
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("StackCloseV2", close_stack),
    ("StackPopV2", pop),
    ("StackPushV2", push),
    ("StackV2", new_stack),
    ("TensorArrayCloseV3", close),
    ("TensorArrayConcatV3", concat),
    ("TensorArrayGatherV3", gather),
    ("TensorArrayGradV3", gradient),
    ("TensorArrayGradWithShape", gradient_with_shape),
    ("TensorArrayReadV3", read),
    ("TensorArrayScatterV3", scatter),
    ("TensorArraySizeV3", size),
    ("TensorArraySplitV3", split_value),
    ("TensorArrayV3", new),
    ("TensorArrayWriteV3", write),
    ("_Stack", new_unbounded_stack),
];
