//! Where extreme elements are: `ArgMax`, `ArgMin`.
//!
//! NaN is never extreme; where nothing is, the answer is 0. Subnormal numbers are zeros.

use super::{
    Build,
    dispatch::{with_index, with_real},
    index::PositionElement,
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Ordered,
    simd::{Vectorized, vectorize},
};
use ferroflow_ir::{DType, infer::normalize_axis};
use std::{marker::PhantomData, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] =
    &[("ArgMax", compile::<Largest>), ("ArgMin", compile::<Smallest>)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// Side of the order that is sought.
trait Side: Send + Sync + 'static {
    /// No element is beaten by this one.
    fn start<T: Ordered>() -> T;
    /// Whether `a` is further out than `b`.
    fn beats<T: Ordered>(a: T, b: T) -> bool;
}

struct Largest;

impl Side for Largest {
    fn start<T: Ordered>() -> T {
        T::LOWEST
    }
    #[inline(always)]
    fn beats<T: Ordered>(a: T, b: T) -> bool {
        a > b
    }
}

struct Smallest;

impl Side for Smallest {
    fn start<T: Ordered>() -> T {
        T::HIGHEST
    }
    #[inline(always)]
    fn beats<T: Ordered>(a: T, b: T) -> bool {
        a < b
    }
}

fn compile<S: Side>(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0);
    let axis = normalize_axis(call.ints(1)?[0], shape.rank())?;
    let (size, inner) = (shape[axis], shape[axis + 1..].iter().product());
    let dtype = if call.dtype(0) == DType::Bool { DType::U8 } else { call.dtype(0) };
    let index_dtype = call.outputs[0].dtype;
    let kernel = with_real!(dtype, T => {
        with_index!(index_dtype, I => kernel::<T, I, S>(size, inner))
    });
    Ok(kernel.flatten())
}

/// `[outer, size, inner] → [outer, inner]`.
fn kernel<T: Ordered, I: PositionElement, S: Side>(size: usize, inner: usize) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let (source, out): (&[T], &mut [I]) = (io.input(0), io.output(0));
        let rows_per_piece = (PIECE / (size * inner).max(1)).max(1);
        io.threads().for_each_piece(out, rows_per_piece * inner, |start, out| {
            let source = &source[start * size..];
            if inner == 1 {
                for (out, row) in out.iter_mut().zip(source.chunks_exact(size)) {
                    *out = I::from_position(of_row::<T, S>(row));
                }
                return;
            }
            for (out, block) in out.chunks_exact_mut(inner).zip(source.chunks_exact(size * inner)) {
                let positions = of_columns::<T, S>(block, inner);
                out.iter_mut().zip(positions).for_each(|(out, n)| *out = I::from_position(n));
            }
        });
        Ok(())
    })
}

/// Partial results that are kept side by side.
const LANES: usize = 32;

fn of_row<T: Ordered, S: Side>(row: &[T]) -> usize {
    struct Extreme<'a, T, S>(&'a [T], PhantomData<S>);
    impl<T: Ordered, S: Side> Vectorized for Extreme<'_, T, S> {
        type Output = T;
        #[inline(always)]
        fn run(self) -> T {
            let further = |a: T, b: T| if S::beats(b, a) { b } else { a };
            let mut lanes = [S::start::<T>(); LANES];
            let (chunks, rest) = self.0.as_chunks::<LANES>();
            for chunk in chunks {
                for (lane, &x) in lanes.iter_mut().zip(chunk) {
                    *lane = further(*lane, x);
                }
            }
            let all = lanes.iter().chain(rest);
            all.fold(S::start(), |a, &b| further(a, b))
        }
    }
    let extreme = vectorize(Extreme::<T, S>(row, PhantomData));
    if !S::beats(extreme, S::start()) {
        return 0;
    }
    vectorize(FirstEqual(row, extreme.flushed())).unwrap_or(0)
}

/// The position of the first element that equals another, by lanes: none of those that do not is looked at
/// alone.
struct FirstEqual<'a, T>(&'a [T], T);

impl<T: Ordered> Vectorized for FirstEqual<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let FirstEqual(row, wanted) = self;
        let (chunks, _) = row.as_chunks::<LANES>();
        let mut first = 0;
        for chunk in chunks {
            let mut any = false;
            for &x in chunk {
                any |= x.flushed() == wanted;
            }
            if any {
                break;
            }
            first += LANES;
        }
        let mut rest = row[first..].iter();
        rest.position(|&x| x.flushed() == wanted).map(|position| first + position)
    }
}

fn of_columns<T: Ordered, S: Side>(block: &[T], inner: usize) -> Vec<usize> {
    let mut extremes = vec![S::start::<T>(); inner];
    let mut positions = vec![0; inner];
    for (n, row) in block.chunks_exact(inner).enumerate() {
        for ((extreme, position), &x) in extremes.iter_mut().zip(&mut positions).zip(row) {
            let x = x.flushed();
            let beats = S::beats(x, *extreme);
            *extreme = if beats { x } else { *extreme };
            *position = if beats { n } else { *position };
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_extreme_counts_and_nan_does_not() {
        let nan = f32::NAN;
        let check = |row: &[f32], largest, smallest| {
            assert_eq!(of_row::<f32, Largest>(row), largest);
            assert_eq!(of_row::<f32, Smallest>(row), smallest);
            assert_eq!(of_columns::<f32, Largest>(row, 1), [largest]);
            assert_eq!(of_columns::<f32, Smallest>(row, 1), [smallest]);
        };
        check(&[nan, 2.0, 1.0, 2.0, 1.0], 1, 2);
        check(&[nan, nan], 0, 0);
        check(&[f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY], 2, 0);
        check(&[-1e-40, 1e-40, -0.0], 0, 0);
        check(&[2.0, 0.0, -1e-40], 0, 1);
        for at in [0, 31, 32, 40, 95, 96, 99] {
            let mut row = [0.5; 100];
            (row[99], row[at]) = (2.0, 2.0);
            check(&row, at, usize::from(at == 0));
        }
    }
}
