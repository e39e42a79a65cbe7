//! Estimates of the memory that a run of a program takes, from the plan alone.

use super::{
    ExecutionPlan,
    action::{Action, GroupProgram, Scheduled},
};
use ferroflow_ir::{PartialShape, Shape, host_tensor::byte_len};
use ferroflow_kernels::{
    Buffer,
    frame::{LaunchStep, StepSink},
};
use std::collections::HashMap;

/// The memory that a call takes, as far as it is known before the call.
///
/// Workspaces of kernels are not part of it, nor is what depends on values: `n_unknown` tells how many
/// results of nodes have a size that only the call tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// Bytes of the arena, which values of known size share, and which stays with the function.
    pub arena: usize,
    /// Bytes of the constants and captures of the function.
    pub constants: usize,
    /// The most bytes of tensors of known size that are alive at a time besides these.
    pub tensors: usize,
    /// Bytes of the results of known size.
    pub results: usize,
    /// The number of results of nodes whose size depends on values.
    pub n_unknown: usize,
}

impl MemoryEstimate {
    /// Bytes that the call takes at least, if all its loops run and all its branches may.
    pub fn total(&self) -> usize {
        self.arena.saturating_add(self.constants).saturating_add(self.tensors)
    }
}

impl ExecutionPlan {
    /// The memory that a run takes.
    pub(crate) fn memory_estimate(&self) -> MemoryEstimate {
        let mut live = LiveTensors::default();
        live.actions(&self.actions);
        let constants = self.constants.iter().map(|(_, value)| buffer_bytes(value)).sum();
        let results = self.results.iter().filter_map(|result| {
            result.shape.as_ref().and_then(|shape| byte_len(result.dtype, shape).ok())
        });
        let in_arena = self.results.iter().filter(|result| result.place.slot().is_none());
        // Results in the arena are copied to tensors when the run is over.
        let copied: usize = in_arena
            .filter_map(|result| byte_len(result.dtype, result.shape.as_ref()?).ok())
            .fold(0, usize::saturating_add);
        MemoryEstimate {
            arena: self.arena,
            constants,
            tensors: live.peak.max(live.now.saturating_add(copied)),
            results: results.fold(0, usize::saturating_add),
            n_unknown: live.n_unknown,
        }
    }
}

/// The tensors in slots at a point of a program.
#[derive(Default)]
struct LiveTensors {
    slots: HashMap<usize, usize>,
    now: usize,
    peak: usize,
    n_unknown: usize,
}

impl LiveTensors {
    fn actions(&mut self, actions: &[Scheduled]) {
        for Scheduled { action, dead, .. } in actions {
            self.action(action);
            for slot in dead {
                self.now -= self.slots.remove(slot).unwrap_or(0);
            }
        }
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Kernel(kernel) => self.step(&kernel.step),
            Action::Op(op) => {
                for output in &op.outputs {
                    if let Some(slot) = output.slot {
                        self.value(slot, op_bytes(output.ty.dtype.size(), &output.ty.shape));
                    }
                }
            }
            Action::Copy(copy) => {
                let shape = copy.from.shape.as_ref();
                let bytes = shape.and_then(|shape| byte_len(copy.from.dtype, shape).ok());
                if let Some(slot) = copy.to.slot() {
                    self.value(slot, bytes);
                }
            }
            Action::While(_) | Action::Branch(_) => {
                action.nested().into_iter().for_each(|nested| self.actions(nested));
            }
            Action::Group(group) => match &group.program {
                GroupProgram::Scalar(_) | GroupProgram::KernelGraph(_) => {
                    self.actions(&group.actions);
                }
            },
            Action::Fail(_) => {}
        }
    }

    fn step(&mut self, step: &LaunchStep) {
        for sink in step.sinks() {
            match sink {
                StepSink::Arena(_) | StepSink::Unread => {}
                StepSink::Slot(slot, dtype, shape) => {
                    self.value(*slot, byte_len(*dtype, shape).ok())
                }
                StepSink::Unknown(slot) => self.value(*slot, None),
            }
        }
    }

    fn value(&mut self, slot: usize, bytes: Option<usize>) {
        self.n_unknown += usize::from(bytes.is_none());
        let before = self.slots.insert(slot, bytes.unwrap_or(0)).unwrap_or(0);
        self.now = (self.now - before).saturating_add(bytes.unwrap_or(0));
        self.peak = self.peak.max(self.now);
    }
}

fn op_bytes(size: Option<usize>, shape: &PartialShape) -> Option<usize> {
    let shape: Shape = shape.known()?;
    shape.num_elements().checked_mul(size?)
}

fn buffer_bytes(buffer: &Buffer) -> usize {
    let size = buffer.dtype().size().unwrap_or(0);
    buffer.shape().num_elements().saturating_mul(size)
}
