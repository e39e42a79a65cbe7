//! Vectors of AVX-512 and of AVX2.

use super::Vector;
use crate::elementwise::tile::{Avx2, Avx512};
use std::arch::x86_64::*;

#[expect(unsafe_code, reason = "instructions that not every processor has")]
// SAFETY: of every block: the caller vouches for the processor and the memory.
impl Vector for __m512 {
    const LANES: usize = 16;

    type Part = __mmask16;

    type Lanes = Avx512;

    #[inline(always)]
    fn to_lanes(self) -> Avx512 {
        Avx512(self)
    }

    #[inline(always)]
    fn of_lanes(lanes: Avx512) -> Self {
        lanes.0
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        unsafe { _mm512_set1_ps(*from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn times_plus(self, b: Self, c: Self) -> Self {
        unsafe { _mm512_fmadd_ps(self, b, c) }
    }

    #[inline(always)]
    unsafe fn plus(self, b: Self) -> Self {
        unsafe { _mm512_add_ps(self, b) }
    }

    #[inline(always)]
    unsafe fn part(len: usize) -> __mmask16 {
        if len >= 16 { u16::MAX } else { (1 << len) - 1 }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, part: __mmask16) -> Self {
        unsafe { _mm512_maskz_loadu_ps(part, from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, part: __mmask16) {
        unsafe { _mm512_mask_storeu_ps(to, part, self) }
    }
}

#[expect(unsafe_code, reason = "instructions that not every processor has")]
// SAFETY: of every block: the caller vouches for the processor and the memory.
impl Vector for __m256 {
    const LANES: usize = 8;

    type Part = __m256i;

    type Lanes = Avx2;

    #[inline(always)]
    fn to_lanes(self) -> Avx2 {
        Avx2(self)
    }

    #[inline(always)]
    fn of_lanes(lanes: Avx2) -> Self {
        lanes.0
    }

    #[inline(always)]
    unsafe fn zero() -> Self {
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn splat(from: *const f32) -> Self {
        unsafe { _mm256_broadcast_ss(&*from) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn times_plus(self, b: Self, c: Self) -> Self {
        unsafe { _mm256_fmadd_ps(self, b, c) }
    }

    #[inline(always)]
    unsafe fn plus(self, b: Self) -> Self {
        unsafe { _mm256_add_ps(self, b) }
    }

    #[inline(always)]
    unsafe fn part(len: usize) -> __m256i {
        unsafe {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_cmpgt_epi32(_mm256_set1_epi32(len.min(8) as i32), lanes)
        }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, part: __m256i) -> Self {
        unsafe { _mm256_maskload_ps(from, part) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, part: __m256i) {
        unsafe { _mm256_maskstore_ps(to, part, self) }
    }
}
