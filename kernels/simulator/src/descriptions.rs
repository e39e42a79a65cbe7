//! cuBLASLt's descriptions of products, and the functions that make them. Their meaning is that of
//! NVIDIA's *cuBLAS* and of its header.

#![expect(unsafe_code, reason = "these are the functions of a C library")]

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtEpilogue_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t, cublasStatus_t, cudaDataType_t,
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    ffi::c_void,
    slice,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Status of a function of the library.
pub(crate) type Status<T = ()> = Result<T, cublasStatus_t>;

pub(crate) const INVALID: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE;
pub(crate) const UNSUPPORTED: cublasStatus_t = cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED;

/// Descriptor of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Operation {
    pub(crate) compute: cublasComputeType_t,
    pub(crate) scale: cudaDataType_t,
    pub(crate) is_transposed: [bool; 2],
    pub(crate) epilogue: u32,
    pub(crate) bias: usize,
}

/// Layout of a matrix: column by column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MatrixDescription {
    pub(crate) element: cudaDataType_t,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) leading: usize,
    pub(crate) batch: usize,
    pub(crate) stride: usize,
}

/// Preference among algorithms.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preference {
    pub(crate) workspace: usize,
    pub(crate) reductions: u32,
}

/// Things that are known by a handle until they are destroyed.
pub(crate) struct HandleTable<T>(LazyLock<Mutex<HashMap<usize, T>>>);

impl<T: Copy> HandleTable<T> {
    pub(crate) const fn new() -> HandleTable<T> {
        HandleTable(LazyLock::new(Mutex::default))
    }

    pub(crate) fn add(&self, thing: T) -> usize {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let handle = LAST.fetch_add(16, Ordering::Relaxed) + 16;
        self.0.lock().insert(handle, thing);
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Status<T> {
        self.0.lock().get(&handle).copied().ok_or(INVALID)
    }

    pub(crate) fn remove(&self, handle: usize) -> cublasStatus_t {
        answer(self.0.lock().remove(&handle).map(|_| ()).ok_or(INVALID))
    }

    fn change(&self, handle: usize, change: impl FnOnce(&mut T) -> Status) -> cublasStatus_t {
        answer(self.0.lock().get_mut(&handle).ok_or(INVALID).and_then(change))
    }
}

pub(crate) static OPERATIONS: HandleTable<Operation> = HandleTable::new();
pub(crate) static LAYOUTS: HandleTable<MatrixDescription> = HandleTable::new();
pub(crate) static PREFERENCES: HandleTable<Preference> = HandleTable::new();

pub(crate) fn answer(status: Status) -> cublasStatus_t {
    status.err().unwrap_or(cublasStatus_t::CUBLAS_STATUS_SUCCESS)
}

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// `to` is null or may be written to.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> cublasStatus_t {
    if to.is_null() {
        return INVALID;
    }
    // SAFETY: the caller says so.
    unsafe { to.write(value) };
    cublasStatus_t::CUBLAS_STATUS_SUCCESS
}

/// The bytes of an attribute's value; not as many as it has are an error.
///
/// # Safety
///
/// `value` is null or has so many bytes.
unsafe fn bytes<const N: usize>(value: *const c_void, size: usize) -> Status<[u8; N]> {
    if value.is_null() || size != N {
        return Err(INVALID);
    }
    // SAFETY: the caller says so.
    let bytes = unsafe { slice::from_raw_parts(value.cast::<u8>(), N) };
    bytes.try_into().map_err(|_| INVALID)
}

/// A number that may not be below zero.
fn size(number: i64) -> Status<usize> {
    usize::try_from(number).map_err(|_| INVALID)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescCreate(
    to: *mut cublasLtMatmulDesc_t,
    compute: cublasComputeType_t,
    scale: cudaDataType_t,
) -> cublasStatus_t {
    let epilogue = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT as u32;
    let operation = Operation { compute, scale, is_transposed: [false; 2], epilogue, bias: 0 };
    // SAFETY: the caller gives a place for the result.
    unsafe { put(to, OPERATIONS.add(operation) as cublasLtMatmulDesc_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    operation: cublasLtMatmulDesc_t,
    attribute: cublasLtMatmulDescAttributes_t,
    value: *const c_void,
    size: usize,
) -> cublasStatus_t {
    use cublasLtMatmulDescAttributes_t as Attribute;
    OPERATIONS.change(operation as usize, |operation| {
        // SAFETY: the caller gives a value of so many bytes, here and below.
        let turn = || match i32::from_ne_bytes(unsafe { bytes(value, size) }?) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(UNSUPPORTED),
        };
        match attribute {
            Attribute::CUBLASLT_MATMUL_DESC_TRANSA => operation.is_transposed[0] = turn()?,
            Attribute::CUBLASLT_MATMUL_DESC_TRANSB => operation.is_transposed[1] = turn()?,
            Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE => {
                // SAFETY: as above.
                operation.epilogue = u32::from_ne_bytes(unsafe { bytes(value, size) }?);
            }
            Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER => {
                // SAFETY: as above.
                operation.bias = usize::from_ne_bytes(unsafe { bytes(value, size) }?);
            }
            _ => return Err(UNSUPPORTED),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulDescDestroy(operation: cublasLtMatmulDesc_t) -> cublasStatus_t {
    OPERATIONS.remove(operation as usize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    to: *mut cublasLtMatrixLayout_t,
    element: cudaDataType_t,
    rows: u64,
    columns: u64,
    leading: i64,
) -> cublasStatus_t {
    let (rows, columns) = (rows as usize, columns as usize);
    let Ok(leading) = size(leading) else { return INVALID };
    let layout = MatrixDescription { element, rows, columns, leading, batch: 1, stride: 0 };
    // SAFETY: the caller gives a place for the result.
    unsafe { put(to, LAYOUTS.add(layout) as cublasLtMatrixLayout_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatrixLayoutSetAttribute(
    layout: cublasLtMatrixLayout_t,
    attribute: cublasLtMatrixLayoutAttribute_t,
    value: *const c_void,
    length: usize,
) -> cublasStatus_t {
    use cublasLtMatrixLayoutAttribute_t as Attribute;
    LAYOUTS.change(layout as usize, |layout| {
        match attribute {
            Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT => {
                // SAFETY: the caller gives a value of so many bytes.
                let count = i32::from_ne_bytes(unsafe { bytes(value, length) }?);
                layout.batch = size(count.into())?;
            }
            Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET => {
                // SAFETY: as above.
                layout.stride = size(i64::from_ne_bytes(unsafe { bytes(value, length) }?))?;
            }
            _ => return Err(UNSUPPORTED),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatrixLayoutDestroy(layout: cublasLtMatrixLayout_t) -> cublasStatus_t {
    LAYOUTS.remove(layout as usize)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceCreate(
    to: *mut cublasLtMatmulPreference_t,
) -> cublasStatus_t {
    let preference = Preference { workspace: 0, reductions: 7 };
    // SAFETY: the caller gives a place for the result.
    unsafe { put(to, PREFERENCES.add(preference) as cublasLtMatmulPreference_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    preference: cublasLtMatmulPreference_t,
    attribute: cublasLtMatmulPreferenceAttributes_t,
    value: *const c_void,
    length: usize,
) -> cublasStatus_t {
    use cublasLtMatmulPreferenceAttributes_t as Attribute;
    PREFERENCES.change(preference as usize, |preference| {
        match attribute {
            Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES => {
                // SAFETY: the caller gives a value of so many bytes.
                let most = u64::from_ne_bytes(unsafe { bytes(value, length) }?);
                preference.workspace = most as usize;
            }
            Attribute::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK => {
                // SAFETY: as above.
                preference.reductions = u32::from_ne_bytes(unsafe { bytes(value, length) }?);
            }
            _ => return Err(UNSUPPORTED),
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulPreferenceDestroy(
    preference: cublasLtMatmulPreference_t,
) -> cublasStatus_t {
    PREFERENCES.remove(preference as usize)
}
