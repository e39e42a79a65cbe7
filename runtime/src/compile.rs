//! Compilation: from a function to an executable.

use crate::{
    eager_tensor::EagerTensor,
    error::Result,
    executor::Executable,
    optimize::optimize,
    panics::caught,
    placement::PlacementRequest,
    plan::plan,
    scope::{OwnedScope, Scope},
};
use ferroflow_ir::{FunctionDef, HostTensor, device_name::DeviceName, pass::specialize::Argument};
use ferroflow_kernels::{Buffer, Device};
use std::sync::Arc;

/// Compiles a function whose last arguments are always `captured`.
///
/// # Errors
///
/// What makes it impossible to run, whatever the data.
pub(crate) fn compile(
    scope: &OwnedScope,
    def: &FunctionDef,
    args: &[Argument],
    captured: Vec<HostTensor>,
    request: &PlacementRequest,
) -> Result<Executable> {
    caught(&scope.context, || {
        let placed = optimize(scope, def, args, &captured, request)?;
        Ok(Executable::new(plan(&scope.context, &placed, captured)?))
    })
}

/// The placement request of a call on inputs like these.
///
/// # Errors
///
/// When an input is on a device that the context does not have.
pub(crate) fn request(
    scope: Scope<'_>,
    device: Option<&Arc<dyn Device>>,
    inputs: &[&EagerTensor],
) -> Result<PlacementRequest> {
    let device_of = |input: &&EagerTensor| match input.buffer() {
        Buffer::Host(_) => Ok(None),
        Buffer::Device(buffer) => {
            let name: DeviceName = buffer.device.parse()?;
            scope.context.device(&name).map(Some)
        }
    };
    let args: Result<Vec<_>> = inputs.iter().map(device_of).collect();
    Ok(PlacementRequest { device: device.cloned(), args: args? })
}
