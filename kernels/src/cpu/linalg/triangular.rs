//! Triangles: `Cholesky`, `MatrixTriangularSolve`.

use super::{Field, Stack, subtract, try_each, with_field};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::Shape;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("Cholesky", cholesky), ("MatrixTriangularSolve", solve)];

/// Computes `l` with `l lᴴ = a`, of which the upper triangle is not read. `None` where a number on
/// the diagonal would be the root of one that is not positive; NaN passes.
fn lower_factor<T: Field>(a: &[T], l: &mut [T], n: usize) -> Option<()> {
    for row in 0..n {
        let (above, below) = l.split_at_mut(row * n);
        let own = &mut below[..n];
        own[..=row].copy_from_slice(&a[row * n..][..=row]);
        own[row + 1..].fill(T::ZERO);
        for column in 0..row {
            let other = &above[column * n..][..=column];
            let sum = dot(&own[..column], &other[..column]);
            own[column] = own[column].minus(sum).over(other[column]);
        }
        let sum = dot(&own[..row], &own[..row]);
        let square = own[row].minus(sum).to_complex().re;
        if square <= 0.0 {
            return None;
        }
        own[row] = T::from_complex(square.sqrt().into());
    }
    Some(())
}

/// The product of a row and the adjoint of another one.
fn dot<T: Field>(a: &[T], b: &[T]) -> T {
    let (wide, narrow) = a.as_chunks::<8>();
    let (other, rest) = b.as_chunks::<8>();
    let mut sums = [T::ZERO; 8];
    for (a, b) in wide.iter().zip(other) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum = sum.plus(a.times(b.conj()));
        }
    }
    let sum = sums.into_iter().fold(T::ZERO, T::plus);
    narrow.iter().zip(rest).fold(sum, |sum, (&a, &b)| sum.plus(a.times(b.conj())))
}

/// Matrices that are not positive definite have a factor of NaN.
fn cholesky(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, out) = (stack.input::<T>(io, 0), stack.output(io, 0, n * n));
            try_each(io.threads(), matrices.into_iter().zip(out), |(a, l)| {
                if lower_factor(a, l, n).is_none() {
                    let nan = T::from_exact(f64::NAN.into());
                    for (row, l) in l.chunks_mut(n).enumerate() {
                        l[..=row].fill(nan);
                        l[row + 1..].fill(T::ZERO);
                    }
                }
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

/// Triangle of the matrix, or of its adjoint.
#[derive(Debug, Clone, Copy)]
struct Triangle {
    lower: bool,
    adjoint: bool,
}

impl Triangle {
    /// Solves for `columns` right sides, which are passed and replaced row by row.
    fn solve<T: Field>(self, a: &[T], n: usize, x: &mut [T], columns: usize) {
        let element = |row: usize, column: usize| match self.adjoint {
            true => a[column * n + row].conj(),
            false => a[row * n + column],
        };
        let forward = self.lower != self.adjoint;
        for step in 0..n {
            let row = if forward { step } else { n - 1 - step };
            let (above, rest) = x.split_at_mut(row * columns);
            let (own, below) = rest.split_at_mut(columns);
            for k in 0..step {
                let (column, known) = match forward {
                    true => (k, &above[k * columns..][..columns]),
                    false => (row + 1 + k, &below[k * columns..][..columns]),
                };
                subtract(own, element(row, column), known);
            }
            let diagonal = element(row, row);
            own.iter_mut().for_each(|x| *x = x.over(diagonal));
        }
    }
}

/// The element of a stack that broadcasts to element `index` of a larger one.
fn source(index: usize, stack: &[usize], larger: &[usize]) -> usize {
    let (mut rest, mut place, mut step) = (index, 0, 1);
    for (axis, &size) in larger.iter().enumerate().rev() {
        let own = (axis + stack.len()).checked_sub(larger.len()).map_or(1, |axis| stack[axis]);
        place += if own == 1 { 0 } else { rest % size * step };
        step *= own;
        rest /= size;
    }
    place
}

fn solve(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(
        triangle: Triangle,
        (stack, right, out): (Stack, Stack, Stack),
        sources: Vec<(usize, usize)>,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (matrices, right) = (stack.input::<T>(io, 0), right.input::<T>(io, 1));
            let results = out.output(io, 0, out.rows * out.columns);
            try_each(io.threads(), sources.iter().zip(results), |(source, x)| {
                x.copy_from_slice(right[source.1]);
                triangle.solve(matrices[source.0], out.rows, x, out.columns);
                Ok(())
            })
        })
    }
    let (matrix, right, out) = (call.shape(0), call.shape(1), call.output_shape(0)?);
    let stack = |shape: &Shape| shape[..shape.rank() - 2].to_vec();
    let (of_matrix, of_right, of_out) = (stack(matrix), stack(right), stack(&out));
    let count: usize = of_out.iter().product();
    let sources = (0..count)
        .map(|index| (source(index, &of_matrix, &of_out), source(index, &of_right, &of_out)))
        .collect();
    let triangle =
        Triangle { lower: call.attrs.bool("lower")?, adjoint: call.attrs.bool("adjoint")? };
    let stacks = (Stack::new(matrix), Stack::new(right), Stack::new(&out));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(triangle, stacks, sources)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_broadcast() {
        let offsets = |stack: &[usize]| -> Vec<usize> {
            (0..6).map(|index| source(index, stack, &[2, 3])).collect()
        };
        assert_eq!(offsets(&[2, 3]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(offsets(&[2, 1]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(offsets(&[3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(offsets(&[]), [0; 6]);
    }

    #[test]
    fn both_triangles_and_their_adjoints_are_solved() {
        let a = [2.0, 0.5, -1.0, 3.0];
        for (lower, adjoint, matrix) in [
            (true, false, [2.0, 0.0, -1.0, 3.0]),
            (true, true, [2.0, -1.0, 0.0, 3.0]),
            (false, false, [2.0, 0.5, 0.0, 3.0]),
            (false, true, [2.0, 0.0, 0.5, 3.0]),
        ] {
            let mut x = [4.0, 7.0];
            Triangle { lower, adjoint }.solve(&a, 2, &mut x, 1);
            let product =
                [matrix[0] * x[0] + matrix[1] * x[1], matrix[2] * x[0] + matrix[3] * x[1]];
            assert!((product[0] - 4.0f64).abs() < 1e-12 && (product[1] - 7.0f64).abs() < 1e-12);
        }
    }
}
