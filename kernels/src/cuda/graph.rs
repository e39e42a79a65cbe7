//! Work that is captured and started as a whole.

#![expect(unsafe_code, reason = "the driver is called through pointers")]

use super::driver::Driver;
use crate::{error::Result, schedule::MOST_LANES};
use cudarc::driver::{CudaEvent, CudaGraph, CudaStream, result, sys};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Captured work.
pub(super) struct CapturedGraph {
    driver: Arc<Driver>,
    /// None only while it is dropped.
    graph: Option<CudaGraph>,
}

// SAFETY: the driver lets any thread use a graph, though not two at once. Nothing is done with one
// through a shared reference but starting it, by whoever holds the lock of its sequence.
unsafe impl Send for CapturedGraph {}

impl CapturedGraph {
    /// Starts it on the main queue.
    pub(super) fn launch(&self, driver: &Driver) -> Result<()> {
        driver.ready()?;
        let Some(graph) = &self.graph else { return Ok(()) };
        // SAFETY: the graph was made for this context, and memory that it names is that of its
        // sequence, or of inputs and outputs at the addresses it was captured with, which whoever
        // starts it has just seen.
        unsafe { result::graph::launch(graph.cu_graph_exec(), driver.main.cu_stream()) }
            .map_err(|error| driver.failed(error))
    }
}

impl Drop for CapturedGraph {
    fn drop(&mut self) {
        // It may still run. Where that cannot be waited for, it is left to the end of the process.
        let done = self.driver.ready().is_ok() && self.driver.main.synchronize().is_ok();
        let graph = self.graph.take();
        if !done {
            std::mem::forget(graph);
        }
    }
}

/// Queues that are being captured, by one thread. The first is where capture began and ends.
pub(super) struct CaptureStreams<'a> {
    driver: &'a Arc<Driver>,
    /// Held for as long as there are these lanes.
    _alone: MutexGuard<'a, ()>,
    streams: &'a [Arc<CudaStream>; MOST_LANES],
    /// When the capture began, where lanes begin that wait for nobody.
    start: CudaEvent,
    has_begun: [bool; MOST_LANES],
    /// When each call so far was done, and its lane.
    done: Vec<(usize, CudaEvent)>,
}

impl<'a> CaptureStreams<'a> {
    /// Begins to capture.
    pub(super) fn begin(driver: &'a Arc<Driver>) -> Result<CaptureStreams<'a>> {
        driver.ready()?;
        let (alone, streams) = (driver.capturing.lock(), &driver.lanes);
        let failed = |error| driver.failed(error);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        streams[0].begin_capture(mode).map_err(failed)?;
        let start = streams[0].record_event(None);
        let start = match start {
            Ok(start) => start,
            Err(error) => {
                // What went wrong is told by the first error.
                let _ = streams[0].end_capture(sys::CUgraphInstantiate_flags(0));
                return Err(failed(error));
            }
        };
        let mut has_begun = [false; MOST_LANES];
        has_begun[0] = true;
        Ok(CaptureStreams { driver, _alone: alone, streams, start, has_begun, done: Vec::new() })
    }

    /// Makes the next call of a lane wait for these calls.
    pub(super) fn wait(&mut self, lane: usize, calls: &[usize]) -> Result<()> {
        let failed = |error| self.driver.failed(error);
        let stream = &self.streams[lane];
        if !self.has_begun[lane] {
            stream.wait(&self.start).map_err(failed)?;
            self.has_begun[lane] = true;
        }
        calls.iter().try_for_each(|&call| stream.wait(&self.done[call].1).map_err(failed))
    }

    /// Notes that the next call is captured, on a lane.
    pub(super) fn done(&mut self, lane: usize) -> Result<()> {
        let event = self.streams[lane].record_event(None);
        self.done.push((lane, event.map_err(|error| self.driver.failed(error))?));
        Ok(())
    }

    /// Graph that was captured.
    pub(super) fn end(self) -> Result<CapturedGraph> {
        let failed = |error| self.driver.failed(error);
        let mut joined = Ok(());
        for lane in 1..MOST_LANES {
            if self.has_begun[lane] {
                let last = self.done.iter().rev().find(|(own, _)| *own == lane);
                let last = last.map_or(&self.start, |(_, event)| event);
                joined = joined.and(self.streams[0].wait(last).map_err(failed));
            }
        }
        let graph = self.streams[0].end_capture(sys::CUgraphInstantiate_flags(0));
        joined?;
        let graph = graph.map_err(failed)?;
        Ok(CapturedGraph { driver: self.driver.clone(), graph })
    }
}
