//! The part of a run that happens on devices.

use crate::{
    eager_tensor::EagerTensor,
    error::Result,
    execute::{Scope, execute_op},
    executor::{Run, missing},
    ops::RuntimeCall,
    panics::caught,
    plan::{DeviceOpAction, DeviceStep, Operand, Place, SequenceAction},
};
use ferroflow_kernels::{Buffer, Device, DeviceBuffer, Io, Operand as Input, Target};
use smallvec::SmallVec;
use std::sync::Arc;

impl Run<'_> {
    pub(crate) fn device_step(&mut self, step: &DeviceStep) -> Result<()> {
        let run = |run: &mut Self| {
            run.launch(step).map_err(|error| step.origin.locate(error))?;
            Ok(step.sinks.iter().map(|(_, dtype, shape)| bytes(*dtype, shape)).sum())
        };
        match self.scope.profile {
            None => run(self).map(|_: usize| ()),
            Some(profile) => profile.note_on(&step.origin, step.device.name(), || run(self)),
        }
    }

    fn launch(&mut self, step: &DeviceStep) -> Result<()> {
        let mut outputs: SmallVec<[DeviceBuffer; 2]> = SmallVec::new();
        for (_, dtype, shape) in &step.sinks {
            outputs.push(device_buffer(step.device.allocate(*dtype, shape)?)?);
        }
        let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
        for source in &step.sources {
            inputs.push(match source {
                None => Input::Plain(&[]),
                Some(slot) => {
                    let buffer = self.frame.device_slot(*slot);
                    Input::Device(buffer.ok_or_else(|| missing("a value"))?)
                }
            });
        }
        let context = self.scope.context;
        let targets = outputs.iter().map(Target::Device);
        let limit = context.limits().tensor_bytes;
        step.kernel.run(&mut Io::new(inputs, targets, context.threads(), limit))?;
        for ((slot, ..), output) in step.sinks.iter().zip(outputs) {
            *self.frame.device_slot_mut(*slot) = Some(output);
        }
        Ok(())
    }

    pub(crate) fn sequence(&mut self, action: &SequenceAction) -> Result<()> {
        let mut inputs: SmallVec<[DeviceBuffer; 8]> = SmallVec::new();
        for slot in &action.inputs {
            let found = self.frame.device_slot(*slot).ok_or_else(|| missing("a value"))?;
            inputs.push(found.clone());
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
            *self.frame.device_slot_mut(*slot) = Some(output);
        }
        Ok(())
    }

    pub(crate) fn device_op(&mut self, action: &DeviceOpAction) -> Result<()> {
        let run = |run: &mut Self| {
            run.device_results(action).map_err(|error| action.origin.locate(error))?;
            Ok(0)
        };
        match self.scope.profile {
            None => run(self).map(|_: usize| ()),
            Some(profile) => profile.note_on(&action.origin, action.device.name(), || run(self)),
        }
    }

    fn device_results(&mut self, action: &DeviceOpAction) -> Result<()> {
        let mut inputs: SmallVec<[EagerTensor; 4]> = SmallVec::new();
        for input in &action.inputs {
            inputs.push(self.tensor(input)?);
        }
        let (op, attrs) = (action.op, &*action.attrs);
        let scope =
            Scope { origin: Some(&action.origin), device: Some(&action.device), ..self.scope };
        let results = match action.body {
            Some(body) => caught(|| body(&mut RuntimeCall { scope, op, attrs, inputs }))?,
            None => execute_op(scope, op, attrs, inputs)?,
        };
        for (place, result) in action.outputs.iter().zip(results) {
            self.put(result, place, &action.device)?;
        }
        Ok(())
    }

    pub(crate) fn transfer(
        &mut self,
        from: &Operand,
        to: &Place,
        device: &Arc<dyn Device>,
    ) -> Result<()> {
        let value = self.tensor(from)?;
        self.put(value, to, device)
    }

    /// Puts a value to a slot of the host or of a device, wherever it is now.
    fn put(&mut self, value: EagerTensor, to: &Place, device: &Arc<dyn Device>) -> Result<()> {
        match to {
            Place::Device(slot) => {
                *self.frame.device_slot_mut(*slot) = Some(on_device(&value, device)?);
            }
            Place::Slot(slot, _) => *self.frame.slot_mut(*slot) = Some(value.into_host()?),
            Place::Arena(_) => return Err(missing("a slot")),
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
    if let Buffer::Device(buffer) = value.buffer() {
        if *buffer.device == *device.name() {
            return Ok(buffer.clone());
        }
        if let Some(received) = device.receive(buffer)? {
            return device_buffer(received);
        }
    }
    device_buffer(device.upload(value.host()?)?)
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

fn bytes(dtype: ferroflow_ir::DType, shape: &ferroflow_ir::Shape) -> usize {
    ferroflow_ir::host_tensor::byte_len(dtype, shape).unwrap_or(0)
}
