//! Gradients of `SparseSegment…`: rows of gradients go back to the rows that were chosen.

use super::{
    Build,
    cell::Cell,
    dispatch::with_float,
    index::{Bad, checked_indices, integer, put_integers},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("SparseSegmentMeanGrad", |call| compile(call, Share::Count)),
    ("SparseSegmentMeanGradV2", |call| compile(call, Share::Count)),
    ("SparseSegmentSqrtNGrad", |call| compile(call, Share::Root)),
    ("SparseSegmentSqrtNGradV2", |call| compile(call, Share::Root)),
    ("SparseSegmentSumGrad", |call| compile(call, Share::Whole)),
    ("SparseSegmentSumGradV2", |call| compile(call, Share::Whole)),
];

/// Share of each row of a segment in the segment's gradient.
#[derive(Debug, Clone, Copy)]
enum Share {
    Whole,
    /// Reciprocal of the number of its rows.
    Count,
    /// Reciprocal of the root of the number of its rows.
    Root,
}

impl Share {
    fn of<T: Number>(self, count: usize) -> T {
        match self {
            Share::Whole => T::ONE,
            Share::Count => T::ONE.over(T::count(count)),
            Share::Root => T::ONE.over(T::count(count).root()),
        }
    }
}

struct Plan {
    share: Share,
    dtype: DType,
    index_dtype: DType,
    id_dtype: DType,
    /// The number of rows of the gradient, and their shape.
    n_segments: usize,
    row: Shape,
    /// Number of rows that were chosen.
    chosen: usize,
    /// Whether the result has those rows only that were chosen.
    distinct: bool,
}

fn compile(call: &OpCall<'_>, share: Share) -> Result<Option<Arc<dyn Kernel>>> {
    let grad = call.shape(0);
    let plan = Plan {
        share,
        dtype: call.dtype(0),
        index_dtype: call.dtype(1),
        id_dtype: call.dtype(2),
        n_segments: grad[0],
        row: Shape::new(grad[1..].iter().copied())?,
        chosen: call.shape(1).num_elements(),
        distinct: call.outputs.len() > 1,
    };
    Ok(with_float!(plan.dtype, T => kernel::<T>(plan)))
}

fn kernel<T: Number + Cell>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let n = integer(io, 3, DType::I32);
        let n = usize::try_from(n)
            .map_err(|_| Error::argument("SparseSegmentGrad", "rows", "not negative", n))?;
        let mut rows = checked_indices(io, 1, plan.index_dtype, plan.chosen, &[n], Bad::Fail)?;
        let segments = [plan.n_segments];
        let ids = checked_indices(io, 2, plan.id_dtype, plan.chosen, &segments, Bad::Fail)?;
        let mut counts = workspace::filled(0, plan.n_segments)?;
        ids.iter().for_each(|&id| counts[id] += 1);
        let n = if plan.distinct { compact(io, &plan, &mut rows)? } else { n };
        let grad: &[T] = io.input(0);
        let inner = plan.row.num_elements();
        let shape = Shape::new([n].into_iter().chain(plan.row.iter().copied()))?;
        let mut sums = workspace::filled(T::Acc::ZERO, shape.num_elements())?;
        T::write(io, 0, plan.dtype, &shape, |out| {
            for (&row, &id) in rows.iter().zip(ids.iter()) {
                let share: T::Acc = plan.share.of(counts[id]);
                let (sums, grad) =
                    (&mut sums[row * inner..][..inner], &grad[id * inner..][..inner]);
                for (sum, dy) in sums.iter_mut().zip(grad) {
                    *sum = sum.plus(dy.to_acc().times(share));
                }
            }
            for (out, sum) in out.iter_mut().zip(&sums) {
                *out = T::from_acc(*sum);
            }
            Ok(())
        })
    })
}

/// Numbers the rows anew, so that only those that occur count; returns their number.
fn compact(io: &mut Io<'_>, plan: &Plan, rows: &mut [usize]) -> Result<usize> {
    let mut distinct = rows.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for row in rows.iter_mut() {
        *row = distinct.partition_point(|other| other < row);
    }
    let shape = Shape::new([distinct.len()])?;
    put_integers(io, 1, plan.index_dtype, &shape, distinct.iter().copied())?;
    Ok(distinct.len())
}
