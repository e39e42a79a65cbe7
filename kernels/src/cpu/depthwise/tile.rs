//! Tiles of a depthwise convolution in vector registers: a few neighbouring windows by two vectors
//! of channels, whose sums stay there while the taps go by. The same code is compiled for each
//! instruction set.

use crate::{
    cpu::gemm::vector::{InstructionSet, Vector, VectorFunction, compiled},
    simd::unrolled,
};
use std::ops::Range;

/// A term that contributes to a window: where its weights begin, and where its factors do in the
/// first window of a strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelOffset {
    pub(super) weight: usize,
    pub(super) factor: usize,
}

/// Consecutive windows that have the same kernel offsets.
pub(super) struct Strip<'a> {
    pub(super) weights: &'a [f32],
    pub(super) factors: &'a [f32],
    pub(super) taps: &'a [KernelOffset],
    /// Factors from one window to the next.
    pub(super) step: usize,
    /// The number of channels.
    pub(super) width: usize,
    /// Those that are computed.
    pub(super) channels: Range<usize>,
}

impl Strip<'_> {
    /// Computes its channels of the windows that fill `out`, `[windows, channels]`. Every element is a chain of
    /// multiplications and additions, fused where vectors do that, in the order of the taps.
    ///
    /// # Panics
    ///
    /// When the weights or factors are too few, or the windows of `out` are not whole.
    pub(super) fn sum(&self, machine: InstructionSet, out: &mut [f32]) {
        let Strip { weights, factors, taps, step, width, ref channels } = *self;
        let windows = out.len().checked_div(width).unwrap_or(0);
        if windows == 0 {
            return;
        }
        assert_eq!(windows * width, out.len(), "whole windows");
        assert!(channels.start <= channels.end && channels.end <= width, "channels of a window");
        for tap in taps {
            let last = tap.factor + (windows - 1) * step + width;
            assert!(tap.weight + width <= weights.len() && last <= factors.len(), "a whole tap");
        }
        let call = StripPointers {
            weights: weights.as_ptr(),
            factors: factors.as_ptr(),
            out: out.as_mut_ptr(),
            taps,
            step,
            width,
            first: channels.start,
            end: channels.end,
            windows,
        };
        let sum = machine.choose(&compiled!(SumStrip));
        // SAFETY: `machine` proves that the processor has the features; the assertions above say that
        // weights and factors hold all channels of every tap of every window, and `out` is an exclusive
        // borrow of as many windows.
        #[expect(unsafe_code, reason = "the registers are filled through pointers")]
        unsafe {
            sum(&call);
        }
    }
}

/// A strip, by pointers.
struct StripPointers<'a> {
    weights: *const f32,
    factors: *const f32,
    out: *mut f32,
    taps: &'a [KernelOffset],
    step: usize,
    width: usize,
    /// The first channel, and the end of them.
    first: usize,
    end: usize,
    windows: usize,
}

/// [`strip`] for any vector.
struct SumStrip;

#[expect(unsafe_code, reason = "the registers are filled through pointers")]
impl VectorFunction for SumStrip {
    type Call<'a> = &'a StripPointers<'a>;

    #[inline(always)]
    unsafe fn run<X: Vector>(call: &StripPointers<'_>) {
        // SAFETY: the caller vouches for it.
        unsafe { strip::<X>(call) }
    }
}

/// Computes all windows: four at a time, then two, then one. Where windows share inputs, as the rows of
/// common filters say, four of them read each input once.
///
/// # Safety
///
/// The processor has the features of the vector. Every tap lies inside the weights, and inside the
/// factors for all windows; `out` points to `windows * width` floats that nobody else refers to.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn strip<X: Vector>(call: &StripPointers<'_>) {
    // SAFETY: the caller vouches for the features and the memory; `window` and what is added to it do
    // not exceed the number of windows.
    unsafe {
        let mut window = match shared_rows(call) {
            Some((3, 1)) => groups::<X, 3, 1>(call),
            Some((3, 2)) => groups::<X, 3, 2>(call),
            Some((5, 1)) => groups::<X, 5, 1>(call),
            Some((5, 2)) => groups::<X, 5, 2>(call),
            _ => groups::<X, 0, 0>(call),
        };
        if window + 2 <= call.windows {
            channels::<X, 2, 0, 0>(call, window);
            window += 2;
        }
        if window < call.windows {
            channels::<X, 1, 0, 0>(call, window);
        }
    }
}

/// Windows that are computed together.
const GROUP: usize = 4;

/// Length of the rows of kernel offsets, and distance of windows, both in inputs, if offsets of a row and
/// windows are neighbours.
fn shared_rows(call: &StripPointers<'_>) -> Option<(usize, usize)> {
    let StripPointers { taps, width, .. } = *call;
    let stride = call.step.checked_div(width)?;
    let is_next = |pair: &[KernelOffset]| {
        (pair[0].weight + width, pair[0].factor + width) == (pair[1].weight, pair[1].factor)
    };
    let row = 1 + taps.windows(2).take_while(|pair| is_next(pair)).count();
    let is_row = |taps: &[KernelOffset]| taps.len() == row && taps.windows(2).all(is_next);
    (stride * width == call.step && taps.chunks(row).all(is_row)).then_some((row, stride))
}

/// Computes all groups of windows; returns the first window that is left.
///
/// # Safety
///
/// As for [`channels`].
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn groups<X: Vector, const K: usize, const S: usize>(call: &StripPointers<'_>) -> usize {
    let mut window = 0;
    while window + GROUP <= call.windows {
        // SAFETY: the caller vouches for everything but the windows, which are there.
        unsafe { channels::<X, GROUP, K, S>(call, window) }
        window += GROUP;
    }
    window
}

/// Computes the channels of `T` windows: two vectors at a time, then one, then a part of one.
///
/// # Safety
///
/// As for [`strip`]; there are `T` windows from `window` on. Unless `K` is 0, the offsets are rows of `K`
/// neighbours, and windows are `S` inputs apart.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn channels<X: Vector, const T: usize, const K: usize, const S: usize>(
    call: &StripPointers<'_>,
    window: usize,
) {
    let mut channel = call.first;
    // SAFETY: as above; tiles do not go beyond the last channel.
    unsafe {
        // One window has few sums for the length of a chain.
        while T == 1 && channel + 4 * X::LANES <= call.end {
            tile::<X, T, 4, false, K, S>(call, window, channel);
            channel += 4 * X::LANES;
        }
        while channel + 2 * X::LANES <= call.end {
            tile::<X, T, 2, false, K, S>(call, window, channel);
            channel += 2 * X::LANES;
        }
        if channel + X::LANES <= call.end {
            tile::<X, T, 1, false, K, S>(call, window, channel);
            channel += X::LANES;
        }
        if channel < call.end {
            tile::<X, T, 1, true, K, S>(call, window, channel);
        }
    }
}

/// Computes `T` windows by `V` vectors of channels, of which the only one is a part with `PART`.
///
/// # Safety
///
/// As for [`channels`]; there are as many channels from `channel` on.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn tile<
    X: Vector,
    const T: usize,
    const V: usize,
    const PART: bool,
    const K: usize,
    const S: usize,
>(
    call: &StripPointers<'_>,
    window: usize,
    channel: usize,
) {
    // SAFETY: the caller vouches for the features and the memory.
    unsafe {
        let part = X::part(call.end - channel);
        let mut sums = [[X::zero(); V]; T];
        match K {
            0 => sum_each::<X, T, V, PART>(&mut sums, call, window, channel),
            _ => sum_shared::<X, T, V, PART, K, S>(&mut sums, call, window, channel),
        }
        unrolled!(index < T, 4, {
            unrolled!(vector < V, 4, {
                let at = (window + index) * call.width + channel + vector * X::LANES;
                match PART {
                    true => sums[index][vector].store_part(call.out.add(at), part),
                    false => sums[index][vector].store(call.out.add(at)),
                }
            });
        });
    }
}

/// Adds the terms of each window.
///
/// # Safety
///
/// As for [`tile`].
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn sum_each<X: Vector, const T: usize, const V: usize, const PART: bool>(
    sums: &mut [[X; V]; T],
    call: &StripPointers<'_>,
    window: usize,
    channel: usize,
) {
    // SAFETY: the caller vouches for the features and the memory.
    unsafe {
        let part = X::part(call.end - channel);
        let load = |at: *const f32| if PART { X::load_part(at, part) } else { X::load(at) };
        for tap in call.taps {
            let weights = call.weights.add(tap.weight + channel);
            let factors = call.factors.add(tap.factor + window * call.step + channel);
            unrolled!(vector < V, 4, {
                let weight = load(weights.add(vector * X::LANES));
                unrolled!(index < T, 4, {
                    let factor = load(factors.add(index * call.step + vector * X::LANES));
                    sums[index][vector] = weight.times_plus(factor, sums[index][vector]);
                });
            });
        }
    }
}

/// Adds the terms of windows that share inputs: each is loaded once for all of them.
///
/// # Safety
///
/// As for [`tile`], and `K` is not 0.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn sum_shared<
    X: Vector,
    const T: usize,
    const V: usize,
    const PART: bool,
    const K: usize,
    const S: usize,
>(
    sums: &mut [[X; V]; T],
    call: &StripPointers<'_>,
    window: usize,
    channel: usize,
) {
    // SAFETY: the caller vouches for the features and the memory.
    unsafe {
        let part = X::part(call.end - channel);
        let load = |at: *const f32| if PART { X::load_part(at, part) } else { X::load(at) };
        for row in call.taps.chunks_exact(K) {
            let at = call.weights.add(row[0].weight + channel);
            let factors = call.factors.add(row[0].factor + window * call.step + channel);
            let mut weights = [[X::zero(); V]; K];
            unrolled!(tap < K, 8, {
                unrolled!(vector < V, 4, {
                    weights[tap][vector] = load(at.add(tap * call.width + vector * X::LANES));
                });
            });
            unrolled!(input < S * (T - 1) + K, 12, {
                unrolled!(vector < V, 4, {
                    let factor = load(factors.add(input * call.width + vector * X::LANES));
                    unrolled!(index < T, 4, {
                        if S * index <= input && input < S * index + K {
                            let weight = weights[input - S * index][vector];
                            sums[index][vector] = weight.times_plus(factor, sums[index][vector]);
                        }
                    });
                });
            });
        }
    }
}
