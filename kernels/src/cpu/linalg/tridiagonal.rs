//! Matrices that have three diagonals: `TridiagonalMatMul`, `TridiagonalSolve`.

use super::{Field, Stack, try_each, with_field};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("TridiagonalMatMul", multiply), ("TridiagonalSolve", solve)];

fn multiply(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(diagonal: Stack, right: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let [above, main, below] = [0, 1, 2].map(|index| diagonal.input::<T>(io, index));
            let (n, columns) = (right.rows, right.columns);
            let (right, out) = (right.input::<T>(io, 3), right.output(io, 0, n * columns));
            try_each(io.threads(), out.into_iter().enumerate(), |(matrix, out)| {
                let (above, main, below, x) =
                    (above[*matrix], main[*matrix], below[*matrix], right[*matrix]);
                for (index, out) in out.iter_mut().enumerate() {
                    let row = index / columns;
                    *out = main[row].times(x[index]);
                    if row > 0 {
                        *out = out.plus(below[row].times(x[index - columns]));
                    }
                    if row + 1 < n {
                        *out = out.plus(above[row].times(x[index + columns]));
                    }
                }
                Ok(())
            })
        })
    }
    let (diagonal, right) = (Stack::new(call.shape(0)), Stack::new(call.shape(3)));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(diagonal, right)))
}

/// A row while it is eliminated: the diagonal and the two elements after it.
type Row<T> = [T; 3];

/// Solves for `columns` right sides, which are passed and replaced row by row. Gaussian
/// elimination; a singular matrix gives infinities and NaN.
fn eliminate<T: Field>(diagonals: &[T], n: usize, x: &mut [T], columns: usize, pivoting: bool) {
    let at = |diagonal: usize, row: usize| diagonals[diagonal * n + row];
    let start = |row: usize| [at(1, row), if row + 1 < n { at(0, row) } else { T::ZERO }, T::ZERO];
    let mut rows: Vec<Row<T>> = Vec::with_capacity(n);
    let mut current = start(0);
    for row in 1..n {
        let (mut own, mut next) = (current, start(row));
        let mut before = at(2, row);
        let (above, below) = x.split_at_mut(row * columns);
        let (above, below) = (&mut above[(row - 1) * columns..], &mut below[..columns]);
        if pivoting && before.magnitude() > own[0].magnitude() {
            above.swap_with_slice(below);
            let lower = [before, next[0], next[1]];
            (before, next) = (own[0], [own[1], own[2], T::ZERO]);
            own = lower;
        }
        let factor = before.over(own[0]);
        next[0] = next[0].minus(factor.times(own[1]));
        next[1] = next[1].minus(factor.times(own[2]));
        below.iter_mut().zip(above).for_each(|(x, above)| *x = x.minus(factor.times(*above)));
        rows.push(own);
        current = next;
    }
    rows.push(current);
    for (row, [diagonal, first, second]) in rows.into_iter().enumerate().rev() {
        for column in 0..columns {
            let index = row * columns + column;
            let known = |distance: usize| match row + distance < n {
                true => x[index + distance * columns],
                false => T::ZERO,
            };
            let sum = first.times(known(1)).plus(second.times(known(2)));
            x[index] = x[index].minus(sum).over(diagonal);
        }
    }
}

fn solve(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(diagonals: Stack, right: Stack, pivoting: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (n, columns) = (right.rows, right.columns);
            let matrices = diagonals.input::<T>(io, 0);
            let (right, out) = (right.input::<T>(io, 1), right.output(io, 0, n * columns));
            let items = matrices.into_iter().zip(right).zip(out);
            try_each(io.threads(), items, |((diagonals, right), x)| {
                x.copy_from_slice(right);
                if !x.is_empty() {
                    eliminate(diagonals, n, x, columns, pivoting);
                }
                Ok(())
            })
        })
    }
    let (diagonals, right) = (Stack::new(call.shape(0)), Stack::new(call.shape(1)));
    let pivoting = call.attrs.bool("partial_pivoting")?;
    Ok(with_field!(call.dtype(0), T => kernel::<T>(diagonals, right, pivoting)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_exchanged_where_the_diagonal_is_small() {
        // [[0, 1, 0], [2, 1, 1], [0, 3, 1]]
        let diagonals = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 2.0, 3.0];
        let mut x = [2.0, 7.0, 9.0];
        eliminate(&diagonals, 3, &mut x, 1, true);
        assert_eq!(x, [1.0, 2.0, 3.0]);
    }
}
