//! `Qr`: orthonormal columns and an upper triangle, in double precision.

use super::{
    Field, Stack,
    reflection::{product, triangulate},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("Qr", qr)];

fn qr(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, inner: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let matrices = stack.input::<T>(io, 0);
            let q = stack.output::<T>(io, 0, rows * inner);
            let r = stack.output::<T>(io, 1, inner * columns);
            try_each(io.threads(), matrices.into_iter().zip(q).zip(r), |((a, q), r)| {
                let mut triangle: Vec<T::Exact> = a.iter().map(|x| x.to_exact()).collect();
                let reflections = triangulate(&mut triangle, rows, columns);
                T::write(r, triangle);
                T::write(q, product(&reflections, rows, inner));
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    let inner = call.output_shape(0)?.last().copied().unwrap_or(0);
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, inner)))
}
