//! Reading slices by index: `Gather`, `GatherV2`, `GatherNd`.

use super::{
    Build,
    cell::Cell,
    dispatch::with_cell,
    index::{Bad, OUTSIDE, checked_index, checked_indices},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, infer::normalize_axis};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("Gather", gather), ("GatherNd", gather_nd), ("GatherV2", gather_v2)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// `params` is seen as `[batch, outer, dims…, inner]`, the indices as `[batch, count]` vectors that
/// name positions in `dims`, the result as `[batch, outer, count, inner]`.
struct Plan {
    dtype: DType,
    index_dtype: DType,
    shape: Shape,
    batch: usize,
    outer: usize,
    dims: Vec<usize>,
    inner: usize,
    count: usize,
    bad: Bad,
}

fn gather(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    along_axis(call, 0, 0)
}

fn gather_v2(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let axis = normalize_axis(call.ints(2)?[0], call.shape(0).rank())?;
    let batch = call.attrs.int("batch_dims")?;
    let batch = if batch < 0 { batch + call.shape(1).rank() as i64 } else { batch };
    along_axis(call, axis, batch as usize)
}

fn along_axis(call: &OpCall<'_>, axis: usize, batch: usize) -> Result<Option<Arc<dyn Kernel>>> {
    let (params, indices) = (call.shape(0), call.shape(1));
    compile(Plan {
        dtype: call.dtype(0),
        index_dtype: call.dtype(1),
        shape: call.output_shape(0)?,
        batch: params[..batch].iter().product(),
        outer: params[batch..axis].iter().product(),
        dims: vec![params[axis]],
        inner: params[axis + 1..].iter().product(),
        count: indices[batch..].iter().product(),
        bad: Bad::Fail,
    })
}

fn gather_nd(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (params, indices) = (call.shape(0), call.shape(1));
    let (count, depth) = (indices[..indices.rank() - 1].iter().product(), indices.last().copied());
    let depth = depth.unwrap_or(0);
    if count > 0 && params.contains(&0) {
        let expected = "of at least one element, as there are indices";
        return Err(Error::argument(call.op.name, "params", expected, params).into());
    }
    compile(Plan {
        dtype: call.dtype(0),
        index_dtype: call.dtype(1),
        shape: call.output_shape(0)?,
        batch: 1,
        outer: 1,
        dims: params[..depth].to_vec(),
        inner: params[depth..].iter().product(),
        count,
        bad: Bad::of(call)?,
    })
}

fn compile(plan: Plan) -> Result<Option<Arc<dyn Kernel>>> {
    Ok(with_cell!(plan.dtype, T => kernel::<T>(plan)))
}

fn kernel<T: Cell>(plan: Plan) -> Arc<dyn Kernel> {
    if let [size] = plan.dims[..]
        && [plan.batch, plan.outer, plan.count] == [1, 1, 1]
        && (1..=PIECE).contains(&plan.inner)
        && plan.bad == Bad::Fail
    {
        return row::<T>(plan, size);
    }
    Arc::new(move |io: &mut Io<'_>| {
        let count = plan.count;
        if plan.shape.num_elements() == 0 && plan.bad == Bad::Fail {
            // Nothing is read, so no index is out of range: TensorFlow's rule.
            return T::write(io, 0, plan.dtype, &plan.shape, |_| Ok(()));
        }
        let indices =
            checked_indices(io, 1, plan.index_dtype, plan.batch * count, &plan.dims, plan.bad)?;
        let source = T::read(io, 0)?;
        let threads = io.threads();
        // Elements of a block: what the indices of one batch choose from.
        let block = plan.dims.iter().product::<usize>() * plan.inner;
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            let rows_per_piece = (PIECE / plan.inner.max(1)).max(1);
            threads.for_each_piece(out, rows_per_piece * plan.inner, |start, out| {
                let row = start / plan.inner;
                let (mut number, mut first) = (row / count, row % count);
                let mut rest = out;
                while !rest.is_empty() {
                    let rows = (count - first).min(rest.len() / plan.inner);
                    let (now, later) = rest.split_at_mut(rows * plan.inner);
                    let indices = &indices[number / plan.outer * count + first..][..rows];
                    copy_rows(&source[number * block..][..block], indices, plan.inner, now);
                    (rest, first, number) = (later, 0, number + 1);
                }
            });
            Ok(())
        })
    })
}

/// Reads one row, as rounds of loops do.
fn row<T: Cell>(plan: Plan, size: usize) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let start = checked_index(io, 1, plan.index_dtype, size)? * plan.inner;
        let row = &T::read(io, 0)?[start..][..plan.inner];
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            out.clone_from_slice(row);
            Ok(())
        })
    })
}

fn copy_rows<T: Cell>(source: &[T], places: &[usize], inner: usize, out: &mut [T]) {
    if inner == 1 {
        for (out, &place) in out.iter_mut().zip(places) {
            *out = source.get(place).cloned().unwrap_or_else(T::blank);
        }
        return;
    }
    for (out, &place) in out.chunks_exact_mut(inner).zip(places) {
        if place == OUTSIDE {
            out.fill_with(T::blank);
        } else {
            out.clone_from_slice(&source[place * inner..][..inner]);
        }
    }
}
