//! Segments in any order: `UnsortedSegment…`.

use super::{
    Build,
    cell::Cell,
    dispatch::{with_number, with_real},
    index::{Bad, OUTSIDE, checked_indices, integers},
    scatter::{Changes, Combine, LargestRow, Plus, SmallestRow, Times},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use bytes::{Bytes, BytesMut};
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[
    ("UnsortedSegmentJoin", join),
    ("UnsortedSegmentMax", max),
    ("UnsortedSegmentMin", min),
    ("UnsortedSegmentProd", prod),
    ("UnsortedSegmentSum", sum),
];

/// The result is `[segments, inner]`, the data `[rows, inner]`.
struct Plan {
    dtype: DType,
    id_dtype: DType,
    shape: Shape,
    rows: usize,
    inner: usize,
}

impl Plan {
    fn new(call: &OpCall<'_>) -> Result<Plan> {
        let (shape, rows) = (call.output_shape(0)?, call.shape(1).num_elements());
        let inner = shape[1..].iter().product();
        Ok(Plan { dtype: call.dtype(0), id_dtype: call.dtype(1), shape, rows, inner })
    }

    /// The segment of each row; rows of negative ones are left out.
    fn segments(&self, io: &Io<'_>) -> Result<Vec<usize>> {
        if self.inner == 0 {
            // Without data no id is out of range: TensorFlow's rule.
            return Ok(workspace::filled(OUTSIDE, self.rows)?);
        }
        let (n, ids) = (self.shape[0], integers(io, 1, self.id_dtype));
        let segment = |&id: &i64| match usize::try_from(id) {
            Ok(id) if id < n => Ok(id),
            Ok(_) => {
                let (what, high) = ("segment id".into(), n as i64);
                Err(Error::Index { what, index: id, low: 0, high }.into())
            }
            Err(_) => Ok(OUTSIDE),
        };
        ids.iter().map(segment).collect()
    }
}

/// The limits of a type: what is larger and smaller than every finite element.
trait Limits {
    const LEAST: Self;
    const GREATEST: Self;
}

macro_rules! limits {
    ($($type:ty)*) => {$(
        impl Limits for $type {
            const LEAST: $type = <$type>::MIN;
            const GREATEST: $type = <$type>::MAX;
        }
    )*};
}

limits! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 half::f16 half::bf16 }

fn sum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(plan.dtype, T => kernel::<T, Plus>(plan, T::ZERO)))
}

fn prod(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(plan.dtype, T => kernel::<T, Times>(plan, T::ONE)))
}

fn max(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_real!(plan.dtype, T => kernel::<T, LargestRow>(plan, T::LEAST)))
}

fn min(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_real!(plan.dtype, T => kernel::<T, SmallestRow>(plan, T::GREATEST)))
}

fn kernel<T: Number + Cell, C: Combine<T>>(plan: Plan, start: T) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let segments = plan.segments(io)?;
        let updates: &[T] = io.input(0);
        let threads = io.threads();
        T::write(io, 0, plan.dtype, &plan.shape, |out| {
            let prepared = out.len();
            let changes = Changes { places: &segments, updates, inner: plan.inner };
            changes.make::<C>(threads, out, prepared, |_, out| out.fill(start));
            Ok(())
        })
    })
}

fn join(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    let separator = Bytes::copy_from_slice(call.attrs.bytes("separator")?);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let segments =
            checked_indices(io, 1, plan.id_dtype, plan.rows, &plan.shape[..1], Bad::Fail)?;
        let strings = io.strings(0)?;
        let mut joined = workspace::filled(BytesMut::new(), plan.shape.num_elements())?;
        for (&segment, row) in segments.iter().zip(strings.chunks(plan.inner.max(1))) {
            for (joined, part) in joined[segment * plan.inner..].iter_mut().zip(row) {
                if !joined.is_empty() {
                    joined.extend_from_slice(&separator);
                }
                joined.extend_from_slice(part);
            }
        }
        Bytes::write(io, 0, plan.dtype, &plan.shape, |out| {
            for (out, joined) in out.iter_mut().zip(joined) {
                *out = joined.freeze();
            }
            Ok(())
        })
    })))
}
