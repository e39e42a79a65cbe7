//! Rows of ragged tensors: `RaggedBincount`, `RaggedFillEmptyRows` and its gradient, `RaggedRange`.

use super::splits;
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_cell, with_index, with_real},
        index::put_integers,
        sparse::rows::fill_empty_rows_grad,
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use half::bf16;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("RaggedBincount", bincount),
    ("RaggedFillEmptyRows", fill_empty_rows),
    ("RaggedFillEmptyRowsGrad", fill_empty_rows_grad),
    ("RaggedRange", range),
];

fn bincount(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<I: Copy + Into<i64> + bytemuck::Pod, T: Number>(
        size: usize,
        binary: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (values, weights): (&[I], &[T]) = (io.input(1), io.input(3));
            let splits = splits(io, "RaggedBincount", 0, DType::I64, values.len())?;
            if splits[0] != 0 || splits[splits.len() - 1] != values.len() as i64 {
                let expected = format!("from 0 to {}", values.len());
                let found = format!("{splits:?}");
                return Err(Error::argument("RaggedBincount", "splits", expected, found).into());
            }
            let out: &mut [T] = io.output(0);
            out.fill(T::ZERO);
            for (row, ends) in splits.windows(2).enumerate() {
                let own = ends[0] as usize..ends[1] as usize;
                for (n, &value) in values[own.clone()].iter().enumerate() {
                    let Ok(bin) = usize::try_from(value.into()) else {
                        let (op, expected) = ("RaggedBincount", "not negative");
                        return Err(Error::argument(op, "values", expected, value.into()).into());
                    };
                    if bin < size {
                        let bin = &mut out[row * size + bin];
                        let weight = weights.get(own.start + n).copied().unwrap_or(T::ONE);
                        *bin = if binary { T::ONE } else { bin.plus(weight) };
                    }
                }
            }
            Ok(())
        })
    }
    let size = call.output_shape(0)?[1];
    let binary = call.attrs.bool("binary_output")?;
    let kernel = with_index!(call.dtype(1), I => {
        with_real!(call.dtype(3), T => kernel::<I, T>(size, binary))
    });
    Ok(kernel.flatten())
}

fn fill_empty_rows(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (rows, values): (&[i64], &[T]) = (io.input(0), T::read(io, 1)?);
            let (n_rows, default) = (io.scalar::<i64>(2), &T::read(io, 3)?[0]);
            let shape = Shape::from_i64(&[n_rows])?;
            io.check_size(DType::I64, &shape)?;
            let mut counts = workspace::filled(0usize, shape[0])?;
            for &row in rows {
                let count = usize::try_from(row).ok().and_then(|row| counts.get_mut(row));
                let (what, high) = ("row id".into(), n_rows);
                *count.ok_or(Error::Index { what, index: row, low: 0, high })? += 1;
            }
            let mut next = workspace::reserve(counts.len())?;
            let mut total = 0;
            for &count in &counts {
                next.push(total);
                total += count.max(1);
            }
            let mut row_ids = workspace::filled(0, total)?;
            for (row, (&start, &count)) in next.iter().zip(&counts).enumerate() {
                row_ids[start..start + count.max(1)].fill(row);
            }
            let mut filled = workspace::filled(default.clone(), total)?;
            let mut moved = workspace::reserve(rows.len())?;
            for (&row, value) in rows.iter().zip(values) {
                let at = &mut next[row as usize];
                filled[*at].clone_from(value);
                moved.push(*at);
                *at += 1;
            }
            let all = Shape::new([total])?;
            put_integers(io, 0, DType::I64, &all, row_ids.into_iter())?;
            T::write(io, 1, dtype, &all, |out| {
                out.clone_from_slice(&filled);
                Ok(())
            })?;
            u8::write(io, 2, DType::Bool, &shape, |out| {
                let empty = counts.iter().map(|&count| u8::from(count == 0));
                out.iter_mut().zip(empty).for_each(|(out, empty)| *out = empty);
                Ok(())
            })?;
            put_integers(io, 3, DType::I64, &Shape::new([moved.len()])?, moved.into_iter())
        })
    }
    let dtype = call.dtype(1);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype)))
}

/// A number that ranges are made of.
trait Spaced: Number + Cell + PartialOrd {
    /// Number of steps of `delta` from `self` to before `limit`.
    fn steps(self, limit: Self, delta: Self) -> Option<usize>;
}

macro_rules! spaced_integers {
    ($($type:ty)*) => {$(
        impl Spaced for $type {
            fn steps(self, limit: $type, delta: $type) -> Option<usize> {
                usize::try_from(limit.abs_diff(self).div_ceil(delta.unsigned_abs())).ok()
            }
        }
    )*};
}

spaced_integers! { i32 i64 }

macro_rules! spaced_floats {
    ($($type:ty)*) => {$(
        impl Spaced for $type {
            fn steps(self, limit: $type, delta: $type) -> Option<usize> {
                let steps = f64::from((limit - self) / delta).abs().ceil();
                (steps < 2f64.powi(63)).then_some(steps as usize)
            }
        }
    )*};
}

spaced_floats! { f32 f64 bf16 }

fn range(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Spaced>(n_rows: usize, dtype: DType, splits: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let inputs: [&[T]; 3] = [io.input(0), io.input(1), io.input(2)];
            let at = |values: &[T], row: usize| values.get(row).copied().unwrap_or(values[0]);
            let mut ends = vec![0usize];
            for row in 0..n_rows {
                let [start, limit, delta] = inputs.map(|values| at(values, row));
                let wrong = |expected: &'static str| {
                    let found = format!("{delta:?}");
                    crate::Error::from(Error::argument("RaggedRange", "deltas", expected, found))
                };
                if delta == T::ZERO {
                    return Err(wrong("not 0"));
                }
                let away = delta > T::ZERO && limit < start || delta < T::ZERO && limit > start;
                let steps = if away { Some(0) } else { start.steps(limit, delta) };
                let end = steps.and_then(|steps| ends[row].checked_add(steps));
                ends.push(end.ok_or_else(|| wrong("large enough"))?);
            }
            let shape = Shape::new([ends[n_rows]])?;
            T::write(io, 1, dtype, &shape, |out| {
                for row in 0..n_rows {
                    let (mut value, delta) = (at(inputs[0], row), at(inputs[2], row));
                    for out in &mut out[ends[row]..ends[row + 1]] {
                        *out = value;
                        value = value.plus(delta);
                    }
                }
                Ok(())
            })?;
            put_integers(io, 0, splits, &Shape::new([n_rows + 1])?, ends.iter().copied())
        })
    }
    let n_rows = call.output_shape(0)?[0].saturating_sub(1);
    let (dtype, splits) = (call.dtype(0), call.outputs[0].dtype);
    Ok(match dtype {
        DType::I32 => Some(kernel::<i32>(n_rows, dtype, splits)),
        DType::I64 => Some(kernel::<i64>(n_rows, dtype, splits)),
        DType::F32 => Some(kernel::<f32>(n_rows, dtype, splits)),
        DType::F64 => Some(kernel::<f64>(n_rows, dtype, splits)),
        DType::BF16 => Some(kernel::<bf16>(n_rows, dtype, splits)),
        _ => None,
    })
}
