//! The tile registers of AMX: whether there are any, and making them ready.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1 chapter 18, and
//! the documentation of Linux, "Using XSTATE features in user space applications": a process asks
//! for the registers once.

#![expect(unsafe_code, reason = "instructions that the language has no names for")]

use crate::{
    instructions::{InstructionLevel, allowed},
    simd::has_avx512,
};
use std::{arch::asm, marker::PhantomData, sync::OnceLock};

/// Proof that the processor has tile registers and that this process may use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu) struct TileUnit(());

impl TileUnit {
    /// The unit for both kinds of elements; `None` where there is none.
    pub(in crate::cpu) fn detect() -> Option<TileUnit> {
        static FOUND: OnceLock<Option<TileUnit>> = OnceLock::new();
        *FOUND.get_or_init(|| (has_instructions() && is_permitted()).then_some(TileUnit(())))
    }

    /// The registers of this thread, configured as eight tiles of 16 rows of 64 bytes.
    pub(in crate::cpu) fn registers(self) -> Configured {
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
    if allowed() < InstructionLevel::Amx
        || !has_avx512()
        || leaf(0).eax < 7
        || leaf(1).ecx & OSXSAVE == 0
    {
        return false;
    }
    let has = leaf(7).edx & BF16_TILE_INT8 == BF16_TILE_INT8;
    // SAFETY: OSXSAVE, seen above, says that the instruction exists and is enabled.
    has && unsafe { enabled() } & TILE_STATE == TILE_STATE
}

/// Asks the system for the registers' memory in contexts of threads.
#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Asks the system for the registers' memory in contexts of threads.
#[cfg(target_os = "linux")]
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
pub(in crate::cpu) struct Configured(PhantomData<*const ()>);

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the value proves that the instruction exists; nothing else uses the registers.
        unsafe { asm!("tilerelease", options(nomem, nostack)) }
    }
}
