//! Moving elements along dimensions by amounts that come as data: `Roll`, `ReverseSequence`.

use super::{Build, cell::Cell, dispatch::with_cell, index::integers};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, infer::normalize_axis};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("ReverseSequence", reverse_sequence), ("Roll", roll)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

fn roll(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(
        dtype: DType,
        shift_dtype: DType,
        axis_dtype: DType,
        shape: Shape,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (shifts, axes) = (integers(io, 1, shift_dtype), integers(io, 2, axis_dtype));
            let mut offsets = vec![0usize; shape.rank()];
            for (&shift, &axis) in shifts.iter().zip(axes.iter()) {
                let axis = normalize_axis(axis, shape.rank())?;
                let size = shape[axis].max(1) as i64;
                let offset = offsets[axis] as i64 + shift.rem_euclid(size);
                offsets[axis] = (offset % size) as usize;
            }
            let source = T::read(io, 0)?;
            let threads = io.threads();
            // The last dimension that is shifted, and what lies inside it, is a row.
            let axis = offsets.iter().rposition(|&offset| offset > 0).unwrap_or(0);
            let inner: usize = shape[axis + 1..].iter().product();
            let (row, cut) = (shape[axis] * inner, offsets[axis] * inner);
            T::write(io, 0, dtype, &shape, |out| {
                let rows_per_piece = (PIECE / row.max(1)).max(1);
                threads.for_each_piece(out, rows_per_piece * row, |start, out| {
                    for (n, out) in out.chunks_exact_mut(row).enumerate() {
                        let from = unrolled(start / row + n, &shape[..axis], &offsets);
                        let (end, begin) = source[from * row..][..row].split_at(row - cut);
                        out[..cut].clone_from_slice(begin);
                        out[cut..].clone_from_slice(end);
                    }
                });
                Ok(())
            })
        })
    }
    let (dtype, shape) = (call.dtype(0), call.shape(0).clone());
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, call.dtype(1), call.dtype(2), shape)))
}

/// The row that comes to position `row` when all dimensions are shifted.
fn unrolled(row: usize, dims: &[usize], offsets: &[usize]) -> usize {
    let (mut rest, mut from, mut rows) = (row, 0, 1);
    for (&size, &offset) in dims.iter().zip(offsets).rev() {
        from += (rest % size + size - offset) % size * rows;
        rest /= size;
        rows *= size;
    }
    from
}

/// The input is seen as `[outer, first, middle, second, inner]`, where `first` and `second` are the
/// batch and the sequence dimension in the order they have.
struct Plan {
    dtype: DType,
    length_dtype: DType,
    shape: Shape,
    batch: usize,
    sequence: usize,
}

fn reverse_sequence(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let axis = |name: &str| call.attrs.int(name).map(|axis| axis as usize);
    let plan = Plan {
        dtype: call.dtype(0),
        length_dtype: call.dtype(1),
        shape: call.shape(0).clone(),
        batch: axis("batch_dim")?,
        sequence: axis("seq_dim")?,
    };
    Ok(with_cell!(plan.dtype, T => reverse_kernel::<T>(plan)))
}

fn reverse_kernel<T: Cell>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let (shape, size) = (&plan.shape, plan.shape[plan.sequence]);
        let length = |&length: &i64| {
            let found = usize::try_from(length).ok().filter(|&length| length <= size);
            found.ok_or_else(|| {
                let (what, high) = ("sequence length".into(), size as i64 + 1);
                Error::Index { what, index: length, low: 0, high }
            })
        };
        let lengths = integers(io, 1, plan.length_dtype);
        let lengths: Vec<usize> =
            lengths.iter().map(length).collect::<std::result::Result<_, _>>()?;
        let source = T::read(io, 0)?;
        let strides = shape.strides();
        let last = plan.batch.max(plan.sequence);
        let row: usize = shape[last + 1..].iter().product();
        T::write(io, 0, plan.dtype, shape, |out| {
            for (n, out) in out.chunks_exact_mut(row.max(1)).enumerate() {
                let position = n * row;
                let coordinate = |axis: usize| position / strides[axis] % shape[axis];
                let (step, length) = (coordinate(plan.sequence), lengths[coordinate(plan.batch)]);
                let from = match step < length {
                    true => {
                        position - step * strides[plan.sequence]
                            + (length - 1 - step) * strides[plan.sequence]
                    }
                    false => position,
                };
                out.clone_from_slice(&source[from..][..row]);
            }
            Ok(())
        })
    })
}
