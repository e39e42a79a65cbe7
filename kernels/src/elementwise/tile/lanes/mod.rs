//! Vectors of floats: the instructions that tiles take, under one name for each.
//!
//! A vector can only be had through `unsafe` functions that ask for a processor with its
//! instructions; whoever holds one may use them all. Masks are vectors too: all bits of a lane are
//! set, or none. Processors of the x86-64 family have `Avx2` and `Avx512`, where they are found;
//! every other has `Quad`, four floats, by instructions that the whole program is compiled for, or
//! by plain arrays.

#![expect(unsafe_code, reason = "instructions that not every processor has")]

/// Methods of a vector that take and return vectors, each by a few instructions.
#[allow(unused_macros, reason = "arrays have no instructions")]
macro_rules! methods {
    ($vector:ident: $($name:ident($this:ident $(, $arg:ident)*) $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $arg: Self)*) -> Self {
            let $vector($this) = self;
            $(let $vector($arg) = $arg;)*
            // SAFETY: there is a vector, so the processor has the instructions.
            #[allow(unused_unsafe, reason = "not all instructions need it")]
            $vector(unsafe { $body })
        }
    )*};
}

#[cfg(any(
    test,
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        all(target_arch = "wasm32", target_feature = "simd128")
    ))
))]
mod array;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

#[cfg(test)]
pub(super) use array::Array;
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
pub(crate) use array::Array as Quad;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
use bytemuck::Zeroable;
use half::f16;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon as Quad;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use simd128::Simd128 as Quad;

/// A register full of floats.
pub(crate) trait Lanes: Copy {
    /// The lanes in memory.
    type Array: bytemuck::Pod + AsRef<[f32]> + AsMut<[f32]>;

    /// The number of floats.
    const LEN: usize;

    /// Whether [`look_up`](Lanes::look_up) is an instruction.
    const LOOKS_UP: bool = false;

    /// Whether [`times_plus`](Lanes::times_plus) and [`times_from`](Lanes::times_from) round once; otherwise
    /// they round the product too.
    const FUSES: bool = true;

    /// Whether this processor has the instructions.
    #[cfg(any(test, target_arch = "x86_64"))]
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
    #[inline(always)]
    unsafe fn load_f16(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the processor and for `LEN` elements of two bytes; arrays of bytes may
        // be anywhere.
        unsafe {
            let mut wide = Self::Array::zeroed();
            for (index, wide) in wide.as_mut().iter_mut().enumerate() {
                *wide = f16::from_ne_bytes(*from.add(2 * index).cast::<[u8; 2]>()).to_f32();
            }
            Self::load(wide.as_ref().as_ptr().cast())
        }
    }

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

    /// Writes the floats past the caches; [`store_fence`](crate::simd::store_fence) orders that.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store), and the room is aligned to the vector.
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the memory.
        unsafe { self.store(to) }
    }

    /// Writes the floats as `f16`, rounded to the nearest, halves to even.
    ///
    /// # Safety
    ///
    /// As for [`store`](Lanes::store).
    #[inline(always)]
    unsafe fn store_f16(self, to: *mut u8) {
        for (index, &wide) in self.to_array().as_ref().iter().enumerate() {
            // SAFETY: the caller vouches for the memory of `LEN` elements of two bytes.
            unsafe { *to.add(2 * index).cast() = f16::from_f32(wide).to_ne_bytes() }
        }
    }

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
    /// `self * factor + addend`, rounded as [`FUSES`](Lanes::FUSES) says.
    fn times_plus(self, factor: Self, addend: Self) -> Self;
    /// `addend - self * factor`, rounded as [`FUSES`](Lanes::FUSES) says.
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
    fn look_up(self, table: &[f32; 32]) -> Self {
        let mut array = self.to_array();
        for lane in array.as_mut() {
            *lane = table[(lane.to_bits() & 31) as usize];
        }
        self.with_array(array)
    }

    /// The lanes as they are in memory.
    #[inline(always)]
    fn to_array(self) -> Self::Array {
        let mut array = Self::Array::zeroed();
        // SAFETY: the array has room for all lanes.
        unsafe { self.store(array.as_mut().as_mut_ptr().cast()) };
        array
    }
    /// The lanes of `array`.
    #[inline(always)]
    fn with_array(self, array: Self::Array) -> Self {
        // SAFETY: there is a vector, so the processor has the instructions; the array has all lanes.
        unsafe { Self::load(array.as_ref().as_ptr().cast()) }
    }
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

/// Runs a check of every vector.
#[cfg(test)]
macro_rules! for_each_vector {
    ($check:ident) => {
        #[cfg(target_arch = "x86_64")]
        {
            $check::<$crate::elementwise::tile::lanes::Avx2>();
            $check::<$crate::elementwise::tile::lanes::Avx512>();
        }
        #[cfg(not(target_arch = "x86_64"))]
        $check::<$crate::elementwise::tile::lanes::Quad>();
        $check::<Array>();
    };
}

#[cfg(test)]
pub(super) use for_each_vector;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what lanes do against what Rust does to each of them.
    fn check<V: Lanes>() {
        let numbers = [
            0.0,
            -0.0,
            1e-40,
            -1e-40,
            0.5,
            -1.5,
            2.5,
            1e9,
            -7.25,
            f32::MAX,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        if !V::detected() {
            return;
        }
        let bits = |mask: bool| if mask { u32::MAX } else { 0 };
        let same = |name: &str, found: V, expected: f32, x: f32, y: f32| {
            for &found in found.to_array().as_ref() {
                let same = found.to_bits() == expected.to_bits();
                let nan = found.is_nan() && expected.is_nan();
                assert!(same || nan, "{name} of {x} and {y}: {found} instead of {expected}");
            }
        };
        for x in numbers {
            for y in numbers {
                let (a, b) = (filled::<V>(x).expect("asked"), filled::<V>(y).expect("asked"));
                same("max_or", a.max_or(b), if x > y { x } else { y }, x, y);
                same("min_or", a.min_or(b), if x < y { x } else { y }, x, y);
                same("plus", a.plus(b), x + y, x, y);
                same("over", a.over(b), x / y, x, y);
                let masks = [
                    ("is_eq", a.is_eq(b), x == y),
                    ("is_ne", a.is_ne(b), x != y),
                    ("is_lt", a.is_lt(b), x < y),
                    ("is_le", a.is_le(b), x <= y),
                    ("is_nan", a.is_nan(), x.is_nan()),
                ];
                for (name, found, holds) in masks {
                    same(name, found, f32::from_bits(bits(holds)), x, y);
                    assert_eq!(found.any(), holds, "{name} of {x} and {y}");
                    same("choose", found.choose(a, b), if holds { x } else { y }, x, y);
                }
                same("without", a.without(b), f32::from_bits(x.to_bits() & !y.to_bits()), x, y);
            }
            let a = filled::<V>(x).expect("asked");
            let flushed = if x.is_subnormal() { 0.0f32.copysign(x) } else { x };
            same("flush", a.flush(), flushed, x, x);
            same("rint", a.rint(), x.round_ties_even(), x, x);
            same("floor", a.floor(), x.floor(), x, x);
            same("ceil", a.ceil(), x.ceil(), x, x);
            same("trunc", a.trunc(), x.trunc(), x, x);
            same("shift_down", a.shift_down::<9>(), f32::from_bits(x.to_bits() >> 9), x, x);
            same("shift_up", a.shift_up::<9>(), f32::from_bits(x.to_bits() << 9), x, x);
            if x.is_normal() && x.abs() < 10.0 {
                for n in [-126.0, -3.0, 0.0, 3.0, 100.0] {
                    same("times_power", a.times_power(a.fill(n)), x * n.exp2(), x, n);
                }
                let integers = a.rounded_to_integers().integers_to_floats();
                same("integers", integers, x.round_ties_even(), x, x);
            }
        }
    }

    /// Checks that elements of other types are read and written, and nothing beside them.
    fn check_elements<V: Lanes>() {
        if !V::detected() {
            return;
        }
        let floats: Vec<f32> = (0..V::LEN).map(|lane| 1.5 - lane as f32 * 0.25).collect();
        let mut bytes = vec![0xaau8; 4 * V::LEN + 1];
        // SAFETY: the processor was asked, and there are enough elements.
        let x = unsafe { V::load(floats.as_ptr().cast()) };
        let mut check = |width: usize,
                         store: unsafe fn(V, *mut u8),
                         expected: &dyn Fn(f32) -> Vec<u8>| {
            bytes.fill(0xaa);
            // SAFETY: there is room for all lanes behind the first byte.
            unsafe { store(x, bytes.as_mut_ptr().add(1)) };
            let expected: Vec<u8> = floats.iter().flat_map(|&x| expected(x)).collect();
            assert_eq!(bytes[1..][..width * V::LEN], expected);
            assert!(bytes[width * V::LEN + 1..].iter().all(|&byte| byte == 0xaa), "beside them");
            bytes[1..].to_vec()
        };
        let same = |loaded: V, floats: &[f32]| assert_eq!(loaded.to_array().as_ref(), floats);
        let stored = check(4, V::store, &|x| x.to_ne_bytes().to_vec());
        // SAFETY: as above, here and below.
        same(unsafe { V::load(stored.as_ptr()) }, &floats);
        let stored = check(2, V::store_f16, &|x| f16::from_f32(x).to_ne_bytes().to_vec());
        same(unsafe { V::load_f16(stored.as_ptr()) }, &floats);
        let stored =
            check(2, V::store_upper, &|x| ((x.to_bits() >> 16) as u16).to_ne_bytes().to_vec());
        same(unsafe { V::load_bf16(stored.as_ptr()) }, &floats);
        let bools: Vec<u8> = (0..V::LEN).map(|lane| u8::from(lane % 3 == 1)).collect();
        let mask = unsafe { V::load_bool(bools.as_ptr()) };
        let mut stored = vec![7u8; V::LEN + 1];
        unsafe { mask.store_bool(stored.as_mut_ptr()) };
        assert_eq!((&stored[..V::LEN], stored[V::LEN]), (&bools[..], 7));
        let integers: Vec<i32> = (0..V::LEN).map(|lane| 5 - 3 * lane as i32).collect();
        let expected: Vec<f32> = integers.iter().map(|&x| x as f32).collect();
        same(unsafe { V::load_i32(integers.as_ptr().cast()) }, &expected);
    }

    #[test]
    fn lanes_do_what_rust_does() {
        for_each_vector!(check);
    }

    #[test]
    fn elements_are_read_and_written() {
        for_each_vector!(check_elements);
    }
}
