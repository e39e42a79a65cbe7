//! Matmuls of bytes and of `bfloat16` by blocks of 32 by 32 sums.
//!
//! Sums are in registers while a chunk of the summed dimension passes: in the tile registers of AMX, or
//! those of AVX-512 with dot products of bytes (VNNI) or of `bfloat16`. Operands are packed into groups of 32 bits
//! along that dimension, in the order in which tiles are loaded, with zeros where a matrix ends. A chunk of
//! rows stays in the first-level cache while all packed columns pass.

mod dots;
mod pack;
mod tiles;
mod vnni;

pub(super) use tiles::TileKind;
pub(super) use vnni::VnniUnit;

use super::{GemmOutput, GemmSizes, Matrix, group_order::GroupOrder, grouped::Grouped};
use crate::{scratch::Scratch, threads::Threads};
use pack::pack;
use std::ops::Range;

/// Rows of a tile.
const ROWS: usize = 16;

/// 32-bit groups in a row of a tile.
const GROUPS: usize = 16;

/// 32-bit groups of the two tiles of an operand for one step.
const STEP: usize = super::dots::STEP;

/// Rows and columns of a block of sums, four tiles.
const BLOCK: usize = 2 * ROWS;

/// Bits or sums of a block, row by row.
type Sums = [u32; BLOCK * BLOCK];

/// Whether the bytes of the left and the right operand are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteSigns {
    pub(super) a: bool,
    pub(super) b: bool,
}

/// A unit that multiplies packed blocks: proof that the processor has the instructions.
pub(super) trait BlockUnit: Copy + Send + Sync {
    /// The element types that it knows.
    type Kind: Copy + Send + Sync;

    /// The unit made ready on a thread.
    type Ready;

    /// Steps of a chunk.
    const CHUNK: usize;

    /// The bits of packed groups of the left and the right operand that are to be flipped.
    fn flips(_: Self::Kind) -> [u32; 2] {
        [0; 2]
    }

    /// Makes the unit ready on this thread.
    fn configure(self) -> Self::Ready;

    /// Adds the matmul of a block of rows, of which there are so many, and a block of columns. Of the left
    /// operand, each step has two tiles of 16 rows; of the right one, two tiles of 16 columns, whose
    /// rows are groups of the summed dimension.
    ///
    /// # Panics
    ///
    /// When there is no step, or the operands have different numbers of steps.
    fn multiply(
        ready: &Self::Ready,
        kind: Self::Kind,
        rows: usize,
        a: &[u32],
        b: &[u32],
        sums: &mut Sums,
    );
}

/// A block of sums, and the rows of the output that they are for.
pub(super) struct SummedBlock<'a, R> {
    sums: &'a Sums,
    out: &'a mut [R],
    row_stride: usize,
    rows: usize,
    cols: Range<usize>,
}

impl<'a, R> SummedBlock<'a, R> {
    /// The sums of each row, as bits, and their elements of the output.
    #[inline(always)]
    pub(super) fn rows(self) -> impl Iterator<Item = (&'a [u32], &'a mut [R])> {
        let SummedBlock { sums, out, row_stride, rows, cols } = self;
        let out = out.chunks_mut(row_stride).take(rows);
        sums.chunks_exact(BLOCK)
            .zip(out)
            .map(move |(sums, out)| (&sums[..cols.len()], &mut out[cols.clone()]))
    }
}

/// The fewest blocks of columns that a chunk of rows is kept for.
const FEWEST_BLOCKS: usize = 4;

/// The groups of packed columns at a time: half of a second-level cache of two megabytes.
const PACKED: usize = 1 << 18;

/// The longest summed dimension, in groups.
const DEEPEST: usize = 1 << 15;

/// The fewest columns, and rows of tile registers: with fewer, registers are mostly empty.
pub(super) const FEWEST: usize = 8;

/// Whether blocks are the better way for a matmul.
pub(super) fn serves<T: Grouped>(sizes: GemmSizes) -> bool {
    let GemmSizes { k, n, .. } = sizes;
    let groups = k.div_ceil(T::GROUP);
    n >= FEWEST && (8..=DEEPEST).contains(&groups) && sizes.work() >= 1 << 15
}

/// Computes a matmul. `store` puts the sums of a block into the output.
pub(super) fn multiply<U: BlockUnit, A: Grouped, B: Grouped, R: Send>(
    (unit, kind): (U, U::Kind),
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, A>,
    b: Matrix<'_, B>,
    out: GemmOutput<'_, R>,
    store: impl Fn(SummedBlock<'_, R>) + Sync,
) {
    let GemmSizes { m, k, n } = sizes;
    let steps = k.div_ceil(A::GROUP * GROUPS);
    let panel = steps * STEP;
    let panels = (PACKED / panel).clamp(1, n.div_ceil(BLOCK));
    let [flip_a, flip_b] = U::flips(kind);
    let mut packed_b = Scratch::needed(panels * panel);
    for first in (0..n).step_by(panels * BLOCK) {
        let cols = first..n.min(first + panels * BLOCK);
        let used = cols.len().div_ceil(BLOCK) * panel;
        threads.for_each_piece(&mut packed_b[..used], panel, |start, packed| {
            let first = cols.start + start / panel * BLOCK;
            let lines = first..cols.end.min(first + BLOCK);
            pack(b.transposed(), lines, k, GroupOrder::ByGroups, flip_b, packed);
        });
        let rows = out.data.chunks_mut(BLOCK * out.row_stride).take(m.div_ceil(BLOCK));
        threads.for_each(rows.enumerate(), |(index, out_rows)| {
            let rows = index * BLOCK..m.min((index + 1) * BLOCK);
            let mut packed_a = Scratch::needed(panel);
            pack(a, rows.clone(), k, GroupOrder::ByLines, flip_a, &mut packed_a);
            let ready = unit.configure();
            let mut blocks = Scratch::<u32>::needed(used / panel * BLOCK * BLOCK);
            blocks.fill(0);
            let chunk = match used / panel < FEWEST_BLOCKS {
                true => panel,
                false => U::CHUNK.saturating_mul(STEP).min(panel),
            };
            for start in (0..panel).step_by(chunk) {
                let chunk = start..panel.min(start + chunk);
                let packed_a = &packed_a[chunk.clone()];
                let packed_b = packed_b[..used].chunks(panel);
                for (block, (sums, packed_b)) in
                    blocks.as_chunks_mut().0.iter_mut().zip(packed_b).enumerate()
                {
                    U::multiply(&ready, kind, rows.len(), packed_a, &packed_b[chunk.clone()], sums);
                    if chunk.end < panel {
                        continue;
                    }
                    let first = cols.start + block * BLOCK;
                    let cols = first..cols.end.min(first + BLOCK);
                    let (rows, row_stride) = (rows.len(), out.row_stride);
                    store(SummedBlock { sums, out: &mut *out_rows, row_stride, rows, cols });
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::gemm::{Byte, amx::TileUnit, dots::DotUnit};
    use std::num::NonZeroUsize;

    /// Views of a matrix: by rows, by columns, and with elements apart.
    fn views<T: Copy + Default>(
        rows: usize,
        cols: usize,
        make: impl Fn(usize) -> T,
    ) -> Vec<(Vec<T>, usize, usize)> {
        [(cols, 1), (1, rows), (2 * cols + 3, 2)]
            .into_iter()
            .map(|(row_stride, col_stride)| {
                let last = (rows - 1) * row_stride + (cols - 1) * col_stride;
                let mut data = vec![T::default(); last + 1];
                for (row, col) in (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col))) {
                    data[row * row_stride + col * col_stride] = make(row * cols + col);
                }
                (data, row_stride, col_stride)
            })
            .collect()
    }

    fn matrix<T>((data, row_stride, col_stride): &(Vec<T>, usize, usize)) -> Matrix<'_, T> {
        Matrix { data, row_stride: *row_stride, col_stride: *col_stride, conjugate: false }
    }

    const SIZES: [(usize, usize, usize); 7] = [
        (1, 1, 1),
        (16, 64, 16),
        (32, 64, 32),
        (33, 65, 31),
        (70, 130, 50),
        (5, 300, 97),
        (64, 7, 64),
    ];

    fn bytes<A: Byte + Default, B: Byte + Default>(
        make_a: impl Fn(u8) -> A + Copy,
        make_b: impl Fn(u8) -> B + Copy,
    ) {
        let signs = ByteSigns { a: A::IS_SIGNED, b: B::IS_SIGNED };
        if let Some(unit) = TileUnit::detect() {
            bytes_by((unit, TileKind::Bytes(signs)), make_a, make_b);
        }
        if let Some(unit) = VnniUnit::detect() {
            bytes_by((unit, signs), make_a, make_b);
        }
    }

    fn bytes_by<U: BlockUnit<Kind: std::fmt::Debug>, A: Byte + Default, B: Byte + Default>(
        (unit, kind): (U, U::Kind),
        make_a: impl Fn(u8) -> A + Copy,
        make_b: impl Fn(u8) -> B + Copy,
    ) {
        let threads = Threads::new(NonZeroUsize::new(2).expect("not zero"));
        for (m, k, n) in SIZES {
            let sizes = GemmSizes { m, k, n };
            let number = |index: usize, seed: usize| (index.wrapping_mul(7919) + seed) as u8;
            for a in views(m, k, |index| make_a(number(index, 3))) {
                for b in views(k, n, |index| make_b(number(index / 3, 91))) {
                    let (a, b) = (matrix(&a), matrix(&b));
                    let mut out = vec![1i32; m * (n + 2)];
                    let output =
                        GemmOutput { data: &mut out, row_stride: n + 2, accumulate: false };
                    multiply((unit, kind), &threads, sizes, a, b, output, |block| {
                        for (sums, out) in block.rows() {
                            out.copy_from_slice(bytemuck::cast_slice(sums));
                        }
                    });
                    for (row, out) in out.chunks(n + 2).enumerate() {
                        assert_eq!(out[n..], [1, 1], "what is beside the product stays");
                        for (col, &found) in out[..n].iter().enumerate() {
                            let element = |step: usize| {
                                let a = a.data[row * a.row_stride + step * a.col_stride];
                                let b = b.data[step * b.row_stride + col * b.col_stride];
                                a.into() * b.into()
                            };
                            let expected: i32 = (0..k).map(element).sum();
                            assert_eq!(found, expected, "{kind:?} {sizes:?} {row} {col}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn matmuls_of_bytes_are_exact() {
        bytes(|x| x as i8, |x| x as i8);
        bytes(|x| x as i8, |x| x);
        bytes(|x| x, |x| x as i8);
        bytes(|x| x, |x| x);
    }

    #[test]
    fn matmuls_of_brain_floats_are_summed_in_float32() {
        if let Some(unit) = TileUnit::detect() {
            brain_floats_by((unit, TileKind::Brain));
        }
        if let Some(unit) = DotUnit::detect() {
            brain_floats_by((unit, ()));
        }
    }

    fn brain_floats_by<U: BlockUnit>(unit: (U, U::Kind)) {
        use half::bf16;
        for (m, k, n) in SIZES {
            let make = |index: usize| bf16::from_f32((index.wrapping_mul(7919) % 64) as f32 / 4.0);
            for (a, b) in views(m, k, make).into_iter().zip(views(k, n, make)) {
                let (a, b) = (matrix(&a), matrix(&b));
                let mut out = vec![0.0f32; m * n];
                let sizes = GemmSizes { m, k, n };
                let output = GemmOutput::row_major(&mut out, n);
                let threads = Threads::single();
                multiply(unit, &threads, sizes, a, b, output, |block| {
                    for (sums, out) in block.rows() {
                        out.copy_from_slice(bytemuck::cast_slice(sums));
                    }
                });
                for (index, &found) in out.iter().enumerate() {
                    let element = |step: usize| {
                        let a = a.data[index / n * a.row_stride + step * a.col_stride];
                        let b = b.data[step * b.row_stride + index % n * b.col_stride];
                        f32::from(a) * f32::from(b)
                    };
                    // Sixteenths of small integers: all sums are exact.
                    assert_eq!(found, (0..k).map(element).sum::<f32>(), "{sizes:?} {index}");
                }
            }
        }
    }
}
