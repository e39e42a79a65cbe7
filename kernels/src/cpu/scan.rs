//! Running results along an axis: `Cumsum`, `Cumprod`, `CumulativeLogsumexp`.

use super::{
    Build,
    dispatch::{with_float, with_number},
};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    simd::{Vectorized, vectorize},
};
use ferroflow_ir::infer::normalize_axis;
use std::{marker::PhantomData, sync::Arc};

pub(super) const KERNELS: &[(&str, Build)] =
    &[("Cumprod", cumprod), ("Cumsum", cumsum), ("CumulativeLogsumexp", cumulative_log_sum_exp)];

/// Elements per piece of work.
const PIECE: usize = 1 << 15;

/// Operation that scans the elements.
trait Rule<T: Number>: Send + Sync + 'static {
    /// The result of nothing.
    fn start() -> T::Acc;
    /// The result with one more element.
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc;
}

struct Sum;

impl<T: Number> Rule<T> for Sum {
    fn start() -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.plus(x)
    }
}

struct ProductScan;

impl<T: Number> Rule<T> for ProductScan {
    fn start() -> T::Acc {
        T::Acc::ONE
    }
    #[inline(always)]
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.times(x)
    }
}

struct LogSumExp;

impl<T: Number<Acc: LogAdd>> Rule<T> for LogSumExp {
    fn start() -> T::Acc {
        T::Acc::LOG_OF_ZERO
    }
    fn combine(acc: T::Acc, x: T::Acc) -> T::Acc {
        acc.log_add(x)
    }
}

/// Addition of numbers represented by their logarithms.
trait LogAdd {
    /// The logarithm of 0.
    const LOG_OF_ZERO: Self;
    /// `log(exp(a) + exp(b))`, computed as `max + log(1 + exp(min - max))`.
    fn log_add(self, other: Self) -> Self;
}

macro_rules! log_add {
    ($($type:ty)*) => {$(
        impl LogAdd for $type {
            const LOG_OF_ZERO: $type = <$type>::NEG_INFINITY;
            fn log_add(self, other: $type) -> $type {
                // What is NaN is neither lower nor higher, so it counts as one more of `self`.
                let low = if other < self { other } else { self };
                let high = if self < other { other } else { self };
                if high == <$type>::NEG_INFINITY { high } else { (low - high).exp().ln_1p() + high }
            }
        }
    )*};
}

log_add! { f32 f64 }

/// The input is seen as `[outer, size, inner]`.
#[derive(Debug, Clone, Copy)]
struct Plan {
    size: usize,
    inner: usize,
    /// Whether a result leaves out its own element.
    exclusive: bool,
    reverse: bool,
}

impl Plan {
    fn new(call: &OpCall<'_>) -> Result<Plan> {
        let shape = call.shape(0);
        let axis = normalize_axis(call.ints(1)?[0], shape.rank())?;
        Ok(Plan {
            size: shape[axis],
            inner: shape[axis + 1..].iter().product(),
            exclusive: call.attrs.bool("exclusive")?,
            reverse: call.attrs.bool("reverse")?,
        })
    }

    /// The position of the element that comes in step `n`.
    #[inline(always)]
    fn position(self, n: usize) -> usize {
        if self.reverse { self.size - 1 - n } else { n }
    }
}

fn cumsum(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(call.dtype(0), T => kernel::<T, Sum>(plan)))
}

fn cumprod(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_number!(call.dtype(0), T => kernel::<T, ProductScan>(plan)))
}

fn cumulative_log_sum_exp(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let plan = Plan::new(call)?;
    Ok(with_float!(call.dtype(0), T => kernel::<T, LogSumExp>(plan)))
}

fn kernel<T: Number, R: Rule<T>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let (source, out): (&[T], &mut [T]) = (io.input(0), io.output(0));
        let block = plan.size * plan.inner;
        let piece = match plan.inner {
            1 => (PIECE / block.max(1)).max(1).next_multiple_of(ROWS) * block,
            _ => (PIECE / block.max(1)).max(1) * block,
        };
        io.threads().for_each_piece(out, piece, |start, out| {
            let source = &source[start..][..out.len()];
            vectorize(Scan::<T, R> { plan, source, out, rule: PhantomData });
        });
        Ok(())
    })
}

/// Rows that are scanned side by side, as each step of one waits for the step before.
const ROWS: usize = 8;

struct Scan<'a, T, R> {
    plan: Plan,
    source: &'a [T],
    out: &'a mut [T],
    rule: PhantomData<R>,
}

impl<T: Number, R: Rule<T>> Vectorized for Scan<'_, T, R> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Scan { plan, source, out, .. } = self;
        let block = plan.size * plan.inner;
        if plan.inner > 1 {
            for (source, out) in source.chunks_exact(block).zip(out.chunks_exact_mut(block)) {
                columns::<T, R>(plan, source, out);
            }
            return;
        }
        let n = plan.size;
        let (many, rest) = out.split_at_mut(out.len() / (ROWS * n) * (ROWS * n));
        let (many_in, rest_in) = source.split_at(many.len());
        for (source, out) in many_in.chunks_exact(ROWS * n).zip(many.chunks_exact_mut(ROWS * n)) {
            rows::<T, R, ROWS>(plan, source, out);
        }
        for (source, out) in rest_in.chunks_exact(n).zip(rest.chunks_exact_mut(n)) {
            rows::<T, R, 1>(plan, source, out);
        }
    }
}

/// Scans `N` rows.
#[inline(always)]
fn rows<T: Number, R: Rule<T>, const N: usize>(plan: Plan, source: &[T], out: &mut [T]) {
    let mut accs = [R::start(); N];
    for n in 0..plan.size {
        let position = plan.position(n);
        for (row, acc) in accs.iter_mut().enumerate() {
            let at = row * plan.size + position;
            let before = *acc;
            *acc = R::combine(before, source[at].to_acc());
            out[at] = T::from_acc(if plan.exclusive { before } else { *acc });
        }
    }
}

/// Scans the columns of `[size, inner]`.
#[inline(always)]
fn columns<T: Number, R: Rule<T>>(plan: Plan, source: &[T], out: &mut [T]) {
    let mut accs = vec![R::start(); plan.inner];
    for n in 0..plan.size {
        let first = plan.position(n) * plan.inner;
        let (source, out) = (&source[first..][..plan.inner], &mut out[first..][..plan.inner]);
        for ((acc, &x), out) in accs.iter_mut().zip(source).zip(out) {
            let before = *acc;
            *acc = R::combine(before, x.to_acc());
            *out = T::from_acc(if plan.exclusive { before } else { *acc });
        }
    }
}
