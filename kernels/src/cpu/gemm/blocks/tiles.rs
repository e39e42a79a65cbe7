//! Tile registers of AMX, by their instructions.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1 chapter 18, and
//! the documentation of Linux, "Using XSTATE features in user space applications": a process asks
//! for the registers once.

#![expect(unsafe_code, reason = "instructions that the language has no names for")]

use super::{BLOCK, BlockUnit, ByteSigns, STEP, Sums};
use crate::simd::has_avx512;
use std::{arch::asm, marker::PhantomData, sync::OnceLock};

/// The element types of the left and the right operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu::gemm) enum TileKind {
    /// Bytes, with sums of 32 bits that wrap.
    Bytes(ByteSigns),
    /// `bfloat16`, with sums in `float32`. Subnormal numbers count as zero.
    Brain,
}

/// Proof that the processor has tile registers and that this process may use them.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu::gemm) struct TileUnit(());

impl TileUnit {
    /// The unit for both kinds of elements; `None` where there is none.
    pub(in crate::cpu::gemm) fn detect() -> Option<TileUnit> {
        static FOUND: OnceLock<Option<TileUnit>> = OnceLock::new();
        *FOUND.get_or_init(|| (has_instructions() && is_permitted()).then_some(TileUnit(())))
    }
}

/// Whether the processor and the system know tiles of bytes and of `bfloat16`.
#[allow(unused_unsafe, reason = "later compilers than the oldest take `cpuid` for safe")]
fn has_instructions() -> bool {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};
    const OSXSAVE: u32 = 1 << 27;
    const BF16_TILE_INT8: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    const TILE_STATE: u64 = 3 << 17;
    #[target_feature(enable = "xsave")]
    fn enabled() -> u64 {
        // SAFETY: the caller has seen that the system has enabled the instruction.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: all processors of 64 bits have the instruction.
    let leaf = |leaf: u32| unsafe { __cpuid_count(leaf, 0) };
    if !has_avx512() || leaf(0).eax < 7 || leaf(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let has = leaf(7).edx & BF16_TILE_INT8 == BF16_TILE_INT8;
    // SAFETY: OSXSAVE, seen above, says that the instruction exists and is enabled.
    has && unsafe { enabled() } & TILE_STATE == TILE_STATE
}

/// Asks the system for the registers' memory in contexts of threads.
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST_PERMISSION: u64 = 0x1023;
    const TILE_DATA: u64 = 18;
    let result: i64;
    // SAFETY: the call changes nothing but a permission of this process, and takes no addresses.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") REQUEST_PERMISSION,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// Configured registers of one thread, until it is dropped.
#[derive(Debug)]
pub(in crate::cpu::gemm) struct Configured(PhantomData<*const ()>);

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the value proves that the instruction exists; nothing else uses the registers.
        unsafe { asm!("tilerelease", options(nomem, nostack)) }
    }
}

/// Dot products with one instruction.
macro_rules! block {
    ($instruction:literal, $a:expr, $b:expr, $steps:expr, $out:expr) => {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{a} + {row}*1]",
            "tileloadd tmm6, [{b} + {row}*1]",
            concat!($instruction, " tmm0, tmm4, tmm6"),
            "tileloadd tmm7, [{b} + {row}*1 + 1024]",
            concat!($instruction, " tmm1, tmm4, tmm7"),
            "tileloadd tmm5, [{a} + {row}*1 + 1024]",
            concat!($instruction, " tmm2, tmm5, tmm6"),
            concat!($instruction, " tmm3, tmm5, tmm7"),
            "add {a}, 2048",
            "add {b}, 2048",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{out} + {out_row}*1], tmm0",
            "tilestored [{out} + {out_row}*1 + 64], tmm1",
            "tilestored [{out} + {out_row}*1 + 2048], tmm2",
            "tilestored [{out} + {out_row}*1 + 2112], tmm3",
            a = inout(reg) $a => _,
            b = inout(reg) $b => _,
            steps = inout(reg) $steps => _,
            row = in(reg) 64usize,
            out = in(reg) $out,
            out_row = in(reg) 4 * BLOCK,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

impl BlockUnit for TileUnit {
    type Kind = TileKind;
    type Ready = Configured;

    fn configure(self) -> Configured {
        let mut config = [0u8; 64];
        config[0] = 1;
        for register in 0..8 {
            config[16 + 2 * register] = 64;
            config[48 + register] = 16;
        }
        // SAFETY: `self` proves that the instruction exists and is permitted; the configuration is
        // one of palette 1 with registers of 16 rows of 64 bytes.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &config, options(nostack, readonly));
        }
        Configured(PhantomData)
    }

    fn multiply(_: &Configured, kind: TileKind, _: usize, a: &[u32], b: &[u32], sums: &mut Sums) {
        let steps = a.len() / STEP;
        assert!(steps > 0 && a.len() == b.len() && a.len() == steps * STEP, "whole steps");
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), sums.as_mut_ptr());
        // SAFETY: the registers are configured as 16 rows of 64 bytes on this thread, as there is a
        // `Configured`. Each of `steps` steps reads `STEP` groups of either operand, which they have
        // (see the assertion); the four registers written last are the `BLOCK` rows of `sums`.
        unsafe {
            match kind {
                TileKind::Bytes(ByteSigns { a: true, b: true }) => {
                    block!("tdpbssd", a, b, steps, out)
                }
                TileKind::Bytes(ByteSigns { a: true, b: false }) => {
                    block!("tdpbsud", a, b, steps, out)
                }
                TileKind::Bytes(ByteSigns { a: false, b: true }) => {
                    block!("tdpbusd", a, b, steps, out)
                }
                TileKind::Bytes(ByteSigns { a: false, b: false }) => {
                    block!("tdpbuud", a, b, steps, out)
                }
                TileKind::Brain => block!("tdpbf16ps", a, b, steps, out),
            }
        }
    }
}
