//! Record of a run and its cost, for callers that ask.

use crate::{error::Result, origin::NodeOrigin, sync::Mutex};
use ferroflow_ir::clock::Instant;
use ferroflow_kernels::{Device, cost::OpCost};
use std::{sync::Arc, time::Duration};

/// Level of detail of the record of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceLevel {
    /// Nothing but the time of the whole.
    #[default]
    None,
    /// Every op: where it ran, when, and how large its results were.
    Ops,
}

/// Options of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// Level of detail.
    pub trace_level: TraceLevel,
}

/// Record of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunMetadata {
    /// The ops that ran, in order, as far as that was asked for. Ops that were computed ahead or
    /// became part of others are not among them; an op in a loop is, once for each time round.
    pub ops: Vec<OpStats>,
    /// The time of the whole run.
    pub elapsed: Duration,
    /// Bytes of the memory that values of known size share.
    pub arena_bytes: usize,
    /// Number of compilations of the function until now, at most one for each combination of input
    /// types. A number that goes on growing tells that more are in use than the context keeps
    /// (`ContextOptions::specializations`).
    pub compilations: usize,
}

/// Record of a single op.
#[derive(Clone, PartialEq, Debug)]
pub struct OpStats {
    /// The node.
    pub node: String,
    /// The op; `_Fused` and the like are several that run as one.
    pub op: String,
    /// The function the call was written in.
    pub function: String,
    /// The device.
    pub device: String,
    /// When it began, from the beginning of the run.
    pub start: Duration,
    /// Time it took.
    pub elapsed: Duration,
    /// Bytes of its results.
    pub output_bytes: usize,
    /// Arithmetic and bytes, by its operands and results: the time that the processor takes at least for that is
    /// [`MachineLimits::least_time`](ferroflow_kernels::machine::MachineLimits::least_time).
    pub cost: OpCost,
}

/// Notes of a run under way.
#[derive(Debug)]
pub(crate) struct RunProfile {
    began: Instant,
    ops: Mutex<Vec<Note>>,
}

/// An op that ran: when, how long, the bytes of its results, and what it costs.
#[derive(Debug)]
struct Note {
    origin: Arc<NodeOrigin>,
    /// The device, if not the CPU.
    device: Option<Box<str>>,
    start: Duration,
    elapsed: Duration,
    output_bytes: usize,
    cost: OpCost,
}

impl RunProfile {
    pub(crate) fn new() -> RunProfile {
        RunProfile { began: Instant::now(), ops: Mutex::default() }
    }

    /// Runs `op` and notes it; it returns the bytes of its results. The time of an op on a device is
    /// that of its start: devices go on by themselves.
    pub(crate) fn note(
        &self,
        origin: &Arc<NodeOrigin>,
        device: Option<&Arc<dyn Device>>,
        cost: OpCost,
        op: impl FnOnce() -> Result<usize>,
    ) -> Result<()> {
        let device = device.map(|device| device.name().into());
        let start = self.began.elapsed();
        let output_bytes = op()?;
        let elapsed = self.began.elapsed() - start;
        let note = Note { origin: origin.clone(), device, start, elapsed, output_bytes, cost };
        self.ops.lock().push(note);
        Ok(())
    }

    pub(crate) fn into_metadata(self, device: &str, arena_bytes: usize) -> RunMetadata {
        let elapsed = self.began.elapsed();
        let cpu = device;
        let stats = |Note { origin, device, start, elapsed, output_bytes, cost }: Note| OpStats {
            node: origin.node.to_string(),
            op: origin.op.to_string(),
            function: origin.function.to_string(),
            device: device.map_or_else(|| cpu.to_string(), String::from),
            start,
            elapsed,
            output_bytes,
            cost,
        };
        let ops = self.ops.into_inner().into_iter().map(stats).collect();
        RunMetadata { ops, elapsed, arena_bytes, compilations: 0 }
    }
}
