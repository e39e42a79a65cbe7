//! Fourier transforms of the last one to three dimensions.
//!
//! Forward transforms are not scaled, inverse ones by the inverse of the number of elements.

use super::Build;
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    threads::Threads,
};
use ferroflow_ir::{DType, Shape, workspace};
use num_complex::Complex;
use num_traits::ConstZero;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("FFT", |call| complex(call, 1, FftDirection::Forward)),
    ("FFT2D", |call| complex(call, 2, FftDirection::Forward)),
    ("FFT3D", |call| complex(call, 3, FftDirection::Forward)),
    ("IFFT", |call| complex(call, 1, FftDirection::Inverse)),
    ("IFFT2D", |call| complex(call, 2, FftDirection::Inverse)),
    ("IFFT3D", |call| complex(call, 3, FftDirection::Inverse)),
    ("IRFFT", |call| to_real(call, 1)),
    ("IRFFT2D", |call| to_real(call, 2)),
    ("IRFFT3D", |call| to_real(call, 3)),
    ("RFFT", |call| from_real(call, 1)),
    ("RFFT2D", |call| from_real(call, 2)),
    ("RFFT3D", |call| from_real(call, 3)),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 13;

/// A real type with transforms.
trait Part: FftNum + Number + ConstZero {}

impl<T: FftNum + Number + ConstZero> Part for T {}

/// The transform of one dimension.
struct Axis<T> {
    /// Elements from one of the dimension to the next.
    stride: usize,
    plan: Arc<dyn Fft<T>>,
}

/// Transforms of dimensions of these sizes, of which the last are left out.
fn axes<T: Part>(sizes: &[usize], left_out: usize, direction: FftDirection) -> Vec<Axis<T>> {
    let mut planner = FftPlanner::new();
    let axis = |index: usize| Axis {
        stride: sizes[index + 1..].iter().product(),
        plan: planner.plan_fft(sizes[index], direction),
    };
    (0..sizes.len() - left_out).map(axis).collect()
}

impl<T: Part> Axis<T> {
    fn run(&self, threads: &Threads, data: &mut [Complex<T>]) {
        let len = self.plan.len();
        if self.stride == 1 {
            let piece = (PIECE / len).max(1) * len;
            return threads.for_each_piece(data, piece, |_, rows| self.plan.process(rows));
        }
        threads.for_each_piece(data, len * self.stride, |_, block| {
            let mut lines = vec![Complex::ZERO; block.len()];
            for (index, line) in lines.chunks_mut(len).enumerate() {
                let column = block[index..].iter().step_by(self.stride);
                line.iter_mut().zip(column).for_each(|(to, from)| *to = *from);
            }
            self.plan.process(&mut lines);
            for (index, line) in lines.chunks(len).enumerate() {
                let column = block[index..].iter_mut().step_by(self.stride);
                column.zip(line).for_each(|(to, from)| *to = *from);
            }
        });
    }
}

fn complex(
    call: &OpCall<'_>,
    rank: usize,
    direction: FftDirection,
) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Part>(sizes: &[usize], direction: FftDirection) -> Arc<dyn Kernel>
    where
        Complex<T>: Number,
    {
        let axes = axes::<T>(sizes, 0, direction);
        let scale = scale::<T>(match direction {
            FftDirection::Forward => 1,
            FftDirection::Inverse => sizes.iter().product(),
        });
        Arc::new(move |io: &mut Io<'_>| {
            let out: &mut [Complex<T>] = io.output(0);
            out.copy_from_slice(io.input(0));
            axes.iter().for_each(|axis| axis.run(io.threads(), out));
            if let FftDirection::Inverse = direction {
                out.iter_mut().for_each(|x| *x = *x * scale);
            }
            Ok(())
        })
    }
    let shape = call.shape(0);
    if shape.num_elements() == 0 {
        return Ok(Some(empty()));
    }
    let sizes = &shape[shape.rank() - rank..];
    Ok(match call.dtype(0) {
        DType::C64 => Some(kernel::<f32>(sizes, direction)),
        DType::C128 => Some(kernel::<f64>(sizes, direction)),
        _ => None,
    })
}

/// A kernel for results without information: zeros, if there are any elements.
fn empty() -> Arc<dyn Kernel> {
    Arc::new(|io: &mut Io<'_>| {
        io.output_bytes(0).fill(0);
        Ok(())
    })
}

fn scale<T: Part>(n: usize) -> T {
    T::ONE.over(T::count(n))
}

/// The rows of `to` that are also in `from`: shapes whose last `rank` dimensions may differ, where
/// `from` is the larger one. Gives for each row of `to` the number of the row of `from`.
fn rows(from: &Shape, to: &Shape, rank: usize) -> Vec<usize> {
    let n: usize = to[..to.rank() - 1].iter().product();
    let cut = to.rank() - rank;
    let row = |index: usize| {
        let (mut rest, mut number, mut step) = (index, 0, 1);
        for axis in (cut..to.rank() - 1).rev() {
            number += rest % to[axis] * step;
            rest /= to[axis];
            step *= from[axis];
        }
        number + rest * step
    };
    (0..n).map(row).collect()
}

fn from_real(call: &OpCall<'_>, rank: usize) -> Result<Option<Arc<dyn Kernel>>> {
    struct Plan<T> {
        rows: Vec<usize>,
        row: usize,
        last: Arc<dyn RealToComplex<T>>,
        others: Vec<Axis<T>>,
    }
    fn kernel<T: Part>(plan: Plan<T>) -> Arc<dyn Kernel>
    where
        Complex<T>: Number,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, out): (&[T], &mut [Complex<T>]) = (io.input(0), io.output(0));
            let (len, half) = (plan.last.len(), plan.last.complex_len());
            let piece = (PIECE / half).max(1);
            io.threads().for_each_piece(out, piece * half, |start, out| {
                let mut line = plan.last.make_input_vec();
                for (row, out) in plan.rows[start / half..].iter().zip(out.chunks_mut(half)) {
                    line.copy_from_slice(&x[row * plan.row..][..len]);
                    plan.last.process(&mut line, out).expect("both have the lengths of the plan");
                }
            });
            plan.others.iter().for_each(|axis| axis.run(io.threads(), out));
            Ok(())
        })
    }
    fn plan<T: Part>(from: &Shape, to: &Shape, len: usize, rank: usize) -> Plan<T> {
        Plan {
            rows: rows(from, to, rank),
            row: from[from.rank() - 1],
            last: RealFftPlanner::new().plan_fft_forward(len),
            others: axes(&to[to.rank() - rank..], 1, FftDirection::Forward),
        }
    }
    let (from, to) = (call.shape(0), call.output_shape(0)?);
    let len = call.ints(1)?[rank - 1] as usize;
    if from.num_elements() == 0 || to.num_elements() == 0 || len == 0 {
        return Ok(Some(empty()));
    }
    Ok(match (call.dtype(0), call.outputs[0].dtype) {
        (DType::F32, DType::C64) => Some(kernel::<f32>(plan(from, &to, len, rank))),
        (DType::F64, DType::C128) => Some(kernel::<f64>(plan(from, &to, len, rank))),
        _ => return Err(mixed(call)),
    })
}

/// The error that the complex type must be that of the real one.
fn mixed(call: &OpCall<'_>) -> crate::Error {
    call.wrong("Tcomplex", "the complex type of `Treal`", call.dtypes())
}

fn to_real(call: &OpCall<'_>, rank: usize) -> Result<Option<Arc<dyn Kernel>>> {
    struct Plan<T> {
        /// Rows of the part of the input that is used.
        rows: Vec<usize>,
        row: usize,
        last: Arc<dyn ComplexToReal<T>>,
        others: Vec<Axis<T>>,
        scale: T,
    }
    fn kernel<T: Part>(plan: Plan<T>) -> Arc<dyn Kernel>
    where
        Complex<T>: Number,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, out): (&[Complex<T>], &mut [T]) = (io.input(0), io.output(0));
            let (len, half) = (plan.last.len(), plan.last.complex_len());
            let mut spectrum = workspace::filled(Complex::ZERO, plan.rows.len() * half)?;
            for (row, out) in plan.rows.iter().zip(spectrum.chunks_mut(half)) {
                out.copy_from_slice(&x[row * plan.row..][..half]);
            }
            plan.others.iter().for_each(|axis| axis.run(io.threads(), &mut spectrum));
            let piece = (PIECE / len).max(1);
            io.threads().for_each_piece(out, piece * len, |start, out| {
                let spectrum = &spectrum[start / len * half..];
                let mut line = plan.last.make_input_vec();
                for (from, out) in spectrum.chunks(half).zip(out.chunks_mut(len)) {
                    line.copy_from_slice(from);
                    // What is real in the transform of real elements.
                    line[0].im = T::zero();
                    if len.is_multiple_of(2) {
                        line[half - 1].im = T::zero();
                    }
                    plan.last.process(&mut line, out).expect("both have the lengths of the plan");
                    out.iter_mut().for_each(|x| *x = *x * plan.scale);
                }
            });
            Ok(())
        })
    }
    fn plan<T: Part>(from: &Shape, to: &Shape, rank: usize) -> Result<Plan<T>> {
        let sizes = &to[to.rank() - rank..];
        let last: Arc<dyn ComplexToReal<T>> =
            RealFftPlanner::new().plan_fft_inverse(sizes[rank - 1]);
        let mut used = to.dims().to_vec();
        used[to.rank() - 1] = last.complex_len();
        let used = Shape::new(used)?;
        Ok(Plan {
            rows: rows(from, &used, rank),
            row: from[from.rank() - 1],
            last,
            others: axes(&used[used.rank() - rank..], 1, FftDirection::Inverse),
            scale: scale(sizes.iter().product()),
        })
    }
    let (from, to) = (call.shape(0), call.output_shape(0)?);
    if from.num_elements() == 0 || to.num_elements() == 0 {
        return Ok(Some(empty()));
    }
    Ok(match (call.dtype(0), call.outputs[0].dtype) {
        (DType::C64, DType::F32) => Some(kernel::<f32>(plan(from, &to, rank)?)),
        (DType::C128, DType::F64) => Some(kernel::<f64>(plan(from, &to, rank)?)),
        _ => return Err(mixed(call)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_rows_are_found() {
        let shape = |dims: [usize; 3]| Shape::new(dims).unwrap();
        assert_eq!(rows(&shape([2, 3, 5]), &shape([2, 2, 4]), 2), [0, 1, 3, 4]);
        assert_eq!(rows(&shape([2, 3, 5]), &shape([2, 3, 4]), 1), [0, 1, 2, 3, 4, 5]);
        assert_eq!(rows(&shape([3, 3, 5]), &shape([2, 2, 4]), 3), [0, 1, 3, 4]);
    }
}
