//! Local response normalisation: `LRN` and its gradient (Krizhevsky et al. 2012, section 3.3).

use super::{Build, dispatch::with_float, exp::Exp};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    wide::WideElement,
};
use std::{ops::Range, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] = &[("LRN", normalize), ("LRNGrad", gradient)];

/// Elements per piece of work.
const PIECE: usize = 1 << 13;

/// `y[d] = x[d] / (bias + alpha · Σ x[k]²) ^ beta`, where `k` is no further than `radius` from `d`.
#[derive(Debug, Clone, Copy)]
struct Plan<A> {
    channels: usize,
    radius: usize,
    bias: A,
    alpha: A,
    beta: A,
}

impl<A: Exp> Plan<A> {
    fn new(call: &OpCall<'_>) -> Result<Plan<A>> {
        let float = |name: &str| call.attrs.float(name).map(|value| A::from_f64(value.into()));
        Ok(Plan {
            channels: call.shape(0).last().copied().unwrap_or(1),
            radius: call.attrs.int("depth_radius")?.max(0) as usize,
            bias: float("bias")?,
            alpha: float("alpha")?,
            beta: float("beta")?,
        })
    }

    fn near(&self, channel: usize) -> Range<usize> {
        let end = channel.saturating_add(self.radius).saturating_add(1);
        channel.saturating_sub(self.radius)..end.min(self.channels)
    }

    /// Base of the power `beta`.
    fn norm(&self, x: &[A], channel: usize) -> A {
        let squares = x[self.near(channel)].iter().fold(A::ZERO, |sum, x| sum.plus(x.squared()));
        self.bias.plus(self.alpha.times(squares))
    }
}

fn normalize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Exp>>(plan: Plan<T::Acc>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let x: &[T] = io.input(0);
            rows::<T>(io, plan.channels, |start, y| {
                let x = T::widen(&x[start..][..plan.channels]);
                for (channel, y) in y.iter_mut().enumerate() {
                    *y = x[channel].over(plan.norm(&x, channel).powf(plan.beta));
                }
            });
            Ok(())
        })
    }
    Ok(with_float!(call.dtype(0), T => kernel::<T>(Plan::new(call)?)))
}

/// Works on rows of channels, told by their first element.
fn rows<T: WideElement>(
    io: &mut Io<'_>,
    channels: usize,
    row: impl Fn(usize, &mut [T::Acc]) + Sync,
) {
    let out: &mut [T] = io.output(0);
    if out.is_empty() {
        return;
    }
    io.threads().for_each_piece(out, (PIECE / channels).max(1) * channels, |start, out| {
        T::through_acc(out, |out| {
            for (index, out) in out.chunks_mut(channels).enumerate() {
                row(start + index * channels, out);
            }
        });
    });
}

fn gradient(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement<Acc: Exp>>(plan: Plan<T::Acc>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (dy, x, y): (&[T], &[T], &[T]) = (io.input(0), io.input(1), io.input(2));
            rows::<T>(io, plan.channels, |start, dx| {
                let row = |data: &[T]| T::widen(&data[start..][..plan.channels]).into_owned();
                let (dy, x, y): (Vec<_>, Vec<_>, Vec<_>) = (row(dy), row(x), row(y));
                dx.fill(T::Acc::ZERO);
                let two = T::Acc::ONE.plus(T::Acc::ONE);
                let factor = two.times(plan.alpha).times(plan.beta);
                for channel in 0..plan.channels {
                    let norm = plan.norm(&x, channel);
                    let shared = factor.times(y[channel]).times(dy[channel]).over(norm);
                    for near in plan.near(channel) {
                        dx[near] = dx[near].minus(shared.times(x[near]));
                    }
                    let own = dy[channel].over(norm.powf(plan.beta));
                    dx[channel] = dx[channel].plus(own);
                }
            });
            Ok(())
        })
    }
    Ok(with_float!(call.dtype(0), T => kernel::<T>(Plan::new(call)?)))
}
