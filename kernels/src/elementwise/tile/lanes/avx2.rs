//! Eight floats, by the instructions of AVX2, FMA and F16C.

use super::Lanes;
use crate::simd::has_avx2;
use std::arch::x86_64::*;

/// Eight floats. That there is such a value says that the processor has AVX2, FMA and F16C.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Avx2(pub(crate) __m256);

#[inline(always)]
fn integers(x: __m256) -> __m256i {
    // SAFETY: there is a vector, so the processor has the instructions.
    unsafe { _mm256_castps_si256(x) }
}

#[inline(always)]
fn floats(x: __m256i) -> __m256 {
    // SAFETY: there is a vector, so the processor has the instructions.
    unsafe { _mm256_castsi256_ps(x) }
}

/// `2^n` for integral `n` within the range of normal numbers.
///
/// # Safety
///
/// The processor has the instructions.
#[inline(always)]
unsafe fn power(n: __m256) -> __m256 {
    // SAFETY: the caller vouches for the processor.
    unsafe {
        let n = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        floats(_mm256_slli_epi32::<23>(n))
    }
}

impl Lanes for Avx2 {
    type Array = [f32; 8];

    const LEN: usize = 8;

    fn detected() -> bool {
        has_avx2()
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the processor and the memory.
        Avx2(unsafe { _mm256_loadu_ps(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Self {
        // SAFETY: as above.
        Avx2(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self {
        // SAFETY: as above.
        unsafe {
            let narrow = _mm_loadu_si128(from.cast());
            Avx2(floats(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(narrow))))
        }
    }

    #[inline(always)]
    unsafe fn load_i32(from: *const u8) -> Self {
        // SAFETY: as above.
        Avx2(unsafe { _mm256_cvtepi32_ps(_mm256_loadu_si256(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bool(from: *const u8) -> Self {
        // SAFETY: as above.
        unsafe {
            let wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()));
            Avx2(floats(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256())))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the memory; there is a vector, so the processor has the
        // instructions.
        unsafe { _mm256_storeu_ps(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as above; the memory is aligned.
        unsafe { _mm256_stream_ps(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm_storeu_si128(to.cast(), narrow);
        }
    }

    #[inline(always)]
    unsafe fn store_upper(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let upper = _mm256_srli_epi32::<16>(integers(self.0));
            let packed = _mm256_packus_epi32(upper, upper);
            let packed = _mm256_permute4x64_epi64::<0b1000>(packed);
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(packed));
        }
    }

    #[inline(always)]
    unsafe fn store_bool(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let raw = integers(self.0);
            let (low, high) = (_mm256_castsi256_si128(raw), _mm256_extracti128_si256::<1>(raw));
            let packed = _mm_packs_epi32(low, high);
            let bytes = _mm_and_si128(_mm_packs_epi16(packed, packed), _mm_set1_epi8(1));
            _mm_storel_epi64(to.cast(), bytes);
        }
    }

    #[inline(always)]
    fn fill(self, value: f32) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions.
        Avx2(unsafe { _mm256_set1_ps(value) })
    }

    methods! { Avx2:
        plus(x, y) _mm256_add_ps(x, y);
        minus(x, y) _mm256_sub_ps(x, y);
        times(x, y) _mm256_mul_ps(x, y);
        over(x, y) _mm256_div_ps(x, y);
        sqrt(x) _mm256_sqrt_ps(x);
        times_plus(x, factor, addend) _mm256_fmadd_ps(x, factor, addend);
        times_from(x, factor, addend) _mm256_fnmadd_ps(x, factor, addend);
        max_or(x, y) _mm256_max_ps(x, y);
        min_or(x, y) _mm256_min_ps(x, y);
        rint(x) _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        floor(x) _mm256_floor_ps(x);
        ceil(x) _mm256_ceil_ps(x);
        trunc(x) _mm256_round_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
        // Half the power twice, as 2^128 is no float.
        times_power(x, n) {
            let half = _mm256_floor_ps(_mm256_mul_ps(n, _mm256_set1_ps(0.5)));
            _mm256_mul_ps(_mm256_mul_ps(x, power(half)), power(_mm256_sub_ps(n, half)))
        };
        flush(x) {
            let exponent = _mm256_and_si256(integers(x), _mm256_set1_epi32(0x7f80_0000));
            let tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
            _mm256_andnot_ps(floats(_mm256_srli_epi32::<1>(tiny)), x)
        };
        is_eq(x, y) _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y);
        is_ne(x, y) _mm256_cmp_ps::<_CMP_NEQ_UQ>(x, y);
        is_lt(x, y) _mm256_cmp_ps::<_CMP_LT_OQ>(x, y);
        is_le(x, y) _mm256_cmp_ps::<_CMP_LE_OQ>(x, y);
        is_nan(x) _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
        choose(mask, then, otherwise) _mm256_blendv_ps(otherwise, then, mask);
        and(x, y) _mm256_and_ps(x, y);
        without(x, y) _mm256_andnot_ps(y, x);
        or(x, y) _mm256_or_ps(x, y);
        xor(x, y) _mm256_xor_ps(x, y);
        plus_integers(x, y) floats(_mm256_add_epi32(integers(x), integers(y)));
        minus_integers(x, y) floats(_mm256_sub_epi32(integers(x), integers(y)));
        rounded_to_integers(x) floats(_mm256_cvtps_epi32(x));
        integers_to_floats(x) _mm256_cvtepi32_ps(integers(x));
    }

    #[inline(always)]
    fn any(self) -> bool {
        // SAFETY: there is a vector, so the processor has the instructions.
        unsafe { _mm256_movemask_ps(self.0) != 0 }
    }

    #[inline(always)]
    fn shift_up<const N: u32>(self) -> Self {
        // SAFETY: as above.
        Avx2(unsafe { floats(_mm256_sllv_epi32(integers(self.0), _mm256_set1_epi32(N as i32))) })
    }

    #[inline(always)]
    fn shift_down<const N: u32>(self) -> Self {
        // SAFETY: as above.
        Avx2(unsafe { floats(_mm256_srlv_epi32(integers(self.0), _mm256_set1_epi32(N as i32))) })
    }
}
