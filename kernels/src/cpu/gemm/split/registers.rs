//! Splitting numbers in registers of AVX-512.

#![expect(unsafe_code, reason = "the registers are filled through pointers")]

use super::{
    parts::Magnitudes,
    unit::{LINES, PART, Parts, SplitUnit},
};
use std::arch::x86_64::*;

/// Rows of numbers in memory that become rows of a tile: of each, two vectors, of which the first has the lower
/// halves of the groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// From a row to the next.
    pub(super) stride: usize,
    /// From the first vector of a row to the second.
    pub(super) second: usize,
    /// Rows that have a first vector, and rows that have a second one.
    pub(super) counts: [usize; 2],
    /// The numbers of a first and of a second vector.
    pub(super) lens: [usize; 2],
}

impl Rows {
    /// Whether all numbers are among so many.
    fn fit(&self, len: usize) -> bool {
        let Rows { stride, second, counts, lens } = *self;
        [(0, counts[0], lens[0]), (second, counts[1], lens[1])].into_iter().all(
            |(first, count, own)| {
                let last = count.saturating_sub(1).checked_mul(stride);
                let end = last.and_then(|last| last.checked_add(first)?.checked_add(own));
                count == 0 || own == 0 || end.is_some_and(|end| end <= len)
            },
        )
    }
}

/// Splits the numbers of the rows of a tile, zeros where there are none. Rows of a part are contiguous; parts are
/// [`PART`] groups apart.
///
/// # Panics
///
/// When there are not so many numbers, more than a tile has, or no room.
pub(super) fn split_tile(
    unit: SplitUnit,
    numbers: &[f32],
    rows: Rows,
    out: &mut [u32],
) -> Magnitudes {
    assert!(rows.fit(numbers.len()) && rows.counts.iter().all(|&count| count <= LINES), "rows");
    assert!(out.len() >= (unit.parts.count() - 1) * PART + LINES * LINES, "room for a tile");
    let (numbers, out) = (numbers.as_ptr(), out.as_mut_ptr());
    // SAFETY: all units come with AVX-512; the numbers of all rows are inside, and `out` has room for a tile
    // in each part.
    unsafe {
        match unit.parts {
            Parts::One => tile::<1>(numbers, rows, out),
            Parts::Three => tile::<3>(numbers, rows, out),
        }
    }
}

/// Splits the numbers of some positions, so many floats apart. Parts are `part` groups apart; in each of them
/// positions are contiguous, each filled up with zeros to vectors of groups.
///
/// # Panics
///
/// When there is no room.
pub(in crate::cpu) fn split_positions(
    unit: SplitUnit,
    numbers: &[f32],
    (channels, stride): (usize, usize),
    out: &mut [u32],
    part: usize,
) -> Magnitudes {
    let groups = channels.div_ceil(2 * LINES) * LINES;
    let count = numbers.len().div_ceil(stride);
    assert!(channels <= stride && numbers.len() + stride >= count * stride + channels, "positions");
    let end =
        count.checked_mul(groups).and_then(|own| own.checked_add((unit.parts.count() - 1) * part));
    assert!(end.is_some_and(|end| end <= out.len()), "room for parts");
    let (numbers, out) = (numbers.as_ptr(), out.as_mut_ptr());
    // SAFETY: all units come with AVX-512; `count` positions of `channels` numbers are inside, and `out` has
    // room for as many of `groups` in each part.
    unsafe {
        match unit.parts {
            Parts::One => positions::<1>(numbers, (count, channels, stride), part, out),
            Parts::Three => positions::<3>(numbers, (count, channels, stride), part, out),
        }
    }
}

/// Exchanges rows and columns of a tile.
pub(super) fn transpose(_: SplitUnit, tile: &mut [u32; LINES * LINES]) {
    // SAFETY: all units come with AVX-512.
    unsafe { transposed(tile) }
}

/// Magnitudes met so far, in lanes.
struct Met {
    largest: __m512i,
    least: __m512i,
}

impl Met {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn none() -> Met {
        Met { largest: _mm512_setzero_si512(), least: _mm512_set1_epi32(-1) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn add(&mut self, numbers: __m512i) {
        let magnitudes = _mm512_and_si512(numbers, _mm512_set1_epi32(i32::MAX));
        let less = _mm512_add_epi32(magnitudes, _mm512_set1_epi32(-1));
        self.largest = _mm512_max_epu32(self.largest, magnitudes);
        self.least = _mm512_min_epu32(self.least, less);
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
    fn magnitudes(&self) -> Magnitudes {
        Magnitudes::new(_mm512_reduce_max_epu32(self.largest), _mm512_reduce_min_epu32(self.least))
    }
}

/// The parts of numbers, the highest first: each is the `bfloat16` nearest to what is left, in the upper half of
/// its lane. Eight bits each, three have all 24 of a number whose lowest part is not subnormal.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn parts<const PARTS: usize>(numbers: __m512i) -> [__m512i; PARTS] {
    let (mut all, mut rest) = ([_mm512_setzero_si512(); PARTS], numbers);
    for part in &mut all {
        *part = nearest(rest);
        rest = minus(rest, *part);
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn nearest(numbers: __m512i) -> __m512i {
    let rounded = _mm512_add_epi32(numbers, _mm512_set1_epi32(0x8000));
    _mm512_and_si512(rounded, _mm512_set1_epi32(!0xffff))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn minus(a: __m512i, b: __m512i) -> __m512i {
    _mm512_castps_si512(_mm512_sub_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)))
}

/// Splits the numbers of two vectors into groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn groups<const PARTS: usize>(first: __m512i, second: __m512i, met: &mut Met) -> [__m512i; PARTS] {
    met.add(first);
    met.add(second);
    let (mut groups, second) = (parts::<PARTS>(first), parts::<PARTS>(second));
    for (first, second) in groups.iter_mut().zip(second) {
        *first = joined(*first, second);
    }
    groups
}

/// The upper halves of lanes: those of the first vector below those of the second.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn joined(first: __m512i, second: __m512i) -> __m512i {
    _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(first), second)
}

/// The first `len` lanes, all of them at most.
fn mask(len: usize) -> __mmask16 {
    if len >= LINES { !0 } else { (1 << len) - 1 }
}

/// # Safety
///
/// `numbers` points to those of all rows, and `out` to so many parts, [`PART`] groups apart, of 16 rows of as many
/// groups.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn tile<const PARTS: usize>(numbers: *const f32, rows: Rows, out: *mut u32) -> Magnitudes {
    let mut met = Met::none();
    let masks = rows.lens.map(mask);
    for row in 0..LINES {
        let of = |index: usize| if row < rows.counts[index] { masks[index] } else { 0 };
        let (first, second) = (of(0), of(1));
        let at = numbers.wrapping_add(row * rows.stride);
        // SAFETY: lanes of the masks are inside, as the caller says, others are not read; this is a row of `out`.
        unsafe {
            let first = _mm512_maskz_loadu_epi32(first, at.cast());
            let second = _mm512_maskz_loadu_epi32(second, at.wrapping_add(rows.second).cast());
            let groups = groups::<PARTS>(first, second, &mut met);
            let out = out.add(row * LINES);
            for (index, groups) in groups.into_iter().enumerate() {
                _mm512_storeu_si512(out.add(index * PART).cast(), groups);
            }
        }
    }
    met.magnitudes()
}

/// # Safety
///
/// `numbers` points to `count` positions of `channels` numbers, `stride` apart, and `out` to as many, of whole vectors
/// of groups, in each of so many parts, `part` groups apart.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn positions<const PARTS: usize>(
    numbers: *const f32,
    (count, channels, stride): (usize, usize, usize),
    part: usize,
    out: *mut u32,
) -> Magnitudes {
    let (mut met, mut out) = (Met::none(), out);
    for position in 0..count {
        for first in (0..channels).step_by(2 * LINES) {
            let left = channels - first;
            // SAFETY: lanes of the masks are inside, as the caller says, others are not read; `out` is at the next
            // vector of the first part.
            unsafe {
                let at = numbers.add(position * stride + first);
                let second = mask(left.saturating_sub(LINES));
                let first = _mm512_maskz_loadu_epi32(mask(left), at.cast());
                let second = _mm512_maskz_loadu_epi32(second, at.wrapping_add(LINES).cast());
                let groups = groups::<PARTS>(first, second, &mut met);
                for (index, groups) in groups.into_iter().enumerate() {
                    _mm512_storeu_si512(out.add(index * part).cast(), groups);
                }
                out = out.add(LINES);
            }
        }
    }
    met.magnitudes()
}

/// Exchanges rows and columns: pairs of lanes, fours, and then quarters of registers.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn transposed(tile: &mut [u32; LINES * LINES]) {
    // SAFETY: the tile has 16 rows of 16.
    let row = |row: usize| unsafe { _mm512_loadu_si512(tile.as_ptr().add(row * LINES).cast()) };
    let mut fours = [[_mm512_setzero_si512(); 4]; 4];
    for (index, four) in fours.iter_mut().enumerate() {
        let (a, b, c, d) =
            (row(4 * index), row(4 * index + 1), row(4 * index + 2), row(4 * index + 3));
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let (ab2, cd2) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        *four = [
            _mm512_unpacklo_epi64(ab, cd),
            _mm512_unpackhi_epi64(ab, cd),
            _mm512_unpacklo_epi64(ab2, cd2),
            _mm512_unpackhi_epi64(ab2, cd2),
        ];
    }
    // Of four rows each, vector `index` has columns `index`, `index + 4` and so on in its quarters.
    let [first, second, third, fourth] = fours;
    let all = first.into_iter().zip(second).zip(third.into_iter().zip(fourth));
    for (index, ((a, b), (c, d))) in all.enumerate() {
        let (low, low2) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d));
        let (high, high2) =
            (_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d));
        let columns = [
            _mm512_shuffle_i32x4::<0x88>(low, low2),
            _mm512_shuffle_i32x4::<0x88>(high, high2),
            _mm512_shuffle_i32x4::<0xdd>(low, low2),
            _mm512_shuffle_i32x4::<0xdd>(high, high2),
        ];
        for (quarter, column) in columns.into_iter().enumerate() {
            // SAFETY: the tile has 16 rows of 16.
            unsafe {
                let at = tile.as_mut_ptr().add((4 * quarter + index) * LINES);
                _mm512_storeu_si512(at.cast(), column);
            }
        }
    }
}
