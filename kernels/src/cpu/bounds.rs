//! Binary search in sorted rows: `LowerBound`, `UpperBound`.

use super::{Build, dispatch::with_real, index::put_integers};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Ordered,
};
use ferroflow_ir::{DType, Shape};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("LowerBound", |call| bound(call, false)), ("UpperBound", |call| bound(call, true))];

fn bound(call: &OpCall<'_>, upper: bool) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Ordered>(row: usize, dtype: DType, shape: Shape, upper: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (sorted, values): (&[T], &[T]) = (io.input(0), io.input(1));
            let n = shape[1];
            let index = |(index, value): (usize, &T)| {
                let (sorted, value) = (&sorted[index / n * row..][..row], value.flushed());
                if upper {
                    sorted.partition_point(|x| !(value < x.flushed()))
                } else {
                    sorted.partition_point(|x| x.flushed() < value)
                }
            };
            put_integers(io, 0, dtype, &shape, values.iter().enumerate().map(index))
        })
    }
    let (row, dtype, shape) = (call.shape(0)[1], call.outputs[0].dtype, call.output_shape(0)?);
    Ok(with_real!(call.dtype(0), T => kernel::<T>(row, dtype, shape, upper)))
}
