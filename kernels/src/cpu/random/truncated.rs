//! Normal distributions between limits: `_StatelessParameterizedTruncatedNormalV2`.

use super::{fails, generator, parameters::BatchParameters, variate::Variate};
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    philox::Philox,
};
use ferroflow_ir::{Code, DType};
use half::{bf16, f16};
use num_traits::Float;
use std::sync::Arc;

/// Rejections in a row after which drawing fails.
const MAX_REJECTIONS: usize = 1000;

pub(super) fn parameterized(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let op = call.op.name;
    let parameters = BatchParameters::new(call, 4)?;
    Ok(match call.outputs[0].dtype {
        DType::F16 => Some(drawing::<f16>(op, parameters)),
        DType::BF16 => Some(drawing::<bf16>(op, parameters)),
        DType::F32 => Some(drawing::<f32>(op, parameters)),
        DType::F64 => Some(drawing::<f64>(op, parameters)),
        _ => None,
    })
}

/// All numbers come from one sequence, batch by batch.
fn drawing<T: Variate + Float>(op: &'static str, parameters: BatchParameters) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let mut generator = generator(io, op, 1)?;
        let values: Vec<Vec<T>> = (0..4).map(|index| parameters.read::<T>(io, index)).collect();
        let out = io.output::<T>(0);
        let n_batches = parameters.n_batches();
        #[expect(clippy::needless_range_loop, reason = "four lists are indexed")]
        for batch in 0..n_batches {
            let limits = Limits::new([0, 1, 2, 3].map(|index| values[index][batch]));
            let limits = limits.ok_or_else(|| {
                fails(op, Code::InvalidArgument, "deviations or limits make no distribution")
            })?;
            let wanted = out.iter_mut().skip(batch).step_by(n_batches);
            if !limits.draw(&mut generator, wanted) {
                let detail = "no number between the limits was found";
                return Err(fails(op, Code::Internal, detail));
            }
        }
        Ok(())
    })
}

/// A distribution: normalised limits, of which the lower is at least as close to the mean.
struct Limits<T> {
    mean: T,
    deviation: T,
    low: T,
    high: T,
}

impl<T: Variate + Float> Limits<T> {
    fn new([mean, deviation, min, max]: [T; 4]) -> Option<Limits<T>> {
        let possible = deviation > T::zero() && min < max && (min.is_finite() || max.is_finite());
        if !possible {
            return None;
        }
        // A limit on one side only becomes the lower one, and two limits below the mean are
        // mirrored.
        let mirrored = min == T::neg_infinity() || max < mean;
        let (min, max, deviation) =
            if mirrored { (max, min, -deviation) } else { (min, max, deviation) };
        let (low, high) = ((min - mean) / deviation, (max - mean) / deviation);
        Some(Limits { mean, deviation, low, high })
    }

    /// Fills `wanted` by the method that rejects least; `false` when too many were rejected.
    fn draw<'o>(&self, generator: &mut Philox, wanted: impl Iterator<Item = &'o mut T>) -> bool
    where
        T: 'o,
    {
        let constant = |value: f64| T::from(value).unwrap_or_else(T::nan);
        let (low, high) = (self.low, self.high);
        let wide = constant(1.3);
        let (two, four) = (constant(2.0), constant(4.0));
        let root = (low * low + four).sqrt();
        let cutoff = two * (constant(0.5) + (low * (low - root)) / four).exp() / (low + root);
        let normal_fits = (low < -wide && high >= T::zero()) || (high > wide && low <= T::zero());
        if normal_fits {
            self.accept(wanted, || {
                let numbers = T::normal(generator.next_block());
                numbers.map(|z| (z, z >= low && z <= high))
            })
        } else if high - low < cutoff {
            let plus = if low < T::zero() { T::zero() } else { low * low };
            self.accept(wanted, || {
                let numbers = T::uniform(generator.next_block());
                let chances = T::uniform(generator.next_block());
                let mut index = 0;
                numbers.map(|u| {
                    let z = u * (high - low) + low;
                    index += 1;
                    (z, chances[index - 1] <= ((plus - z * z) / two).exp())
                })
            })
        } else {
            let alpha = (low + root) / two;
            self.accept_pairs(wanted, || {
                let numbers = T::uniform(generator.next_block());
                [0, 2].map(|index| {
                    let z = -numbers[index].ln() / alpha + low;
                    let x = if low < alpha { alpha - z } else { low - alpha };
                    (z, numbers[index + 1] <= (-x * x / two).exp() && z < high)
                })
            })
        }
    }

    fn accept<'o>(
        &self,
        wanted: impl Iterator<Item = &'o mut T>,
        mut proposals: impl FnMut() -> [(T, bool); 4],
    ) -> bool
    where
        T: 'o,
    {
        self.take(wanted, || proposals().into_iter().take(T::PER_BLOCK).collect())
    }

    fn accept_pairs<'o>(
        &self,
        wanted: impl Iterator<Item = &'o mut T>,
        mut proposals: impl FnMut() -> [(T, bool); 2],
    ) -> bool
    where
        T: 'o,
    {
        self.take(wanted, || proposals().into_iter().take(T::PER_BLOCK / 2).collect())
    }

    /// Takes accepted proposals; what is left of a round is lost.
    fn take<'o>(
        &self,
        mut wanted: impl Iterator<Item = &'o mut T>,
        mut round: impl FnMut() -> smallvec::SmallVec<[(T, bool); 4]>,
    ) -> bool
    where
        T: 'o,
    {
        let mut rejections = 0;
        let Some(mut place) = wanted.next() else { return true };
        loop {
            for (z, accepted) in round() {
                if !accepted {
                    rejections += 1;
                    if rejections > MAX_REJECTIONS {
                        return false;
                    }
                    continue;
                }
                rejections = 0;
                *place = z * self.deviation + self.mean;
                match wanted.next() {
                    Some(next) => place = next,
                    None => return true,
                }
            }
        }
    }
}
