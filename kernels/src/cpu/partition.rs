//! Sorting rows into tensors and back: `DynamicPartition`, `DynamicStitch`.

use super::{
    Build,
    cell::Cell,
    dispatch::with_cell,
    index::{Bad, checked_indices},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, budget};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("DynamicPartition", dynamic_partition),
    ("DynamicStitch", dynamic_stitch),
    ("ParallelDynamicStitch", dynamic_stitch),
];

fn dynamic_partition(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, rows: usize, row: Shape, n: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let parts = checked_indices(io, 1, DType::I32, rows, &[n], Bad::Fail)?;
            let source = T::read(io, 0)?;
            let len = row.num_elements();
            for part in 0..n {
                budget::tick();
                let own = || parts.iter().enumerate().filter(|(_, own)| **own == part);
                let dims = [own().count()].into_iter().chain(row.iter().copied());
                T::write(io, part, dtype, &Shape::new(dims)?, |out| {
                    for (out, (index, _)) in out.chunks_exact_mut(len.max(1)).zip(own()) {
                        out.clone_from_slice(&source[index * len..][..len]);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
    let (data, partitions) = (call.shape(0), call.shape(1));
    let (dtype, rows, n) = (call.dtype(0), partitions.num_elements(), call.outputs.len());
    let row = Shape::new(data[partitions.rank()..].iter().copied())?;
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, rows, row, n)))
}

fn dynamic_stitch(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, n: usize, row: Shape) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let mut rows = 0;
            for input in 0..n {
                for &index in io.input::<i32>(input) {
                    let index = usize::try_from(index).map_err(|_| negative(index))?;
                    rows = rows.max(index + 1);
                }
            }
            let sources: Vec<&[T]> =
                (0..n).map(|input| T::read(io, n + input)).collect::<Result<_>>()?;
            let indices: Vec<&[i32]> = (0..n).map(|input| io.input(input)).collect();
            let len = row.num_elements();
            let dims = [rows].into_iter().chain(row.iter().copied());
            T::write(io, 0, dtype, &Shape::new(dims)?, |out| {
                out.fill(T::blank());
                if len == 0 {
                    return Ok(());
                }
                for (indices, source) in indices.iter().zip(sources) {
                    for (&index, source) in indices.iter().zip(source.chunks_exact(len)) {
                        out[index as usize * len..][..len].clone_from_slice(source);
                    }
                }
                Ok(())
            })
        })
    }
    let (dtype, n) = (call.outputs[0].dtype, call.inputs.len() / 2);
    let row = Shape::new(call.shape(n)[call.shape(0).rank()..].iter().copied())?;
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, n, row)))
}

fn negative(index: i32) -> Error {
    Error::Index { what: "row".into(), index: index.into(), low: 0, high: i32::MAX.into() }
}
