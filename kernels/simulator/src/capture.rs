//! Streams that are captured: their jobs become a graph instead of being done.

use crate::world::{CudaResult, Node, SimulatedWorld, StreamCapture};
use cudarc::driver::sys::CUresult;
use std::{collections::BTreeSet, sync::Arc};

impl SimulatedWorld {
    pub(crate) fn begin_capture(&mut self, stream: usize) -> CudaResult {
        self.alive()?;
        self.not_captured(stream)?;
        let capture = self.handle();
        self.stream(stream)?.captured = Some((capture, Vec::new()));
        let state = StreamCapture { origin: stream, nodes: Vec::new(), broken: None };
        self.captures.insert(capture, state);
        Ok(())
    }

    /// The graph of what was captured.
    pub(crate) fn end_capture(&mut self, stream: usize) -> CudaResult<usize> {
        let Some((capture, last)) = self.stream(stream)?.captured.clone() else {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        };
        if self.captures.get(&capture).is_none_or(|state| state.origin != stream) {
            return Err(self.broken(capture, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
        }
        let Some(state) = self.captures.remove(&capture) else {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        };
        let joined = before(&state.nodes, &last);
        let mut unjoined = false;
        for other in self.streams.values_mut() {
            if other.captured.as_ref().is_some_and(|(own, _)| *own == capture) {
                let (_, ends) = other.captured.take().unwrap_or_default();
                unjoined |= ends.iter().any(|end| !joined.contains(end));
            }
        }
        for event in self.events.values_mut() {
            event.captured.take_if(|(own, _)| *own == capture);
        }
        if let Some(reason) = state.broken {
            return Err(reason);
        }
        if unjoined {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        }
        let graph = self.handle();
        self.graphs.insert(graph, Arc::new(state.nodes));
        Ok(graph)
    }

    /// Fails, and breaks the capture, if a stream is captured.
    pub(crate) fn not_captured(&mut self, stream: usize) -> CudaResult {
        match self.stream(stream)?.captured.clone() {
            None => Ok(()),
            Some((capture, _)) => {
                Err(self.broken(capture, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED))
            }
        }
    }

    /// Fails, and breaks what is captured, if any stream is. So much for calls that concern all.
    pub(crate) fn nothing_captured(&mut self) -> CudaResult {
        match self.captures.keys().next().copied() {
            None => Ok(()),
            Some(capture) => {
                Err(self.broken(capture, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED))
            }
        }
    }

    pub(crate) fn broken(&mut self, capture: usize, why: CUresult) -> CUresult {
        if let Some(state) = self.captures.get_mut(&capture) {
            state.broken.get_or_insert(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        }
        why
    }

    pub(crate) fn node(&mut self, capture: usize, node: Node) -> CudaResult<usize> {
        let state = self.captures.get_mut(&capture).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?;
        state.nodes.push(node);
        Ok(state.nodes.len() - 1)
    }
}

/// Jobs, and all that come before them.
fn before(nodes: &[Node], last: &[usize]) -> BTreeSet<usize> {
    let (mut found, mut rest) = (BTreeSet::new(), last.to_vec());
    while let Some(node) = rest.pop() {
        if found.insert(node) {
            rest.extend(&nodes[node].after);
        }
    }
    found
}
