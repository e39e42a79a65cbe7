//! Vectors of floats: the few instructions that matmuls take, under one name for each, and functions
//! of vectors compiled for each instruction set.

#[cfg(target_arch = "x86_64")]
mod avx;
#[cfg(not(target_arch = "x86_64"))]
mod quad;

use crate::elementwise::tile::Lanes;
#[cfg(not(target_arch = "x86_64"))]
use crate::elementwise::tile::Quad;
#[cfg(target_arch = "x86_64")]
use crate::simd::{has_avx2, has_avx512};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256, __m512};

/// A register full of floats. Every function asks for a processor that has such registers, and
/// those with pointers for memory that holds what they read or write.
#[expect(unsafe_code, reason = "instructions that not every processor has")]
pub(in crate::cpu) trait Vector: Copy {
    /// Floats in a vector.
    const LANES: usize;

    /// Selection of lanes.
    type Part: Copy;

    /// The same vector with the arithmetic of elementwise ops.
    type Lanes: Lanes;

    fn to_lanes(self) -> Self::Lanes;

    fn of_lanes(lanes: Self::Lanes) -> Self;

    unsafe fn zero() -> Self;

    /// A number in all lanes.
    unsafe fn splat(from: *const f32) -> Self;

    unsafe fn load(from: *const f32) -> Self;

    unsafe fn store(self, to: *mut f32);

    /// `self * b + c`, rounded as [`Lanes::FUSES`] says.
    unsafe fn times_plus(self, b: Self, c: Self) -> Self;

    unsafe fn plus(self, b: Self) -> Self;

    /// The first `len` lanes.
    unsafe fn part(len: usize) -> Self::Part;

    /// Loads some lanes, zero into the others.
    unsafe fn load_part(from: *const f32, part: Self::Part) -> Self;

    unsafe fn store_part(self, to: *mut f32, part: Self::Part);
}

/// `a * b + c` as lanes round it.
#[cfg(test)]
pub(in crate::cpu) fn times_plus(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(not(target_arch = "x86_64"))]
    if !Quad::FUSES {
        return a * b + c;
    }
    a.mul_add(b, c)
}

/// The proof that the processor has an instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct InstructionSet(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Vectors of four floats, by instructions that the whole program is compiled for.
    #[cfg(not(target_arch = "x86_64"))]
    Quad,
}

impl InstructionSet {
    /// The best instruction set of this processor.
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) fn detect() -> Option<InstructionSet> {
        // With less than all of AVX-512 that is asked for, what lanes do with masks would be calls.
        let avx512 = has_avx512().then_some(InstructionSet(Set::Avx512));
        avx512.or_else(|| has_avx2().then_some(InstructionSet(Set::Avx2)))
    }

    /// The best instruction set of this processor.
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::cpu) fn detect() -> Option<InstructionSet> {
        Some(InstructionSet(Set::Quad))
    }

    /// All instruction sets of this processor.
    #[cfg(test)]
    pub(in crate::cpu) fn all() -> Vec<InstructionSet> {
        let best = InstructionSet::detect();
        #[cfg(target_arch = "x86_64")]
        let best = best.into_iter().chain(has_avx2().then_some(InstructionSet(Set::Avx2)));
        let mut all: Vec<InstructionSet> = best.into_iter().collect();
        all.dedup();
        all
    }

    /// Floats in a vector.
    pub(in crate::cpu) const fn lanes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => __m256::LANES,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => __m512::LANES,
            #[cfg(not(target_arch = "x86_64"))]
            Set::Quad => Quad::LANES,
        }
    }

    /// The function for an instruction set.
    #[inline(always)]
    pub(in crate::cpu) const fn choose<F: Copy>(self, functions: &Compiled<F>) -> F {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => functions.avx2,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => functions.avx512,
            #[cfg(not(target_arch = "x86_64"))]
            Set::Quad => functions.quad,
        }
    }
}

/// A function, or a number, for each instruction set.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct Compiled<F> {
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) avx2: F,
    #[cfg(target_arch = "x86_64")]
    pub(in crate::cpu) avx512: F,
    #[cfg(not(target_arch = "x86_64"))]
    pub(in crate::cpu) quad: F,
}

/// A function of vectors that is compiled for each instruction set.
#[expect(unsafe_code, reason = "instructions that not every processor has")]
pub(in crate::cpu) trait VectorFunction {
    /// The arguments.
    type Call<'a>;

    /// Runs the function. Implementations are `#[inline(always)]`, so that they are compiled for the features of
    /// the function around them.
    ///
    /// # Safety
    ///
    /// The processor has the features of the vector, and what the implementation asks for holds.
    unsafe fn run<X: Vector>(call: Self::Call<'_>);
}

/// # Safety
///
/// As for [`VectorFunction::run`].
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that not every processor has")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(in crate::cpu) unsafe fn avx2<F: VectorFunction>(call: F::Call<'_>) {
    // SAFETY: the caller vouches for it.
    unsafe { F::run::<__m256>(call) }
}

/// # Safety
///
/// As for [`VectorFunction::run`].
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that not every processor has")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
pub(in crate::cpu) unsafe fn avx512<F: VectorFunction>(call: F::Call<'_>) {
    // SAFETY: the caller vouches for it.
    unsafe { F::run::<__m512>(call) }
}

/// # Safety
///
/// As for [`VectorFunction::run`].
#[cfg(not(target_arch = "x86_64"))]
#[expect(unsafe_code, reason = "instructions that not every processor has")]
pub(in crate::cpu) unsafe fn quad<F: VectorFunction>(call: F::Call<'_>) {
    // SAFETY: the caller vouches for it.
    unsafe { F::run::<Quad>(call) }
}

/// A function compiled for each instruction set.
macro_rules! compiled {
    ($function:ty) => {
        $crate::cpu::gemm::vector::Compiled::<
            for<'a> unsafe fn(<$function as $crate::cpu::gemm::vector::VectorFunction>::Call<'a>),
        > {
            #[cfg(target_arch = "x86_64")]
            avx2: $crate::cpu::gemm::vector::avx2::<$function>,
            #[cfg(target_arch = "x86_64")]
            avx512: $crate::cpu::gemm::vector::avx512::<$function>,
            #[cfg(not(target_arch = "x86_64"))]
            quad: $crate::cpu::gemm::vector::quad::<$function>,
        }
    };
}

pub(in crate::cpu) use compiled;
