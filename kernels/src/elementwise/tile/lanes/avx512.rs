//! Sixteen floats, by the instructions of AVX-512.

use super::Lanes;
use crate::simd::has_avx512;
use std::arch::x86_64::*;

/// Sixteen floats. That there is such a value says that the processor has AVX-512F, BW, DQ and VL.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Avx512(pub(crate) __m512);

#[inline(always)]
fn integers(x: __m512) -> __m512i {
    // SAFETY: there is a vector, so the processor has the instructions.
    unsafe { _mm512_castps_si512(x) }
}

#[inline(always)]
fn floats(x: __m512i) -> __m512 {
    // SAFETY: there is a vector, so the processor has the instructions.
    unsafe { _mm512_castsi512_ps(x) }
}

/// The lanes of a mask register.
///
/// # Safety
///
/// The processor has the instructions.
#[inline(always)]
unsafe fn lanes(mask: __mmask16) -> __m512 {
    // SAFETY: the caller vouches for the processor.
    floats(unsafe { _mm512_movm_epi32(mask) })
}

#[inline(always)]
fn mask(lanes: __m512) -> __mmask16 {
    // SAFETY: there is a vector, so the processor has the instructions.
    unsafe { _mm512_movepi32_mask(integers(lanes)) }
}

impl Lanes for Avx512 {
    type Array = [f32; 16];

    const LEN: usize = 16;

    const LOOKS_UP: bool = true;

    fn detected() -> bool {
        has_avx512()
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the processor and the memory.
        Avx512(unsafe { _mm512_loadu_ps(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Self {
        // SAFETY: as above.
        Avx512(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self {
        // SAFETY: as above.
        unsafe {
            let narrow = _mm256_loadu_si256(from.cast());
            Avx512(floats(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(narrow))))
        }
    }

    #[inline(always)]
    unsafe fn load_i32(from: *const u8) -> Self {
        // SAFETY: as above.
        Avx512(unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bool(from: *const u8) -> Self {
        // SAFETY: as above.
        unsafe {
            let bytes = _mm_loadu_si128(from.cast());
            Avx512(lanes(_mm_test_epi8_mask(bytes, bytes)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the memory; there is a vector, so the processor has the
        // instructions.
        unsafe { _mm512_storeu_ps(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: as above; the memory is aligned.
        unsafe { _mm512_stream_ps(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let narrow = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(self.0);
            _mm256_storeu_si256(to.cast(), narrow);
        }
    }

    #[inline(always)]
    unsafe fn store_upper(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let upper = _mm512_srli_epi32::<16>(integers(self.0));
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(upper));
        }
    }

    #[inline(always)]
    unsafe fn store_bool(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(to.cast(), _mm_maskz_set1_epi8(mask(self.0), 1)) }
    }

    #[inline(always)]
    fn fill(self, value: f32) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions.
        Avx512(unsafe { _mm512_set1_ps(value) })
    }

    /// By an approximate reciprocal, refined once, and a correction of the quotient: the divider
    /// takes several times as long.
    #[inline(always)]
    fn over_near(self, other: Self) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions.
        let near = Avx512(unsafe { _mm512_rcp14_ps(other.0) });
        let reciprocal = near.times_from(other, self.fill(1.0)).times_plus(near, near);
        let quotient = self.times(reciprocal);
        let corrected = quotient.times_from(other, self).times_plus(reciprocal, quotient);
        // Corrections change the sign of NaN.
        quotient.is_eq(quotient).choose(corrected, quotient)
    }

    methods! { Avx512:
        plus(x, y) _mm512_add_ps(x, y);
        minus(x, y) _mm512_sub_ps(x, y);
        times(x, y) _mm512_mul_ps(x, y);
        over(x, y) _mm512_div_ps(x, y);
        sqrt(x) _mm512_sqrt_ps(x);
        times_plus(x, factor, addend) _mm512_fmadd_ps(x, factor, addend);
        times_from(x, factor, addend) _mm512_fnmadd_ps(x, factor, addend);
        max_or(x, y) _mm512_max_ps(x, y);
        min_or(x, y) _mm512_min_ps(x, y);
        rint(x) _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x);
        floor(x) _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(x);
        ceil(x) _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(x);
        trunc(x) _mm512_roundscale_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(x);
        times_power(x, n) _mm512_scalef_ps(x, n);
        flush(x) {
            let (raw, exponent) = (integers(x), _mm512_set1_epi32(0x7f80_0000));
            let tiny = _mm512_testn_epi32_mask(raw, exponent);
            floats(_mm512_mask_and_epi32(raw, tiny, raw, _mm512_set1_epi32(i32::MIN)))
        };
        is_eq(x, y) lanes(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(x, y));
        is_ne(x, y) lanes(_mm512_cmp_ps_mask::<_CMP_NEQ_UQ>(x, y));
        is_lt(x, y) lanes(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y));
        is_le(x, y) lanes(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(x, y));
        is_nan(x) lanes(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x));
        choose(chosen, then, otherwise) _mm512_mask_blend_ps(mask(chosen), otherwise, then);
        and(x, y) _mm512_and_ps(x, y);
        without(x, y) _mm512_andnot_ps(y, x);
        or(x, y) _mm512_or_ps(x, y);
        xor(x, y) _mm512_xor_ps(x, y);
        plus_integers(x, y) floats(_mm512_add_epi32(integers(x), integers(y)));
        minus_integers(x, y) floats(_mm512_sub_epi32(integers(x), integers(y)));
        rounded_to_integers(x) floats(_mm512_cvtps_epi32(x));
        integers_to_floats(x) _mm512_cvtepi32_ps(integers(x));
    }

    #[inline(always)]
    fn any(self) -> bool {
        mask(self.0) != 0
    }

    #[inline(always)]
    fn shift_up<const N: u32>(self) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions.
        Avx512(unsafe { floats(_mm512_slli_epi32::<N>(integers(self.0))) })
    }

    #[inline(always)]
    fn shift_down<const N: u32>(self) -> Self {
        // SAFETY: as above.
        Avx512(unsafe { floats(_mm512_srli_epi32::<N>(integers(self.0))) })
    }

    #[inline(always)]
    fn look_up(self, table: &[f32; 32]) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions; the table has two of them.
        unsafe {
            let (low, high) = (table.as_ptr(), table.as_ptr().add(16));
            let (low, high) = (_mm512_loadu_ps(low), _mm512_loadu_ps(high));
            Avx512(_mm512_permutex2var_ps(low, integers(self.0), high))
        }
    }
}
