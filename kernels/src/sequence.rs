//! Calls that follow each other on one device.
//!
//! A device that can start many calls at once is given a [`KernelGraphPlan`]: calls in order, with the values
//! they read and write. Inner values are seen by these calls alone, so they need no memory of their
//! own for each run.

use crate::{
    buffer::DeviceBuffer,
    error::{Error, Result},
    kernel::Kernel,
    threads::Threads,
};
use ferroflow_ir::{DType, Shape};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

/// Calls of kernels of one device, in an order in which they may run.
#[derive(Default)]
pub struct KernelGraphPlan {
    /// The calls.
    pub calls: Vec<KernelLaunch>,
    /// The values that they read and write.
    pub values: Vec<PlanValue>,
}

/// A call of a kernel.
pub struct KernelLaunch {
    /// The kernel, of the plan's device.
    pub kernel: Arc<dyn Kernel>,
    /// The values it reads; `None` for what it was compiled with.
    pub sources: SmallVec<[Option<usize>; 4]>,
    /// The values it writes, which nobody wrote before.
    pub sinks: SmallVec<[usize; 2]>,
}

/// A value of a plan: who sees it besides the calls.
#[derive(Debug, Clone)]
pub enum PlanValue {
    /// It is given, as the input of this number.
    Input(usize),
    /// It is a result, as the output of this number.
    Output(usize),
    /// Nobody does. Its element type and shape.
    Inner(DType, Shape),
}

/// A plan that a device has made ready.
pub trait Sequence: Send + Sync + fmt::Debug {
    /// Runs all calls on these inputs, into these outputs.
    ///
    /// # Errors
    ///
    /// The number of the call that failed, with its error.
    fn run(
        &self,
        inputs: &[DeviceBuffer],
        outputs: &[DeviceBuffer],
        threads: &Threads,
        limit: usize,
    ) -> Result<(), (usize, Error)>;
}
