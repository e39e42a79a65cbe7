//! Runs of kernel graphs.

use crate::{
    eager_tensor::device_buffer,
    error::{Error, Result},
    plan::action::KernelGraph,
    run::ExecutableRun,
};
use ferroflow_kernels::{Buffer, DeviceBuffer};
use smallvec::SmallVec;

impl ExecutableRun<'_> {
    /// Starts the calls of a kernel graph.
    pub(crate) fn kernel_graph(&mut self, action: &KernelGraph) -> Result<()> {
        let mut inputs: SmallVec<[DeviceBuffer; 8]> = SmallVec::new();
        for slot in &action.inputs {
            let found = self.frame.slot(*slot).ok_or_else(|| Error::missing("a value"))?;
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
