//! Four floats in an array, for processors whose vectors have no code of their own.

use super::Lanes;

/// Four floats.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Array(pub(crate) [f32; 4]);

impl Array {
    /// A number in all lanes.
    #[inline(always)]
    pub(crate) fn splat(value: f32) -> Array {
        Array([value; 4])
    }

    #[inline(always)]
    fn each(self, function: impl Fn(f32) -> f32) -> Array {
        let [a, b, c, d] = self.0;
        Array([function(a), function(b), function(c), function(d)])
    }

    #[inline(always)]
    fn both(self, other: Array, function: impl Fn(f32, f32) -> f32) -> Array {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Array([function(a, e), function(b, f), function(c, g), function(d, h)])
    }

    #[inline(always)]
    fn bits(self, other: Array, function: impl Fn(u32, u32) -> u32) -> Array {
        self.both(other, |x, y| f32::from_bits(function(x.to_bits(), y.to_bits())))
    }

    /// The mask of a comparison.
    #[inline(always)]
    fn mask(self, other: Array, holds: impl Fn(f32, f32) -> bool) -> Array {
        self.both(other, |x, y| f32::from_bits(if holds(x, y) { u32::MAX } else { 0 }))
    }
}

/// `2^n` for integral `n` within the range of normal numbers.
#[inline(always)]
fn power(n: f32) -> f32 {
    f32::from_bits(((n as i32 + 127) as u32) << 23)
}

impl Lanes for Array {
    type Array = [f32; 4];

    const LEN: usize = 4;

    const FUSES: bool = false;

    #[cfg(any(test, target_arch = "x86_64"))]
    fn detected() -> bool {
        true
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the memory.
        Array(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_bf16(from: *const u8) -> Self {
        // SAFETY: as above.
        let narrow = unsafe { from.cast::<[u16; 4]>().read_unaligned() };
        Array(narrow.map(|x| f32::from_bits(u32::from(x) << 16)))
    }

    #[inline(always)]
    unsafe fn load_i32(from: *const u8) -> Self {
        // SAFETY: as above.
        Array(unsafe { from.cast::<[i32; 4]>().read_unaligned() }.map(|x| x as f32))
    }

    #[inline(always)]
    unsafe fn load_bool(from: *const u8) -> Self {
        // SAFETY: as above.
        let bytes = unsafe { from.cast::<[u8; 4]>().read_unaligned() };
        Array(bytes.map(|x| f32::from_bits(if x == 0 { 0 } else { u32::MAX })))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn store_upper(self, to: *mut u8) {
        let upper = self.0.map(|x| (x.to_bits() >> 16) as u16);
        // SAFETY: as above.
        unsafe { to.cast::<[u16; 4]>().write_unaligned(upper) }
    }

    #[inline(always)]
    unsafe fn store_bool(self, to: *mut u8) {
        let bytes = self.0.map(|x| u8::from(x.to_bits() != 0));
        // SAFETY: as above.
        unsafe { to.cast::<[u8; 4]>().write_unaligned(bytes) }
    }

    #[inline(always)]
    fn fill(self, value: f32) -> Self {
        Array::splat(value)
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.both(other, |x, y| x + y)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self.both(other, |x, y| x - y)
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.both(other, |x, y| x * y)
    }

    #[inline(always)]
    fn over(self, other: Self) -> Self {
        self.both(other, |x, y| x / y)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        self.each(f32::sqrt)
    }

    #[inline(always)]
    fn times_plus(self, factor: Self, addend: Self) -> Self {
        self.times(factor).plus(addend)
    }

    #[inline(always)]
    fn times_from(self, factor: Self, addend: Self) -> Self {
        addend.minus(self.times(factor))
    }

    #[inline(always)]
    fn max_or(self, other: Self) -> Self {
        self.both(other, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn min_or(self, other: Self) -> Self {
        self.both(other, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    fn rint(self) -> Self {
        self.each(f32::round_ties_even)
    }

    #[inline(always)]
    fn floor(self) -> Self {
        self.each(f32::floor)
    }

    #[inline(always)]
    fn ceil(self) -> Self {
        self.each(f32::ceil)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        self.each(f32::trunc)
    }

    // Half the power twice, as 2^128 is no float.
    #[inline(always)]
    fn times_power(self, n: Self) -> Self {
        self.both(n, |x, n| {
            let half = (n * 0.5).floor();
            x * power(half) * power(n - half)
        })
    }

    #[inline(always)]
    fn flush(self) -> Self {
        self.each(|x| if x.abs() < f32::MIN_POSITIVE { x * 0.0 } else { x })
    }

    #[inline(always)]
    fn is_eq(self, other: Self) -> Self {
        self.mask(other, |x, y| x == y)
    }

    #[inline(always)]
    fn is_ne(self, other: Self) -> Self {
        self.mask(other, |x, y| x != y)
    }

    #[inline(always)]
    fn is_lt(self, other: Self) -> Self {
        self.mask(other, |x, y| x < y)
    }

    #[inline(always)]
    fn is_le(self, other: Self) -> Self {
        self.mask(other, |x, y| x <= y)
    }

    #[inline(always)]
    fn is_nan(self) -> Self {
        self.mask(self, |x, _| x.is_nan())
    }

    #[inline(always)]
    fn choose(self, then: Self, otherwise: Self) -> Self {
        self.and(then).or(otherwise.without(self))
    }

    #[inline(always)]
    fn any(self) -> bool {
        let [a, b, c, d] = self.0.map(f32::to_bits);
        a | b | c | d != 0
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        self.bits(other, |x, y| x & y)
    }

    #[inline(always)]
    fn without(self, other: Self) -> Self {
        self.bits(other, |x, y| x & !y)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        self.bits(other, |x, y| x | y)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self.bits(other, |x, y| x ^ y)
    }

    #[inline(always)]
    fn shift_up<const N: u32>(self) -> Self {
        self.bits(self, |x, _| x << N)
    }

    #[inline(always)]
    fn shift_down<const N: u32>(self) -> Self {
        self.bits(self, |x, _| x >> N)
    }

    #[inline(always)]
    fn plus_integers(self, other: Self) -> Self {
        self.bits(other, u32::wrapping_add)
    }

    #[inline(always)]
    fn minus_integers(self, other: Self) -> Self {
        self.bits(other, u32::wrapping_sub)
    }

    #[inline(always)]
    fn rounded_to_integers(self) -> Self {
        self.each(|x| f32::from_bits(x.round_ties_even() as i32 as u32))
    }

    #[inline(always)]
    fn integers_to_floats(self) -> Self {
        self.each(|x| x.to_bits() as i32 as f32)
    }

    #[inline(always)]
    fn to_array(self) -> [f32; 4] {
        self.0
    }

    #[inline(always)]
    fn with_array(self, array: [f32; 4]) -> Self {
        Array(array)
    }
}
