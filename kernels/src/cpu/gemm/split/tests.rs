//! Matmuls of split operands against sums of `f64`.

use super::{
    super::{
        packed::tests::Mark,
        weights::{PackedLayout, PackedWeights},
    },
    *,
};
use ferroflow_ir::{HostTensor, Shape};
use std::num::NonZeroUsize;

fn unit() -> Option<(SplitUnit, InstructionSet)> {
    unit_of(Precision::Full)
}

fn unit_of(precision: Precision) -> Option<(SplitUnit, InstructionSet)> {
    SplitUnit::detect(precision).zip(InstructionSet::detect())
}

/// Numbers of no pattern with all their bits, from -1 to 1.
fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    (0..len).map(|_| (next() >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
}

fn element(matrix: Matrix<'_, f32>, row: usize, col: usize) -> f64 {
    f64::from(matrix.data[row * matrix.row_stride + col * matrix.col_stride])
}

/// The root of the mean square of what sums differ by from those of `f64`.
fn error(
    GemmSizes { m, k, n }: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: &[f32],
    stride: usize,
) -> f64 {
    let square = move |row: usize, col: usize| {
        let products = (0..k).map(|step| element(a, row, step) * element(b, step, col));
        (f64::from(out[row * stride + col]) - products.sum::<f64>()).powi(2)
    };
    let squares = (0..m).flat_map(|row| (0..n).map(move |col| square(row, col)));
    (squares.sum::<f64>() / (m * n) as f64).sqrt()
}

fn view(data: &[f32], rows: usize, cols: usize, transposed: bool) -> Matrix<'_, f32> {
    match transposed {
        true => Matrix::row_major(data, rows).transposed(),
        false => Matrix::row_major(data, cols),
    }
}

#[test]
fn sums_are_as_good_as_of_whole_numbers_whatever_the_threads() {
    let Some(unit) = unit() else { return };
    for (m, k, n) in
        [(1, 1, 1), (32, 32, 32), (33, 31, 50), (16, 100, 16), (130, 1100, 70), (20, 2100, 200)]
    {
        let sizes = GemmSizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        for (transposed_a, transposed_b) in [(false, false), (true, false), (false, true)] {
            let (a, b) = (view(&a, m, k, transposed_a), view(&b, k, n, transposed_b));
            let row_stride = n + 3;
            let before = numbers(m * row_stride, 9);
            let mut first: Option<Vec<f32>> = None;
            for count in [1, 2, 3] {
                let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
                let mut found = before.clone();
                let out = GemmOutput { data: &mut found, row_stride, accumulate: false };
                multiply(unit, &threads, sizes, a, b.into(), out, None);
                let mut chains = before.clone();
                let out = GemmOutput { data: &mut chains, row_stride, accumulate: false };
                packed::multiply(unit.1, &threads, sizes, a, b.into(), out, None);
                let error = |found: &[f32]| error(sizes, a, b, found, row_stride);
                let (split, whole) = (error(&found), error(&chains));
                assert!(split <= 1.5 * whole + 1e-8, "{sizes:?}: {split}, {whole} by chains");
                let beside = |all: &[f32]| all[n..row_stride].to_vec();
                assert_eq!(beside(&found), beside(&before), "{sizes:?}: what is beside stays");
                let first = first.get_or_insert_with(|| found.clone());
                assert_eq!(&found, first, "{sizes:?}: the same bits on {count} threads");
                let mut twice = found.clone();
                let out = GemmOutput { data: &mut twice, row_stride, accumulate: true };
                multiply(unit, &threads, sizes, a, b.into(), out, None);
                for (row, found) in found.chunks(row_stride).enumerate() {
                    for (col, x) in found[..n].iter().enumerate() {
                        let sum = twice[row * row_stride + col];
                        assert!((sum - 2.0 * x).abs() <= 1e-5 * (1.0 + x.abs()), "{sizes:?} added");
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_of_rows_and_of_columns_have_the_same_bits() {
    let Some(unit) = unit() else { return };
    // By columns, and by rows.
    for (m, k, n) in [(100, 300, 4200), (3000, 800, 40), (50, 2100, 70)] {
        let sizes = GemmSizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
        let mut whole = vec![0.0; m * n];
        let threads = Threads::single();
        multiply(unit, &threads, sizes, a, b.into(), GemmOutput::row_major(&mut whole, n), None);
        for (row, col) in [(0, 0), (m - 1, n - 1), (m / 2, n / 3)] {
            let mut one = [0.0];
            let (a, b) = (a.below(row), b.right_of(col));
            let out = GemmOutput::row_major(&mut one, 1);
            multiply(unit, &threads, GemmSizes { m: 1, k, n: 1 }, a, b.into(), out, None);
            assert_eq!(one[0], whole[row * n + col], "{sizes:?} {row} {col}");
        }
    }
}

#[test]
fn integers_are_exact() {
    let Some(unit) = unit() else { return };
    let sizes @ GemmSizes { m, k, n } = GemmSizes { m: 40, k: 64, n: 40 };
    for (left, right) in [(1 << 8, 1 << 9), (1 << 17, 1), (3, 70_001), (1 << 12, 1 << 5)] {
        let number = |index: usize, most: u64| (index as u64 * 7919 % (most + 1)) as f32;
        let a: Vec<f32> = (0..m * k).map(|index| number(index, left)).collect();
        let b: Vec<f32> = (0..k * n).map(|index| number(index, right)).collect();
        let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
        let mut out = vec![0.0; m * n];
        let output = GemmOutput::row_major(&mut out, n);
        multiply(unit, &Threads::single(), sizes, a, b.into(), output, None);
        for (index, &found) in out.iter().enumerate() {
            let products =
                (0..k).map(|step| element(a, index / n, step) * element(b, step, index % n));
            let sum: f64 = products.sum();
            assert!(sum < f64::from(1 << 24), "{sum} is exact");
            assert_eq!(f64::from(found), sum, "{left} {right}");
        }
    }
}

/// Single products of numbers of all magnitudes: as near as a rounded one, but where that is subnormal.
#[test]
fn products_of_all_magnitudes_are_right() {
    let Some(unit) = unit() else { return };
    let sizes @ GemmSizes { m, k, n } = GemmSizes { m: 32, k: 32, n: 32 };
    let at = |exponent: i32, seed: u32| {
        numbers(32, seed)
            .into_iter()
            .map(move |x| f64::from(1.5 + x / 2.0) * f64::from(exponent).exp2())
    };
    for left in (-140..128).step_by(3) {
        for right in (-140..128).step_by(7) {
            // Diagonal matrices: each sum is one product, or zero.
            let (mut a, mut b) = (vec![0.0; m * k], vec![0.0; k * n]);
            let pairs: Vec<(f32, f32)> =
                at(left, 1).zip(at(right, 2)).map(|(x, y)| (x as f32, y as f32)).collect();
            for (index, &(x, y)) in pairs.iter().enumerate() {
                (a[index * k + index], b[index * n + index]) = (x, y);
            }
            let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
            let mut out = vec![-1.0; m * n];
            let output = GemmOutput::row_major(&mut out, n);
            multiply(unit, &Threads::single(), sizes, a, b.into(), output, None);
            for (index, (x, y)) in pairs.into_iter().enumerate() {
                let (found, exact) = (out[index * n + index], f64::from(x) * f64::from(y));
                let rounded = x * y;
                let near = (f64::from(found) - exact).abs() <= 2.4e-7 * exact.abs();
                let is_small =
                    exact.abs() < f64::from(f32::MIN_POSITIVE) && found.abs() <= f32::MIN_POSITIVE;
                assert!(near || is_small || found == rounded, "{x:e} * {y:e}: {found:e}");
            }
        }
    }
}

/// Numbers without three parts, or whose products are near overflow, in some blocks of many.
#[test]
fn extreme_numbers_are_multiplied_whole() {
    let Some(unit) = unit() else { return };
    let sizes @ GemmSizes { m, k, n } = GemmSizes { m: 70, k: 50, n: 70 };
    for (x, y) in [
        (f32::INFINITY, 1.0),
        (f32::NAN, 1.0),
        (f32::MAX, 1.0),
        (1e-37, 3e37),
        (2e20, 1e18),
        (3e37, 2e-38),
        (1.1e-18, 1.3e-18),
    ] {
        let (mut a, mut b) = (vec![0.0; m * k], vec![0.0; k * n]);
        a[40 * k + 3] = x;
        a[2 * k + 3] = 1.0;
        b[3 * n + 65] = y;
        b[3 * n + 1] = 1.0;
        let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
        let mut out = vec![-1.0; m * n];
        let output = GemmOutput::row_major(&mut out, n);
        multiply(unit, &Threads::single(), sizes, a, b.into(), output, None);
        for (row, col, expected) in
            [(40, 65, x * y), (40, 1, x), (2, 65, y), (2, 1, 1.0), (0, 0, 0.0), (69, 69, 0.0)]
        {
            let found = out[row * n + col];
            let same = found == expected || found.is_nan() && expected.is_nan();
            assert!(same, "{x} {y}: {found} instead of {expected}");
        }
    }
}

#[test]
fn every_element_is_finished_once() {
    for precision in [Precision::Full, Precision::BFloat16] {
        let Some(unit) = unit_of(precision) else { continue };
        every_element_is_finished_once_by(unit);
    }
}

fn every_element_is_finished_once_by(unit: (SplitUnit, InstructionSet)) {
    for (m, k, n) in [(40, 70, 33), (290, 1100, 150), (1200, 200, 40), (40, 40, 1000)] {
        let sizes = GemmSizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 5));
        let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
        for count in [1, 3] {
            let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
            let (mut plain, mut found) = (vec![0.0; m * n], vec![0.0; m * n]);
            let output = GemmOutput::row_major(&mut plain, n);
            multiply(unit, &threads, sizes, a, b.into(), output, None);
            Mark.apply(0, 0, Rect::new(&mut plain, m, n, n));
            let output = GemmOutput::row_major(&mut found, n);
            multiply(unit, &threads, sizes, a, b.into(), output, Some(&Mark));
            assert_eq!(found, plain, "{sizes:?}, {count} threads");
        }
    }
}

#[test]
fn which_tiles_are_split_does_not_depend_on_the_threads() {
    let Some(unit) = unit() else { return };
    let sizes @ GemmSizes { m, k, n } = GemmSizes { m: 200, k: 64, n: 40 };
    let (mut a, b) = (numbers(m * k, 3), numbers(k * n, 4));
    for row in [20, 110, 180] {
        a[row * k + 7] = 1e-38;
    }
    let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
    let product = |count: usize| {
        let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
        let mut out = vec![0.0; m * n];
        let output = GemmOutput::row_major(&mut out, n);
        multiply(unit, &threads, sizes, a, b.into(), output, None);
        out
    };
    let alone = product(1);
    let error = error(sizes, a, b, &alone, n);
    assert!(error < 1e-6, "{error}");
    for count in [2, 3, 4] {
        assert_eq!(product(count), alone, "{count} threads");
    }
}

/// The nearest number of eight bits.
fn rounded(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x8000) & !0xffff)
}

#[test]
fn the_only_part_is_the_number_rounded_whatever_the_threads() {
    let Some(unit) = unit_of(Precision::BFloat16) else { return };
    for (m, k, n) in [(1, 1, 1), (16, 32, 48), (33, 31, 50), (130, 1100, 70), (600, 64, 90)] {
        let sizes = GemmSizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let near: [Vec<f32>; 2] = [&a, &b].map(|all| all.iter().copied().map(rounded).collect());
        for (transposed_a, transposed_b) in [(false, false), (true, false), (false, true)] {
            let product = |count: usize, a: &[f32], b: &[f32]| {
                let (a, b) = (view(a, m, k, transposed_a), view(b, k, n, transposed_b));
                let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
                let mut out = vec![-1.0; m * n];
                let output = GemmOutput::row_major(&mut out, n);
                multiply(unit, &threads, sizes, a, b.into(), output, None);
                out
            };
            let found = product(1, &a, &b);
            let (near_a, near_b) =
                (view(&near[0], m, k, transposed_a), view(&near[1], k, n, transposed_b));
            let off = error(sizes, near_a, near_b, &found, n);
            assert!(off < 1e-6 * (k as f64).sqrt(), "{sizes:?}: {off}");
            assert_eq!(product(3, &near[0], &near[1]), found, "{sizes:?}");
        }
    }
}

#[test]
fn few_rows_are_multiplied_alike_whether_weights_are_packed() {
    // One depth, and several whose sums are added.
    few_rows_by(600, 450);
    few_rows_by(2100, 130);
}

fn few_rows_by(k: usize, n: usize) {
    let sizes = |m: usize| GemmSizes { m, k, n };
    let Some(unit) = unit_for_few_rows(sizes(1), Precision::BFloat16) else { return };
    let machine = InstructionSet::detect().expect("that of the unit");
    assert!(unit_for_few_rows(sizes(8), Precision::BFloat16).is_none(), "those are many");
    assert!(unit_for_few_rows(sizes(1), Precision::TensorFloat32).is_none());
    let (a, b) = (numbers(8 * k, 1), numbers(k * n, 2));
    let weights = HostTensor::from_slice(Shape::new([k, n]).expect("small"), &b).expect("it fits");
    let near: [Vec<f32>; 2] = [&a, &b].map(|all| all.iter().copied().map(rounded).collect());
    for m in 1..8 {
        let (left, right) = (Matrix::row_major(&a[..m * k], k), Matrix::row_major(&b[..], n));
        let layout = PackedLayout::of_matmul(machine, (sizes(m), Precision::BFloat16), right);
        let kept = PackedWeights::default();
        let product = |count: usize, packed: Option<&PackedMatrix>| {
            let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
            let mut out = vec![-1.0; m * (n + 1)];
            let output = GemmOutput { data: &mut out, row_stride: n + 1, accumulate: false };
            let right = RightOperand { matrix: right, packed };
            multiply((unit, machine), &threads, sizes(m), left, right, output, None);
            out
        };
        let found = product(1, None);
        let (near_a, near_b) =
            (Matrix::row_major(&near[0][..], k), Matrix::row_major(&near[1][..], n));
        let off = error(sizes(m), near_a, near_b, &found, n + 1);
        assert!(off < 1e-6 * (k as f64).sqrt(), "{m} rows: {off}");
        assert!(found.chunks(n + 1).all(|row| row[n] == -1.0), "what is beside stays");
        let mut was_packed = false;
        for _ in 0..3 {
            let packed = kept.of(&Threads::single(), m, Some(&weights), layout);
            was_packed |= packed.is_some();
            for count in [1, 3] {
                assert_eq!(product(count, packed.as_deref()), found, "{m} rows, {count} threads");
            }
        }
        assert!(was_packed, "weights that stay are packed");
    }
}
