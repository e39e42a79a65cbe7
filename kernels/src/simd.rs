//! Choosing the instruction set while running.

#[cfg(target_arch = "x86_64")]
use crate::instructions::{InstructionLevel, allowed};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// A loop worth compiling for wide vectors. Implementations mark `run` `#[inline(always)]`, so
/// that its body is compiled once for each instruction set.
pub(crate) trait Vectorized {
    /// Result of the loop.
    type Output;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop with the widest vectors this processor has.
pub(crate) fn vectorize<V: Vectorized>(body: V) -> V::Output {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the features were detected")]
    match widest() {
        // SAFETY: the processor has every feature that `avx512` is compiled for.
        Width::Avx512 => return unsafe { avx512(body) },
        // SAFETY: the processor has every feature that `avx2` is compiled for.
        Width::Avx2 => return unsafe { avx2(body) },
        Width::Baseline => {}
    }
    body.run()
}

/// Runs a block for each index below a constant, which is at most one of 2, 4, 8 and 12, with the index as a literal:
/// vectors of arrays stay in registers even where a module is built for size, which leaves loops as they are.
#[cfg(target_arch = "wasm32")]
macro_rules! unrolled {
    ($index:ident < $n:expr, 2, $body:block) => { $crate::simd::unrolled!(@ $index, $n, $body, 0 1) };
    ($index:ident < $n:expr, 4, $body:block) => { $crate::simd::unrolled!(@ $index, $n, $body, 0 1 2 3) };
    ($index:ident < $n:expr, 8, $body:block) => {
        $crate::simd::unrolled!(@ $index, $n, $body, 0 1 2 3 4 5 6 7)
    };
    ($index:ident < $n:expr, 12, $body:block) => {
        $crate::simd::unrolled!(@ $index, $n, $body, 0 1 2 3 4 5 6 7 8 9 10 11)
    };
    (@ $index:ident, $n:expr, $body:block, $($at:literal)*) => {$(
        if $at < $n {
            #[allow(non_upper_case_globals, reason = "it is what would be a variable")]
            const $index: usize = $at;
            $body
        }
    )*};
}

/// Runs a block for each index below a constant, which is at most the literal. The compiler unrolls the loop; written
/// out, it would spread the loads of twelve rows such that sums do not all find registers.
#[cfg(not(target_arch = "wasm32"))]
macro_rules! unrolled {
    ($index:ident < $n:expr, $most:literal, $body:block) => {
        for $index in 0..$n {
            $body
        }
    };
}

pub(crate) use unrolled;

/// Asks for `len` bytes of memory that will be used soon. They may be anywhere.
#[inline(always)]
pub(crate) fn prefetch<T>(at: *const T, len: usize) {
    for line in (0..len).step_by(64) {
        prefetch_line(at.cast::<u8>().wrapping_add(line));
    }
}

/// Asks for the line of the cache that holds an address, if there is an instruction for that. It may be
/// anywhere.
#[inline(always)]
pub(crate) fn prefetch_line<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "an instruction")]
    // SAFETY: every x86-64 processor has the instruction, and it reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Orders all stores before all later ones, non-temporal stores too.
pub(crate) fn store_fence() {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "an instruction")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Bytes of the last-level cache, if the processor tells.
pub(crate) fn last_level_cache() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        static FOUND: OnceLock<Option<usize>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let of_leaf = |leaf: u32| (0..8).map_while(|index| cache_size(leaf, index)).max();
            // Deterministic cache parameters of Intel, cache properties of AMD.
            of_leaf(4).max(of_leaf(0x8000_001d))
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Bytes of the processor's cache number `index`, as this leaf of `cpuid` tells (Intel 64 and IA-32
/// Architectures Software Developer's Manual, volume 2, `CPUID`).
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "later compilers than the oldest take `cpuid` for safe")]
fn cache_size(leaf: u32, index: u32) -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    #[expect(unsafe_code, reason = "an instruction")]
    // SAFETY: every x86-64 processor has the instruction.
    let (highest, found) = unsafe { (__cpuid(leaf & 0x8000_0000), __cpuid_count(leaf, index)) };
    // Of other leaves than there are processors tell something else.
    let exists = leaf <= highest.eax && found.eax & 0x1f != 0;
    let part = |shift: u32, bits: u32| (found.ebx >> shift & ((1 << bits) - 1)) as usize + 1;
    let line = part(22, 10) * part(12, 10) * part(0, 12);
    exists.then(|| line.saturating_mul(found.ecx as usize + 1))
}

/// The instruction sets that loops are compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
enum Width {
    Baseline,
    Avx2,
    Avx512,
}

/// The widest of this processor.
#[cfg(target_arch = "x86_64")]
#[inline]
fn widest() -> Width {
    static FOUND: OnceLock<Width> = OnceLock::new();
    *FOUND.get_or_init(|| match (has_avx512(), has_avx2()) {
        (true, _) => Width::Avx512,
        (false, true) => Width::Avx2,
        (false, false) => Width::Baseline,
    })
}

/// Whether this processor has AVX2, FMA and F16C, and kernels may use them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    allowed() >= InstructionLevel::Avx2
        && std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
fn avx512<V: Vectorized>(body: V) -> V::Output {
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn avx2<V: Vectorized>(body: V) -> V::Output {
    body.run()
}

/// Whether this processor has AVX-512 with operations on bytes, words and double words, and what
/// [`has_avx2`] asks for.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    allowed() >= InstructionLevel::Avx512
        && std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && has_avx2()
}
