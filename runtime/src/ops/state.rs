//! Variables.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    execute::execute,
    placed_calls::execute_placed,
    resource::{Resource, ResourceHandle},
    variable::{ResourceVariable, VariableState},
};
use ferroflow_ir::{
    Attrs, Code, DType, Error as IrError, HostTensor, Shape,
    clock::{SystemTime, UNIX_EPOCH},
};
use std::sync::Arc;

const A_VARIABLE: &str = "a variable";

fn variable(call: &RuntimeCall<'_>) -> Result<Arc<VariableState>> {
    call.resource(0, A_VARIABLE)
}

fn var_handle(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let name = call.attrs.string("shared_name")?;
    let container = call.attrs.string("container")?;
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?.clone());
    let make = || -> Arc<dyn Resource> {
        ResourceVariable::uninitialized(name, dtype, shape, true).resource()
    };
    if name.is_empty() || name == ANONYMOUS {
        return one(ResourceHandle::owning(name, make()).to_tensor());
    }
    let resource = call.scope.resources.find_or_create(container, name, || Ok(make()))?;
    one(ResourceHandle::owning(name, resource).to_tensor())
}

/// The shared name by which TensorFlow asks for a variable nobody else can find.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

fn read(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let variable = variable(call)?;
    let dtype = call.attrs.dtype("dtype")?;
    match (call.scope.device, variable.home()) {
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
    match variable.home() {
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
    if let Some(home) = variable.home() {
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

/// The ops here that take and give tensors wherever they are.
pub(super) const ANYWHERE: &[&str] =
    &["AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp", "ReadVariableOp"];

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AssignAddVariableOp", add),
    ("AssignSubVariableOp", sub),
    ("AssignVariableOp", assign),
    ("DestroyResourceOp", destroy),
    ("DisableCopyOnRead", disable_copy_on_read),
    ("ResourceCountUpTo", count_up_to),
    ("ReadVariableOp", read),
    ("Timestamp", timestamp),
    ("VarHandleOp", var_handle),
    ("VarIsInitializedOp", is_initialized),
    ("VariableShape", shape_of),
];
