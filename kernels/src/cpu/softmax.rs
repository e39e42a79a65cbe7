//! Softmax along the last dimension, its logarithm, and the losses made of it.
//!
//! All subtract the row's largest element first. Sums are kept in `f32` for 16-bit floats.

use super::{
    Build,
    dispatch::{with_float, with_index},
    exp::Exp,
    lanes::{LANES, pairwise, settled},
    region::rows::RowRegion,
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    simd::{Vectorized, prefetch, vectorize},
    wide::WideElement,
};
use ferroflow_ir::{DType, Error, Expr, pass::region::softmax as softmax_of};
use num_traits::AsPrimitive;
use std::{borrow::Cow, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("LogSoftmax", log_softmax),
    ("Softmax", softmax),
    ("SoftmaxCrossEntropyWithLogits", cross_entropy),
    ("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 14;

/// Rows shorter than this are faster one by one.
const LEAST_COLS: usize = 48;

/// The kernel of rows that wide vectors compute, where there is one.
fn by_rows(call: &OpCall<'_>, is_log: bool) -> Option<Arc<dyn Kernel>> {
    let (dtype, shape) = (call.dtype(0), call.shape(0));
    shape.last().filter(|&&cols| cols >= LEAST_COLS)?;
    let expr = softmax_of(&Expr::input(0, dtype), is_log)?;
    Some(Arc::new(RowRegion::of_one(&expr, dtype, shape)?))
}

fn softmax(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    // Of `float32` the exponentials are summed while they are written, which takes a pass less.
    if call.dtype(0) != DType::F32
        && let Some(kernel) = by_rows(call, false)
    {
        return Ok(Some(kernel));
    }
    let row = call.shape(0).last().copied().unwrap_or(1);
    Ok(with_float!(call.dtype(0), T => rows::<T>(row, |x, y| {
        let (_, sum) = exponentials(x, y);
        vectorize(Scale(y, <T as Number>::Acc::count(1).over(sum)));
    })))
}

fn log_softmax(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    if let Some(kernel) = by_rows(call, true) {
        return Ok(Some(kernel));
    }
    let row = call.shape(0).last().copied().unwrap_or(1);
    Ok(with_float!(call.dtype(0), T => rows::<T>(row, |x, y| {
        let (largest, sum) = exponentials(x, y);
        let logarithm = sum.ln();
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x.minus(largest).minus(logarithm));
    })))
}

/// A kernel that maps the rows of its input to those of its output.
fn rows<T: WideElement>(
    row: usize,
    map: impl Fn(&[T::Acc], &mut [T::Acc]) + Send + Sync + 'static,
) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let input: &[T] = io.input(0);
        let out: &mut [T] = io.output(0);
        if out.is_empty() {
            return Ok(());
        }
        io.threads().for_each_piece(out, (PIECE / row).max(1) * row, |start, out| {
            let input = T::widen(&input[start..start + out.len()]);
            T::through_acc(out, |out| {
                input.chunks(row).zip(out.chunks_mut(row)).for_each(|(x, y)| map(x, y));
            });
        });
        Ok(())
    })
}

/// Writes `exp(x - largest)`, and returns the largest element and the sum of what it wrote.
fn exponentials<A: Exp>(x: &[A], out: &mut [A]) -> (A, A) {
    let largest = vectorize(Largest(x));
    (largest, vectorize(Exponentials { x, largest, out }))
}

/// The largest element; NaN may be passed over.
pub(super) struct Largest<'a, A>(pub(super) &'a [A]);

impl<A: Exp> Vectorized for Largest<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self) -> A {
        let mut lanes = [A::LOWEST; LANES];
        let larger = |a: A, b: A| if b > a { b } else { a };
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            lanes.iter_mut().zip(chunk).for_each(|(lane, &x)| *lane = larger(*lane, x));
        }
        let mut lanes = settled(lanes);
        lanes.iter_mut().zip(rest).for_each(|(lane, &x)| *lane = larger(*lane, x));
        pairwise(lanes, larger)
    }
}

struct Exponentials<'a, A> {
    x: &'a [A],
    largest: A,
    out: &'a mut [A],
}

impl<A: Exp> Vectorized for Exponentials<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self) -> A {
        let mut lanes = [A::ZERO; LANES];
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        let (outs, last) = self.out.as_chunks_mut::<LANES>();
        for (x, out) in chunks.iter().zip(outs) {
            // Rows follow each other, and the processor does not look as far ahead.
            prefetch(x.as_ptr().wrapping_add(self.x.len()), size_of_val(x));
            prefetch(out.as_ptr().wrapping_add(self.x.len()), size_of_val(x));
            for ((lane, &x), out) in lanes.iter_mut().zip(x).zip(out) {
                *out = x.minus(self.largest).exp_of_nonpositive();
                *lane = lane.plus(*out);
            }
        }
        let mut lanes = settled(lanes);
        for ((lane, &x), out) in lanes.iter_mut().zip(rest).zip(last) {
            *out = x.minus(self.largest).exp_of_nonpositive();
            *lane = lane.plus(*out);
        }
        pairwise(lanes, A::plus)
    }
}

/// Multiplies all elements by a number.
pub(super) struct Scale<'a, A>(pub(super) &'a mut [A], pub(super) A);

impl<A: Exp> Vectorized for Scale<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x = x.times(self.1));
    }
}

fn cross_entropy(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Exp>>(
        sizes: [usize; 2],
        features: [usize; 2],
        labels: [usize; 2],
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, expected): (&[T], &[T]) = (io.input(0), io.input(1));
            losses::<T>(io, sizes[1], |row, loss, dx| {
                let x = broadcast_row(x, features, row, sizes[1]);
                let expected =
                    T::widen(&broadcast_row(expected, labels, row, sizes[1])).into_owned();
                let x = T::widen(&x);
                let (largest, sum) = exponentials(&x, dx);
                let (logarithm, scale) = (sum.ln(), T::Acc::ONE.over(sum));
                *loss = T::Acc::ZERO;
                for ((dx, &x), &expected) in dx.iter_mut().zip(&*x).zip(&expected) {
                    // A class that is not expected adds nothing, however unlikely it is.
                    if expected != T::Acc::ZERO {
                        let unlikeliness = logarithm.minus(x.minus(largest));
                        *loss = loss.plus(expected.times(unlikeliness));
                    }
                    *dx = dx.times(scale).minus(expected);
                }
            });
            Ok(())
        })
    }
    let sides = |index: usize| [call.shape(index)[0], call.shape(index)[1]];
    let shape = call.output_shape(1)?;
    let sizes = [shape[0], shape[1]];
    Ok(with_float!(call.dtype(0), T => kernel::<T>(sizes, sides(0), sides(1))))
}

/// A row of a matrix whose rows or columns may be one that stands for all.
fn broadcast_row<T: Copy>(
    data: &[T],
    [rows, cols]: [usize; 2],
    row: usize,
    width: usize,
) -> Cow<'_, [T]> {
    let row = if rows == 1 { 0 } else { row };
    match &data[row * cols..][..cols] {
        [only] => Cow::Owned(vec![*only; width]),
        row => Cow::Borrowed(row),
    }
}

/// Computes output 0, a loss per row, and output 1, its gradient of `width` elements.
fn losses<T: WideElement>(
    io: &mut Io<'_>,
    width: usize,
    row: impl Fn(usize, &mut T::Acc, &mut [T::Acc]) + Sync,
) {
    let (losses, gradients): (&mut [T], &mut [T]) = (io.output(0), io.output(1));
    if gradients.is_empty() {
        return losses.fill(T::ZERO);
    }
    let per_piece = (PIECE / width).max(1);
    let pieces = losses.chunks_mut(per_piece).zip(gradients.chunks_mut(per_piece * width));
    io.threads().for_each(pieces.enumerate(), |(piece, (losses, gradients))| {
        T::through_acc(gradients, |gradients| {
            T::through_acc(losses, |losses| {
                let rows = losses.iter_mut().zip(gradients.chunks_mut(width));
                for (index, (loss, gradient)) in rows.enumerate() {
                    row(piece * per_piece + index, loss, gradient);
                }
            });
        });
    });
}

fn sparse_cross_entropy(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T, I>(width: usize) -> Arc<dyn Kernel>
    where
        T: WideElement<Acc: Exp>,
        I: bytemuck::Pod + AsPrimitive<i64> + Sync,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, labels): (&[T], &[I]) = (io.input(0), io.input(1));
            let outside = |label: &&I| !(0..width as i64).contains(&label.as_());
            if let Some(label) = labels.iter().find(outside) {
                let (what, index) = ("label".into(), label.as_());
                return Err(Error::Index { what, index, low: 0, high: width as i64 }.into());
            }
            losses::<T>(io, width, |row, loss, dx| {
                let x = T::widen(&x[row * width..][..width]);
                let label = labels[row].as_() as usize;
                let (largest, sum) = exponentials(&x, dx);
                *loss = sum.ln().minus(x[label].minus(largest));
                vectorize(Scale(dx, T::Acc::ONE.over(sum)));
                dx[label] = dx[label].minus(T::Acc::ONE);
            });
            Ok(())
        })
    }
    let width = call.shape(0)[1];
    Ok(with_float!(call.dtype(0), T => {
        with_index!(call.dtype(1), I => kernel::<T, I>(width))
    })
    .flatten())
}
