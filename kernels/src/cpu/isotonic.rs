//! `IsotonicRegression`: the numbers nearest to a row that never rise.

use super::{
    Build,
    dispatch::{with_float, with_real},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("IsotonicRegression", build)];

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let row = call.shape(0).last().copied().unwrap_or(1).max(1);
    let result = call.outputs[0].dtype;
    Ok(with_real!(call.dtype(0), T => {
        with_float!(result, U => kernel::<T, U>(row))
    })
    .flatten())
}

/// Neighbours that share their mean.
#[derive(Debug, Clone, Copy)]
struct Pool {
    sum: f64,
    count: usize,
}

impl Pool {
    fn mean(self) -> f64 {
        self.sum / self.count as f64
    }
}

/// Merges neighbours as long as one rises above the one before it: "pool adjacent violators".
fn pools(row: impl Iterator<Item = f64>, pools: &mut Vec<Pool>) {
    pools.clear();
    for value in row {
        let mut pool = Pool { sum: value, count: 1 };
        while let Some(before) = pools.pop_if(|before| before.mean() < pool.mean()) {
            pool = Pool { sum: before.sum + pool.sum, count: before.count + pool.count };
        }
        pools.push(pool);
    }
}

fn kernel<T: Number + AsPrimitive<f64>, U: Number>(row: usize) -> Arc<dyn Kernel>
where
    f64: AsPrimitive<U>,
{
    Arc::new(move |io: &mut Io<'_>| {
        let (x, y, segments): (&[T], &mut [U], &mut [i32]) =
            (io.input(0), io.output(0), io.output(1));
        let mut found = Vec::new();
        let rows = x.chunks(row).zip(y.chunks_mut(row)).zip(segments.chunks_mut(row));
        for ((x, y), segments) in rows {
            pools(x.iter().map(|x| x.as_()), &mut found);
            let mut first = 0;
            for (segment, pool) in found.iter().enumerate() {
                y[first..][..pool.count].fill(pool.mean().as_());
                segments[first..][..pool.count].fill(segment as i32);
                first += pool.count;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &[f64], expected: &[(f64, usize)]) {
        let mut found = Vec::new();
        pools(row.iter().copied(), &mut found);
        let found: Vec<_> = found.iter().map(|pool| (pool.mean(), pool.count)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn rising_neighbours_share_their_mean() {
        check(&[3.0, 1.0, 2.0, 0.0], &[(3.0, 1), (1.5, 2), (0.0, 1)]);
        check(&[1.0, 2.0, 3.0], &[(2.0, 3)]);
        check(&[2.0, 2.0], &[(2.0, 1), (2.0, 1)]);
        check(&[1.0, 3.0, 2.0, 2.0, 2.5], &[(2.1, 5)]);
    }
}
