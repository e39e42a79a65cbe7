//! Blocks of sums of bytes in the registers of AVX-512, by its dot products (VNNI).
//!
//! The instruction multiplies unsigned by signed bytes; of the two operands, it is the left one that
//! is signed here, as its groups are repeated in all lanes. Bytes of the other kind are packed with
//! their highest bit flipped, which moves them by 128, and sums of the other operand take that away.
//! Sums wrap, as those of `int32` do.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `VPDPBUSD`.

#![expect(unsafe_code, reason = "instructions that not every processor has")]

use super::{BLOCK, BlockUnit, ByteSigns, GROUPS, ROWS, STEP, Sums};
use crate::simd::has_avx512;
use std::arch::x86_64::*;

/// Rows whose sums are in registers at a time; a tile has a multiple of them.
const HELD: usize = 8;

/// The highest bit of each byte of a group.
const HIGHEST: u32 = 0x8080_8080;

/// Proof that the processor has dot products of bytes, and that kernels may use them.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu::gemm) struct VnniUnit(());

impl VnniUnit {
    /// The unit; `None` where there is none.
    pub(in crate::cpu::gemm) fn detect() -> Option<VnniUnit> {
        let found = has_avx512() && std::arch::is_x86_feature_detected!("avx512vnni");
        found.then_some(VnniUnit(()))
    }
}

impl BlockUnit for VnniUnit {
    type Kind = ByteSigns;
    type Ready = VnniUnit;

    const CHUNK: usize = usize::MAX;

    fn flips(signs: ByteSigns) -> [u32; 2] {
        let flip = |flips: bool| if flips { HIGHEST } else { 0 };
        [flip(!signs.a), flip(signs.b)]
    }

    fn configure(self) -> VnniUnit {
        self
    }

    fn multiply(
        _: &VnniUnit,
        signs: ByteSigns,
        rows: usize,
        a: &[u32],
        b: &[u32],
        sums: &mut Sums,
    ) {
        let steps = a.len() / STEP;
        assert!(steps > 0 && a.len() == b.len() && a.len() == steps * STEP, "whole steps");
        // SAFETY: the unit proves that the processor has the instructions.
        unsafe { block(signs, rows.min(BLOCK), a, b, sums) }
    }
}

/// Multiplies a block of rows by one of columns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn block(signs: ByteSigns, rows: usize, a: &[u32], b: &[u32], sums: &mut Sums) {
    // Of `a' b'` with `a = a' + 128` if it was unsigned, `b = b' - 128` if it was signed.
    let of_columns = if signs.a { [_mm512_setzero_si512(); 2] } else { sums_of_columns(signs, b) };
    for first in (0..rows).step_by(HELD) {
        let mut held = eight_rows(first, a, b);
        for (row, held) in held.iter_mut().enumerate() {
            let of_row = if signs.b { sum_of_row(first + row, a) } else { 0 };
            let of_row = _mm512_set1_epi32(of_row.wrapping_mul(128));
            for (held, of_column) in held.iter_mut().zip(of_columns) {
                *held = _mm512_sub_epi32(_mm512_add_epi32(*held, of_column), of_row);
            }
        }
        let out = &mut sums[first * BLOCK..][..HELD * BLOCK];
        for (out, held) in out.chunks_exact_mut(BLOCK).zip(held) {
            for (out, held) in out.chunks_exact_mut(GROUPS).zip(held) {
                // SAFETY: a tile of the row has as many sums as a register.
                unsafe {
                    let before = _mm512_loadu_si512(out.as_ptr().cast());
                    _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_add_epi32(before, held));
                }
            }
        }
    }
}

/// Sums of so many rows from `first` on, by 32 columns.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn eight_rows(first: usize, a: &[u32], b: &[u32]) -> [[__m512i; 2]; HELD] {
    let start = first / ROWS * ROWS * GROUPS + first % ROWS * GROUPS;
    let mut held = [[_mm512_setzero_si512(); 2]; HELD];
    for (a, b) in a.chunks_exact(STEP).zip(b.chunks_exact(STEP)) {
        let a = &a[start..][..HELD * GROUPS];
        let (left, right) = b.split_at(ROWS * GROUPS);
        for group in 0..GROUPS {
            // SAFETY: a tile of columns has a register for each of its groups.
            let columns = unsafe { [register(left, group), register(right, group)] };
            for (row, held) in held.iter_mut().enumerate() {
                let factor = _mm512_set1_epi32(a[row * GROUPS + group].cast_signed());
                for (held, columns) in held.iter_mut().zip(columns) {
                    *held = _mm512_dpbusd_epi32(*held, columns, factor);
                }
            }
        }
    }
    held
}

/// The sum of the signed bytes of a row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn sum_of_row(row: usize, a: &[u32]) -> i32 {
    let mut sum = _mm512_setzero_si512();
    for a in a.chunks_exact(STEP) {
        // SAFETY: a row of a tile fills a register.
        let row = unsafe { register(a, row) };
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), row);
    }
    _mm512_reduce_add_epi32(sum)
}

/// The sums of the bytes of 32 columns as they were before they were flipped, times 128.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn sums_of_columns(signs: ByteSigns, b: &[u32]) -> [__m512i; 2] {
    let moved = if signs.b { (4 * GROUPS * (b.len() / STEP) * 128) as i32 } else { 0 };
    let mut sums = [_mm512_set1_epi32(moved.wrapping_neg()); 2];
    for b in b.chunks_exact(STEP) {
        for (sum, tile) in sums.iter_mut().zip(b.chunks_exact(ROWS * GROUPS)) {
            for group in 0..GROUPS {
                // SAFETY: a tile of columns has a register for each of its groups.
                let columns = unsafe { register(tile, group) };
                *sum = _mm512_dpbusd_epi32(*sum, columns, _mm512_set1_epi8(1));
            }
        }
    }
    [_mm512_slli_epi32::<7>(sums[0]), _mm512_slli_epi32::<7>(sums[1])]
}

/// The register of this number.
///
/// # Safety
///
/// There are more registers of groups than that.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
unsafe fn register(groups: &[u32], number: usize) -> __m512i {
    // SAFETY: the caller vouches for the memory.
    unsafe { _mm512_loadu_si512(groups.as_ptr().add(number * GROUPS).cast()) }
}
