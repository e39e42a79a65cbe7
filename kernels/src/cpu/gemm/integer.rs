//! Products of integers, which wrap.

use super::{GemmOutput, GemmSizes, Matrix};
use crate::{
    number::Number,
    simd::{Vectorized, vectorize},
};

/// Computes a product: adds multiples of the rows of `b` to the rows of the output, block by block
/// of `b`.
pub(super) fn multiply_integers<T: Number>(
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    const DEPTH: usize = 128;
    const WIDTH: usize = 512;
    let GemmSizes { m, k, n } = sizes;
    if m == 0 || n == 0 {
        return;
    }
    if !out.accumulate {
        out.data.chunks_mut(out.row_stride).take(m).for_each(|row| row[..n].fill(T::ZERO));
    }
    let mut block = vec![T::ZERO; DEPTH.min(k) * WIDTH.min(n)];
    for depth in (0..k).step_by(DEPTH) {
        let rows = DEPTH.min(k - depth);
        for first in (0..n).step_by(WIDTH) {
            let cols = WIDTH.min(n - first);
            for (row, packed) in block.chunks_mut(cols).take(rows).enumerate() {
                let source = &b.data[(depth + row) * b.row_stride + first * b.col_stride..];
                let source = source.iter().step_by(b.col_stride.max(1));
                packed.iter_mut().zip(source).for_each(|(packed, &element)| *packed = element);
            }
            for (row, out) in out.data.chunks_mut(out.row_stride).take(m).enumerate() {
                let factors = &a.data[row * a.row_stride + depth * a.col_stride..];
                vectorize(AddRows {
                    factors,
                    step: a.col_stride,
                    rows: &block[..rows * cols],
                    out: &mut out[first..first + cols],
                });
            }
        }
    }
}

/// Adds multiples of rows, each `step` factors apart, to `out`.
struct AddRows<'a, T> {
    factors: &'a [T],
    step: usize,
    rows: &'a [T],
    out: &'a mut [T],
}

impl<T: Number> Vectorized for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (index, row) in self.rows.chunks(self.out.len()).enumerate() {
            let factor = self.factors[index * self.step];
            for (out, &element) in self.out.iter_mut().zip(row) {
                *out = out.plus(factor.times(element));
            }
        }
    }
}
