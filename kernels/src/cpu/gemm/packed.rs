//! Products of `f32` by packed blocks.
//!
//! The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
//! (2008): the summed dimension is cut into depths of at most [`DEPTH`]; blocks of `b` are packed
//! into panels as wide as a tile, which pass through the first-level cache, and blocks of `a` into
//! panels as high as a tile, which stay in the second-level cache.
//!
//! Depths are cut as the `gemm` crate cuts them, and each element of the product is a chain of
//! fused operations over a depth in both, so the bits are the same.

use super::{
    Matrix, Product, Sizes,
    avx2::{Avx2, COLS, Left, ROWS},
};
use crate::{
    scratch::Scratch,
    simd::{Vectorized, vectorize},
    threads::Threads,
};
use std::ops::Range;

/// The largest depth.
const DEPTH: usize = 512;

/// Rows of a block of `a`: 288 KiB of packed elements.
const BLOCK_ROWS: usize = 24 * ROWS;

/// Columns of a block of `b`, where several blocks of `a` use it: 8 MiB of packed elements.
const BLOCK_COLS: usize = 4096;

/// Columns of a block of `b`, where only one block of `a` uses it: 256 KiB.
const PASSING_COLS: usize = 128;

/// Products with fewer multiplications are left to the crate: they fit the caches anyhow.
const LARGE: usize = 1 << 27;

/// Whether this is the better way.
pub(super) fn serves(sizes: Sizes, a: Matrix<'_, f32>, b: Matrix<'_, f32>) -> bool {
    sizes.work() >= LARGE && is_chained(sizes, a, b)
}

/// Whether the crate computes each element of a product by one chain for each depth. It has other
/// orders for products of vectors, of columns by rows, and for small tables of dot products.
pub(super) fn is_chained(sizes: Sizes, a: Matrix<'_, f32>, b: Matrix<'_, f32>) -> bool {
    let Sizes { m, k, n } = sizes;
    let dot_products = a.col_stride == 1 && b.row_stride == 1 && m.saturating_mul(n) <= 256;
    m > 1 && n > 1 && k > 2 && !dot_products
}

/// Computes a product.
pub(super) fn multiply(
    machine: Avx2,
    threads: &Threads,
    sizes: Sizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: Product<'_, f32>,
) {
    let Sizes { m, k, n } = sizes;
    let is_single = m <= BLOCK_ROWS;
    let block_cols = n.min(if is_single { PASSING_COLS } else { BLOCK_COLS });
    let depth = depth(sizes);
    let mut packed_b = scratch(depth * block_cols.next_multiple_of(COLS));
    for start in (0..k).step_by(depth) {
        let steps = start..k.min(start + depth);
        let only_a = is_single.then(|| pack_a(machine, a, 0..m, &steps));
        for first in (0..n).step_by(block_cols) {
            let cols = first..n.min(first + block_cols);
            let packed_b = &mut packed_b[..cols.len().next_multiple_of(COLS) * steps.len()];
            pack_b(threads, b, &cols, &steps, packed_b);
            let block = Block {
                machine,
                depth: steps.len(),
                b: packed_b,
                cols: cols.len(),
                row_stride: out.row_stride,
                add: out.accumulate || start > 0,
            };
            let rows_of_out = out.data.chunks_mut(BLOCK_ROWS * out.row_stride);
            let row_blocks = rows_of_out.take(m.div_ceil(BLOCK_ROWS)).enumerate();
            threads.for_each(row_blocks, |(index, out)| {
                let rows = index * BLOCK_ROWS..m.min((index + 1) * BLOCK_ROWS);
                let out = &mut out[first..];
                match &only_a {
                    Some(packed) => block.multiply(packed, rows.len(), out),
                    None => {
                        block.multiply(&pack_a(machine, a, rows.clone(), &steps), rows.len(), out)
                    }
                }
            });
        }
    }
}

/// How much of the summed dimension is taken at a time: as much as the crate takes.
pub(super) fn depth(sizes: Sizes) -> usize {
    let Sizes { m, k, n } = sizes;
    if m <= 64 && n <= 64 { k.min(DEPTH) } else { k.div_ceil(k.div_ceil(DEPTH)) }
}

fn scratch(len: usize) -> Scratch<f32> {
    Scratch::new(len).expect("there are a few megabytes left")
}

fn pack_a(
    machine: Avx2,
    a: Matrix<'_, f32>,
    rows: Range<usize>,
    steps: &Range<usize>,
) -> Scratch<f32> {
    let mut packed = scratch(rows.len().next_multiple_of(ROWS) * steps.len());
    if a.col_stride != 1 {
        vectorize(Pack::<ROWS> { matrix: a, lines: rows, steps, packed: &mut packed });
        return packed;
    }
    let whole = rows.len() / ROWS;
    let (panels, rest) = packed.split_at_mut(whole * ROWS * steps.len());
    for (index, panel) in panels.chunks_exact_mut(ROWS * steps.len()).enumerate() {
        let first = rows.start + index * ROWS;
        let row = |row| &a.data[(first + row) * a.row_stride..][steps.clone()];
        machine.interleave(std::array::from_fn(row), panel);
    }
    if !rest.is_empty() {
        let lines = rows.start + whole * ROWS..rows.end;
        vectorize(Pack::<ROWS> { matrix: a, lines, steps, packed: rest });
    }
    packed
}

fn pack_b(
    threads: &Threads,
    b: Matrix<'_, f32>,
    cols: &Range<usize>,
    steps: &Range<usize>,
    packed: &mut [f32],
) {
    /// Panels that are packed at a time.
    const PANELS: usize = 4;
    threads.for_each_piece(packed, PANELS * COLS * steps.len(), |start, packed| {
        let first = cols.start + start / steps.len();
        let lines = first..cols.end.min(first + PANELS * COLS);
        vectorize(Pack::<COLS> { matrix: b.transposed(), lines, steps, packed });
    });
}

/// Copies rows of a matrix into panels of `W` rows. A panel has the first elements of all its rows,
/// then the second ones, and so on, with zeros for the rows that are not there.
struct Pack<'a, const W: usize> {
    matrix: Matrix<'a, f32>,
    lines: Range<usize>,
    steps: &'a Range<usize>,
    packed: &'a mut [f32],
}

impl<const W: usize> Vectorized for Pack<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Matrix { data, row_stride, col_stride, .. } = self.matrix;
        let (len, n_lines) = (self.steps.len(), self.lines.len());
        let data = &data[self.lines.start * row_stride + self.steps.start * col_stride..];
        let whole = n_lines / W;
        let (panels, rest) = self.packed.split_at_mut(whole * W * len);
        if row_stride == 1 {
            // The elements of a step follow each other, those of the next panels behind them.
            for step in 0..len {
                let elements = data[step * col_stride..].chunks_exact(W);
                for (panel, elements) in panels.chunks_exact_mut(W * len).zip(elements) {
                    panel[step * W..][..W].copy_from_slice(elements);
                }
            }
        } else {
            for (index, panel) in panels.chunks_exact_mut(W * len).enumerate() {
                gather::<W>(&data[index * W * row_stride..], row_stride, col_stride, W, panel);
            }
        }
        if n_lines > whole * W {
            let data = &data[whole * W * row_stride..];
            gather::<W>(data, row_stride, col_stride, n_lines - whole * W, rest);
        }
    }
}

/// Fills a panel with `n_rows` rows of any strides.
#[inline(always)]
fn gather<const W: usize>(
    data: &[f32],
    row_stride: usize,
    col_stride: usize,
    n_rows: usize,
    out: &mut [f32],
) {
    for (step, cell) in out.chunks_exact_mut(W).enumerate() {
        let (own, missing) = cell.split_at_mut(n_rows);
        for (row, element) in own.iter_mut().enumerate() {
            *element = data[row * row_stride + step * col_stride];
        }
        missing.fill(0.0);
    }
}

/// A packed block of `b`, and what is done with it.
struct Block<'a> {
    machine: Avx2,
    depth: usize,
    b: &'a [f32],
    cols: usize,
    row_stride: usize,
    /// Whether the products are added to what is there.
    add: bool,
}

impl Block<'_> {
    /// Multiplies a packed block of `a`; `out` begins with the first element of the product.
    fn multiply(&self, a: &[f32], rows: usize, out: &mut [f32]) {
        for (b, col) in self.b.chunks(COLS * self.depth).zip((0..).step_by(COLS)) {
            let cols = COLS.min(self.cols - col);
            for (a, row) in a.chunks(ROWS * self.depth).zip((0..).step_by(ROWS)) {
                let place = (&mut out[row * self.row_stride + col..], self.row_stride);
                let size = (ROWS.min(rows - row), cols);
                let a = Left::Packed(a);
                self.machine.tile(self.depth, a, (b, COLS), place, size, self.add);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{factor::by_the_crate, panels::by_columns},
        *,
    };
    use std::num::NonZeroUsize;

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|index| ((index * 7919 + seed) % 1009) as f32 / 64.0 - 7.0).collect()
    }

    fn check(m: usize, k: usize, n: usize) {
        let Some(machine) = Avx2::detect() else { return };
        let sizes = Sizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 500));
        let threads = Threads::new(NonZeroUsize::new(3).expect("not zero"));
        for (transposed_a, transposed_b, accumulate) in
            [(false, false, false), (true, false, true), (false, true, false), (true, true, true)]
        {
            let view = |data, rows, cols, transposed| match transposed {
                true => Matrix::row_major(data, rows).transposed(),
                false => Matrix::row_major(data, cols),
            };
            let (a, b) = (view(&a[..], m, k, transposed_a), view(&b[..], k, n, transposed_b));
            if !is_chained(sizes, a, b) {
                continue;
            }
            let row_stride = n + 3;
            let mut expected = numbers(m * row_stride, 9);
            let mut found = expected.clone();
            by_the_crate(sizes, a, b, Product { data: &mut expected, row_stride, accumulate });
            let out = Product { data: &mut found, row_stride, accumulate };
            multiply(machine, &threads, sizes, a, b, out);
            assert_eq!(found, expected, "{sizes:?} {transposed_a} {transposed_b}");
            let mut in_panels = numbers(m * row_stride, 9);
            let out = Product { data: &mut in_panels, row_stride, accumulate };
            by_columns(&threads, sizes, a, b, out, |sizes, a, b, out| {
                multiply(machine, &Threads::single(), sizes, a, b, out);
            });
            assert_eq!(in_panels, expected, "{sizes:?} in panels");
        }
    }

    #[test]
    fn the_bits_are_those_of_the_crate() {
        for (m, k, n) in [
            (2, 3, 2),
            (8, 8, 8),
            (6, 16, 16),
            (7, 5, 17),
            (13, 600, 24),
            (64, 700, 64),
            (65, 1030, 20),
            (20, 513, 300),
            (150, 40, 33),
            (300, 1100, 130),
        ] {
            check(m, k, n);
        }
    }
}
