//! `Where`: the coordinates of elements that are not zero.

use super::{Build, dispatch::with_number};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    threads::Threads,
};
use bytemuck::Pod;
use ferroflow_ir::{DType, Shape};
use num_complex::Complex;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("Where", where_true)];

/// Elements per piece of work.
const PIECE: usize = 1 << 16;

fn where_true(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0).clone();
    Ok(match call.dtype(0) {
        DType::Bool => Some(kernel::<u8>(shape)),
        dtype => with_number!(dtype, T => kernel::<T>(shape)),
    })
}

/// An element that may be zero. Subnormal numbers are, as everywhere in arithmetic.
trait Zero: Pod + Send + Sync {
    fn is_nonzero(self) -> bool;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Zero for $type {
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 i8 i16 i32 i64 }

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Zero for $type {
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self.is_nan() || self.abs() >= <$type>::MIN_POSITIVE
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! halves {
    ($($type:ty)*) => {$(
        impl Zero for $type {
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self.to_f32().is_nonzero()
            }
        }
    )*};
}

halves! { half::f16 half::bf16 }

impl<T: Zero> Zero for Complex<T>
where
    Complex<T>: Pod,
{
    fn is_nonzero(self) -> bool {
        self.re.is_nonzero() || self.im.is_nonzero()
    }
}

fn kernel<T: Zero>(shape: Shape) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let source: &[T] = io.input(0);
        let threads = io.threads();
        let is_nonzero = |x: &T| x.is_nonzero();
        let counts = count(threads, source, is_nonzero);
        let rank = shape.rank();
        let found = Shape::new([counts.iter().sum(), rank])?;
        let mut tensor = io.allocate(DType::I64, found)?;
        let mut rest = tensor.as_mut_slice::<i64>()?;
        let mut pieces = Vec::with_capacity(counts.len());
        for (count, part) in counts.iter().zip(source.chunks(PIECE)) {
            let (own, later) = rest.split_at_mut(count * rank);
            pieces.push((own, part));
            rest = later;
        }
        if rank > 0 {
            threads.for_each(pieces.into_iter().enumerate(), |(piece, (out, part))| {
                coordinates(&shape, piece * PIECE, part, is_nonzero, out);
            });
        }
        io.put(0, tensor)
    })
}

/// Number of elements of each piece that count.
fn count<T: Sync>(
    threads: &Threads,
    source: &[T],
    holds: impl Fn(&T) -> bool + Sync,
) -> Vec<usize> {
    let mut counts = vec![0; source.len().div_ceil(PIECE)];
    threads.for_each_piece(&mut counts, 1, |piece, count| {
        let part = &source[piece * PIECE..];
        count[0] = part[..PIECE.min(part.len())].iter().filter(|x| holds(x)).count();
    });
    counts
}

/// Writes the coordinates of those elements of `part` that count; the first one of `part` is
/// element `start` of a tensor of this shape.
fn coordinates<T>(
    shape: &Shape,
    start: usize,
    part: &[T],
    holds: impl Fn(&T) -> bool,
    out: &mut [i64],
) {
    let rank = shape.rank();
    if rank == 1 {
        let mut n = 0;
        for (index, x) in part.iter().enumerate() {
            if n == out.len() {
                return;
            }
            // Written whether it counts or not; the next one that counts writes over it.
            out[n] = (start + index) as i64;
            n += usize::from(holds(x));
        }
        return;
    }
    let row = shape[rank - 1];
    let mut elements = part.iter().enumerate().filter(|(_, x)| holds(x));
    let (mut number, mut first) = (usize::MAX, Vec::new());
    for out in out.chunks_exact_mut(rank) {
        let Some((index, _)) = elements.next() else { return };
        let (own, column) = ((start + index) / row, (start + index) % row);
        if own != number {
            number = own;
            first = outer_coordinates(shape, own);
        }
        out[..rank - 1].copy_from_slice(&first);
        out[rank - 1] = column as i64;
    }
}

/// The coordinates of row `number` of a tensor, without the last one.
fn outer_coordinates(shape: &Shape, number: usize) -> Vec<i64> {
    let mut rest = number;
    let mut coordinates = vec![0; shape.rank() - 1];
    for (coordinate, &size) in coordinates.iter_mut().zip(&shape[..shape.rank() - 1]).rev() {
        *coordinate = (rest % size) as i64;
        rest /= size;
    }
    coordinates
}
