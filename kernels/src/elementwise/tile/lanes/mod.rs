//! Vectors of floats: the instructions that tiles take, under one name for each.
//!
//! A vector can only be had through `unsafe` functions that ask for a processor with its
//! instructions; whoever holds one may use them all. Masks are vectors too: all bits of a lane are
//! set, or none.

#![expect(unsafe_code, reason = "instructions that not every processor has")]

/// Methods of a vector that take and return vectors, each by a few instructions.
macro_rules! methods {
    ($vector:ident: $($name:ident($this:ident $(, $arg:ident)*) $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $arg: Self)*) -> Self {
            let $vector($this) = self;
            $(let $vector($arg) = $arg;)*
            // SAFETY: there is a vector, so the processor has the instructions.
            $vector(unsafe { $body })
        }
    )*};
}

mod avx2;
mod avx512;

use std::arch::x86_64::_mm_sfence;

pub(crate) use avx2::Avx2;
pub(crate) use avx512::Avx512;

/// Orders all stores before all later ones, those past the caches too.
pub(super) fn store_fence() {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _mm_sfence() }
}

/// A register full of floats.
pub(crate) trait Lanes: Copy {
    /// The lanes in memory.
    type Array: bytemuck::Pod + AsRef<[f32]> + AsMut<[f32]>;

    /// The number of floats.
    const LEN: usize;

    /// Whether [`look_up`](Lanes::look_up) is an instruction.
    const LOOKS_UP: bool;

    /// Whether this processor has the instructions.
    fn detected() -> bool;

    /// The floats at `from`, which may be anywhere.
    ///
    /// # Safety
    ///
    /// The processor has the instructions, and there are `LEN` readable floats.
    unsafe fn load(from: *const u8) -> Self;

    /// As [`load`](Lanes::load), for `f16`.
    ///
    /// # Safety
    ///
    /// As for [`load`](Lanes::load).
    unsafe fn load_f16(from: *const u8) -> Self;

    /// As [`load`](Lanes::load), for `bf16`.
    ///
    /// # Safety
    ///
    /// As for [`load`](Lanes::load).
    unsafe fn load_bf16(from: *const u8) -> Self;

    /// As [`load`](Lanes::load), for `i32`.
    ///
    /// # Safety
    ///
    /// As for [`load`](Lanes::load).
    unsafe fn load_i32(from: *const u8) -> Self;

    /// The mask of the bytes at `from` that are not zero.
    ///
    /// # Safety
    ///
    /// As for [`load`](Lanes::load).
    unsafe fn load_bool(from: *const u8) -> Self;

    /// Writes the floats.
    ///
    /// # Safety
    ///
    /// There is room for `LEN` floats, wherever it lies.
    unsafe fn store(self, to: *mut u8);

    /// Writes the floats past the caches; [`store_fence`] orders that.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store), and the room is aligned to the vector.
    unsafe fn stream(self, to: *mut u8);

    /// Writes the floats as `f16`, rounded to the nearest, halves to even.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store).
    unsafe fn store_f16(self, to: *mut u8);

    /// Writes the upper halves of the floats, rounded before: as `bf16`.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store).
    unsafe fn store_upper(self, to: *mut u8);

    /// Writes a byte of 0 or 1 for each lane of a mask.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store).
    unsafe fn store_bool(self, to: *mut u8);

    /// This float in all lanes.
    fn fill(self, value: f32) -> Self;

    /// These bits in all lanes.
    fn fill_bits(self, value: u32) -> Self {
        self.fill(f32::from_bits(value))
    }

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// The quotient where both, and the result, are far from the ends of the range.
    fn over_near(self, other: Self) -> Self {
        self.over(other)
    }
    fn sqrt(self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn times_plus(self, factor: Self, addend: Self) -> Self;
    /// `addend - self * factor`, rounded once.
    fn times_from(self, factor: Self, addend: Self) -> Self;
    /// The larger; `other` if either is NaN.
    fn max_or(self, other: Self) -> Self;
    /// The smaller; `other` if either is NaN.
    fn min_or(self, other: Self) -> Self;

    /// To the nearest integer, halves to even.
    fn rint(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// `self * 2^n` for integral `n` from -252 to 254, rounded; `self` is a normal number.
    fn times_power(self, n: Self) -> Self;
    /// Zero of the same sign for subnormal numbers.
    fn flush(self) -> Self;

    fn is_eq(self, other: Self) -> Self;
    /// Whether they differ, or either is NaN.
    fn is_ne(self, other: Self) -> Self;
    fn is_lt(self, other: Self) -> Self;
    fn is_le(self, other: Self) -> Self;
    fn is_nan(self) -> Self;
    /// This mask's lanes of `then`, and the others of `otherwise`.
    fn choose(self, then: Self, otherwise: Self) -> Self;
    /// Whether a lane of this mask is set.
    fn any(self) -> bool;

    fn and(self, other: Self) -> Self;
    /// The bits of `self` that `other` does not have.
    fn without(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;

    /// The bits of each lane `N` positions up.
    fn shift_up<const N: u32>(self) -> Self;
    /// The bits of each lane `N` positions down; zeros come in.
    fn shift_down<const N: u32>(self) -> Self;
    /// The sums of the lanes as integers.
    fn plus_integers(self, other: Self) -> Self;
    /// The differences of the lanes as integers.
    fn minus_integers(self, other: Self) -> Self;
    /// The nearest integers.
    fn rounded_to_integers(self) -> Self;
    /// The floats of integers.
    fn integers_to_floats(self) -> Self;

    /// The number of a table that the lowest five bits of each lane tell.
    fn look_up(self, table: &[f32; 32]) -> Self;

    /// The lanes as they are in memory.
    fn to_array(self) -> Self::Array;
    /// The lanes of `array`.
    fn with_array(self, array: Self::Array) -> Self;
}

/// A vector of equal floats, if the processor has such vectors.
#[cfg(test)]
pub(super) fn filled<V: Lanes>(value: f32) -> Option<V> {
    let floats = [value; 16];
    assert!(V::LEN <= floats.len(), "no vector is longer");
    // SAFETY: the processor was asked, and there are enough floats.
    V::detected().then(|| unsafe { V::load(floats.as_ptr().cast()) })
}

/// Result of a function on a single lane, on a processor that was asked.
#[cfg(test)]
pub(super) fn of<V: Lanes>(x: f32, function: impl Fn(V) -> V) -> f32 {
    let x = filled::<V>(x).expect("the processor was asked");
    function(x).to_array().as_ref()[0]
}
