//! Ragged tensors as sparse ones: `RaggedTensorToSparse`.

use super::nested_splits;
use crate::{
    cpu::{Build, cell::Cell, dispatch::with_cell},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("RaggedTensorToSparse", to_sparse)];

fn to_sparse(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let n = call.inputs.len() - 1;
    let lengths: Vec<usize> = (0..n).map(|input| call.shape(input)[0]).collect();
    let (splits, dtype, shape) = (call.dtype(0), call.dtype(n), call.shape(n).clone());
    fn kernel<T: Cell>(
        lengths: Vec<usize>,
        splits: DType,
        dtype: DType,
        shape: Shape,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = lengths.len();
            write_coordinates(io, &lengths, splits, &shape)?;
            let values = T::read(io, n)?;
            T::write(io, 1, dtype, &Shape::new([values.len()])?, |out| {
                out.clone_from_slice(values);
                Ok(())
            })
        })
    }
    Ok(with_cell!(dtype, T => kernel::<T>(lengths, splits, dtype, shape)))
}

/// Writes the coordinates of all values, and the shape that holds them.
fn write_coordinates(
    io: &mut Io<'_>,
    lengths: &[usize],
    splits: DType,
    values: &Shape,
) -> Result<()> {
    let op = "RaggedTensorToSparse";
    let nested = nested_splits(io, op, lengths, splits, values[0])?;
    let mut dims = vec![nested[0].len() as i64 - 1];
    // The coordinates of the rows of one level.
    let mut rows: Vec<Vec<i64>> = workspace::collected((0..dims[0]).map(|row| vec![row]))?;
    for (level, splits) in nested.iter().enumerate() {
        let below = nested.get(level + 1).map_or(values[0], |splits| splits.len() - 1);
        if splits[0] != 0 || splits[splits.len() - 1] != below as i64 {
            let expected = format!("splits from 0 to {below}");
            let found = format!("{splits:?}");
            return Err(Error::argument(op, "rt_nested_splits", expected, found).into());
        }
        let mut own = workspace::reserve(below)?;
        let mut longest = 0;
        for (row, ends) in rows.iter().zip(splits.windows(2)) {
            let length = ends[1] - ends[0];
            longest = longest.max(length);
            own.extend((0..length).map(|index| [row.as_slice(), &[index]].concat()));
        }
        dims.push(longest);
        rows = own;
    }
    let inner = Shape::new(values[1..].iter().copied())?;
    dims.extend(inner.to_i64());
    let strides = inner.strides();
    let mut indices = Vec::new();
    for row in &rows {
        for position in 0..inner.num_elements() {
            indices.extend_from_slice(row);
            let steps = strides.iter().zip(inner.iter());
            indices.extend(steps.map(|(stride, size)| (position / stride % size) as i64));
        }
    }
    let n = rows.len() * inner.num_elements();
    i64::write(io, 0, DType::I64, &Shape::new([n, dims.len()])?, |out| {
        out.copy_from_slice(&indices);
        Ok(())
    })?;
    i64::write(io, 2, DType::I64, &Shape::new([dims.len()])?, |out| {
        out.copy_from_slice(&dims);
        Ok(())
    })
}
