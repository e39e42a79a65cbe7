//! From a specialised function to a linear program.
//!
//! 1. `planner` walks the nodes in order and makes an action of each (a kernel on known shapes, an op
//!    whose shapes come at run time, a body in the runtime, a loop, a branch). Results are buffers, if
//!    they are plain elements of known shape in host memory, or slots. A view of a value is a range of
//!    its root. Every buffer has addresses of its own.
//! 2. `liveness` derives from the list of actions when buffers are in use, and after which action each
//!    slot is dead. Nothing else counts uses.
//! 3. `memory` gives buffers offsets in one arena: values are computed where they are copied to (`coalesce`), and
//!    steps write over operands that are dead (donation).
//! 4. `layout` knows the addresses and the deaths; `lower` moves the actions from the addresses of buffers to the arena, has them empty slots, and
//!    groups those that run as one.
//! 5. `validate` runs them symbolically against the graph, if the context's switches ask for it.
//!
//! Loops and branches are nested lists of the same program: their bodies work on the same arena and
//! slots, so entering one costs nothing. Where they compute single numbers only, `scalar` makes
//! one action of them.

pub(crate) mod action;
mod body;
mod buffers;
mod coalesce;
mod control;
mod device;
pub(crate) mod estimate;
mod faults;
mod kernel_graph;
mod layout;
mod liveness;
mod lower;
mod memory;
mod planner;
mod scalar;
mod step;
mod validate;

use crate::{origin::NodeOrigin, placement::Placement};
use action::{Scheduled, TensorOperand};
use ferroflow_kernels::Buffer;

pub(crate) use planner::plan;

/// A compiled function.
#[derive(Debug)]
pub(crate) struct ExecutionPlan {
    pub(crate) actions: Vec<Scheduled>,
    /// Bytes of arena.
    pub(crate) arena: usize,
    pub(crate) n_slots: usize,
    /// Slots that hold constants in every frame, in ascending order.
    pub(crate) constants: Vec<(usize, Buffer)>,
    /// The arguments that are not constants.
    pub(crate) args: Vec<ProgramArgument>,
    pub(crate) results: Vec<TensorOperand>,
    /// The devices of all nodes; `None` where everything is on the host.
    pub(crate) placement: Option<Box<Placement>>,
}

/// An argument of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramArgument {
    pub(crate) slot: usize,
    /// Whether it comes in the memory of a device.
    pub(crate) on_device: bool,
}

impl ExecutionPlan {
    /// Visits the nodes that actions stem from.
    pub(crate) fn for_each_origin(&self, visit: &mut impl FnMut(&NodeOrigin)) {
        action::for_each_origin(&self.actions, visit);
    }
}
