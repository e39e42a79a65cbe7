//! Matmuls: what of descriptions fits together, and the plainest way to compute it.

#![expect(unsafe_code, reason = "matrices are reached through pointers")]

use crate::{
    descriptions::{INVALID, MatrixDescription, Operation, Status, UNSUPPORTED},
    memory::SimulatedMemory,
    world::CudaResult,
};
use cudarc::cublaslt::sys::{cublasComputeType_t, cublasLtEpilogue_t, cudaDataType_t};
use half::{bf16, f16};

/// A matmul whose parts fit together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MatmulProblem {
    pub(crate) operation: Operation,
    /// Of both factors, of what is added, and of the result.
    pub(crate) layouts: [MatrixDescription; 4],
    /// Rows and columns of the result, and the length of its sums.
    sizes: [usize; 3],
}

/// Where matrices are, and what they are multiplied by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatmulArgs {
    /// As the layouts are.
    pub(crate) places: [usize; 4],
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// Parts that sums are made of.
    pub(crate) parts: usize,
}

const BIAS: u32 = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32;
const RELU: u32 = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU as u32;
const GELU: u32 = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_GELU as u32;
const NOTHING: u32 = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT as u32;

fn bytes(element: cudaDataType_t) -> Status<usize> {
    match element {
        cudaDataType_t::CUDA_R_32F => Ok(4),
        cudaDataType_t::CUDA_R_16F | cudaDataType_t::CUDA_R_16BF => Ok(2),
        _ => Err(UNSUPPORTED),
    }
}

impl MatrixDescription {
    /// Elements from the first to behind the last, of the whole batch.
    fn reach(&self) -> usize {
        if self.rows == 0 || self.columns == 0 || self.batch == 0 {
            return 0;
        }
        (self.batch - 1) * self.stride + (self.columns - 1) * self.leading + self.rows
    }
}

impl MatmulProblem {
    /// Matmul that descriptors stand for together, by the tables of supported types and the rules
    /// of shapes.
    pub(crate) fn new(
        operation: Operation,
        layouts: [MatrixDescription; 4],
    ) -> Status<MatmulProblem> {
        let [a, b, c, d] = &layouts;
        let turned = |layout: &MatrixDescription, is_transposed| match is_transposed {
            true => [layout.columns, layout.rows],
            false => [layout.rows, layout.columns],
        };
        let [m, k] = turned(a, operation.is_transposed[0]);
        let [also_k, n] = turned(b, operation.is_transposed[1]);
        let fits = k == also_k && [d.rows, d.columns] == [m, n] && [c.rows, c.columns] == [m, n];
        let are_disjoint = |layout: &MatrixDescription| layout.leading >= layout.rows;
        let same_batch = layouts.iter().all(|layout| layout.batch == d.batch);
        let results_apart = d.batch < 2 || d.stride >= d.leading * d.columns;
        if !fits || !layouts.iter().all(are_disjoint) || !same_batch || !results_apart {
            return Err(INVALID);
        }
        if layouts.iter().any(|layout| layout.rows == 0 || layout.columns == 0) {
            return Err(UNSUPPORTED);
        }
        let (full, tensor) = (
            cublasComputeType_t::CUBLAS_COMPUTE_32F,
            cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
        );
        let single = cudaDataType_t::CUDA_R_32F;
        let same_types = a.element == b.element && c.element == d.element;
        let knows = match operation.compute {
            compute if compute == full => d.element == a.element || d.element == single,
            compute if compute == tensor => a.element == single && d.element == single,
            _ => false,
        };
        bytes(a.element)?;
        if !same_types || !knows || operation.scale != single {
            return Err(UNSUPPORTED);
        }
        let then = operation.epilogue;
        if ![NOTHING, BIAS, RELU, GELU, BIAS | RELU, BIAS | GELU].contains(&then) {
            return Err(UNSUPPORTED);
        }
        if then & BIAS != 0 && operation.bias == 0 {
            return Err(INVALID);
        }
        Ok(MatmulProblem { operation, layouts, sizes: [m, n, k] })
    }

    /// Whether sums are made in parts: such a matmul has no algorithm without a workspace.
    pub(crate) fn is_large(&self) -> bool {
        self.sizes.iter().product::<usize>() >= 1 << 24
    }

    /// The matmul without where its bias is.
    pub(crate) fn anywhere(&self) -> MatmulProblem {
        MatmulProblem { operation: Operation { bias: 0, ..self.operation }, ..self.clone() }
    }

    /// Computes it.
    pub(crate) fn run(&self, call: &MatmulArgs, memory: &SimulatedMemory) -> CudaResult {
        let ([m, n, k], [a, b, c, d]) = (self.sizes, &self.layouts);
        let then = self.operation.epilogue;
        let bias = MatrixDescription { rows: m, columns: 1, leading: m, batch: 1, stride: 0, ..*d };
        let has_bias = then & BIAS != 0;
        let bias = if has_bias { read(memory, self.operation.bias, &bias)? } else { vec![0.0; m] };
        let [at_a, at_b, at_c, at_d] = call.places;
        let rounds = self.operation.compute == cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32;
        let factor = |at, layout| -> CudaResult<Vec<f32>> {
            let mut values = read(memory, at, layout)?;
            if rounds {
                values.iter_mut().for_each(|value| *value = tensor_float(*value));
            }
            Ok(values)
        };
        let (first, second) = (factor(at_a, a)?, factor(at_b, b)?);
        let added = if call.beta == 0.0 { Vec::new() } else { read(memory, at_c, c)? };
        memory.expect(at_d, d.reach() * size(d))?;
        let [turn_a, turn_b] = self.operation.is_transposed;
        for matrix in 0..d.batch {
            let (first, second) = (&first[matrix * a.stride..], &second[matrix * b.stride..]);
            // Rows of the first factor one behind the other, whichever way it lies.
            let row =
                |i: usize, l: usize| if turn_a { i * a.leading + l } else { l * a.leading + i };
            let left: Vec<f32> = (0..m)
                .flat_map(|i| (0..k).map(move |l| (i, l)))
                .map(|(i, l)| first[row(i, l)])
                .collect();
            for j in 0..n {
                let at = |l: usize| if turn_b { l * b.leading + j } else { j * b.leading + l };
                let right: Vec<f32> = (0..k).map(|l| second[at(l)]).collect();
                for i in 0..m {
                    let sum = sum(&left[i * k..][..k], &right, call.parts);
                    let offset = matrix * d.stride + j * d.leading + i;
                    let mut value = call.alpha * sum;
                    if call.beta != 0.0 {
                        value += call.beta * added[matrix * c.stride + j * c.leading + i];
                    }
                    write(at_d, offset, d.element, epilogue(then, value + bias[i]));
                }
            }
        }
        memory.check(at_d)
    }
}

/// A dot product in parts, each in order.
fn sum(left: &[f32], right: &[f32], parts: usize) -> f32 {
    let length = left.len().div_ceil(parts).max(1);
    let dot = |(left, right): (&[f32], &[f32])| {
        left.iter().zip(right).fold(0.0f32, |sum, (&x, &y)| x.mul_add(y, sum))
    };
    left.chunks(length).zip(right.chunks(length)).map(dot).sum()
}

fn epilogue(then: u32, x: f32) -> f32 {
    match then & !BIAS {
        RELU => x.max(0.0),
        GELU => 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x * x * x)).tanh()),
        _ => x,
    }
}

/// The number with 10 bits of fraction that is next to it.
fn tensor_float(x: f32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    f32::from_bits((bits + 0xfff + ((bits >> 13) & 1)) & !0x1fff)
}

fn size(layout: &MatrixDescription) -> usize {
    bytes(layout.element).unwrap_or(4)
}

/// All that a layout reaches, as floats.
fn read(memory: &SimulatedMemory, at: usize, layout: &MatrixDescription) -> CudaResult<Vec<f32>> {
    memory.expect(at, layout.reach() * size(layout))?;
    // SAFETY: so many bytes are alive there, as was just seen, and nothing writes them meanwhile.
    let element = |index: usize| unsafe {
        match layout.element {
            cudaDataType_t::CUDA_R_16F => (at as *const f16).add(index).read_unaligned().to_f32(),
            cudaDataType_t::CUDA_R_16BF => (at as *const bf16).add(index).read_unaligned().to_f32(),
            _ => (at as *const f32).add(index).read_unaligned(),
        }
    };
    Ok((0..layout.reach()).map(element).collect())
}

/// Sets an element of memory that is alive.
fn write(at: usize, index: usize, element: cudaDataType_t, value: f32) {
    // SAFETY: the caller has seen that the element's matrix is alive, and the index is of it.
    unsafe {
        match element {
            cudaDataType_t::CUDA_R_16F => (at as *mut f16).add(index).write(f16::from_f32(value)),
            cudaDataType_t::CUDA_R_16BF => {
                (at as *mut bf16).add(index).write(bf16::from_f32(value))
            }
            _ => (at as *mut f32).add(index).write(value),
        }
    }
}
