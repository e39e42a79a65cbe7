//! The driver's functions about devices, contexts, streams and events. Their meaning is that of
//! NVIDIA's *CUDA Driver API*.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use crate::{
    calls::{answer, current, current_device, put, set_current},
    world::{CudaResult, Event, Stream, world},
};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUevent, CUmemAccessDesc, CUmemPool_attribute,
    CUmemoryPool, CUresult, CUstream,
};
use std::{
    env,
    ffi::{c_char, c_int, c_uint, c_void},
};

const NAME: &[u8] = b"Simulated device\0";

fn devices() -> usize {
    match env::var("CUDA_VISIBLE_DEVICES") {
        Ok(names) if names.is_empty() => 0,
        _ => env::var("FERROFLOW_SIMULATED_DEVICES").ok().and_then(|n| n.parse().ok()).unwrap_or(1),
    }
}

fn device(device: CUdevice) -> CudaResult<usize> {
    let number = usize::try_from(device).ok().filter(|&number| number < devices());
    number.ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_: c_uint) -> CUresult {
    match devices() {
        0 => CUresult::CUDA_ERROR_NO_DEVICE,
        _ => CUresult::CUDA_SUCCESS,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(_: CUresult, name: *mut *const c_char) -> CUresult {
    // SAFETY: the caller gives a place for the result.
    answer(unsafe { put(name, c"simulated".as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(_: CUresult, text: *mut *const c_char) -> CUresult {
    // SAFETY: as above.
    answer(unsafe { put(text, c"an error of the simulator".as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    // SAFETY: as above.
    answer(unsafe { put(version, 13_000) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CUresult {
    // SAFETY: as above.
    answer(unsafe { put(count, devices() as c_int) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(to: *mut CUdevice, ordinal: c_int) -> CUresult {
    // SAFETY: as above.
    answer(device(ordinal).and_then(|_| unsafe { put(to, ordinal) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(to: *mut c_char, room: c_int, dev: CUdevice) -> CUresult {
    let wanted = device(dev).is_ok() && room as usize >= NAME.len();
    if !wanted {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: the caller gives room for so many bytes.
    unsafe { to.copy_from(NAME.as_ptr().cast(), NAME.len()) };
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(
    to: *mut c_int,
    attribute: CUdevice_attribute,
    dev: CUdevice,
) -> CUresult {
    use CUdevice_attribute::*;
    let value = match attribute {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => 1,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => 4,
        _ => return CUresult::CUDA_ERROR_NOT_SUPPORTED,
    };
    // SAFETY: the caller gives a place for the result.
    answer(device(dev).and_then(|_| unsafe { put(to, value) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(
    to: *mut c_int,
    dev: CUdevice,
    peer: CUdevice,
) -> CUresult {
    let both = device(dev).and_then(|_| device(peer));
    // SAFETY: as above.
    answer(both.and_then(|_| unsafe { put(to, c_int::from(dev != peer)) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(to: *mut CUcontext, dev: CUdevice) -> CUresult {
    // SAFETY: as above.
    answer(device(dev).and_then(|number| unsafe { put(to, (number + 1) as CUcontext) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_: CUdevice) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(to: *mut CUcontext) -> CUresult {
    // SAFETY: as above.
    answer(unsafe { put(to, current() as CUcontext) })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(context: CUcontext) -> CUresult {
    if context as usize > devices() {
        return CUresult::CUDA_ERROR_INVALID_CONTEXT;
    }
    set_current(context as usize);
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> CUresult {
    let mut world = world();
    answer(current_device().and_then(|_| world.finish_all()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetDefaultMemPool(to: *mut CUmemoryPool, dev: CUdevice) -> CUresult {
    // SAFETY: as above.
    answer(device(dev).and_then(|number| unsafe { put(to, (number + 1) as CUmemoryPool) }))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemPoolSetAttribute(
    _: CUmemoryPool,
    _: CUmemPool_attribute,
    value: *mut c_void,
) -> CUresult {
    match value.is_null() {
        true => CUresult::CUDA_ERROR_INVALID_VALUE,
        false => CUresult::CUDA_SUCCESS,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolSetAccess(
    pool: CUmemoryPool,
    map: *const CUmemAccessDesc,
    count: usize,
) -> CUresult {
    // SAFETY: the caller gives a description, as there is one at least.
    let peer = unsafe { map.as_ref() }.filter(|_| count > 0).map(|map| map.location.id);
    match peer.map(device) {
        Some(Ok(peer)) if pool as usize != peer + 1 => CUresult::CUDA_SUCCESS,
        _ => CUresult::CUDA_ERROR_INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(to: *mut CUstream, _: c_uint) -> CUresult {
    let mut world = world();
    let made = current_device().and_then(|device| {
        let handle = world.handle();
        world.streams.insert(handle, Stream { device, ..Stream::default() });
        // SAFETY: as above.
        unsafe { put(to, handle as CUstream) }
    });
    answer(made)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> CUresult {
    let mut world = world();
    let done = world.finish(stream as usize);
    world.streams.remove(&(stream as usize));
    answer(done)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: CUstream) -> CUresult {
    answer(world().finish(stream as usize))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: CUstream, event: CUevent, _: c_uint) -> CUresult {
    answer(world().wait(event as usize, stream as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(to: *mut CUevent, _: c_uint) -> CUresult {
    let mut world = world();
    let made = current_device().and_then(|_| {
        let handle = world.handle();
        world.events.insert(handle, Event::default());
        // SAFETY: as above.
        unsafe { put(to, handle as CUevent) }
    });
    answer(made)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: CUevent) -> CUresult {
    answer(world().event(event as usize).map(|event| event.is_destroyed = true))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: CUevent, stream: CUstream) -> CUresult {
    answer(world().record(event as usize, stream as usize))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: CUevent) -> CUresult {
    match world().has_happened(event as usize) {
        Ok(true) => CUresult::CUDA_SUCCESS,
        Ok(false) => CUresult::CUDA_ERROR_NOT_READY,
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: CUevent) -> CUresult {
    answer(world().finish_event(event as usize))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime_v2(to: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    let mut world = world();
    let mut at =
        |event: CUevent| world.event(event as usize)?.at.ok_or(CUresult::CUDA_ERROR_NOT_READY);
    let between = at(start).and_then(|start| Ok(at(end)?.duration_since(start)));
    // SAFETY: as above.
    answer(between.and_then(|time| unsafe { put(to, time.as_secs_f32() * 1e3) }))
}
