//! Two sparse tensors of one shape: `SparseAdd`, `SparseSparseMaximum`, `SparseSparseMinimum`.
//!
//! Elements are expected in row-major order and come out in it; others are met as they come.

use super::{SparseInputs, put_coordinates, put_dims, put_values};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_number, with_real},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
};
use ferroflow_ir::{DType, Error};
use half::{bf16, f16};
use num_complex::Complex;
use std::{cmp::Ordering, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("SparseAdd", add), ("SparseSparseMaximum", maximum), ("SparseSparseMinimum", minimum)];

/// An element of the first tensor, of the second, or of both.
type Pair = (Option<usize>, Option<usize>);

/// The elements of two tensors side by side.
fn pairs(io: &Io<'_>, a: &SparseInputs, b: &SparseInputs) -> Result<Vec<Pair>> {
    let (a, b) = (a.coordinates(io), b.coordinates(io));
    if a.dims != b.dims {
        let (expected, found) = (format!("of shape {:?}", a.dims), format!("{:?}", b.dims));
        return Err(Error::argument("sparse tensors", "b", expected, found).into());
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::with_capacity(a.n.max(b.n));
    while i < a.n || j < b.n {
        let order = match (i < a.n, j < b.n) {
            (true, true) => a.get(i).cmp(b.get(j)),
            (true, false) => Ordering::Less,
            (false, _) => Ordering::Greater,
        };
        pairs.push((order.is_le().then_some(i), order.is_ge().then_some(j)));
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    Ok(pairs)
}

/// Writes coordinates and values of pairs.
fn put<T: Cell>(
    io: &mut Io<'_>,
    forms: [&SparseInputs; 2],
    dtype: DType,
    pairs: &[(Pair, T)],
) -> Result<()> {
    let (a, b) = (forms[0].coordinates(io), forms[1].coordinates(io));
    let merged = |&((i, j), _): &(Pair, T)| match (i, j) {
        (Some(i), _) => a.get(i),
        (None, Some(j)) => b.get(j),
        (None, None) => &[],
    };
    let indices: Vec<i64> = pairs.iter().flat_map(merged).copied().collect();
    let values: Vec<T> = pairs.iter().map(|(_, value)| value.clone()).collect();
    put_coordinates(io, 0, forms[0].rank, &indices, values.len())?;
    put_values(io, 1, dtype, &values)
}

/// A number that can be compared with a threshold.
trait Measure: Number {
    /// The number itself, or its real part.
    fn real(self) -> f64;
    /// Its distance from 0.
    fn magnitude(self) -> f64 {
        self.real().abs()
    }
}

macro_rules! measures {
    ($($type:ty)*) => {$(
        impl Measure for $type {
            fn real(self) -> f64 { self as f64 }
        }
    )*};
}

measures! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }

macro_rules! half_measures {
    ($($type:ty)*) => {$(
        impl Measure for $type {
            fn real(self) -> f64 { self.to_f64() }
        }
    )*};
}

half_measures! { f16 bf16 }

impl Measure for Complex<f32> {
    fn real(self) -> f64 {
        self.re.into()
    }
    fn magnitude(self) -> f64 {
        self.norm().into()
    }
}

impl Measure for Complex<f64> {
    fn real(self) -> f64 {
        self.re
    }
    fn magnitude(self) -> f64 {
        self.norm()
    }
}

fn add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Measure + Cell>(
        a: SparseInputs,
        b: SparseInputs,
        dtype: DType,
        real: DType,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let threshold = with_real!(real, R => io.scalar::<R>(6).real()).unwrap_or(0.0);
            let (x, y): (&[T], &[T]) = (io.input(a.values), io.input(b.values));
            let mut sums = Vec::new();
            for pair in pairs(io, &a, &b)? {
                match pair {
                    (Some(i), Some(j)) => {
                        let sum = x[i].plus(y[j]);
                        if sum.magnitude() >= threshold {
                            sums.push((pair, sum));
                        }
                    }
                    (Some(i), None) => sums.push((pair, x[i])),
                    (None, j) => sums.push((pair, y[j.unwrap_or(0)])),
                }
            }
            put(io, [&a, &b], dtype, &sums)?;
            let dims: &[i64] = io.input(a.shape);
            put_dims(io, 2, dims)
        })
    }
    let (a, b, dtype) = (SparseInputs::new(call, 0), SparseInputs::new(call, 3), call.dtype(1));
    Ok(with_number!(dtype, T => kernel::<T>(a, b, dtype, call.dtype(6))))
}

fn maximum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(1);
    Ok(with_real!(dtype, T => extreme::<T>(call, T::larger)))
}

fn minimum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(1);
    Ok(with_real!(dtype, T => extreme::<T>(call, T::smaller)))
}

fn extreme<T: Ordered + Cell>(call: &OpCall<'_>, choose: fn(T, T) -> T) -> Arc<dyn Kernel> {
    let (a, b, dtype) = (SparseInputs::new(call, 0), SparseInputs::new(call, 3), call.dtype(1));
    Arc::new(move |io: &mut Io<'_>| {
        let (x, y): (&[T], &[T]) = (io.input(a.values), io.input(b.values));
        let value = |values: &[T], n: Option<usize>| n.map_or(T::ZERO, |n| values[n]);
        let chosen: Vec<(Pair, T)> = pairs(io, &a, &b)?
            .into_iter()
            .map(|(i, j)| ((i, j), choose(value(x, i), value(y, j))))
            .collect();
        put(io, [&a, &b], dtype, &chosen)
    })
}
