//! Tiles of a product in AVX2 registers.

use std::arch::x86_64::*;

/// Rows of a tile. With two vectors for each, the sums take twelve of the sixteen registers.
pub(super) const ROWS: usize = 6;

/// Columns of a tile.
pub(super) const COLS: usize = 16;

/// Floats in a vector.
const LANES: usize = 8;

/// How many rows of `b` ahead memory is asked for.
const AHEAD: usize = 16;

/// The proof that the processor has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, on processors with AVX2 but without AVX-512, for which the `gemm` crate has code
    /// of its own.
    pub(super) fn detect() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && !is_x86_feature_detected!("avx512f");
        has.then_some(Avx2(()))
    }

    /// Multiplies `depth` columns of rows of `a` by as many rows of `b`, and puts `size` rows and
    /// columns of the product into `out`, or adds them to what is there. Every element is a chain
    /// of fused multiplications and additions, in order.
    ///
    /// `b` is read in whole vectors, also beyond the last column.
    ///
    /// # Panics
    ///
    /// When an operand or `out` is too short.
    pub(super) fn tile(
        self,
        depth: usize,
        a: Left<'_>,
        (b, b_stride): (&[f32], usize),
        (out, row_stride): (&mut [f32], usize),
        (rows, cols): (usize, usize),
        add: bool,
    ) {
        let width = cols.next_multiple_of(LANES);
        assert!((1..=ROWS).contains(&rows) && (1..=COLS).contains(&cols), "a part of a tile");
        assert!(depth > 0 && (depth - 1) * b_stride + width <= b.len(), "the elements of b");
        assert!((rows - 1) * row_stride + cols <= out.len(), "room for the product");
        if cols < width {
            let mut aside = [0.0; ROWS * COLS];
            self.tile(depth, a, (b, b_stride), (&mut aside, COLS), (rows, width), false);
            for (out, aside) in out.chunks_mut(row_stride).zip(aside.chunks(COLS)).take(rows) {
                for (out, &sum) in out.iter_mut().zip(&aside[..cols]) {
                    *out = if add { *out + sum } else { sum };
                }
            }
            return;
        }
        let (run, data, a_stride) = match a {
            Left::Packed(data) => {
                assert!(depth * ROWS <= data.len(), "the elements of a");
                (run::<true>(rows, width), data, ROWS)
            }
            Left::Rows(data, stride) => {
                assert!((rows - 1) * stride + depth <= data.len(), "the elements of a");
                (run::<false>(rows, width), data, stride)
            }
        };
        let a = (data.as_ptr(), a_stride);
        // SAFETY: this value proves that the processor has the features; the assertions above say
        // that the operands hold `depth` steps and `out` the rows and columns, of which there are
        // as many as the parameters of `run` say.
        #[expect(unsafe_code, reason = "the registers are filled through pointers")]
        unsafe {
            run(depth, a, (b.as_ptr(), b_stride), (out.as_mut_ptr(), row_stride), add);
        }
    }

    /// Copies [`ROWS`] rows of equal length into a panel: the first elements of all rows, the second
    /// ones, and so on.
    ///
    /// # Panics
    ///
    /// When the rows have different lengths, or the panel another one.
    pub(super) fn interleave(self, rows: [&[f32]; ROWS], panel: &mut [f32]) {
        let len = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == len), "rows of equal length");
        assert_eq!(panel.len(), len * ROWS, "room for all rows");
        let whole = len / LANES * LANES;
        // SAFETY: this value proves that the processor has the features; the rows have `whole`
        // elements and the panel room for them.
        #[expect(unsafe_code, reason = "the registers are filled through pointers")]
        unsafe {
            interleave(rows.map(<[f32]>::as_ptr), whole, panel.as_mut_ptr());
        }
        for (step, cell) in panel.chunks_exact_mut(ROWS).enumerate().skip(whole) {
            for (element, row) in cell.iter_mut().zip(rows) {
                *element = row[step];
            }
        }
    }
}

/// Rows of the left operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Left<'a> {
    /// The first elements of [`ROWS`] rows, the second ones, and so on.
    Packed(&'a [f32]),
    /// Rows that are so many elements apart.
    Rows(&'a [f32], usize),
}

type Run = unsafe fn(usize, (*const f32, usize), (*const f32, usize), (*mut f32, usize), bool);

fn run<const PACKED: bool>(rows: usize, cols: usize) -> Run {
    match (rows, cols <= LANES) {
        (1, true) => sums::<PACKED, 1, 1>,
        (2, true) => sums::<PACKED, 2, 1>,
        (3, true) => sums::<PACKED, 3, 1>,
        (4, true) => sums::<PACKED, 4, 1>,
        (5, true) => sums::<PACKED, 5, 1>,
        (_, true) => sums::<PACKED, 6, 1>,
        (1, false) => sums::<PACKED, 1, 2>,
        (2, false) => sums::<PACKED, 2, 2>,
        (3, false) => sums::<PACKED, 3, 2>,
        (4, false) => sums::<PACKED, 4, 2>,
        (5, false) => sums::<PACKED, 5, 2>,
        (_, false) => sums::<PACKED, 6, 2>,
    }
}

/// Computes a tile of `R` rows and `V` vectors of columns.
///
/// # Safety
///
/// The processor has AVX2 and FMA. `a` points to `depth` steps of `R` rows and `b` to as many of
/// `V * LANES` floats, `out` to `R` rows of `V * LANES` floats that nobody else refers to.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn sums<const PACKED: bool, const R: usize, const V: usize>(
    depth: usize,
    (mut a, a_stride): (*const f32, usize),
    (mut b, b_stride): (*const f32, usize),
    (out, row_stride): (*mut f32, usize),
    add: bool,
) {
    let mut sums = [[_mm256_setzero_ps(); V]; R];
    for row in 0..R {
        _mm_prefetch::<_MM_HINT_T0>(out.wrapping_add(row * row_stride).cast());
        _mm_prefetch::<_MM_HINT_T0>(out.wrapping_add(row * row_stride + V * LANES - 1).cast());
    }
    // SAFETY: the caller vouches for the memory; what is asked for ahead is not read.
    unsafe {
        let mut step = |a: *const f32, index: usize| {
            _mm_prefetch::<_MM_HINT_T0>(b.wrapping_add(AHEAD * b_stride).cast());
            let columns: [__m256; V] =
                std::array::from_fn(|vector| _mm256_loadu_ps(b.add(vector * LANES)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let at = if PACKED { index * ROWS + row } else { row * a_stride + index };
                let factor = _mm256_broadcast_ss(&*a.add(at));
                for (sum, &columns) in sums.iter_mut().zip(&columns) {
                    *sum = _mm256_fmadd_ps(factor, columns, *sum);
                }
            }
            b = b.wrapping_add(b_stride);
        };
        for _ in 0..depth / 4 {
            (0..4).for_each(|index| step(a, index));
            a = a.add(if PACKED { 4 * ROWS } else { 4 });
        }
        (0..depth % 4).for_each(|index| step(a, index));
        for (row, sums) in sums.iter().enumerate() {
            for (vector, &sum) in sums.iter().enumerate() {
                let place = out.add(row * row_stride + vector * LANES);
                let sum = if add { _mm256_add_ps(_mm256_loadu_ps(place), sum) } else { sum };
                _mm256_storeu_ps(place, sum);
            }
        }
    }
}

/// Interleaves the first elements of six rows.
///
/// # Safety
///
/// The processor has AVX2. Each row points to `len` floats, a multiple of [`LANES`], and `panel` to
/// as many for all of them together.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[target_feature(enable = "avx2,fma")]
unsafe fn interleave(rows: [*const f32; ROWS], len: usize, panel: *mut f32) {
    for start in (0..len).step_by(LANES) {
        // SAFETY: the caller vouches for the memory.
        let [a, b, c, d, e, f] = rows.map(|row| unsafe { _mm256_loadu_ps(row.add(start)) });
        // Pairs of rows, steps 0 1 4 5 and 2 3 6 7.
        let (ab, cd, ef) =
            (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d), _mm256_unpacklo_ps(e, f));
        let (ab2, cd2, ef2) =
            (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d), _mm256_unpackhi_ps(e, f));
        // Four rows, steps 0 4, 1 5, 2 6, 3 7.
        let four = [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab2, cd2),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab2, cd2),
        ];
        for (step, four) in four.into_iter().enumerate() {
            let two = if step < 2 { ef } else { ef2 };
            let halves = [
                (_mm256_castps256_ps128(four), _mm256_castps256_ps128(two)),
                (_mm256_extractf128_ps::<1>(four), _mm256_extractf128_ps::<1>(two)),
            ];
            for (half, (four, two)) in halves.into_iter().enumerate() {
                // SAFETY: the caller vouches for the memory; this is one of the steps.
                unsafe {
                    let cell = panel.add((start + step + half * 4) * ROWS);
                    _mm_storeu_ps(cell, four);
                    let (cell, two) = (cell.add(4).cast::<f64>(), _mm_castps_pd(two));
                    if step % 2 == 0 { _mm_storel_pd(cell, two) } else { _mm_storeh_pd(cell, two) }
                }
            }
        }
    }
}
