//! Matmuls of bytes with sums of 32 bits, which wrap.

use super::{GemmOutput, GemmSizes, Matrix, gemm, grouped::Grouped, vector::InstructionSet};
#[cfg(target_arch = "x86_64")]
use super::{
    amx::TileUnit,
    blocks::{self, BlockUnit, ByteSigns, SummedBlock, TileKind, VnniUnit},
};
use crate::threads::Threads;

/// A byte, signed or not.
pub(in crate::cpu) trait Byte: Grouped + Into<i32> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "registers of x86-64 ask"))]
    const IS_SIGNED: bool;
}

impl Byte for i8 {
    const IS_SIGNED: bool = true;
}

impl Byte for u8 {
    const IS_SIGNED: bool = false;
}

/// Computes `a × b`.
///
/// # Panics
///
/// As [`gemm`].
pub(in crate::cpu) fn gemm_of_bytes<A: Byte, B: Byte>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, A>,
    b: Matrix<'_, B>,
    out: GemmOutput<'_, i32>,
) {
    #[cfg(target_arch = "x86_64")]
    if blocks::serves::<A>(sizes) {
        let signs = ByteSigns { a: A::IS_SIGNED, b: B::IS_SIGNED };
        if let Some(unit) = TileUnit::detect()
            && sizes.m >= blocks::FEWEST
        {
            return by_blocks((unit, TileKind::Bytes(signs)), threads, sizes, a, b, out);
        }
        if let Some(unit) = VnniUnit::detect() {
            return by_blocks((unit, signs), threads, sizes, a, b, out);
        }
    }
    if InstructionSet::detect().is_some() && sizes.k > 0 && sizes.work() >= FLOAT_WORK {
        return by_floats(threads, sizes, a, b, out);
    }
    let wide_a: Vec<i32> = a.data.iter().map(|&x| x.into()).collect();
    let wide_b: Vec<i32> = b.data.iter().map(|&x| x.into()).collect();
    gemm(threads, sizes, a.with_data(&wide_a), b.with_data(&wide_b), out);
}

/// Matmuls with less multiplications than this are not worth the conversions.
const FLOAT_WORK: u64 = 1 << 15;

/// The number of bytes times bytes that `f32` adds without rounding: their sum stays below 2²⁴.
const EXACT: usize = (1 << 24) / (255 * 255);

/// Rows whose sums are held at a time.
const HELD_ROWS: usize = 512;

/// Computes a matmul by those of `f32`, of parts of the summed dimension that are exact.
fn by_floats<A: Byte, B: Byte>(
    threads: &Threads,
    GemmSizes { m, k, n }: GemmSizes,
    a: Matrix<'_, A>,
    b: Matrix<'_, B>,
    out: GemmOutput<'_, i32>,
) {
    let mut sums = vec![0.0; m.min(HELD_ROWS) * n];
    for first in (0..k).step_by(EXACT) {
        let depth = EXACT.min(k - first);
        let part_b = floats(b.below(first), depth, n);
        let part_b = Matrix::row_major(&part_b, n);
        let accumulates = out.accumulate || first > 0;
        for start in (0..m).step_by(HELD_ROWS) {
            let rows = HELD_ROWS.min(m - start);
            let part_a = floats(a.right_of(first).below(start), rows, depth);
            let part_a = Matrix::row_major(&part_a, depth);
            let sizes = GemmSizes { m: rows, k: depth, n };
            gemm(threads, sizes, part_a, part_b, GemmOutput::row_major(&mut sums, n));
            let outs = out.data.chunks_mut(out.row_stride).skip(start).take(rows);
            for (out, sums) in outs.zip(sums.chunks(n)) {
                for (out, &sum) in out.iter_mut().zip(sums) {
                    let before = if accumulates { *out } else { 0 };
                    *out = before.wrapping_add(sum as i32);
                }
            }
        }
    }
}

/// The elements of a matrix, row by row.
fn floats<T: Byte>(matrix: Matrix<'_, T>, rows: usize, cols: usize) -> Vec<f32> {
    let mut floats = Vec::with_capacity(rows * cols);
    for row in 0..rows {
        let elements = matrix.data[row * matrix.row_stride..].iter();
        let elements = elements.step_by(matrix.col_stride.max(1)).take(cols);
        floats.extend(elements.map(|&element| element.into() as f32));
    }
    floats
}

/// Computes a matmul by blocks.
#[cfg(target_arch = "x86_64")]
fn by_blocks<U: BlockUnit, A: Byte, B: Byte>(
    unit: (U, U::Kind),
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, A>,
    b: Matrix<'_, B>,
    out: GemmOutput<'_, i32>,
) {
    let accumulate = out.accumulate;
    blocks::multiply(unit, threads, sizes, a, b, out, |block: SummedBlock<'_, i32>| {
        for (sums, out) in block.rows() {
            let sums: &[i32] = bytemuck::cast_slice(sums);
            match accumulate {
                true => out.iter_mut().zip(sums).for_each(|(out, x)| *out = out.wrapping_add(*x)),
                false => out.copy_from_slice(sums),
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_floats_are_exact() {
        let (m, k, n) = (HELD_ROWS + 3, 2 * EXACT + 5, 19);
        let a: Vec<u8> = (0..m * k).map(|at| if at % 7 == 0 { at as u8 } else { 255 }).collect();
        let b: Vec<i8> = (0..k * n).map(|at| if at % 5 == 0 { at as i8 } else { -128 }).collect();
        let b = Matrix::row_major(&b[..], k).transposed();
        let mut out = vec![7; m * n];
        let output = GemmOutput { accumulate: true, ..GemmOutput::row_major(&mut out, n) };
        let a = Matrix::row_major(&a[..], k);
        by_floats(&Threads::single(), GemmSizes { m, k, n }, a, b, output);
        for (at, &found) in out.iter().enumerate() {
            let (row, col) = (at / n, at % n);
            let term =
                |step: usize| i32::from(a.data[row * k + step]) * i32::from(b.data[col * k + step]);
            assert_eq!(found, 7 + (0..k).map(term).sum::<i32>(), "{row} {col}");
        }
    }
}
