//! Four floats, by the fixed-width vectors of WebAssembly.

use super::Lanes;
use std::arch::wasm32::*;

/// Four floats.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Simd128(pub(crate) v128);

/// `2^n` for integral `n` within the range of normal numbers.
#[inline(always)]
fn power(n: v128) -> v128 {
    i32x4_shl(i32x4_add(i32x4_trunc_sat_f32x4(n), i32x4_splat(127)), 23)
}

impl Simd128 {
    /// A number in all lanes.
    #[inline(always)]
    pub(crate) fn splat(value: f32) -> Simd128 {
        Simd128(f32x4_splat(value))
    }
}

impl Lanes for Simd128 {
    type Array = [f32; 4];

    const LEN: usize = 4;

    const FUSES: bool = false;

    #[cfg(test)]
    fn detected() -> bool {
        true
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the memory.
        Simd128(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self {
        // SAFETY: as above.
        Simd128(i32x4_shl(unsafe { u32x4_load_extend_u16x4(from.cast()) }, 16))
    }

    #[inline(always)]
    unsafe fn load_i32(from: *const u8) -> Self {
        // SAFETY: as above.
        Simd128(f32x4_convert_i32x4(unsafe { v128_load(from.cast()) }))
    }

    #[inline(always)]
    unsafe fn load_bool(from: *const u8) -> Self {
        // SAFETY: as above.
        let bytes = unsafe { v128_load32_zero(from.cast()) };
        let wide = u32x4_extend_low_u16x8(u16x8_extend_low_u8x16(bytes));
        Simd128(i32x4_ne(wide, i32x4_splat(0)))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_upper(self, to: *mut u8) {
        let upper = i16x8_shuffle::<1, 3, 5, 7, 1, 3, 5, 7>(self.0, self.0);
        // SAFETY: as above.
        unsafe { v128_store64_lane::<0>(upper, to.cast()) }
    }

    #[inline(always)]
    unsafe fn store_bool(self, to: *mut u8) {
        let ones = u32x4_shr(self.0, 31);
        let halves = i16x8_narrow_i32x4(ones, ones);
        // SAFETY: as above.
        unsafe { v128_store32_lane::<0>(i8x16_narrow_i16x8(halves, halves), to.cast()) }
    }

    #[inline(always)]
    fn fill(self, value: f32) -> Self {
        Simd128::splat(value)
    }

    methods! { Simd128:
        plus(x, y) f32x4_add(x, y);
        minus(x, y) f32x4_sub(x, y);
        times(x, y) f32x4_mul(x, y);
        over(x, y) f32x4_div(x, y);
        sqrt(x) f32x4_sqrt(x);
        times_plus(x, factor, addend) f32x4_add(f32x4_mul(x, factor), addend);
        times_from(x, factor, addend) f32x4_sub(addend, f32x4_mul(x, factor));
        // The first operand stays unless the second is larger.
        max_or(x, y) f32x4_pmax(y, x);
        min_or(x, y) f32x4_pmin(y, x);
        rint(x) f32x4_nearest(x);
        floor(x) f32x4_floor(x);
        ceil(x) f32x4_ceil(x);
        trunc(x) f32x4_trunc(x);
        // Half the power twice, as 2^128 is no float.
        times_power(x, n) {
            let half = f32x4_floor(f32x4_mul(n, f32x4_splat(0.5)));
            f32x4_mul(f32x4_mul(x, power(half)), power(f32x4_sub(n, half)))
        };
        flush(x) {
            let tiny = i32x4_eq(v128_and(x, u32x4_splat(0x7f80_0000)), i32x4_splat(0));
            v128_andnot(x, u32x4_shr(tiny, 1))
        };
        is_eq(x, y) f32x4_eq(x, y);
        is_ne(x, y) f32x4_ne(x, y);
        is_lt(x, y) f32x4_lt(x, y);
        is_le(x, y) f32x4_le(x, y);
        is_nan(x) f32x4_ne(x, x);
        choose(mask, then, otherwise) v128_bitselect(then, otherwise, mask);
        and(x, y) v128_and(x, y);
        without(x, y) v128_andnot(x, y);
        or(x, y) v128_or(x, y);
        xor(x, y) v128_xor(x, y);
        plus_integers(x, y) i32x4_add(x, y);
        minus_integers(x, y) i32x4_sub(x, y);
        rounded_to_integers(x) i32x4_trunc_sat_f32x4(f32x4_nearest(x));
        integers_to_floats(x) f32x4_convert_i32x4(x);
    }

    #[inline(always)]
    fn any(self) -> bool {
        v128_any_true(self.0)
    }

    #[inline(always)]
    fn shift_up<const N: u32>(self) -> Self {
        Simd128(u32x4_shl(self.0, N))
    }

    #[inline(always)]
    fn shift_down<const N: u32>(self) -> Self {
        Simd128(u32x4_shr(self.0, N))
    }
}
