//! Limits of the processor, measured: how much arithmetic it does in a second, and how many bytes it moves.

use super::gemm::vector::{Compiled, InstructionSet, Vector, VectorFunction, compiled};
use crate::{
    cost::OpCost,
    simd::{Vectorized, vectorize},
    threads::Threads,
};
use ferroflow_ir::clock::Instant;
use std::{hint::black_box, time::Duration};

/// Limits of a processor, for a number of threads: the roofline under which calls run.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineLimits {
    /// Operations of `float32` in a second, a multiplication with an addition being two; 0 where vectors have no
    /// instructions for it.
    pub flops: f64,
    /// Bytes that are read or written in a second, by the bytes that are worked on: the smallest set stays in
    /// the second-level cache, the largest is in memory. Half of them are read and half written; loops that read
    /// more than they write may be faster.
    pub bandwidths: Vec<(u64, f64)>,
}

/// Bytes that each thread reads and writes, together, where they stay in caches.
const CACHED: [usize; 3] = [128 << 10, 1 << 20, 8 << 20];

/// Bytes that all threads read and write, together, where they come from memory.
const IN_MEMORY: usize = 128 << 20;

/// The shortest time that is measured.
const LEAST_TIME: Duration = Duration::from_millis(3);

impl MachineLimits {
    /// Measures the limits for a number of threads, in about a fifth of a second.
    pub fn measure(threads: &Threads) -> MachineLimits {
        let of_memory = (IN_MEMORY / threads.count()).max(CACHED[2]);
        let bandwidths = CACHED.into_iter().chain([of_memory]).map(|set| {
            let half = || vec![1.0f32; set / 2 / size_of::<f32>()];
            let mut parts: Vec<(Vec<f32>, Vec<f32>)> =
                (0..threads.count()).map(|_| (half(), half())).collect();
            let rate = rate((set * threads.count()) as f64, || {
                threads.for_each(parts.iter_mut(), |(from, to)| vectorize(Halves { from, to }));
            });
            ((set * threads.count()) as u64, rate)
        });
        MachineLimits { flops: peak(threads), bandwidths: bandwidths.collect() }
    }

    /// The least time that a call of such a cost can take; arithmetic and memory go on at once.
    ///
    /// ```
    /// use ferroflow_kernels::{cost::OpCost, machine::MachineLimits};
    /// use std::time::Duration;
    ///
    /// let limits = MachineLimits { flops: 1e11, bandwidths: vec![(1 << 20, 8e10), (1 << 27, 1e10)] };
    /// let least = |flops, bytes| limits.least_time(OpCost { flops, bytes });
    /// assert_eq!(least(200_000_000, 1000), Duration::from_millis(2));
    /// assert_eq!(least(1000, 10_000_000), Duration::from_millis(1));
    /// ```
    pub fn least_time(&self, cost: OpCost) -> Duration {
        let arithmetic = if self.flops > 0.0 { cost.flops as f64 / self.flops } else { 0.0 };
        let set = self.bandwidths.iter().find(|(bytes, _)| cost.bytes <= *bytes);
        let bandwidth = set.or(self.bandwidths.last()).map_or(f64::INFINITY, |(_, rate)| *rate);
        Duration::from_secs_f64(arithmetic.max(cost.bytes as f64 / bandwidth))
    }
}

/// Reads and writes as many elements. Copies by the system's library would not do: those of 64 KiB took thirteen
/// times as long on a processor with AVX2.
struct Halves<'a> {
    from: &'a [f32],
    to: &'a mut [f32],
}

impl Vectorized for Halves<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let from = black_box(self.from);
        for (to, from) in self.to.iter_mut().zip(from) {
            *to = 0.5 * from;
        }
        black_box(self.to);
    }
}

/// The highest rate of some work of so many units that is done again and again.
fn rate(units: f64, mut work: impl FnMut()) -> f64 {
    work();
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        let (start, mut n) = (Instant::now(), 0);
        while n == 0 || start.elapsed() < LEAST_TIME {
            work();
            n += 1;
        }
        best = best.max(units * f64::from(n) / start.elapsed().as_secs_f64());
    }
    best
}

/// Rounds of the loop between two looks at the clock.
const ROUNDS: usize = 10_000;

/// Sums that do not wait for each other: more than the latency of an instruction times the number that begin at once.
const SUMS: usize = 12;

/// Operations of `float32` in a second.
fn peak(threads: &Threads) -> f64 {
    let Some(set) = InstructionSet::detect() else { return 0.0 };
    let run = set.choose(&PEAK);
    let operations = 2 * ROUNDS * SUMS * set.lanes() * threads.count();
    let mut sums = vec![[0.0f32; 16]; threads.count()];
    rate(operations as f64, || {
        threads.for_each(sums.iter_mut(), |sum| {
            #[expect(unsafe_code, reason = "instructions that not every processor has")]
            // SAFETY: `set` is the proof that the processor has the instructions, and 16 floats are a vector
            // of the widest.
            unsafe {
                run(sum);
            }
        });
    })
}

static PEAK: Compiled<for<'a> unsafe fn(&'a mut [f32; 16])> = compiled!(PeakLoop);

/// Multiplies and adds in registers.
struct PeakLoop;

#[expect(unsafe_code, reason = "instructions that not every processor has")]
impl VectorFunction for PeakLoop {
    type Call<'a> = &'a mut [f32; 16];

    // SAFETY: the caller vouches for the processor; 16 floats are no less than a vector.
    #[inline(always)]
    unsafe fn run<X: Vector>(out: &mut [f32; 16]) {
        unsafe {
            // It stays near 1: neither subnormal nor infinite.
            let half = X::splat(&black_box(0.5));
            let mut sums = [half; SUMS];
            for _ in 0..ROUNDS {
                for sum in &mut sums {
                    *sum = sum.times_plus(half, half);
                }
            }
            let sum = sums.into_iter().fold(half, |a, b| a.plus(b));
            sum.store(out.as_mut_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_there() {
        let limits = MachineLimits::measure(&Threads::single());
        let has_vectors = InstructionSet::detect().is_some();
        assert_eq!(limits.flops > 1e6, has_vectors, "{limits:?}");
        assert!(limits.bandwidths.iter().all(|(_, rate)| *rate > 1e6), "{limits:?}");
        assert!(limits.bandwidths.is_sorted_by_key(|(set, _)| *set));
    }
}
