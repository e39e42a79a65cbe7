use super::{ChannelMap, lines::DepthwiseLines};
use super::{Geometry, Pair, at, sum_pairs, tile::*};
use crate::{
    cpu::gemm::{BlockEpilogue, rect::Rect, vector::InstructionSet},
    plan::window::Sweep,
    threads::Threads,
};
use ferroflow_ir::window::{WindowPadding, WindowStep};
use std::{num::NonZeroUsize, panic::catch_unwind};

fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|index| ((index * 7919 + seed) % 101) as f32 / 8.0 - 6.0).collect()
}

/// Doubles all elements and adds the number of their row.
struct DoubledRows;

impl BlockEpilogue for DoubledRows {
    fn apply(&self, first: usize, _: usize, mut block: Rect<'_>) {
        for row in 0..block.rows() {
            block.row(row).iter_mut().for_each(|x| *x = 2.0 * *x + (first + row) as f32);
        }
    }
}

#[test]
fn lines_are_sums_over_the_taps_inside() {
    let threads = [1, 3].map(|count| Threads::new(NonZeroUsize::new(count).unwrap()));
    for (size, stride, dilation, padding) in [
        (3, 1, 1, WindowPadding::Same),
        (3, 2, 1, WindowPadding::Valid),
        (2, 1, 3, WindowPadding::Same),
        (5, 2, 1, WindowPadding::Explicit { before: 4, after: 1 }),
    ] {
        for (input, channels) in [(9, 37), (4, 3), (19, 16), (7, 72)] {
            let slide = WindowStep { stride, dilation, padding }.slide(input, size).unwrap();
            let (batch, line) = (2, slide.output * channels);
            let sweep = Sweep::new(batch, channels, &[slide, slide]);
            let g = Geometry { sweep, multiplier: 1 };
            let factors = numbers(batch * input * input * channels, 5);
            let weights = numbers(size * size * channels, 50);
            let mut expected = vec![0.0; batch * slide.output * line];
            let pairs = |[image, row, column]: [usize; 3], pairs: &mut Vec<Pair>| {
                for (y, x) in slide
                    .kernel_offsets(row)
                    .flat_map(|y| slide.kernel_offsets(column).map(move |x| (y, x)))
                {
                    let line = (image * input + at(&slide, row, y)) * input;
                    let position = line + at(&slide, column, x);
                    pairs.push(((y * size + x) * channels, position * channels));
                }
            };
            let sizes = [slide.output, slide.output, channels];
            // The numbers are such that products and sums are exact.
            let (plain, single) = (ChannelMap::Plain, Threads::single());
            sum_pairs(&single, plain, sizes, &weights, &factors, &mut expected, pairs);
            let Some(lines) = DepthwiseLines::new(&g, &factors, &weights) else { return };
            for threads in &threads {
                let mut found = vec![f32::NAN; expected.len()];
                lines.forward(threads, &mut found, None);
                assert_eq!(found, expected, "{slide:?} {channels}");
                lines.forward(threads, &mut found, Some(&DoubledRows));
                let marked = |(at, &x): (usize, &f32)| 2.0 * x + (at / channels) as f32;
                let expected: Vec<f32> = expected.iter().enumerate().map(marked).collect();
                assert_eq!(found, expected, "{slide:?} {channels}, finished");
            }
        }
    }
}

#[test]
fn taps_outside_are_refused() {
    let Some(machine) = InstructionSet::detect() else { return };
    let (weights, factors) = ([1.0; 4], [1.0; 12]);
    let sum = |factor: usize| {
        let taps = [KernelOffset { weight: 0, factor }];
        let strip = Strip {
            weights: &weights,
            factors: &factors,
            taps: &taps,
            step: 4,
            width: 4,
            channels: 0..4,
        };
        catch_unwind(|| strip.sum(machine, &mut [0.0; 8])).is_ok()
    };
    assert_eq!([4, 5, 9].map(sum), [true, false, false]);
}
