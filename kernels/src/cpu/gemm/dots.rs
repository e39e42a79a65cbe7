//! Dot products of pairs of `bfloat16` in the registers of AVX-512 (AVX512-BF16).
//!
//! Operands have the form that the tile registers of AMX have, whose work this does on processors without them.
//! Subnormal numbers count as zero, as they do there.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `VDPBF16PS`.

#![expect(unsafe_code, reason = "instructions that not every processor has")]

use super::rect::Rect;
use crate::simd::{has_avx512, prefetch_line};
use std::arch::{asm, x86_64::*};

/// Lanes of a register, rows of a tile, and 32-bit groups in each of its rows.
const LANES: usize = 16;

/// 32-bit groups of two tiles.
pub(super) const STEP: usize = 2 * LANES * LANES;

/// The most rows whose sums are in registers at a time; a tile has a multiple of them.
const HELD: usize = 8;

/// Rows that take less time for a step than memory does.
const FEW: usize = 4;

/// Groups of a line of the cache.
const LINE: usize = 16;

/// Bytes of a 32-bit group.
const GROUP: usize = size_of::<u32>();

/// Proof that the processor has dot products of `bfloat16`, and that kernels may use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct DotUnit(());

/// Rows of a left operand: of each step, two tiles of sixteen rows of as many groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct DotRows<'a> {
    /// Groups of two `bfloat16`.
    pub(super) data: &'a [u32],
    /// Where the first row of the first tile is in each step, in bytes.
    pub(super) steps: &'a [usize],
    /// Bytes from a row to the next.
    pub(super) row: usize,
    /// Bytes from the first tile to the second.
    pub(super) tile: usize,
}

/// Columns of a right operand: of each step, two tiles of sixteen groups of as many columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct DotCols<'a> {
    pub(super) data: &'a [u32],
    /// The memory that is asked for meanwhile. It may be anywhere.
    pub(super) ahead: *const u32,
}

impl DotUnit {
    /// The unit; `None` where there is none.
    pub(in crate::cpu) fn detect() -> Option<DotUnit> {
        let found = has_avx512() && std::arch::is_x86_feature_detected!("avx512bf16");
        found.then_some(DotUnit(()))
    }

    /// Multiplies rows by columns, and puts the sums into `out`, or adds them to what is there.
    ///
    /// # Panics
    ///
    /// When an operand is too short, or `out` has not up to 32 rows of sixteen or 32 columns.
    pub(super) fn multiply(self, a: DotRows<'_>, b: DotCols<'_>, out: Rect<'_>, add: bool) {
        let (rows, cols) = (out.rows(), out.cols());
        assert!((1..=2 * LANES).contains(&rows), "rows of two tiles");
        assert!(cols == LANES || cols == 2 * LANES, "columns of one or two tiles");
        let second = if rows > LANES { a.tile } else { 0 };
        let last = a.steps.iter().copied().max().unwrap_or_default();
        let end = last + second + (LANES - 1) * a.row + GROUP * LANES;
        assert!(!a.steps.is_empty() && end <= GROUP * a.data.len(), "the left operand");
        assert!(a.row.is_multiple_of(GROUP) && second.is_multiple_of(GROUP), "whole groups");
        assert!(a.steps.iter().all(|step| step.is_multiple_of(GROUP)), "whole groups");
        assert!(a.steps.len() * STEP <= b.data.len(), "the right operand");
        for first in (0..rows).step_by(HELD) {
            let start = first / LANES * a.tile + first % LANES * a.row;
            let n_rows = HELD.min(out.rows() - first);
            let ahead = b.ahead.wrapping_add(first / HELD * 2 * LINE);
            let rows = Held {
                a: a.data.as_ptr().wrapping_byte_add(start),
                row: a.row,
                steps: a.steps,
                b: b.data.as_ptr(),
                ahead,
                out: out.as_ptr().wrapping_add(first * out.row_stride()),
                out_row: out.row_stride(),
                add,
            };
            // SAFETY: the unit proves that the processor has the instructions. Of each step, up to eight rows of a
            // tile are read, which are inside (see the third assertion) and aligned, and one or two tiles of columns (see
            // the last). What is written, and read before where it is added to, are as many rows of `out`, an exclusive
            // borrow.
            unsafe {
                match cols {
                    LANES => rows.run::<1>(n_rows),
                    _ => rows.run::<2>(n_rows),
                }
            }
        }
    }
}

/// Rows whose sums are in registers, and the columns they are multiplied by.
struct Held<'a> {
    a: *const u32,
    /// Bytes from a row to the next.
    row: usize,
    steps: &'a [usize],
    b: *const u32,
    ahead: *const u32,
    out: *mut f32,
    out_row: usize,
    add: bool,
}

impl Held<'_> {
    /// Multiplies so many rows by so many vectors of columns.
    ///
    /// # Safety
    ///
    /// As for [`sum`](Held::sum).
    unsafe fn run<const VECTORS: usize>(&self, rows: usize) {
        // SAFETY: the caller vouches for it.
        unsafe {
            match rows {
                1 => self.sum::<1, VECTORS>(),
                2 => self.sum::<2, VECTORS>(),
                3 => self.sum::<3, VECTORS>(),
                4 => self.sum::<4, VECTORS>(),
                5 => self.sum::<5, VECTORS>(),
                6 => self.sum::<6, VECTORS>(),
                7 => self.sum::<7, VECTORS>(),
                _ => self.sum::<HELD, VECTORS>(),
            }
        }
    }

    /// Multiplies so many rows by so many vectors of columns.
    ///
    /// # Safety
    ///
    /// The processor has the features. `a` points to so many rows of sixteen groups in each step, `b` to two tiles of columns
    /// for each of them, one after the other, and `out` to as many rows of so many vectors that nobody else refers to.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
    unsafe fn sum<const ROWS: usize, const VECTORS: usize>(&self) {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            let mut sums = [[_mm512_setzero_ps(); VECTORS]; ROWS];
            if self.add {
                for (row, sums) in sums.iter_mut().enumerate() {
                    for (vector, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_loadu_ps(self.out.add(row * self.out_row + vector * LANES));
                    }
                }
            }
            let (mut b, mut ahead) = (self.b, self.ahead);
            for &step in self.steps {
                let a = self.a.byte_add(step);
                prefetch_line(ahead);
                prefetch_line(ahead.wrapping_add(LINE));
                // Of few rows, tile by tile: their columns come from memory, in the order in which they lie there.
                let at_once = if ROWS <= FEW { 1 } else { VECTORS };
                for first in (0..VECTORS).step_by(at_once) {
                    if ROWS <= FEW {
                        // Nothing is done, but no load moves to the other side: the compiler would read the second
                        // tile first.
                        asm!("", options(nostack, preserves_flags));
                    }
                    for group in 0..LANES {
                        let mut columns = [_mm512_setzero_si512(); VECTORS];
                        for (vector, columns) in
                            columns.iter_mut().enumerate().skip(first).take(at_once)
                        {
                            let at = b.add((vector * LANES + group) * LANES);
                            *columns = _mm512_loadu_si512(at.cast());
                        }
                        for (row, sums) in sums.iter_mut().enumerate() {
                            let pair = *a.byte_add(row * self.row).add(group);
                            let pair = _mm512_set1_epi32(pair.cast_signed());
                            let sums = sums.iter_mut().zip(columns).skip(first).take(at_once);
                            for (sum, columns) in sums {
                                *sum = _mm512_dpbf16_ps(*sum, bits(pair), bits(columns));
                            }
                        }
                    }
                }
                b = b.add(STEP);
                ahead = ahead.wrapping_add(STEP / 4);
            }
            for (row, sums) in sums.into_iter().enumerate() {
                for (vector, sum) in sums.into_iter().enumerate() {
                    _mm512_storeu_ps(self.out.add(row * self.out_row + vector * LANES), sum);
                }
            }
        }
    }
}

/// The same bits as pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")]
fn bits(groups: __m512i) -> __m512bh {
    // SAFETY: both types are 512 bits of which all values are valid.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(groups) }
}
