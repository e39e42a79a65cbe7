//! Variables.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    execute::execute,
    placed_calls::execute_placed,
    resource::{Resource, ResourceHandle},
    rows::{RowRun, join},
    variable::{ResourceVariable, VariableState},
};
use ferroflow_ir::{
    Attrs, Code, DType, Error as IrError, HostTensor, Shape, TensorSpec,
    clock::{SystemTime, UNIX_EPOCH},
};
use ferroflow_kernels::check_size;
use std::sync::Arc;

const A_VARIABLE: &str = "a variable";

fn variable(call: &RuntimeCall<'_>) -> Result<Arc<VariableState>> {
    call.resource(0, A_VARIABLE)
}

fn var_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?.clone());
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    one(found_or_made(call, container, name, TensorSpec::new(dtype, shape))?)
}

/// The handle of the variable of a name, which is made if it is not there.
fn found_or_made(
    call: &RuntimeCall<'_>,
    container: &str,
    name: &str,
    spec: TensorSpec,
) -> Result<HostTensor> {
    let make = || -> Arc<dyn Resource> {
        ResourceVariable::uninitialized(name, spec.dtype, spec.shape, true).resource()
    };
    if name.is_empty() || name == ANONYMOUS {
        return Ok(ResourceHandle::owning(name, make()).to_tensor());
    }
    let resource = call.scope.resources.find_or_create(container, name, || Ok(make()))?;
    Ok(ResourceHandle::owning(name, resource).to_tensor())
}

fn var_handles(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (containers, names) =
        (call.attrs.strings("containers")?, call.attrs.strings("shared_names")?);
    let specs = call.attrs.types("dtypes")?.iter().zip(call.attrs.shapes("shapes")?);
    let mut handles = Results::new();
    for ((container, name), (dtype, shape)) in containers.iter().zip(names).zip(specs) {
        let text = |bytes| String::from_utf8_lossy(bytes);
        let spec = TensorSpec::new(*dtype, shape.clone());
        handles.push(found_or_made(call, &text(container), &text(name), spec)?.into());
    }
    Ok(handles)
}

fn temporary(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?.clone());
    one(found_or_made(call, "", "", TensorSpec::new(dtype, shape))?)
}

fn temporary_zeros(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?.clone());
    let known = || IrError::argument(call.op.name, "shape", "known", &shape);
    let size = shape.known().ok_or_else(known)?;
    check_size(dtype, &size, call.context().limits().tensor_bytes)?;
    let handle = found_or_made(call, "", "", TensorSpec::new(dtype, shape))?;
    let variable: Arc<VariableState> = ResourceHandle::of(&handle)?.downcast(A_VARIABLE)?;
    variable.assign(HostTensor::zeros(dtype, size)?)?;
    one(handle)
}

/// Writes a row, whose number goes round: -1 is the last.
fn write_row(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (variable, at, update) = (variable(call)?, call.attrs.int("loc")?, call.taken(1)?);
    let (context, op) = (call.context(), call.op.name);
    variable.update(|value| {
        let whole = value.shape().clone();
        let is_row = update.shape().first() == Some(&1)
            && whole.first().is_some_and(|&n_rows| n_rows > 0)
            && update.shape()[1..] == whole[1..];
        if !is_row {
            let expected = format!("a row of {whole}");
            return Err(IrError::argument(op, "update", expected, update.shape()).into());
        }
        let n_rows = whole[0] as i64;
        if at >= n_rows {
            return Err(IrError::argument(op, "loc", format!("below {n_rows}"), at).into());
        }
        let at = at.rem_euclid(n_rows) as usize;
        let (before, after) = (value.rows(0..at)?, value.rows(at + 1..whole[0])?);
        let parts = [&before, &update, &after].map(RowRun::Tensor);
        *value = join(context, update.dtype(), whole, &parts)?;
        Ok(())
    })?;
    none()
}

/// The attributes of an op on blocks of a variable that the op on blocks of a tensor has too.
fn block_attrs(call: &RuntimeCall<'_>, counts: &str) -> Result<Attrs> {
    let list = |name: &str| Ok::<_, Error>(call.attrs.ints(name)?.to_vec());
    Ok(Attrs::new().with(counts, list(counts)?).with("paddings", list("paddings")?))
}

fn read_blocks(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = variable(call)?.read()?;
    value.check(call.attrs.dtype("T")?)?;
    let attrs = block_attrs(call, "num_splits")?.with("N", call.attrs.int("N")?);
    Ok(execute(call.context(), "XlaSplitND", attrs, &[value.into()])?.into_iter().collect())
}

fn assign_blocks(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (variable, attrs) = (variable(call)?, block_attrs(call, "num_concats")?);
    let value = execute(call.context(), "XlaConcatND", attrs, &call.inputs[1..])?.remove(0);
    variable.assign(value.into_host()?)?;
    none()
}

fn select_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let index = call.host(0)?.as_scalar::<i32>()?;
    let handles = &call.inputs[1..];
    let found = usize::try_from(index).ok().and_then(|index| handles.get(index));
    let absent = || {
        let expected = format!("below {}", handles.len());
        IrError::argument(call.op.name, "index", expected, index)
    };
    one(found.ok_or_else(absent)?.clone())
}

fn read_all(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut values = Results::new();
    for (index, dtype) in call.attrs.types("dtypes")?.iter().enumerate() {
        let value = call.resource::<VariableState>(index, A_VARIABLE)?.read()?;
        value.check(*dtype)?;
        values.push(value.into());
    }
    Ok(values)
}

/// The shared name by which TensorFlow asks for a variable that no other node can find.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

fn read(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let variable = variable(call)?;
    let dtype = call.attrs.dtype("dtype")?;
    match (call.scope.device, variable.resident_device()) {
        (None, None) => {
            let value = variable.read()?;
            value.check(dtype)?;
            one(value)
        }
        (device, home) => {
            let value = match device.or(home) {
                Some(device) if device.storage(dtype).is_some() => variable.tensor_on(device)?,
                Some(_) | None => variable.tensor()?,
            };
            if value.dtype() != dtype {
                let found = value.dtype();
                return Err(ferroflow_ir::Error::DType { expected: dtype, found }.into());
            }
            one(value)
        }
    }
}

fn assign(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let variable = variable(call)?;
    let value = call.inputs.pop().expect("the record has two inputs");
    if call.attrs.bool("validate_shape")? && variable.is_initialized() {
        let old = variable.tensor()?;
        if old.shape() != value.shape() {
            let expected = format!("of shape {}, as the old one", old.shape());
            let error =
                ferroflow_ir::Error::argument(call.op.name, "value", expected, value.shape());
            return Err(error.into());
        }
    }
    match variable.resident_device() {
        None => variable.assign(value.into_host()?)?,
        Some(_) => variable.assign_tensor(value)?,
    }
    none()
}

fn is_initialized(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let handle = call.handle(0)?;
    let ready = match handle.downcast::<VariableState>(A_VARIABLE) {
        Ok(variable) => variable.is_initialized(),
        Err(_) => false,
    };
    one(HostTensor::scalar_bool(ready))
}

fn shape_of(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let shape = variable(call)?.tensor()?.shape().to_i64();
    one(match call.attrs.dtype("out_type")? {
        DType::I64 => HostTensor::vector(&shape)?,
        _ => HostTensor::vector(&shape.iter().map(|&dim| dim as i32).collect::<Vec<i32>>())?,
    })
}

fn destroy(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let resource = call.handle(0)?.resource();
    let removed = resource.as_ref().is_ok_and(|resource| call.scope.resources.remove(resource));
    if !removed && !call.attrs.bool("ignore_lookup_error")? {
        resource?;
    }
    if let Ok(variable) = variable(call) {
        variable.clear();
    }
    none()
}

fn add(call: &mut RuntimeCall<'_>) -> Result<Results> {
    update(call, "AddV2")
}

fn sub(call: &mut RuntimeCall<'_>) -> Result<Results> {
    update(call, "Sub")
}

/// Source: `ResourceCountUpToOp` in TensorFlow's `resource_variable_ops.cc`.
fn count_up_to(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let limit = call.attrs.int("limit")?;
    let variable = variable(call)?;
    let mut before = None;
    variable.replace(|value| {
        let host = value.host()?.clone();
        if host.shape().rank() != 0 {
            let found = host.shape();
            return Err(IrError::argument(call.op.name, "resource", "a scalar", found).into());
        }
        let count = host.to_i64s()?[0];
        if count >= limit {
            let message = format!("reached limit of {limit}");
            return Err(Error::Status { code: Code::OutOfRange, message });
        }
        before = Some(host);
        let next = match value.dtype() {
            DType::I32 => HostTensor::scalar((count + 1) as i32),
            _ => HostTensor::scalar(count + 1),
        };
        Ok(next.into())
    })?;
    one(before.ok_or_else(|| Error::missing("a count"))?)
}

/// Seconds since 1970; 0 where the clock says it is earlier.
fn timestamp(_: &mut RuntimeCall<'_>) -> Result<Results> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    one(HostTensor::scalar(since.as_secs_f64()))
}

/// Reads never copy here, so there is nothing to switch off.
fn disable_copy_on_read(_: &mut RuntimeCall<'_>) -> Result<Results> {
    none()
}

/// Changes a variable by an arithmetic op of two arguments of one shape.
fn update(call: &mut RuntimeCall<'_>, op: &str) -> Result<Results> {
    let variable = variable(call)?;
    let delta = call.inputs.pop().expect("the record has two inputs");
    let (context, scope) = (call.context(), call.scope);
    if let Some(home) = variable.resident_device() {
        let record = ferroflow_ir::registry::find(op).expect("a built-in record");
        variable.replace(|value| {
            if value.shape() != delta.shape() {
                return Err(ferroflow_ir::Error::broadcast(value.shape(), delta.shape()).into());
            }
            let inputs = [&value, &delta];
            let mut results = execute_placed(scope, Some(home), record, &Attrs::new(), &inputs)?;
            Ok(results.remove(0))
        })?;
        return none();
    }
    variable.update(|value| {
        if value.shape() != delta.shape() {
            return Err(ferroflow_ir::Error::broadcast(value.shape(), delta.shape()).into());
        }
        let empty = HostTensor::zeros(DType::U8, Shape::scalar())?;
        let old = std::mem::replace(value, empty);
        let kept = old.clone();
        match execute(context, op, Attrs::new(), &[old.into(), delta]) {
            Ok(mut results) => {
                *value = results.remove(0).into_host()?;
                Ok(())
            }
            Err(error) => {
                *value = kept;
                Err(error)
            }
        }
    })?;
    none()
}

/// Source: `Regularizations::EigenShrinkVector` in TensorFlow's `sdca_internal.h`.
fn shrink(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let by = call.attrs.float("l1")? / call.attrs.float("l2")?;
    for index in 0..call.inputs.len() {
        let weights: Arc<VariableState> = call.resource(index, A_VARIABLE)?;
        weights.update(|tensor| {
            for weight in tensor.as_mut_slice::<f32>()? {
                let sign = f32::from(i8::from(*weight > 0.0) - i8::from(*weight < 0.0));
                *weight = sign * (weight.abs() - by).max(0.0);
            }
            Ok(())
        })?;
    }
    none()
}

/// The ops here that take and return tensors wherever they are.
pub(super) const ANYWHERE: &[&str] =
    &["AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "ReadVariableOp"];

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AssignAddVariableOp", add),
    ("AssignSubVariableOp", sub),
    ("AssignVariableOp", assign),
    ("AssignVariableXlaConcatND", assign_blocks),
    ("DestroyResourceOp", destroy),
    ("DisableCopyOnRead", disable_copy_on_read),
    ("ResourceCountUpTo", count_up_to),
    ("ReadVariableOp", read),
    ("ReadVariableXlaSplitND", read_blocks),
    ("Timestamp", timestamp),
    ("VarHandleOp", var_handle),
    ("VarIsInitializedOp", is_initialized),
    ("VariableShape", shape_of),
    ("_ReadVariablesOp", read_all),
    ("_SdcaShrinkL1", shrink),
    ("_SelectHandle", select_handle),
    ("_TemporaryVariable", temporary),
    ("_TemporaryZeros", temporary_zeros),
    ("_VarHandlesOp", var_handles),
    ("_WriteRow", write_row),
    ("_XlaAotOnlyVarHandleOp", var_handle),
];
