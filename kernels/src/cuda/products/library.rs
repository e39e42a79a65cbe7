//! cuBLASLt, NVIDIA's library of matrix products. Nothing else talks to it.

#![expect(unsafe_code, reason = "the library is called through pointers")]

use super::problem::{LibraryEpilogue, LibraryProblem, MatmulElement, MatrixLayout};
use cudarc::{
    cublaslt::{
        result::{self, CublasError},
        sys::{
            self, cublasLtMatmulDescAttributes_t as Of, cublasLtMatrixLayoutAttribute_t as Lies,
        },
    },
    driver::sys::{CUdeviceptr, CUstream},
};
use parking_lot::Mutex;
use std::{ffi::c_void, sync::OnceLock};

/// Alignment of memory, in bytes: that of the driver, and what algorithms are chosen for.
pub(super) const ALIGNMENT: u64 = 256;

/// The oldest version that is used, as the library numbers them: that of CUDA 12.0.
const OLDEST: usize = 120_000;

/// Whether the library was found. Nothing else here may be called where it was not.
pub(super) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: looking for NVIDIA's library runs its initialisers, as loading it does.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// The library, for the device of the context that was current when it was opened.
#[derive(Debug)]
pub(super) struct CublasLibrary(sys::cublasLtHandle_t);

// SAFETY: the library is documented to be safe to use from several threads with one handle.
unsafe impl Send for CublasLibrary {}
// SAFETY: as above.
unsafe impl Sync for CublasLibrary {}

impl CublasLibrary {
    /// Opens the library, which must be present.
    ///
    /// # Errors
    ///
    /// What the library says, or that it is too old.
    pub(super) fn open() -> Result<CublasLibrary, String> {
        // SAFETY: every version of the library has this function.
        let version = unsafe { sys::cublasLtGetVersion() };
        if version < OLDEST {
            return Err(format!("its version is {version}, {OLDEST} is needed"));
        }
        result::create_handle().map(CublasLibrary).map_err(|error| error.to_string())
    }

    /// Ways to compute a product, of which the library thinks the first the fastest. None where it
    /// cannot compute it.
    pub(super) fn candidates(
        &self,
        plan: &MatmulPlan,
        most: usize,
        workspace: usize,
    ) -> Result<Vec<MatmulAlgorithm>, CublasError> {
        let preference = Preference::new(plan.reduction, workspace)?;
        // SAFETY: every bit pattern is one of these structures of numbers.
        let mut found = vec![unsafe { std::mem::zeroed() }; most];
        let (mut count, operation) = (0, plan.operation.lock());
        let [a, b, d] = &plan.layouts;
        // SAFETY: everything was created and is not given back; there is room for `most` results.
        let outcome = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.0,
                operation.0,
                a.0,
                b.0,
                d.0,
                d.0,
                preference.0,
                most as i32,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        match outcome {
            // All of these are said of problems that the library or the device has nothing for.
            sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED
            | sys::cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE
            | sys::cublasStatus_t::CUBLAS_STATUS_ARCH_MISMATCH => return Ok(Vec::new()),
            outcome => outcome.result()?,
        }
        found.truncate(count.unsigned_abs() as usize);
        let works = |found: &sys::cublasLtMatmulHeuristicResult_t| {
            found.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS
                && found.workspaceSize <= workspace
        };
        Ok(found.into_iter().filter(works).map(|found| MatmulAlgorithm(found.algo)).collect())
    }

    /// Has a product computed, after what the stream has to do already.
    ///
    /// # Safety
    ///
    /// The context of the library is current and the stream is its own. Pointers are aligned to
    /// [`ALIGNMENT`]; there is memory of the problem's sizes, and of the workspace's, that lives until
    /// the stream has come by, and nothing else uses the workspace or writes the result meanwhile.
    pub(super) unsafe fn multiply(
        &self,
        plan: &MatmulPlan,
        algorithm: &MatmulAlgorithm,
        memory: Operands,
        stream: CUstream,
    ) -> Result<(), CublasError> {
        let (one, zero) = (1.0f32, 0.0f32);
        let operation = plan.operation.lock();
        if let Some(bias) = memory.bias {
            operation.set(Of::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)?;
        }
        let [a, b, d] = &plan.layouts;
        // SAFETY: the descriptors were created and are not given back; the caller sees to the rest.
        // With a factor of zero the matrix that would be added is not read.
        unsafe {
            result::matmul(
                self.0,
                operation.0,
                (&raw const one).cast(),
                (&raw const zero).cast(),
                memory.first as *const c_void,
                a.0,
                memory.second as *const c_void,
                b.0,
                memory.result as *const c_void,
                d.0,
                memory.result as *mut c_void,
                d.0,
                &algorithm.0,
                memory.workspace.0 as *mut c_void,
                memory.workspace.1,
                stream.cast(),
            )
        }
    }
}

impl Drop for CublasLibrary {
    fn drop(&mut self) {
        // SAFETY: it was created, and nobody else gives it back. What the library says to that
        // changes nothing.
        let _ = unsafe { result::destroy_handle(self.0) };
    }
}

/// A way to compute a product.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatmulAlgorithm(sys::cublasLtMatmulAlgo_t);

/// Where a product's matrices are, and what else it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands {
    pub(super) first: CUdeviceptr,
    pub(super) second: CUdeviceptr,
    pub(super) result: CUdeviceptr,
    pub(super) bias: Option<CUdeviceptr>,
    /// Where it begins, and its bytes.
    pub(super) workspace: (CUdeviceptr, usize),
}

/// A problem in the library's own words.
#[derive(Debug)]
pub(super) struct MatmulPlan {
    /// Where the bias is is part of it, so that one call at a time may use it.
    operation: Mutex<Operation>,
    /// Of the first factor, the second, and the result.
    layouts: [Matrix; 3],
    /// Permitted ways to add up parts of sums.
    reduction: u32,
}

impl MatmulPlan {
    pub(super) fn new(problem: &LibraryProblem) -> Result<MatmulPlan, CublasError> {
        let [first, second, result] = problem.layouts();
        let matrix = |layout| Matrix::new(problem.element, layout, problem.batch);
        let reduction = match problem.element {
            MatmulElement::F32 => sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_MASK,
            // Other schemes round parts of sums to 16 bits.
            MatmulElement::F16 | MatmulElement::BF16 => {
                sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
            }
        };
        Ok(MatmulPlan {
            operation: Mutex::new(Operation::new(problem)?),
            layouts: [matrix(first)?, matrix(second)?, matrix(result)?],
            reduction: reduction as u32,
        })
    }
}

/// Descriptor of the operation.
#[derive(Debug)]
struct Operation(sys::cublasLtMatmulDesc_t);

// SAFETY: it is plain memory of the library's, which knows of no threads.
unsafe impl Send for Operation {}

impl Operation {
    fn new(problem: &LibraryProblem) -> Result<Operation, CublasError> {
        use sys::{cublasComputeType_t as Compute, cublasLtEpilogue_t as Then};
        let compute = match problem.is_full {
            true => Compute::CUBLAS_COMPUTE_32F,
            false => Compute::CUBLAS_COMPUTE_32F_FAST_TF32,
        };
        let scale = sys::cudaDataType_t::CUDA_R_32F;
        let operation = Operation(result::create_matmul_desc(compute, scale)?);
        // `CUBLAS_OP_N` and `CUBLAS_OP_T`.
        let turns = [problem.first, problem.second].map(|factor| i32::from(factor.is_transposed));
        operation.set(Of::CUBLASLT_MATMUL_DESC_TRANSA, turns[0])?;
        operation.set(Of::CUBLASLT_MATMUL_DESC_TRANSB, turns[1])?;
        let epilogue = match problem.epilogue {
            LibraryEpilogue::None => Then::CUBLASLT_EPILOGUE_DEFAULT,
            LibraryEpilogue::Bias => Then::CUBLASLT_EPILOGUE_BIAS,
            LibraryEpilogue::BiasRelu => Then::CUBLASLT_EPILOGUE_RELU_BIAS,
            LibraryEpilogue::BiasGelu => Then::CUBLASLT_EPILOGUE_GELU_BIAS,
        };
        operation.set(Of::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as u32)?;
        if problem.epilogue != LibraryEpilogue::None {
            // Algorithms are chosen by how the pointer is aligned, before there is one.
            operation.set(Of::CUBLASLT_MATMUL_DESC_BIAS_POINTER, ALIGNMENT)?;
        }
        Ok(operation)
    }

    fn set<T: bytemuck::Pod>(&self, attribute: Of, value: T) -> Result<(), CublasError> {
        // SAFETY: it was created and is not given back; the value is of the size that is told.
        unsafe {
            let value = (&raw const value).cast();
            result::set_matmul_desc_attribute(self.0, attribute, value, size_of::<T>())
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: as for the library.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

/// Layout of a matrix.
#[derive(Debug)]
struct Matrix(sys::cublasLtMatrixLayout_t);

// SAFETY: it is plain memory of the library's, and does not change once it is made.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    fn new(
        element: MatmulElement,
        layout: MatrixLayout,
        batch: usize,
    ) -> Result<Matrix, CublasError> {
        use sys::cudaDataType_t as Type;
        let element = match element {
            MatmulElement::F32 => Type::CUDA_R_32F,
            MatmulElement::F16 => Type::CUDA_R_16F,
            MatmulElement::BF16 => Type::CUDA_R_16BF,
        };
        let (rows, columns) = (layout.rows as u64, layout.columns as u64);
        let matrix =
            Matrix(result::create_matrix_layout(element, rows, columns, layout.rows as i64)?);
        if batch != 1 {
            let too_many = CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED);
            let batch = i32::try_from(batch).map_err(|_| too_many)?;
            matrix.set(Lies::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch)?;
            let stride = layout.stride as i64;
            matrix.set(Lies::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride)?;
        }
        Ok(matrix)
    }

    fn set<T: bytemuck::Pod>(&self, attribute: Lies, value: T) -> Result<(), CublasError> {
        // SAFETY: it was created and is not given back; the value is of the size that is told.
        unsafe {
            let value = (&raw const value).cast();
            result::set_matrix_layout_attribute(self.0, attribute, value, size_of::<T>())
        }
    }
}

impl Drop for Matrix {
    fn drop(&mut self) {
        // SAFETY: as for the library.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

/// Preference among algorithms.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new(reduction: u32, workspace: usize) -> Result<Preference, CublasError> {
        use sys::cublasLtMatmulPreferenceAttributes_t as May;
        let preference = Preference(result::create_matmul_pref()?);
        preference.set(May::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace as u64)?;
        preference.set(May::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction)?;
        Ok(preference)
    }

    fn set<T: bytemuck::Pod>(
        &self,
        attribute: sys::cublasLtMatmulPreferenceAttributes_t,
        value: T,
    ) -> Result<(), CublasError> {
        // SAFETY: it was created and is not given back; the value is of the size that is told.
        unsafe {
            let value = (&raw const value).cast();
            result::set_matmul_pref_attribute(self.0, attribute, value, size_of::<T>())
        }
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: as for the library.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
