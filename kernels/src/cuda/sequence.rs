//! Calls that are started together: CUDA graphs.
//!
//! A run whose inputs and outputs lie where those of an earlier one lay starts a graph, one call of
//! the driver for all calls of kernels. Memory comes from a pool that gives out what was given back
//! last, so that runs soon lie where others did. The first such run is made call by call, on the
//! main queue, and the second is captured: by then whatever kernels do once is done. Calls that do
//! not wait for each other are captured on several lanes, and the device runs them side by side.
//!
//! Inner values lie in memory of the sequence's own. Runs of several threads share it: they are
//! started one after the other, and come after each other in the main queue.

use super::{
    driver::Driver,
    graph::{CaptureStreams, CapturedGraph},
    memory::CudaMemory,
};
use crate::{
    buffer::DeviceBuffer,
    error::{Error, Result},
    kernel::{Io, Operand, Target},
    schedule::LaunchSchedule,
    sequence::{KernelGraphPlan, PlanValue, Sequence},
    threads::Threads,
};
use ferroflow_ir::{DType, Shape};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock},
};

/// Graphs that are kept for one sequence.
const MOST_GRAPHS: usize = 8;

/// Runs that are remembered to see whether one comes again.
const MOST_SEEN: usize = 32;

/// Where values begin, for the driver.
const ALIGNMENT: usize = 256;

/// A plan with memory for its inner values, and its graphs.
pub(super) struct CudaSequence {
    driver: Arc<Driver>,
    plan: KernelGraphPlan,
    schedule: LaunchSchedule,
    /// The inner values, once there was a run.
    inner: OnceLock<Vec<Option<DeviceBuffer>>>,
    /// Held while a run is started: what lies between calls are the same inner values for all runs.
    graphs: Mutex<Graphs>,
}

/// Where a run's inputs and outputs lie: their addresses and lengths.
type Key = SmallVec<[(u64, usize); 8]>;

#[derive(Default)]
struct Graphs {
    /// Those used last at the end.
    kept: VecDeque<(Key, CapturedGraph)>,
    seen: VecDeque<Key>,
    /// Whether a kernel cannot be captured, so that nobody tries again.
    refused: bool,
}

/// Memory of a run.
struct Frame<'a> {
    inputs: &'a [DeviceBuffer],
    outputs: &'a [DeviceBuffer],
    inner: &'a [Option<DeviceBuffer>],
    threads: &'a Threads,
    limit: usize,
}

impl fmt::Debug for CudaSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graphs = self.graphs.lock();
        f.debug_struct("CudaSequence")
            .field("calls", &self.plan.calls.len())
            .field("graphs", &graphs.kept.len())
            .field("refused", &graphs.refused)
            .finish_non_exhaustive()
    }
}

impl CudaSequence {
    /// `size` tells the bytes that a value takes.
    pub(super) fn new(
        driver: &Arc<Driver>,
        plan: KernelGraphPlan,
        size: impl Fn(DType, &Shape) -> usize,
    ) -> CudaSequence {
        let schedule = LaunchSchedule::new(&plan, size, ALIGNMENT);
        let (inner, graphs) = Default::default();
        CudaSequence { driver: driver.clone(), plan, schedule, inner, graphs }
    }

    /// The inner values, of which those of all runs are the same.
    fn inner(&self) -> Result<&[Option<DeviceBuffer>]> {
        if let Some(inner) = self.inner.get() {
            return Ok(inner);
        }
        let whole = Arc::new(CudaMemory::new(&self.driver, self.schedule.bytes)?);
        let mut inner = Vec::with_capacity(self.plan.values.len());
        for (value, offset) in self.plan.values.iter().zip(&self.schedule.offsets) {
            inner.push(match (value, offset) {
                (PlanValue::Inner(dtype, shape), Some(offset)) => {
                    let part = CudaMemory::part(&whole, *offset, self.schedule.bytes - offset)?;
                    let (shape, device) = (shape.clone(), self.driver.name.clone());
                    Some(DeviceBuffer::new(*dtype, shape, device, Arc::new(part)))
                }
                _ => None,
            });
        }
        Ok(self.inner.get_or_init(|| inner))
    }

    /// Runs a call on a queue: 0 is the main one, the others are lanes.
    fn call(&self, at: usize, queue: usize, frame: &Frame<'_>) -> Result<()> {
        let call = &self.plan.calls[at];
        let buffer = |value: usize| match self.plan.values[value] {
            PlanValue::Input(input) => frame.inputs.get(input),
            PlanValue::Output(output) => frame.outputs.get(output),
            PlanValue::Inner(..) => frame.inner[value].as_ref(),
        };
        let missing = || Error::WrongDevice {
            expected: self.driver.name.to_string(),
            found: "nowhere".into(),
        };
        let mut io = Io::empty(frame.threads, frame.limit);
        io.set_queue(queue);
        for source in &call.sources {
            io.read(match source {
                None => Operand::Plain(&[]),
                Some(value) => Operand::Device(buffer(*value).ok_or_else(missing)?),
            });
        }
        for &sink in &call.sinks {
            io.write(Target::Device(buffer(sink).ok_or_else(missing)?));
        }
        call.kernel.run(&mut io)
    }

    fn run_plainly(&self, frame: &Frame<'_>) -> Result<(), (usize, Error)> {
        (0..self.plan.calls.len())
            .try_for_each(|at| self.call(at, 0, frame).map_err(|error| (at, error)))
    }

    /// The graph of a run.
    fn capture(&self, frame: &Frame<'_>) -> Result<CapturedGraph> {
        let mut lanes = CaptureStreams::begin(&self.driver)?;
        let outcome = (0..self.plan.calls.len()).try_for_each(|at| {
            let lane = self.schedule.lanes[at];
            lanes.wait(lane, &self.schedule.waits[at])?;
            self.call(at, lane + 1, frame)?;
            lanes.done(lane)
        });
        let graph = lanes.end();
        outcome.and(graph)
    }
}

/// Where a buffer lies.
fn place(buffer: &DeviceBuffer) -> (u64, usize) {
    let memory = buffer.memory.as_any().downcast_ref::<CudaMemory>();
    memory.map_or((0, 0), |memory| (*memory.address(), memory.len()))
}

impl Sequence for CudaSequence {
    fn run(
        &self,
        inputs: &[DeviceBuffer],
        outputs: &[DeviceBuffer],
        threads: &Threads,
        limit: usize,
    ) -> Result<(), (usize, Error)> {
        let key: Key = inputs.iter().chain(outputs).map(place).collect();
        let mut graphs = self.graphs.lock();
        if let Some(at) = graphs.kept.iter().position(|(kept, _)| *kept == key) {
            let started = graphs.kept[at].1.launch(&self.driver).map_err(|error| (0, error));
            if let Some(used) = graphs.kept.remove(at) {
                graphs.kept.push_back(used);
            }
            return started;
        }
        let inner = self.inner().map_err(|error| (0, error))?;
        let frame = Frame { inputs, outputs, inner, threads, limit };
        if graphs.refused || !graphs.seen.contains(&key) {
            graphs.seen.push_back(key);
            if graphs.seen.len() > MOST_SEEN {
                graphs.seen.pop_front();
            }
            return self.run_plainly(&frame);
        }
        match self.capture(&frame) {
            Ok(graph) => {
                let started = graph.launch(&self.driver).map_err(|error| (0, error));
                if graphs.kept.len() == MOST_GRAPHS {
                    graphs.kept.pop_front();
                }
                graphs.seen.retain(|seen| *seen != key);
                graphs.kept.push_back((key, graph));
                started
            }
            Err(error @ Error::DeviceLost { .. }) => Err((0, error)),
            Err(_) => {
                graphs.refused = true;
                self.run_plainly(&frame)
            }
        }
    }
}
