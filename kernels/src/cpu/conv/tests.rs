//! Tiles against sums of `f64` by a matrix of taps, which know nothing of tiles.

use super::*;
use ferroflow_ir::window::{Slide, WindowPadding, WindowStep};
use std::num::NonZeroUsize;

fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|index| ((index * 7919 + seed) % 1009) as f32 / 512.0 - 1.0).collect()
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

fn near(found: &[f32], expected: &[f64], what: &str) {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let bound = 1e-4 * (expected.abs() + 1.0);
        assert!((f64::from(*found) - expected).abs() < bound, "{what}: {index}");
    }
}

/// Compares a convolution and its gradient by the filter, and those of every number of threads.
fn check(g: &Geometry, what: &str) {
    let [a, b, c] = &g.sweep.slides;
    let input = numbers(g.sweep.batch * a.input * b.input * c.input * g.sweep.channels, 3);
    let filter = numbers(g.depth() * g.filters, 77);
    let dy = numbers(g.sweep.n_windows() * g.filters, 500);
    let single = Threads::single();
    let mut expected = vec![0.0; dy.len()];
    forward(&single, g, &wide(&input), &wide(&filter), &mut expected).unwrap();
    let mut expected_dw = vec![0.0; filter.len()];
    sum_matmuls(&single, g, &wide(&input), &wide(&dy), &mut expected_dw, None).unwrap();
    let mut first: Option<(Vec<f32>, Vec<f32>)> = None;
    for count in 1..4 {
        let threads = Threads::new(NonZeroUsize::new(count).unwrap());
        let mut out = vec![f32::NAN; dy.len()];
        forward(&threads, g, &input, &filter, &mut out).unwrap();
        near(&out, &expected, what);
        by_weights(&threads, g, &input, &filter, &out, what);
        let mut dw = vec![f32::NAN; filter.len()];
        sum_matmuls(&threads, g, &input, &dy, &mut dw, None).unwrap();
        near(&dw, &expected_dw, what);
        let first = first.get_or_insert_with(|| (out.clone(), dw.clone()));
        assert!(first.0 == out && first.1 == dw, "{what}: the same bits on {count} threads");
    }
}

/// Compares calls with a filter that stays the same with a call by itself.
fn by_weights(
    threads: &Threads,
    g: &Geometry,
    input: &[f32],
    filter: &[f32],
    expected: &[f32],
    what: &str,
) {
    let tensor = ferroflow_ir::HostTensor::vector(filter).unwrap();
    let convolution = FloatConvolution::new(g.clone(), Precision::Full);
    for call in 0..3 {
        let mut out = vec![f32::NAN; expected.len()];
        let filter = (tensor.as_slice().unwrap(), Some(&tensor));
        convolution.forward(threads, input, filter, &mut out, None).unwrap();
        assert!(out == expected, "{what}: the same bits in call {call}");
    }
}

fn slide(
    input: usize,
    size: usize,
    stride: usize,
    dilation: usize,
    padding: WindowPadding,
) -> Slide {
    WindowStep { stride, dilation, padding }.slide(input, size).unwrap()
}

#[test]
fn convolutions_of_every_form_are_right() {
    let explicit = WindowPadding::Explicit { before: 3, after: 1 };
    for padding in [WindowPadding::Same, WindowPadding::Valid, explicit] {
        for (height, width, size, stride, dilation) in [
            (9, 12, 3, 1, 1),
            (14, 9, 3, 2, 1),
            (11, 11, 2, 1, 3),
            (8, 7, 1, 2, 1),
            (7, 30, 5, 3, 1),
            (5, 5, 5, 1, 1),
        ] {
            for (channels, groups, filters) in [(1, 1, 1), (3, 1, 17), (8, 2, 6), (19, 1, 40)] {
                let slides = [
                    slide(height, size, stride, dilation, padding),
                    slide(width, size, stride, dilation, padding),
                ];
                let sweep = Sweep::new(2, channels, &slides);
                let g = Geometry { sweep, groups, filters };
                let what = format!("{padding:?} {height} {width} {size} {stride} {dilation}");
                check(&g, &format!("{what} {channels} {groups} {filters}"));
            }
        }
    }
}

#[test]
fn volumes_and_many_windows_are_right() {
    let slides = [(6, 3, 1), (5, 2, 2), (7, 3, 1)]
        .map(|(input, size, stride)| slide(input, size, stride, 1, WindowPadding::Same));
    check(&Geometry { sweep: Sweep::new(2, 3, &slides), groups: 1, filters: 5 }, "a volume");
    let slides = [slide(40, 3, 1, 1, WindowPadding::Same); 2];
    check(&Geometry { sweep: Sweep::new(1, 36, &slides), groups: 1, filters: 35 }, "an image");
    check(&Geometry { sweep: Sweep::new(3, 4, &slides), groups: 2, filters: 4 }, "groups");
}

/// Geometries that tile registers serve, where there are any.
#[cfg(target_arch = "x86_64")]
fn in_tile_registers() -> Vec<(Geometry, String)> {
    let explicit = WindowPadding::Explicit { before: 3, after: 1 };
    let mut all = Vec::new();
    for (padding, height, width, size, stride, dilation, channels, filters) in [
        (WindowPadding::Same, 14, 14, 3, 1, 1, 32, 40),
        (WindowPadding::Valid, 30, 17, 3, 1, 1, 24, 48),
        (WindowPadding::Same, 28, 30, 3, 2, 1, 56, 48),
        (explicit, 13, 16, 4, 1, 1, 64, 24),
        (WindowPadding::Same, 31, 29, 2, 3, 1, 96, 130),
        (WindowPadding::Valid, 40, 40, 3, 1, 4, 32, 32),
        (explicit, 40, 31, 3, 2, 3, 48, 64),
        (WindowPadding::Valid, 56, 56, 1, 2, 1, 64, 128),
        (WindowPadding::Same, 60, 62, 3, 1, 1, 64, 32),
    ] {
        let slides = [
            slide(height, size, stride, dilation, padding),
            slide(width, size, stride, dilation, padding),
        ];
        let sweep = Sweep::new(2, channels, &slides);
        let what = format!("{padding:?} {height} {width} {size} {stride} {dilation} {channels}");
        all.push((Geometry { sweep, groups: 1, filters }, what));
    }
    let slides = [(6, 3, 1), (15, 2, 2), (17, 3, 1)]
        .map(|(input, size, stride)| slide(input, size, stride, 1, WindowPadding::Same));
    all.push((
        Geometry { sweep: Sweep::new(2, 32, &slides), groups: 1, filters: 32 },
        "3-D".into(),
    ));
    all
}

#[cfg(target_arch = "x86_64")]
#[test]
fn convolutions_in_tile_registers_are_right() {
    for (g, what) in in_tile_registers() {
        assert_eq!(
            split::SplitPlan::new(&g, Precision::Full).is_some(),
            super::super::gemm::amx::TileUnit::detect().is_some(),
            "{what}"
        );
        check(&g, &what);
    }
}

/// Inputs with numbers that cannot be split.
#[cfg(target_arch = "x86_64")]
#[test]
fn numbers_that_cannot_be_split_are_convolved_whole() {
    for (g, what) in in_tile_registers() {
        let [a, b, c] = &g.sweep.slides;
        let mut input = numbers(g.sweep.batch * a.input * b.input * c.input * g.sweep.channels, 3);
        let filter = numbers(g.depth() * g.filters, 77);
        let at = input.len() / 3;
        for (y, z) in (0..b.stride).flat_map(|y| (0..c.stride).map(move |z| (y, z))) {
            input[at + (y * c.input + z) * g.sweep.channels] = f32::INFINITY;
        }
        input[at + 40 * g.sweep.channels] = 1e-40;
        let windows = g.sweep.n_windows() * g.filters;
        let single = Threads::single();
        let mut expected = vec![0.0; windows];
        by_im2col(&single, &g, &input, &filter, &mut expected).unwrap();
        let mut found = vec![0.0; windows];
        forward(&single, &g, &input, &filter, &mut found).unwrap();
        let mut infinite = 0;
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            let near = (found - expected).abs() < 1e-3 * (expected.abs() + 1.0);
            assert!(same || near, "{what} {index}: {found}, not {expected}");
            infinite += usize::from(!found.is_finite());
        }
        assert!(infinite > 0, "{what}");
    }
}
