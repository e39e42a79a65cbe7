//! Modules, which are libraries of the host, and their programs.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use crate::{
    calls::{answer, current_device, put},
    compiler::CODE,
    memory::SimulatedMemory,
    world::{CudaResult, world},
};
use cudarc::driver::sys::{CUfunction, CUmodule, CUresult, CUstream};
use libloading::Library;
use std::{
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    ptr,
    sync::Arc,
};

/// Runs all invocations of a program: its arguments, the size of the grid, that of a block.
type Entry = unsafe extern "C" fn(*mut *mut c_void, *const c_uint, *const c_uint) -> c_int;

/// A program in memory. Modules are never unloaded: jobs may still need them.
struct Program {
    run: Entry,
    /// The bytes of each parameter; below zero for pointers.
    parameters: &'static [i32],
}

/// Names that `device.hpp` defines beside a program.
struct Names {
    run: &'static [u8],
    parameters: &'static [u8],
    count: &'static [u8],
}

const NAMES: Names =
    Names { run: b"simulated_run", parameters: b"simulated_parameters", count: b"simulated_count" };

fn load(library: &'static Library) -> Result<Program, libloading::Error> {
    // SAFETY: `device.hpp` declares these names as such.
    unsafe {
        let run = *library.get::<Entry>(NAMES.run)?;
        let parameters = **library.get::<*const *const i32>(NAMES.parameters)?;
        let count = **library.get::<*const i32>(NAMES.count)?;
        Ok(Program { run, parameters: std::slice::from_raw_parts(parameters, count as usize) })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(to: *mut CUmodule, image: *const c_void) -> CUresult {
    let load_it = || -> CudaResult {
        current_device()?;
        world().nothing_captured()?;
        // SAFETY: what is loaded is text that ends with a zero if it begins like this.
        let begins = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), 4) };
        if begins != &CODE[..4] {
            return Err(CUresult::CUDA_ERROR_INVALID_IMAGE);
        }
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_bytes();
        let path = text.strip_prefix(CODE).and_then(|path| std::str::from_utf8(path).ok());
        let path = path.ok_or(CUresult::CUDA_ERROR_INVALID_IMAGE)?;
        // SAFETY: the library was made by `compiler`, and does nothing when it is loaded.
        let library = unsafe { Library::new(path) };
        let library = library.map_err(|_| CUresult::CUDA_ERROR_INVALID_IMAGE)?;
        let library: &'static Library = Box::leak(Box::new(library));
        let program = load(library).map_err(|_| CUresult::CUDA_ERROR_INVALID_IMAGE)?;
        let program: *const Program = Box::leak(Box::new(program));
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, program as CUmodule) }
    };
    answer(load_it())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    to: *mut CUfunction,
    module: CUmodule,
    name: *const c_char,
) -> CUresult {
    // SAFETY: the caller gives a name that ends with a zero.
    if unsafe { CStr::from_ptr(name) } != c"entry" {
        return CUresult::CUDA_ERROR_NOT_FOUND;
    }
    // SAFETY: the caller gives a place for the result.
    answer(unsafe { put(to, module as CUfunction) })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_: CUmodule) -> CUresult {
    CUresult::CUDA_SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: CUstream,
    arguments: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    // The limits of every device since 2012: `CUDA C++ Programming Guide`, compute capabilities.
    let fits = grid_x < 1 << 31 && grid_y < 1 << 16 && grid_z < 1 << 16;
    let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
    if !fits || grid.contains(&0) || !(1..=1024).contains(&threads) || block_z > 64 {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    if shared_bytes != 0 || !extra.is_null() {
        return CUresult::CUDA_ERROR_NOT_SUPPORTED;
    }
    // SAFETY: functions are programs, which are never freed.
    let program: &'static Program = unsafe { &*(function as *const Program) };
    let mut values: Vec<Vec<u8>> = Vec::new();
    for (at, size) in program.parameters.iter().enumerate() {
        let mut value = vec![0; size.unsigned_abs() as usize];
        // SAFETY: the caller gives a pointer for each parameter, to a value of its size.
        unsafe { ptr::copy((*arguments.add(at)).cast(), value.as_mut_ptr(), value.len()) };
        values.push(value);
    }
    let job = Arc::new(move |memory: &mut SimulatedMemory| {
        for (value, &size) in values.iter().zip(program.parameters) {
            if size < 0 {
                memory.expect(address(value), 1)?;
            }
        }
        let mut pointers: Vec<*mut c_void> =
            values.iter().map(|value| value.as_ptr().cast_mut().cast()).collect();
        // SAFETY: there is a value for each parameter, and pointers lead to memory that is alive.
        // That the program stays inside is what is looked at afterwards.
        let done = unsafe { (program.run)(pointers.as_mut_ptr(), grid.as_ptr(), block.as_ptr()) };
        if done != 0 {
            eprintln!("simulator: invocations of a group wait for each other in vain");
            return Err(CUresult::CUDA_ERROR_LAUNCH_FAILED);
        }
        let pointers = values.iter().zip(program.parameters).filter(|(_, size)| **size < 0);
        pointers.map(|(value, _)| address(value)).try_for_each(|at| memory.check(at))
    });
    let mut world = world();
    let owned = world.stream(stream as usize).map(|stream| stream.device);
    answer(match (owned, current_device()) {
        (Ok(device), Ok(current)) if device == current => world.push(stream as usize, job),
        (Ok(_), Ok(_)) => Err(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        (Err(error), _) | (_, Err(error)) => Err(error),
    })
}

fn address(value: &[u8]) -> usize {
    value.try_into().map_or(0, usize::from_ne_bytes)
}
