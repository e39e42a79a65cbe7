//! The driver's functions about memory.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use crate::{
    calls::{answer, current_device, put},
    memory::SimulatedMemory,
    world::{CudaResult, Job, SimulatedWorld, world},
};
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUresult, CUstream};
use std::{
    alloc::{self, Layout, LayoutError},
    ffi::{c_uchar, c_uint, c_void},
    ptr,
    sync::Arc,
};

/// Side of a copy that is the host's, where nothing is known of memory.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Host,
    Device,
}

/// The job that copies bytes.
fn copy((to, to_side): (usize, Side), (from, from_side): (usize, Side), bytes: usize) -> Job {
    Arc::new(move |memory: &mut SimulatedMemory| {
        for (at, side) in [(to, to_side), (from, from_side)] {
            if side == Side::Device {
                memory.expect(at, bytes)?;
            }
        }
        // SAFETY: memory of the device is alive and has so many bytes, as was just seen; that of
        // the host has by the caller's word, until the work is done.
        unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    })
}

/// The device of a stream, which the current context must be of.
fn owner(world: &mut SimulatedWorld, stream: CUstream) -> CudaResult<usize> {
    let (device, current) = (world.stream(stream as usize)?.device, current_device()?);
    if device == current { Ok(device) } else { Err(CUresult::CUDA_ERROR_INVALID_CONTEXT) }
}

fn enqueue(stream: CUstream, job: Job) -> CUresult {
    let mut world = world();
    answer(owner(&mut world, stream).and_then(|_| world.push(stream as usize, job)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocAsync(
    to: *mut CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let mut world = world();
    let stream = stream as usize;
    let mut make = || {
        let device = owner(&mut world, stream as CUstream)?;
        if world.stream(stream)?.captured.is_some() {
            // Graphs may hold memory of their own; that is not simulated.
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        let at = match world.memory.take(device, stream, bytes) {
            Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                world.synchronize_all()?;
                world.memory.trim()?;
                world.memory.take(device, stream, bytes)?
            }
            taken => taken?,
        };
        world.push(stream, Arc::new(move |memory: &mut SimulatedMemory| memory.revive(at)))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, at as CUdeviceptr) }
    };
    answer(make())
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeAsync(at: CUdeviceptr, stream: CUstream) -> CUresult {
    let mut world = world();
    let (at, stream) = (at as usize, stream as usize);
    let mut free = || {
        owner(&mut world, stream as CUstream)?;
        if world.stream(stream)?.captured.is_some() {
            return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
        }
        world.memory.free(at, stream)?;
        world.push(stream, Arc::new(move |memory: &mut SimulatedMemory| memory.kill(at)))
    };
    answer(free())
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(
    to: CUdeviceptr,
    from: *const c_void,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let job = copy((to as usize, Side::Device), (from as usize, Side::Host), bytes);
    enqueue(stream, job)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let job = copy((to as usize, Side::Host), (from as usize, Side::Device), bytes);
    enqueue(stream, job)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let job = copy((to as usize, Side::Device), (from as usize, Side::Device), bytes);
    enqueue(stream, job)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    to: CUdeviceptr,
    to_context: CUcontext,
    from: CUdeviceptr,
    from_context: CUcontext,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    {
        let world = world();
        for (at, context) in [(to, to_context), (from, from_context)] {
            match world.memory.device(at as usize) {
                Ok(device) if device + 1 == context as usize => {}
                Ok(_) => return CUresult::CUDA_ERROR_INVALID_CONTEXT,
                Err(error) => return error,
            }
        }
    }
    cuMemcpyDtoDAsync_v2(to, from, bytes, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(
    at: CUdeviceptr,
    value: c_uchar,
    bytes: usize,
    stream: CUstream,
) -> CUresult {
    let job: Job = Arc::new(move |memory: &mut SimulatedMemory| {
        memory.expect(at as usize, bytes)?;
        // SAFETY: so many bytes are alive there.
        unsafe { ptr::write_bytes(at as *mut u8, value, bytes) };
        Ok(())
    });
    enqueue(stream, job)
}

/// The host's memory is of one kind here: any may be read by the device.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(to: *mut *mut c_void, bytes: usize, _: c_uint) -> CUresult {
    let Ok(layout) = host_layout(bytes) else { return CUresult::CUDA_ERROR_INVALID_VALUE };
    // SAFETY: the size is not zero, and there is room for its own number before the memory.
    let at = unsafe {
        let whole = alloc::alloc(layout);
        if whole.is_null() {
            return CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        }
        whole.cast::<usize>().write(bytes);
        whole.add(HOST_ALIGNMENT)
    };
    // SAFETY: the caller gives a place for the result.
    answer(unsafe { put(to, at.cast()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeHost(at: *mut c_void) -> CUresult {
    // SAFETY: the caller has it from the function above, which wrote its size before it.
    unsafe {
        let whole = at.cast::<u8>().sub(HOST_ALIGNMENT);
        match host_layout(whole.cast::<usize>().read()) {
            Ok(layout) => alloc::dealloc(whole, layout),
            Err(_) => return CUresult::CUDA_ERROR_INVALID_VALUE,
        }
    }
    CUresult::CUDA_SUCCESS
}

const HOST_ALIGNMENT: usize = 256;

/// Memory of so many bytes, after as many as its alignment is.
fn host_layout(bytes: usize) -> Result<Layout, LayoutError> {
    Layout::from_size_align(bytes.saturating_add(HOST_ALIGNMENT), HOST_ALIGNMENT)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult {
    let world = world();
    let (most, used) = match current_device() {
        Ok(device) => (world.memory.most, world.memory.used(device)),
        Err(error) => return error,
    };
    // SAFETY: the caller gives places for the results.
    answer(unsafe { put(free, most.saturating_sub(used)).and_then(|()| put(total, most)) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(peer: CUcontext, _: c_uint) -> CUresult {
    match current_device() {
        Ok(device) if device + 1 != peer as usize => CUresult::CUDA_SUCCESS,
        Ok(_) => CUresult::CUDA_ERROR_INVALID_DEVICE,
        Err(error) => error,
    }
}
