//! Ops that need the context: state, calls, input and output.
//!
//! Each family's file ends with its table of bodies; an op's record says that it runs here.

use crate::context::Context;
use ferroflow_ir::{Lowering, OpDef, op::CallKind};
use std::{collections::HashMap, sync::OnceLock};

pub(crate) use crate::runtime_call::HostBody;
pub use crate::runtime_call::{RuntimeCall, RuntimeOpBody, none, one};
pub use dataset::{HostStream, dataset_stream, host_dataset};

mod accumulator;
mod barrier;
mod batching;
mod candidates;
mod collective;
mod composite;
mod csr;
mod dataset;
mod file;
mod list;
mod lock;
mod optional;
mod outlined;
mod print;
mod queue;
mod ragged;
mod random;
mod random_state;
mod replicated;
mod session;
mod source;
mod sparse_map;
mod staging_map;
mod state;
mod table;
mod tensor_array;
mod tensor_map;
#[cfg(feature = "text")]
mod text;
pub(crate) mod training;
pub(crate) mod training_on_device;
mod variable_part;
mod variant;

const BODIES: &[&[(&str, RuntimeOpBody)]] = &[
    accumulator::BODIES,
    barrier::BODIES,
    batching::BODIES,
    candidates::BODIES,
    collective::BODIES,
    composite::BODIES,
    csr::BODIES,
    dataset::BODIES,
    file::BODIES,
    list::BODIES,
    lock::BODIES,
    optional::BODIES,
    outlined::BODIES,
    print::BODIES,
    queue::BODIES,
    ragged::BODIES,
    random::BODIES,
    random_state::BODIES,
    replicated::BODIES,
    session::BODIES,
    source::BODIES,
    sparse_map::BODIES,
    staging_map::BODIES,
    state::BODIES,
    table::BODIES,
    tensor_array::BODIES,
    tensor_map::BODIES,
    #[cfg(feature = "text")]
    text::BODIES,
    variable_part::BODIES,
    variant::BODIES,
];

/// The body of an op, by name.
fn find(op: &str) -> Option<RuntimeOpBody> {
    static BY_NAME: OnceLock<HashMap<&'static str, RuntimeOpBody>> = OnceLock::new();
    let steps =
        training::OPTIMIZERS.iter().map(|(name, _)| (*name, training::body as RuntimeOpBody));
    let rows = || BODIES.iter().flat_map(|rows| rows.iter().copied()).chain(steps).collect();
    BY_NAME.get_or_init(rows).get(op).copied()
}

/// Whether an op takes and returns tensors in the memory of any device.
pub(crate) fn takes_any_device(op: &str) -> bool {
    state::ANYWHERE.contains(&op) || training_on_device::has_formulas(op)
}

/// Whether an op has to do with the variable of its first input, and with nothing else that could
/// change.
pub(crate) fn touches_one_variable(op: &str) -> bool {
    matches!(op, "ReadVariableOp" | "AssignVariableOp")
}

impl Context {
    /// The body of an op that runs in the runtime.
    pub(crate) fn body(&self, op: &OpDef) -> Option<HostBody> {
        find(op.name).map(HostBody::BuiltIn).or_else(|| self.host_op(op.name))
    }

    /// Whether some device or the runtime can run the op at all.
    pub fn supports(&self, op: &OpDef) -> bool {
        match op.lowering {
            Lowering::Interface => false,
            Lowering::Kernel | Lowering::HostKernel(_) => self.has_cpu_kernel(op),
            Lowering::Runtime => {
                // Where values come from: nothing is left to run.
                let is_source = matches!(op.name, "_Arg" | "Const");
                is_source || op.call != CallKind::None || self.body(op).is_some()
            }
            Lowering::Elementwise(_)
            | Lowering::Fused
            | Lowering::Reduce(_)
            | Lowering::Alias(_)
            | Lowering::View(_)
            | Lowering::Composite(_) => true,
        }
    }
}
