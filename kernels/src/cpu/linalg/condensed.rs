//! Matrices with few diagonals, by reflections from both sides, as LAPACK packs them: `_Hessenberg` (`gehrd`),
//! `_Tridiagonal` (`sytrd`, `hetrd`).

use super::{
    Field, Stack,
    reflection::{Reflection, condense},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use num_complex::ComplexFloat;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("_Hessenberg", hessenberg), ("_Tridiagonal", tridiagonal)];

fn hessenberg(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let matrices = stack.input::<T>(io, 0);
            let packed = stack.output::<T>(io, 0, n * n);
            let factors = stack.output::<T>(io, 1, n.saturating_sub(1));
            try_each(io.threads(), matrices.into_iter().zip(packed).zip(factors), |parts| {
                let ((a, packed), factors) = parts;
                let mut a: Vec<T::Exact> = a.iter().map(|x| x.to_exact()).collect();
                let reflections = condense(&mut a, n, n.saturating_sub(1));
                for (k, reflection) in reflections.iter().enumerate() {
                    a[(k + 1) * n + k] = reflection.first.into();
                    for (row, &v) in (k + 2..n).zip(reflection.below()) {
                        a[row * n + k] = v;
                    }
                }
                T::write(factors, reflections.iter().map(Reflection::tau));
                T::write(packed, a);
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

fn tridiagonal(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, lower: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let less = n.saturating_sub(1);
            let matrices = stack.input::<T>(io, 0);
            let packed = stack.output::<T>(io, 0, n * n);
            let main = stack.output::<T>(io, 1, n);
            let beside = stack.output::<T>(io, 2, less);
            let factors = stack.output::<T>(io, 3, less);
            let items = matrices.into_iter().zip(packed).zip(main).zip(beside).zip(factors);
            try_each(io.threads(), items, |((((a, packed), main), beside), factors)| {
                // With rows and columns in reverse, the upper triangle is the lower one.
                let at = |row: usize, column: usize| match lower {
                    true => row * n + column,
                    false => (n - 1 - row) * n + n - 1 - column,
                };
                let element = |index: usize| {
                    let (row, column) = (index / n, index % n);
                    match row.cmp(&column) {
                        std::cmp::Ordering::Greater => a[at(row, column)].to_exact(),
                        std::cmp::Ordering::Equal => a[at(row, column)].to_exact().re().into(),
                        std::cmp::Ordering::Less => a[at(column, row)].to_exact().conj(),
                    }
                };
                let mut t: Vec<T::Exact> = (0..n * n).map(element).collect();
                let index = |k: usize, n: usize| if lower { k } else { n - 1 - k };
                packed.copy_from_slice(a);
                for (k, reflection) in condense(&mut t, n, less).iter().enumerate() {
                    let first = T::from_exact(reflection.first.into());
                    beside[index(k, less)] = first;
                    packed[at(k + 1, k)] = first;
                    factors[index(k, less)] = T::from_exact(reflection.tau());
                    for (row, &v) in (k + 2..n).zip(reflection.below()) {
                        packed[at(row, k)] = T::from_exact(v);
                    }
                }
                for k in 0..n {
                    let own = T::from_exact(t[k * n + k].re().into());
                    main[index(k, n)] = own;
                    packed[at(k, k)] = own;
                }
                Ok(())
            })
        })
    }
    let (stack, lower) = (Stack::new(call.shape(0)), call.attrs.bool("lower")?);
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, lower)))
}
