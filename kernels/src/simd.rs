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
