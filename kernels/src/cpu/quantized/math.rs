//! Arithmetic on quantised numbers: products and convolutions, sums, activations, pools, joins.

use super::{Quantum, Range, with_quantum};
use crate::{
    cpu::{
        Build,
        conv::{Geometry, forward},
        gemm::{GemmOutput, GemmSizes, Matrix, gemm},
        pool,
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::{
        broadcast::{InputAccess, access},
        strided,
    },
};
use ferroflow_ir::{DType, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("QuantizedAdd", add),
    ("QuantizedAvgPool", average_pool),
    ("QuantizedBiasAdd", bias_add),
    ("QuantizedConcat", concat),
    ("QuantizedConv2D", convolution),
    ("QuantizedMatMul", matmul),
    ("QuantizedMaxPool", max_pool),
    ("QuantizedMul", multiply),
    ("QuantizedRelu", relu),
    ("QuantizedRelu6", relu6),
];

/// The elements of input `index` less the value that stands for 0.
fn from_zero<T: Quantum>(io: &Io<'_>, index: usize, range: Range) -> Vec<i32> {
    let zero = range.number_of::<T>(0.0) as i32;
    let number = |&x: &T| (x.into() as i32).wrapping_sub(zero);
    io.input::<T>(index).iter().map(number).collect()
}

/// Builds a kernel for two types of operands with results of 32 bits.
macro_rules! for_pairs {
    ($call:expr, $A:ident, $B:ident => $kernel:expr) => {
        match $call.outputs[0].dtype {
            DType::QI32 => with_quantum!($call.dtype(0), $A => {
                with_quantum!($call.dtype(1), $B => $kernel)
            })
            .flatten(),
            _ => None,
        }
    };
}

fn matmul(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>(
        sizes: GemmSizes,
        (cols_a, transpose_a): (usize, bool),
        (cols_b, transpose_b): (usize, bool),
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (range_a, range_b) = (Range::read(io, 2), Range::read(io, 4));
            let (a, b) = (from_zero::<A>(io, 0, range_a), from_zero::<B>(io, 1, range_b));
            let side = |data, cols, transposed| {
                let matrix = Matrix::row_major(data, cols);
                if transposed { matrix.transposed() } else { matrix }
            };
            let (a, b) = (side(&a[..], cols_a, transpose_a), side(&b[..], cols_b, transpose_b));
            let out = GemmOutput::row_major(io.output(0), sizes.n);
            gemm(io.threads(), sizes, a, b, out);
            range_a.of_multiplied::<A, B, i32>(range_b).write(io, 1);
            Ok(())
        })
    }
    let (ta, tb) = (call.attrs.bool("transpose_a")?, call.attrs.bool("transpose_b")?);
    let (a, b) = (call.shape(0), call.shape(1));
    let out = call.output_shape(0)?;
    let sizes = GemmSizes { m: out[0], k: if ta { a[0] } else { a[1] }, n: out[1] };
    Ok(for_pairs!(call, A, B => kernel::<A, B>(sizes, (a[1], ta), (b[1], tb))))
}

fn convolution(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>(g: Geometry) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (range_a, range_b) = (Range::read(io, 2), Range::read(io, 4));
            let (input, filter) = (from_zero::<A>(io, 0, range_a), from_zero::<B>(io, 1, range_b));
            forward(io.threads(), &g, &input, &filter, io.output::<i32>(0))?;
            range_a.of_multiplied::<A, B, i32>(range_b).write(io, 1);
            Ok(())
        })
    }
    let geometry = Geometry::new(call, call.shape(0), call.shape(1))?;
    Ok(for_pairs!(call, A, B => kernel::<A, B>(geometry)))
}

/// The elements of an input repeated to fill a shape.
fn spread<T: Copy + Default>(data: &[T], shape: &Shape, out: &Shape) -> Result<Vec<T>> {
    Ok(match access(shape, out) {
        InputAccess::Contiguous if data.len() == out.num_elements() => data.to_vec(),
        InputAccess::Contiguous => data.iter().copied().cycle().take(out.num_elements()).collect(),
        InputAccess::Scalar => workspace::filled(data[0], out.num_elements())?,
        InputAccess::Strided(view) => {
            let mut all = workspace::filled(T::default(), out.num_elements())?;
            strided::read(&view, data, 0, &mut all);
            all
        }
    })
}

fn multiply(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>(x: Shape, y: Shape, out: Shape) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (range_x, range_y) = (Range::read(io, 2), Range::read(io, 4));
            let a = spread(&from_zero::<A>(io, 0, range_x), &x, &out)?;
            let b = spread(&from_zero::<B>(io, 1, range_y), &y, &out)?;
            let z: &mut [i32] = io.output(0);
            z.iter_mut().zip(a).zip(b).for_each(|((z, a), b)| *z = a.wrapping_mul(b));
            range_x.of_multiplied::<A, B, i32>(range_y).write(io, 1);
            Ok(())
        })
    }
    let (x, y, out) = (call.shape(0).clone(), call.shape(1).clone(), call.output_shape(0)?);
    Ok(for_pairs!(call, A, B => kernel::<A, B>(x, y, out)))
}

/// A range for sums: symmetric, and `2^headroom` times as wide as the wider of two.
fn range_of_sums(a: Range, b: Range, headroom: i32) -> Range {
    let max = a.max.max(-a.min).max(b.max).max(-b.min) * 2f32.powi(headroom);
    Range { min: -max, max }
}

/// Numbers in the range of sums. TensorFlow steps evenly from the number of 0 where it adds
/// tensors of unsigned bytes, and converts each value of other types and single numbers.
fn in_sums<T: Quantum>(values: &[T], evenly: bool, range: Range, sums: Range) -> Vec<i32> {
    if !(evenly && T::LEAST == 0 && T::MOST == 255) {
        return values.iter().map(|&value| sums.value::<i32>(range.real(value))).collect();
    }
    let number = |value: i64| sums.number_of::<i32>(range.real(T::saturating(value)));
    let (first, step) = (number(0), (number(1) - number(0)) as i32);
    let at = |&value: &T| {
        let value: i64 = value.into();
        i32::saturating(first.saturating_add(value * i64::from(step)))
    };
    values.iter().map(at).collect()
}

fn add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>(x: Shape, y: Shape, out: Shape) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (range_x, range_y) = (Range::read(io, 2), Range::read(io, 4));
            let sums = range_of_sums(range_x, range_y, 14);
            let single_x = x.num_elements() == 1;
            let single_y = y.num_elements() == 1 && !single_x;
            let a = in_sums::<A>(io.input(0), !single_x, range_x, sums);
            let b = in_sums::<B>(io.input(1), !single_y, range_y, sums);
            let (a, b) = (spread(&a, &x, &out)?, spread(&b, &y, &out)?);
            let z: &mut [i32] = io.output(0);
            z.iter_mut().zip(a).zip(b).for_each(|((z, a), b)| *z = a.wrapping_add(b));
            sums.write(io, 1);
            Ok(())
        })
    }
    let (x, y, out) = (call.shape(0).clone(), call.shape(1).clone(), call.output_shape(0)?);
    Ok(for_pairs!(call, A, B => kernel::<A, B>(x, y, out)))
}

fn bias_add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            let (range, range_bias) = (Range::read(io, 2), Range::read(io, 4));
            let sums = range_of_sums(range, range_bias, 17);
            let zero = sums.value::<i32>(0.0);
            let (real, real_bias) = (range.to_reals::<A>(), range_bias.to_reals::<B>());
            let number = sums.to_values::<i32>();
            let (x, bias): (&[A], &[B]) = (io.input(0), io.input(1));
            let bias: Vec<i32> =
                bias.iter().map(|&b| number(real_bias(b)).wrapping_add(zero)).collect();
            let out: &mut [i32] = io.output(0);
            for ((out, &x), bias) in out.iter_mut().zip(x).zip(bias.iter().cycle()) {
                *out = number(real(x)).wrapping_add(*bias);
            }
            sums.write(io, 1);
            Ok(())
        })
    }
    Ok(for_pairs!(call, A, B => kernel::<A, B>()))
}

/// Values no smaller than that of 0, and no larger than that of `ceiling`.
fn clipped(call: &OpCall<'_>, ceiling: Option<f32>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum>(ceiling: Option<f32>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let range = Range::read(io, 1);
            let low: T = range.value(0.0);
            let high: T = ceiling.map_or(T::saturating(T::MOST), |real| range.value(real));
            let (x, y): (&[T], &mut [T]) = (io.input(0), io.output(0));
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = x.larger(low).smaller(high));
            range.write(io, 1);
            Ok(())
        })
    }
    if call.dtype(0) != call.outputs[0].dtype {
        return Ok(None);
    }
    Ok(with_quantum!(call.dtype(0), T => kernel::<T>(ceiling)))
}

fn relu(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    clipped(call, None)
}

fn relu6(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    clipped(call, Some(6.0))
}

fn max_pool(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(pool) = pool::largest::<false>(call)? else { return Ok(None) };
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        pool.run(io)?;
        Range::read(io, 1).write(io, 1);
        Ok(())
    })))
}

/// The sum of a window divided by its size, truncated.
fn average_pool(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum>(sweep: crate::plan::window::Sweep) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let x: Vec<i32> = io.input::<T>(0).iter().map(|&x| x.into() as i32).collect();
            let y: &mut [T] = io.output(0);
            let mut means = workspace::filled(0i32, y.len())?;
            pool::average_windows::<i32>(io.threads(), &sweep, &x, &mut means);
            y.iter_mut().zip(means).for_each(|(y, mean)| *y = T::saturating(mean.into()));
            Range::read(io, 1).write(io, 1);
            Ok(())
        })
    }
    let sweep = pool::spatial(call, call.shape(0))?;
    Ok(with_quantum!(call.dtype(0), T => kernel::<T>(sweep)))
}

/// The range that holds several; symmetric for signed types.
fn range_of_all<T: Quantum>(ranges: &[Range]) -> Range {
    let min = ranges.iter().fold(f32::MAX, |min, range| min.min(range.min));
    let max = ranges.iter().fold(f32::MIN, |max, range| max.max(range.max));
    match T::SIGNED {
        true => Range { min: -min.abs().max(max.abs()), max: min.abs().max(max.abs()) },
        false => Range { min, max },
    }
}

fn concat(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    /// `runs` are the elements that each input returns to a row of the output.
    fn kernel<T: Quantum>(runs: Vec<usize>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = runs.len();
            let range = |index: usize| Range {
                min: io.scalar(1 + n + index),
                max: io.scalar(1 + 2 * n + index),
            };
            let ranges: Vec<Range> = workspace::collected((0..n).map(range))?;
            let all = range_of_all::<T>(&ranges);
            let value = all.to_values::<T>();
            let part = |(index, range): (usize, &Range)| -> Vec<T> {
                let (x, real): (&[T], _) = (io.input(1 + index), range.to_reals::<T>());
                let convert = |&x: &T| if *range == all { x } else { value(real(x)) };
                x.iter().map(convert).collect()
            };
            let parts: Vec<Vec<T>> = ranges.iter().enumerate().map(part).collect();
            let out: &mut [T] = io.output(0);
            let row: usize = runs.iter().sum();
            for (index, out) in out.chunks_mut(row.max(1)).enumerate() {
                let mut rest = out;
                for (part, &run) in parts.iter().zip(&runs) {
                    let (own, later) = rest.split_at_mut(run);
                    own.copy_from_slice(&part[index * run..][..run]);
                    rest = later;
                }
            }
            all.write(io, 1);
            Ok(())
        })
    }
    let axis = call.ints(0)?[0] as usize;
    let n = (call.inputs.len() - 1) / 3;
    let runs = (1..=n).map(|index| call.shape(index)[axis..].iter().product()).collect();
    Ok(with_quantum!(call.dtype(1), T => kernel::<T>(runs)))
}
