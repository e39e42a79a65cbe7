//! Blocks of sums in tile registers of AMX.

#![expect(unsafe_code, reason = "instructions that the language has no names for")]

use super::{
    super::amx::{Configured, TileUnit},
    BLOCK, BlockUnit, ByteSigns, STEP, Sums,
};
use std::arch::asm;

/// The element types of the left and the right operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cpu::gemm) enum TileKind {
    /// Bytes, with sums of 32 bits that wrap.
    Bytes(ByteSigns),
    /// `bfloat16`, with sums in `float32`. Subnormal numbers count as zero.
    Brain,
}

/// Dot products with one instruction, on top of the sums that are there.
macro_rules! block {
    ($instruction:literal, $a:expr, $b:expr, $steps:expr, $out:expr) => {
        asm!(
            "tileloadd tmm0, [{out} + {out_row}*1]",
            "tileloadd tmm1, [{out} + {out_row}*1 + 64]",
            "tileloadd tmm2, [{out} + {out_row}*1 + 2048]",
            "tileloadd tmm3, [{out} + {out_row}*1 + 2112]",
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

    /// A chunk of either operand takes a third of the first-level cache, so that rows stay there while columns
    /// pass: 1.18 ms instead of 1.37 for 1024 x 1024 x 1024 numbers of `bfloat16`.
    const CHUNK: usize = 8;

    fn configure(self) -> Configured {
        self.registers()
    }

    fn multiply(_: &Configured, kind: TileKind, _: usize, a: &[u32], b: &[u32], sums: &mut Sums) {
        let steps = a.len() / STEP;
        assert!(steps > 0 && a.len() == b.len() && a.len() == steps * STEP, "whole steps");
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), sums.as_mut_ptr());
        // SAFETY: the registers are configured as 16 rows of 64 bytes on this thread, as there is a
        // `Configured`. Each of `steps` steps reads `STEP` groups of either operand, which they have
        // (see the assertion); the four registers read first and written last are the `BLOCK` rows of `sums`.
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
