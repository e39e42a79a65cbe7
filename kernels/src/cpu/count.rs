//! Counting and binning: `Bincount`, `Bucketize`, `DenseBincount`, `HistogramFixedWidth`.

use super::{
    Build,
    dispatch::{with_index, with_real},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
};
use ferroflow_ir::{Code, DType, Error};
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("Bincount", bincount),
    ("Bucketize", bucketize),
    ("DenseBincount", bincount),
    ("HistogramFixedWidth", histogram),
];

fn fails(op: &'static str, detail: &str) -> crate::Error {
    Error::Status { code: Code::InvalidArgument, op: op.into(), detail: detail.into() }.into()
}

/// Integers that are counted.
trait Counted: bytemuck::Pod + AsPrimitive<i64> + Send + Sync {}

impl<T: bytemuck::Pod + AsPrimitive<i64> + Send + Sync> Counted for T {}

fn bincount(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    /// Bins of `columns` inputs each; with `binary`, whether an integer occurs at all.
    fn counting<I: Counted, T: Number>(
        op: &'static str,
        columns: usize,
        size: usize,
        binary: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (values, weights) = (io.input::<I>(0), io.input::<T>(2));
            let out = io.output::<T>(0);
            out.fill(T::ZERO);
            for (index, &value) in values.iter().enumerate() {
                let Ok(bin) = usize::try_from(value.as_()) else {
                    return Err(fails(op, "a value to count is negative"));
                };
                if bin >= size {
                    continue;
                }
                let bin = &mut out[index / columns.max(1) * size + bin];
                *bin = match (binary, weights.get(index)) {
                    (true, _) => T::ONE,
                    (false, Some(&weight)) => bin.plus(weight),
                    (false, None) => bin.plus(T::ONE),
                };
            }
            Ok(())
        })
    }
    let shape = call.output_shape(0)?;
    let size = shape.last().copied().unwrap_or(0);
    let n = call.shape(0).num_elements();
    let columns = if shape.rank() == 2 { call.shape(0)[1] } else { n };
    let binary = call.attrs.bool("binary_output").unwrap_or(false);
    let op = call.op.name;
    let kernel = with_index!(call.dtype(0), I => {
        with_real!(call.dtype(2), T => counting::<I, T>(op, columns, size, binary))
    });
    Ok(kernel.flatten())
}

fn bucketize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    /// Integers are compared as `f32`, as the boundaries are.
    fn searching<T: bytemuck::Pod>(
        boundaries: Vec<f32>,
        is_above: fn(f32, T) -> bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let out = io.output::<i32>(0);
            for (out, &value) in out.iter_mut().zip(io.input::<T>(0)) {
                *out = boundaries.partition_point(|&b| !is_above(b, value)) as i32;
            }
            Ok(())
        })
    }
    let boundaries = call.attrs.floats("boundaries")?.to_vec();
    Ok(match call.dtype(0) {
        DType::F32 => Some(searching::<f32>(boundaries, |b, x| x.flushed() < b.flushed())),
        DType::F64 => Some(searching::<f64>(boundaries, |b, x| x.flushed() < b.flushed().into())),
        DType::I32 => Some(searching::<i32>(boundaries, |b, x| (x as f32) < b)),
        DType::I64 => Some(searching::<i64>(boundaries, |b, x| (x as f32) < b)),
        _ => None,
    })
}

/// Bins of one width. Ends and values are doubles before they are subtracted, so that no difference
/// is rounded.
struct Bins {
    low: f64,
    high: f64,
    width: f64,
    last: usize,
}

impl Bins {
    fn new(low: f64, high: f64, count: usize) -> Bins {
        let width = high / count as f64 - low / count as f64;
        Bins { low, high, width, last: count - 1 }
    }

    fn index(&self, value: f64) -> usize {
        let distance = value.min(self.high).max(self.low) - self.low;
        ((distance / self.width) as usize).min(self.last)
    }
}

fn histogram(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn binning<T, C>(op: &'static str) -> Arc<dyn Kernel>
    where
        T: Number + PartialOrd + AsPrimitive<f64>,
        C: Number,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let (values, ends) = (io.input::<T>(0), io.input::<T>(1));
            let out = io.output::<C>(0);
            let [low, high] = [ends[0], ends[1]];
            if !(low < high) {
                return Err(fails(op, "the range must have its lower end first"));
            }
            let bins = Bins::new(low.as_(), high.as_(), out.len());
            out.fill(C::ZERO);
            for &value in values {
                #[expect(clippy::eq_op, reason = "true of NaN, in whatever type")]
                if value != value {
                    return Err(fails(op, "a value is NaN"));
                }
                let bin = bins.index(value.as_());
                out[bin] = out[bin].plus(C::ONE);
            }
            Ok(())
        })
    }
    let op = call.op.name;
    let kernel = with_index!(call.outputs[0].dtype, C => {
        with_real!(call.dtype(0), T => binning::<T, C>(op))
    });
    Ok(kernel.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bins that TensorFlow 2.21 has for tenths in single precision, which ends of bins are near.
    #[test]
    fn values_beside_the_end_of_a_bin_fall_to_its_side() {
        let bins = Bins::new(-1.0, 1.0, 10);
        let index = |tenths: i16| bins.index(f64::from(f32::from(tenths) / 10.0));
        let found: Vec<usize> = [-12, -10, -8, -6, -4, -2, 0, 2, 4, 6, 8, 10, 12].map(index).into();
        assert_eq!(found, [0, 0, 0, 1, 2, 3, 5, 6, 7, 8, 9, 9, 9]);
        assert_eq!(bins.index(f64::INFINITY), 9);
        assert_eq!(bins.index(f64::NEG_INFINITY), 0);
    }
}
