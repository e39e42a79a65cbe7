//! Products cut into panels, for many threads, and for calls that end between two of them.

use super::{GemmElement, GemmOutput, GemmSizes, LONG_WORK, Matrix};
use crate::threads::Threads;

/// The fewest rows or columns of a panel.
const PANEL: usize = 128;

/// The fewest rows of a panel of one or two columns, and columns of one or two rows: smaller panels
/// are tables of dot products to the `gemm` crate, which have an order of their own.
const LONG_PANEL: usize = 4 * PANEL;

/// The most panels of a product, if it is not so long that each would take more than [`LONG_WORK`].
const MAX_PANELS: usize = 16;

/// The sizes of the panels that `len` rows or columns, `across` elements long, are cut into, for sums of
/// `depth` products. All but the last are multiples of [`PANEL`], and the last is no smaller. Between two
/// panels a call may end, so they are no longer than they need be.
fn panels(len: usize, across: usize, depth: usize) -> impl Iterator<Item = usize> {
    let least = if across > 2 { PANEL } else { LONG_PANEL };
    let work = GemmSizes { m: len, k: depth, n: across }.work();
    let n_long = usize::try_from(work / LONG_WORK).unwrap_or(usize::MAX);
    let size = len.div_ceil(MAX_PANELS.max(n_long)).next_multiple_of(least);
    let count = (len / size).max(1);
    (0..count).map(move |index| if index + 1 < count { size } else { len - index * size })
}

/// Computes a product by panels of its longer side.
pub(super) fn by_panels<T: GemmElement>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    match sizes.m >= sizes.n {
        true => by_rows(threads, sizes, a, b, out),
        false => by_columns(threads, sizes, a, b, out),
    }
}

/// Computes a product by panels of rows.
fn by_rows<T: GemmElement>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    let GemmOutput { data, row_stride, accumulate } = out;
    let (mut rest, mut first) = (data, 0);
    let mut pieces = Vec::new();
    for rows in panels(sizes.m, sizes.n, sizes.k) {
        let end = if first + rows < sizes.m { rows * row_stride } else { rest.len() };
        let (own, later) = rest.split_at_mut(end);
        pieces.push((first, rows, own));
        (rest, first) = (later, first + rows);
    }
    threads.for_each(pieces.into_iter(), |(first, rows, data)| {
        let sizes = GemmSizes { m: rows, ..sizes };
        T::multiply(sizes, a.below(first), b, GemmOutput { data, row_stride, accumulate });
    });
}

/// Computes a product by panels of columns. They are not slices of the output: each is computed aside
/// and copied into its place row by row.
fn by_columns<T: GemmElement>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    let mut pieces: Vec<(usize, Vec<&mut [T]>)> = Vec::new();
    let mut first = 0;
    for cols in panels(sizes.n, sizes.m, sizes.k) {
        pieces.push((first, Vec::with_capacity(sizes.m)));
        first += cols;
    }
    for row in out.data.chunks_mut(out.row_stride).take(sizes.m) {
        let mut rest = &mut row[..sizes.n];
        for ((_, rows), cols) in pieces.iter_mut().zip(panels(sizes.n, sizes.m, sizes.k)) {
            let (own, later) = rest.split_at_mut(cols);
            rows.push(own);
            rest = later;
        }
    }
    threads.for_each(pieces.into_iter(), |(first, rows)| {
        let cols = rows.first().map_or(0, |row| row.len());
        let mut aside = vec![T::ZERO; sizes.m * cols];
        if out.accumulate {
            aside.chunks_mut(cols).zip(&rows).for_each(|(aside, row)| aside.copy_from_slice(row));
        }
        let place =
            GemmOutput { accumulate: out.accumulate, ..GemmOutput::row_major(&mut aside, cols) };
        T::multiply(GemmSizes { n: cols, ..sizes }, a, b.right_of(first), place);
        rows.into_iter()
            .zip(aside.chunks(cols))
            .for_each(|(row, aside)| row.copy_from_slice(aside));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_a_side_and_are_more_where_a_product_is_long() {
        for (len, across, depth, count) in
            [(1, 1, 1, 1), (1000, 3, 5, 7), (4096, 4096, 64, 16), (1 << 14, 1 << 14, 1 << 12, 64)]
        {
            let sizes: Vec<usize> = panels(len, across, depth).collect();
            assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (count, len));
            let (last, others) = sizes.split_last().unwrap();
            assert!(others.iter().all(|size| size % PANEL == 0 && last >= size));
        }
        assert!(panels(usize::MAX / 2, 4, usize::MAX / 2).next().is_some());
    }
}
