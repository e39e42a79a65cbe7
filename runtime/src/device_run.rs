//! Kernel graphs, and tensors in the memory of devices.

use crate::{
    eager_tensor::EagerTensor,
    error::Result,
    plan::kernel_graph::KernelGraph,
    run::{Run, missing},
};
use ferroflow_kernels::{Buffer, Device, DeviceBuffer};
use smallvec::SmallVec;
use std::sync::Arc;

impl Run<'_> {
    /// Starts the calls of a kernel graph.
    pub(crate) fn kernel_graph(&mut self, action: &KernelGraph) -> Result<()> {
        let mut inputs: SmallVec<[DeviceBuffer; 8]> = SmallVec::new();
        for slot in &action.inputs {
            let found = self.frame.slot(*slot).ok_or_else(|| missing("a value"))?;
            inputs.push(device_buffer(found.clone())?);
        }
        let first = &action.origins[0];
        let mut outputs: SmallVec<[DeviceBuffer; 4]> = SmallVec::new();
        for (_, dtype, shape) in &action.outputs {
            let made = action.device.allocate(*dtype, shape);
            outputs.push(device_buffer(made.map_err(|error| first.locate(error))?)?);
        }
        let context = self.scope.context;
        let limit = context.limits().tensor_bytes;
        let run = action.sequence.run(&inputs, &outputs, context.threads(), limit);
        run.map_err(|(call, error)| action.origins.get(call).unwrap_or(first).locate(error))?;
        for ((slot, ..), output) in action.outputs.iter().zip(outputs) {
            *self.frame.slot_mut(*slot) = Some(Buffer::Device(output));
        }
        Ok(())
    }
}

/// A tensor in the memory of a device, to which it is copied unless it is there.
///
/// # Errors
///
/// When the device cannot hold it, or the copy fails.
pub(crate) fn on_device(value: &EagerTensor, device: &Arc<dyn Device>) -> Result<DeviceBuffer> {
    device_buffer(device.upload(value.buffer())?)
}

/// The memory of a device, which it must be.
///
/// # Errors
///
/// When the device gave memory of the host.
pub(crate) fn device_buffer(buffer: Buffer) -> Result<DeviceBuffer> {
    match buffer {
        Buffer::Device(buffer) => Ok(buffer),
        Buffer::Host(_) => Err(missing("device memory")),
    }
}
