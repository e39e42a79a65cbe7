//! cuBLASLt's functions that choose algorithms and have matmuls computed.
//!
//! Algorithms are those of nobody's device: they differ in the parts that sums are made of, in the
//! workspace they need, and in whether they work after all.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use crate::{
    calls::current_device,
    descriptions::{
        HandleTable, INVALID, LAYOUTS, OPERATIONS, PREFERENCES, Status, UNSUPPORTED, answer, put,
    },
    matmul::{MatmulArgs, MatmulProblem},
    memory::SimulatedMemory,
    world::world,
};
use cudarc::cublaslt::sys::{
    cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreference_t, cublasLtMatrixLayout_t, cublasStatus_t, cudaStream_t,
};
use std::{
    ffi::{c_int, c_void},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Alignment that the library's algorithms are chosen for by default.
const ALIGNMENT: usize = 256;

/// An algorithm: parts of sums, how they are added up (the library's number of it), workspace in
/// bytes, and whether it works.
const ALGORITHMS: &[(u64, u32, usize, bool)] = &[
    (1, 0, 0, true),
    (2, 2, 1 << 20, true),
    (4, 4, 2 << 20, true),
    (8, 1, 4 << 10, false),
    (3, 2, 16 << 20, true),
    (5, 2, 64 << 20, true),
];

/// Matmuls that were started.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Turns of other threads between two pieces of work of a matmul.
const TURNS: usize = 20;

/// Libraries that were opened, with their devices.
static LIBRARIES: HandleTable<usize> = HandleTable::new();

#[unsafe(no_mangle)]
extern "C" fn cublasLtGetVersion() -> usize {
    130_000
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtCreate(to: *mut cublasLtHandle_t) -> cublasStatus_t {
    let Ok(device) = current_device() else {
        return cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED;
    };
    // SAFETY: the caller gives a place for the result.
    unsafe { put(to, LIBRARIES.add(device) as cublasLtHandle_t) }
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtDestroy(library: cublasLtHandle_t) -> cublasStatus_t {
    LIBRARIES.remove(library as usize)
}

/// Fingerprint of a matmul for its algorithms.
fn print(product: &MatmulProblem) -> u64 {
    let mut hash = DefaultHasher::new();
    product.anywhere().hash(&mut hash);
    hash.finish()
}

fn described(
    operation: cublasLtMatmulDesc_t,
    layouts: [cublasLtMatrixLayout_t; 4],
) -> Status<MatmulProblem> {
    let [a, b, c, d] = layouts.map(|layout| LAYOUTS.get(layout as usize));
    MatmulProblem::new(OPERATIONS.get(operation as usize)?, [a?, b?, c?, d?])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    library: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    a: cublasLtMatrixLayout_t,
    b: cublasLtMatrixLayout_t,
    c: cublasLtMatrixLayout_t,
    d: cublasLtMatrixLayout_t,
    preference: cublasLtMatmulPreference_t,
    most: c_int,
    results: *mut cublasLtMatmulHeuristicResult_t,
    count: *mut c_int,
) -> cublasStatus_t {
    let choose = || -> Status {
        LIBRARIES.get(library as usize)?;
        let described = described(operation, [a, b, c, d])?;
        let preference = PREFERENCES.get(preference as usize)?;
        let most = usize::try_from(most).ok().filter(|&most| most > 0).ok_or(INVALID)?;
        let may = |algorithm: &&(u64, u32, usize, bool)| {
            let (_, reduction, workspace, _) = **algorithm;
            (workspace > 0 || preference.workspace == 0 || !described.is_large())
                && workspace <= preference.workspace
                && reduction & !preference.reductions == 0
        };
        let mut found = 0;
        for &(parts, _, workspace, works) in ALGORITHMS.iter().filter(may).take(most) {
            let data = [print(&described), parts, workspace as u64, 0, 0, 0, 0, 0];
            let result = cublasLtMatmulHeuristicResult_t {
                algo: cublasLtMatmulAlgo_t { data },
                workspaceSize: workspace,
                state: if works { cublasStatus_t::CUBLAS_STATUS_SUCCESS } else { UNSUPPORTED },
                wavesCount: 1.0,
                reserved: [0; 4],
            };
            // SAFETY: the caller gives room for `most` results.
            unsafe { results.add(found).write(result) };
            found += 1;
        }
        // SAFETY: the caller gives a place for the number.
        match unsafe { put(count, found as c_int) } {
            cublasStatus_t::CUBLAS_STATUS_SUCCESS if found == 0 => Err(UNSUPPORTED),
            cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
            status => Err(status),
        }
    };
    answer(choose())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    library: cublasLtHandle_t,
    operation: cublasLtMatmulDesc_t,
    alpha: *const c_void,
    a: *const c_void,
    a_layout: cublasLtMatrixLayout_t,
    b: *const c_void,
    b_layout: cublasLtMatrixLayout_t,
    beta: *const c_void,
    c: *const c_void,
    c_layout: cublasLtMatrixLayout_t,
    d: *mut c_void,
    d_layout: cublasLtMatrixLayout_t,
    algorithm: *const cublasLtMatmulAlgo_t,
    workspace: *mut c_void,
    workspace_bytes: usize,
    stream: cudaStream_t,
) -> cublasStatus_t {
    let start = || -> Status {
        let (device, stream) = (LIBRARIES.get(library as usize)?, stream as usize);
        let described = described(operation, [a_layout, b_layout, c_layout, d_layout])?;
        if alpha.is_null() || beta.is_null() || algorithm.is_null() {
            return Err(INVALID);
        }
        // SAFETY: the caller gives an algorithm, and numbers of the scale's type, which is `float`.
        let (data, alpha, beta) =
            unsafe { ((*algorithm).data, *alpha.cast::<f32>(), *beta.cast::<f32>()) };
        let [of, parts, needed, ..] = data;
        let addresses = [a as usize, b as usize, c as usize, d as usize];
        let bias = described.operation.bias;
        let aligned = |&place: &usize| place % ALIGNMENT == 0;
        let is_in_place = c == d && c_layout == d_layout;
        if of != print(&described)
            || (needed as usize) > workspace_bytes
            || !addresses.iter().chain([&bias, &(workspace as usize)]).all(aligned)
            || (beta != 0.0 && addresses[2] == addresses[3] && !is_in_place)
        {
            return Err(INVALID);
        }
        let call = MatmulArgs { places: addresses, alpha, beta, parts: parts as usize };
        let (workspace, needed) = (workspace as usize, needed as usize);
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        // Parts of sums go by way of the workspace, to what adds them up.
        let parts = Arc::new(move |memory: &mut SimulatedMemory| {
            memory.expect(workspace, needed)?;
            // SAFETY: so many bytes are alive there. What they hold is nobody's business.
            unsafe {
                (workspace as *mut u8).write_bytes(0xee, needed);
                (workspace as *mut u64).write(number);
            }
            Ok(())
        });
        let job = Arc::new(move |memory: &mut SimulatedMemory| {
            // SAFETY: so many bytes are alive there, as the first job has seen.
            let is_own = needed == 0 || unsafe { (workspace as *const u64).read() } == number;
            described.run(&call, memory)?;
            if !is_own {
                // SAFETY: the result has just been written, and is not empty.
                unsafe { (call.places[3] as *mut u16).write(0xeeee) };
            }
            Ok(())
        });
        let failed = |_| cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED;
        let owner = world().stream(stream).map_err(failed)?.device;
        if current_device() != Ok(device) || owner != device {
            return Err(cublasStatus_t::CUBLAS_STATUS_ARCH_MISMATCH);
        }
        if needed > 0 {
            world().push(stream, parts).map_err(failed)?;
            // Nothing keeps other threads from coming between two pieces of work.
            (0..TURNS).for_each(|_| thread::yield_now());
        }
        world().push(stream, job).map_err(failed)
    };
    answer(start())
}
