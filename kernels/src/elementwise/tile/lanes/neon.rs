//! Four floats, by the instructions that every AArch64 processor has.

use super::Lanes;
use std::arch::aarch64::*;

/// Four floats.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Neon(pub(crate) float32x4_t);

#[inline(always)]
fn integers(x: float32x4_t) -> uint32x4_t {
    // SAFETY: every AArch64 processor has the instructions.
    unsafe { vreinterpretq_u32_f32(x) }
}

#[inline(always)]
fn floats(x: uint32x4_t) -> float32x4_t {
    // SAFETY: as above.
    unsafe { vreinterpretq_f32_u32(x) }
}

/// `2^n` for integral `n` within the range of normal numbers.
#[inline(always)]
fn power(n: float32x4_t) -> float32x4_t {
    // SAFETY: as above.
    unsafe {
        let n = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
        floats(vreinterpretq_u32_s32(vshlq_n_s32::<23>(n)))
    }
}

impl Neon {
    /// A number in all lanes.
    #[inline(always)]
    pub(crate) fn splat(value: f32) -> Neon {
        // SAFETY: as above.
        Neon(unsafe { vdupq_n_f32(value) })
    }
}

impl Lanes for Neon {
    type Array = [f32; 4];

    const LEN: usize = 4;

    #[cfg(test)]
    fn detected() -> bool {
        true
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the memory.
        Neon(unsafe { vld1q_f32(from.cast()) })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self {
        // SAFETY: as above.
        Neon(unsafe { floats(vshll_n_u16::<16>(vld1_u16(from.cast()))) })
    }

    #[inline(always)]
    unsafe fn load_i32(from: *const u8) -> Self {
        // SAFETY: as above.
        Neon(unsafe { vcvtq_f32_s32(vld1q_s32(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_bool(from: *const u8) -> Self {
        // SAFETY: as above.
        unsafe {
            let bytes = vreinterpret_u8_u32(vdup_n_u32(from.cast::<u32>().read_unaligned()));
            let wide = vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
            Neon(floats(vtstq_u32(wide, wide)))
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { vst1q_f32(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn store_upper(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { vst1_u16(to.cast(), vshrn_n_u32::<16>(integers(self.0))) }
    }

    #[inline(always)]
    unsafe fn store_bool(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe {
            let ones = vmovn_u32(vandq_u32(integers(self.0), vdupq_n_u32(1)));
            let bytes = vmovn_u16(vcombine_u16(ones, ones));
            let bytes = vget_lane_u32::<0>(vreinterpret_u32_u8(bytes));
            to.cast::<u32>().write_unaligned(bytes);
        }
    }

    #[inline(always)]
    fn fill(self, value: f32) -> Self {
        Neon::splat(value)
    }

    methods! { Neon:
        plus(x, y) vaddq_f32(x, y);
        minus(x, y) vsubq_f32(x, y);
        times(x, y) vmulq_f32(x, y);
        over(x, y) vdivq_f32(x, y);
        sqrt(x) vsqrtq_f32(x);
        times_plus(x, factor, addend) vfmaq_f32(addend, x, factor);
        times_from(x, factor, addend) vfmsq_f32(addend, x, factor);
        max_or(x, y) vbslq_f32(vcgtq_f32(x, y), x, y);
        min_or(x, y) vbslq_f32(vcltq_f32(x, y), x, y);
        rint(x) vrndnq_f32(x);
        floor(x) vrndmq_f32(x);
        ceil(x) vrndpq_f32(x);
        trunc(x) vrndq_f32(x);
        // Half the power twice, as 2^128 is no float.
        times_power(x, n) {
            let half = vrndmq_f32(vmulq_n_f32(n, 0.5));
            vmulq_f32(vmulq_f32(x, power(half)), power(vsubq_f32(n, half)))
        };
        flush(x) {
            let normal = vtstq_u32(integers(x), vdupq_n_u32(0x7f80_0000));
            floats(vandq_u32(integers(x), vorrq_u32(normal, vdupq_n_u32(0x8000_0000))))
        };
        is_eq(x, y) floats(vceqq_f32(x, y));
        is_ne(x, y) floats(vmvnq_u32(vceqq_f32(x, y)));
        is_lt(x, y) floats(vcltq_f32(x, y));
        is_le(x, y) floats(vcleq_f32(x, y));
        is_nan(x) floats(vmvnq_u32(vceqq_f32(x, x)));
        choose(mask, then, otherwise) vbslq_f32(integers(mask), then, otherwise);
        and(x, y) floats(vandq_u32(integers(x), integers(y)));
        without(x, y) floats(vbicq_u32(integers(x), integers(y)));
        or(x, y) floats(vorrq_u32(integers(x), integers(y)));
        xor(x, y) floats(veorq_u32(integers(x), integers(y)));
        plus_integers(x, y) floats(vaddq_u32(integers(x), integers(y)));
        minus_integers(x, y) floats(vsubq_u32(integers(x), integers(y)));
        rounded_to_integers(x) floats(vreinterpretq_u32_s32(vcvtnq_s32_f32(x)));
        integers_to_floats(x) vcvtq_f32_s32(vreinterpretq_s32_f32(x));
    }

    #[inline(always)]
    fn any(self) -> bool {
        // SAFETY: every AArch64 processor has the instruction.
        unsafe { vmaxvq_u32(integers(self.0)) != 0 }
    }

    #[inline(always)]
    fn shift_up<const N: u32>(self) -> Self {
        // SAFETY: as above.
        Neon(unsafe { floats(vshlq_u32(integers(self.0), vdupq_n_s32(N as i32))) })
    }

    #[inline(always)]
    fn shift_down<const N: u32>(self) -> Self {
        // SAFETY: as above.
        Neon(unsafe { floats(vshlq_u32(integers(self.0), vdupq_n_s32(-(N as i32)))) })
    }
}
