//! Ragged tensors as dense ones: `RaggedTensorToTensor`.

use super::splits;
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_cell, index::integers},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast::positions,
};
use ferroflow_ir::{DType, Error, PartialShape, Shape, shape::Dim, workspace};
use std::{borrow::Cow, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("RaggedTensorToTensor", to_tensor)];

const OP: &str = "RaggedTensorToTensor";

/// Encoding of the rows of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Where each row begins, and the last one ends.
    Splits,
    /// Row of each value.
    RowIds,
}

/// The values of a level: which row they are in.
struct Level<'a> {
    kind: Kind,
    rows: Cow<'a, [i64]>,
}

impl Level<'_> {
    /// The length of the longest row. As TensorFlow counts it, a row of row ids ends where another
    /// one begins.
    fn widest(&self) -> usize {
        match self.kind {
            Kind::Splits => self.rows.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max(),
            Kind::RowIds => self.rows.chunk_by(|a, b| a == b).map(<[i64]>::len).max(),
        }
        .unwrap_or(0)
    }

    /// Where in the result each value goes, in steps of `stride` from where its row begins; nowhere
    /// if the row is nowhere, or the value is beyond `width`.
    fn row_offsets(
        &self,
        rows: &[Option<usize>],
        stride: usize,
        width: usize,
    ) -> Result<Vec<Option<usize>>> {
        let mut row_offsets = Vec::new();
        let mut put = |row: Option<usize>, length: usize| {
            let own = (0..length).map(|n| row.filter(|_| n < width).map(|row| row + n * stride));
            row_offsets.extend(own);
        };
        match self.kind {
            Kind::Splits => {
                for (n, ends) in self.rows.windows(2).enumerate() {
                    put(rows.get(n).copied().flatten(), (ends[1] - ends[0]) as usize);
                }
            }
            Kind::RowIds => {
                for ids in self.rows.chunk_by(|a, b| a == b) {
                    let (index, high) = (ids[0], rows.len() as i64);
                    let row = usize::try_from(index).ok().and_then(|row| rows.get(row));
                    let what = "row id".into();
                    put(*row.ok_or(Error::Index { what, index, low: 0, high })?, ids.len());
                }
            }
        }
        Ok(row_offsets)
    }
}

struct Plan {
    /// The inputs with the levels.
    levels: Vec<(usize, Kind)>,
    index_dtype: DType,
    /// Whether the number of rows is passed on its own.
    counted: bool,
    /// Lengths of the inputs with the levels.
    lengths: Vec<usize>,
    values: Shape,
    default: Shape,
    /// The sizes of the result, as far as the call says.
    sizes: Vec<Dim>,
    dtype: DType,
}

fn to_tensor(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let kinds = call.attrs.strings("row_partition_types")?;
    let counted = kinds.first().is_some_and(|kind| kind == "FIRST_DIM_SIZE");
    let skip = usize::from(counted);
    let kind = |kind: &[u8]| if kind == b"ROW_SPLITS" { Kind::Splits } else { Kind::RowIds };
    let levels: Vec<(usize, Kind)> =
        (skip..kinds.len()).map(|n| (3 + n, kind(&kinds[n]))).collect();
    let shape: &PartialShape = &call.outputs[0].shape;
    let plan = Plan {
        index_dtype: call.dtype(3),
        counted,
        lengths: levels.iter().map(|&(input, _)| call.shape(input).num_elements()).collect(),
        levels,
        values: call.shape(1).clone(),
        default: call.shape(2).clone(),
        sizes: shape.dims().unwrap_or(&[]).to_vec(),
        dtype: call.dtype(1),
    };
    if counted && call.shape(3).num_elements() != 1 {
        return Err(call.wrong("row_partition_tensors", "a number of rows first", call.shape(3)));
    }
    fn kernel<T: Cell>(plan: Plan) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| run::<T>(&plan, io))
    }
    Ok(with_cell!(plan.dtype, T => kernel::<T>(plan)))
}

impl Plan {
    /// The number of rows of the first level.
    fn n_rows(&self, io: &Io<'_>) -> Result<usize> {
        if !self.counted {
            return match self.lengths[0].checked_sub(1) {
                Some(rows) => Ok(rows),
                None => Err(Error::argument(OP, "row_partition_tensors", "not empty", "[]").into()),
            };
        }
        let n_rows = integers(io, 3, self.index_dtype)[0];
        Ok(Shape::from_i64(&[n_rows])?[0])
    }

    /// The levels; splits are checked.
    fn levels<'a>(&self, io: &Io<'a>) -> Result<Vec<Level<'a>>> {
        let mut levels = Vec::with_capacity(self.levels.len());
        for (n, &(input, kind)) in self.levels.iter().enumerate() {
            let rows = match kind {
                Kind::Splits => {
                    let below = match self.levels.get(n + 1) {
                        None => self.values[0],
                        Some((_, Kind::Splits)) => self.lengths[n + 1].saturating_sub(1),
                        Some((_, Kind::RowIds)) => io.limit() / size_of::<Option<usize>>(),
                    };
                    let splits = splits(io, OP, input, self.index_dtype, below)?;
                    if splits[0] != 0 {
                        let error =
                            Error::argument(OP, "row_partition_tensors", "from 0", splits[0]);
                        return Err(error.into());
                    }
                    splits
                }
                Kind::RowIds => integers(io, input, self.index_dtype),
            };
            levels.push(Level { kind, rows });
        }
        Ok(levels)
    }
}

fn run<T: Cell>(plan: &Plan, io: &mut Io<'_>) -> Result<()> {
    let (n_rows, levels) = (plan.n_rows(io)?, plan.levels(io)?);
    let mut sizes = Vec::with_capacity(plan.sizes.len());
    for (axis, size) in plan.sizes.iter().enumerate() {
        sizes.push(match (size, axis) {
            (Some(size), _) => *size,
            (None, 0) => n_rows,
            (None, axis) => levels[axis - 1].widest(),
        });
    }
    let shape = Shape::new(sizes)?;
    io.check_size(plan.dtype, &shape)?;
    io.check_size(DType::I64, &Shape::new([n_rows])?)?;
    let strides = shape.strides();
    let first = |row: usize| (row < shape[0]).then_some(row * strides[0]);
    let mut row_offsets: Vec<Option<usize>> = workspace::collected((0..n_rows).map(first))?;
    for (axis, level) in levels.iter().enumerate() {
        if level.kind == Kind::Splits && level.rows.len() > row_offsets.len() + 1 {
            let expected = format!("at most {} rows", row_offsets.len());
            let found = level.rows.len() - 1;
            return Err(Error::argument(OP, "row_partition_tensors", expected, found).into());
        }
        row_offsets = level.row_offsets(&row_offsets, strides[axis + 1], shape[axis + 1])?;
    }
    if row_offsets.len() > plan.values[0] {
        let (expected, found) = (format!("of {} values", plan.values[0]), row_offsets.len());
        return Err(Error::argument(OP, "row_partition_tensors", expected, found).into());
    }
    let inner = Shape::new(plan.values[1..].iter().copied())?;
    let (values, default) = (T::read(io, 1)?, T::read(io, 2)?);
    let element = inner.num_elements();
    let sources = positions(&plan.default, &inner);
    let row: Vec<T> = sources.into_iter().map(|source| default[source].clone()).collect();
    T::write(io, 0, plan.dtype, &shape, |out| {
        for out in out.chunks_exact_mut(element.max(1)) {
            out.clone_from_slice(&row);
        }
        for (value, place) in values.chunks_exact(element.max(1)).zip(&row_offsets) {
            if let Some(place) = *place {
                out[place..place + element].clone_from_slice(value);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_off_and_left_out() {
        let level = |kind, rows: &[i64]| Level { kind, rows: Cow::Owned(rows.to_vec()) };
        let rows = [Some(0), None, Some(20)];
        let check = |level: Level<'_>, width, expected: &[Option<usize>]| {
            assert_eq!(level.row_offsets(&rows, 1, width).unwrap(), expected);
        };
        let expected = [Some(0), Some(1), None, Some(20)];
        check(level(Kind::Splits, &[0, 2, 3, 4]), 2, &expected);
        check(level(Kind::RowIds, &[0, 0, 1, 2]), 2, &expected);
        check(level(Kind::Splits, &[0, 2, 3, 4]), 1, &[Some(0), None, None, Some(20)]);
        assert!(level(Kind::RowIds, &[3]).row_offsets(&rows, 1, 1).is_err());
        assert_eq!(level(Kind::RowIds, &[0, 0, 2]).widest(), 2);
        assert_eq!(level(Kind::Splits, &[0, 1, 4]).widest(), 3);
    }
}
