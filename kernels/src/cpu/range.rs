//! Evenly spaced numbers: `LinSpace`, `Range`.

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
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("LinSpace", lin_space), ("Range", range)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// Writes `start + index * step`.
fn spread<T: Number>(io: &Io<'_>, out: &mut [T], start: T, step: T) {
    let (start, step) = (start.to_acc(), step.to_acc());
    io.threads().for_each_piece(out, PIECE, |first, out| {
        for (index, out) in out.iter_mut().enumerate() {
            *out = T::from_acc(start.plus(T::Acc::count(first + index).times(step)));
        }
    });
}

fn range(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn counting<T: Number>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            let out = io.output::<T>(0);
            spread(io, out, io.scalar::<T>(0), io.scalar::<T>(2));
            Ok(())
        })
    }
    Ok(with_real!(call.dtype(0), T => counting::<T>()))
}

fn lin_space(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn spacing<T: Number>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            let out = io.output::<T>(0);
            let (start, stop) = (io.scalar::<T>(0), io.scalar::<T>(1));
            if let [others @ .., last] = out {
                let gaps = T::Acc::count(others.len().max(1));
                let step = T::from_acc(stop.to_acc().minus(start.to_acc()).over(gaps));
                spread(io, others, start, step);
                *last = if others.is_empty() { start } else { stop };
            }
            Ok(())
        })
    }
    Ok(with_float!(call.dtype(0), T => spacing::<T>()))
}
