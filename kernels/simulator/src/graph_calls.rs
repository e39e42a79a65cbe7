//! The driver's functions about graphs and streams that are captured.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use crate::{
    calls::{answer, put},
    world::world,
};
use cudarc::driver::sys::{
    CUgraph, CUgraphExec, CUresult, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use std::ffi::c_ulonglong;

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(stream: CUstream, _: CUstreamCaptureMode) -> CUresult {
    answer(world().begin_capture(stream as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: CUstream, to: *mut CUgraph) -> CUresult {
    let graph = world().end_capture(stream as usize);
    // SAFETY: the caller gives a place for the result.
    answer(graph.and_then(|graph| unsafe { put(to, graph as CUgraph) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(
    stream: CUstream,
    to: *mut CUstreamCaptureStatus,
) -> CUresult {
    let mut world = world();
    let status = world.stream(stream as usize).map(|stream| match stream.captured {
        None => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        Some(_) => CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE,
    });
    // SAFETY: the caller gives a place for the result.
    answer(status.and_then(|status| unsafe { put(to, status) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    to: *mut CUgraphExec,
    graph: CUgraph,
    _: c_ulonglong,
) -> CUresult {
    let mut world = world();
    let nodes = world.graphs.get(&(graph as usize)).cloned();
    let made = nodes.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE).and_then(|nodes| {
        let handle = world.handle();
        world.graphs.insert(handle, nodes);
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, handle as CUgraphExec) }
    });
    answer(made)
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(graph: CUgraphExec, stream: CUstream) -> CUresult {
    let mut world = world();
    let nodes = world.graphs.get(&(graph as usize)).cloned();
    let nodes = nodes.ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE);
    answer(nodes.and_then(|nodes| world.push_graph(stream as usize, nodes)))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphUpload(_: CUgraphExec, _: CUstream) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(graph: CUgraphExec) -> CUresult {
    let found = world().graphs.remove(&(graph as usize));
    answer(found.map(|_| ()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(graph: CUgraph) -> CUresult {
    let found = world().graphs.remove(&(graph as usize));
    answer(found.map(|_| ()).ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE))
}
