//! `OneHot`.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_cell, with_index},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Shape, infer::normalize_axis};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("OneHot", one_hot)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// The result is seen as `[rows, depth, inner]`, the indices as `[rows, inner]`.
struct Plan {
    dtype: DType,
    shape: Shape,
    depth: usize,
    inner: usize,
}

fn one_hot(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (dtype, shape) = (call.outputs[0].dtype, call.output_shape(0)?);
    let axis = normalize_axis(call.attrs.int("axis")?, shape.rank())?;
    let (depth, inner) = (shape[axis], shape[axis + 1..].iter().product());
    let plan = Plan { dtype, shape, depth, inner };
    let kernel = with_cell!(dtype, T => with_index!(call.dtype(0), I => kernel::<T, I>(plan)));
    Ok(kernel.flatten())
}

fn kernel<T: Cell, I: bytemuck::Pod + Into<i64> + Sync>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let indices: &[I] = io.input(0);
        let (on, off) = (&T::read(io, 2)?[0], &T::read(io, 3)?[0]);
        let threads = io.threads();
        let (depth, inner) = (plan.depth, plan.inner);
        let row = depth * inner;
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            let rows_per_piece = (PIECE / row.max(1)).max(1);
            threads.for_each_piece(out, rows_per_piece * row, |start, out| {
                out.fill(off.clone());
                let indices = &indices[start / row * inner..];
                for (out, indices) in out.chunks_exact_mut(row).zip(indices.chunks_exact(inner)) {
                    for (n, &index) in indices.iter().enumerate() {
                        if let Some(index) =
                            usize::try_from(index.into()).ok().filter(|&index| index < depth)
                        {
                            out[index * inner + n].clone_from(on);
                        }
                    }
                }
            });
            Ok(())
        })
    })
}
