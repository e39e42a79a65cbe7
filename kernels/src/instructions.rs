//! The instruction sets of the processor that kernels may use.
//!
//! Kernels take the widest vectors that the processor has. The environment variable `FERROFLOW_CPU`
//! narrows that for a whole process, to test or to measure the code for other processors: `portable`
//! for the code of every processor, `avx2`, `avx512`, or `amx`, the default, for everything; so does
//! [`restrict`]. On processors that are not of the x86-64 family, `portable` is everything: vectors of four
//! floats, by NEON on AArch64 and by `simd128` in WebAssembly, which all of the program is compiled for.
//!
//! Results of different instruction sets differ by the order in which sums are rounded,
//! those of `Erf` by a few units in the last place. With AMX, large matmuls and convolutions of `f32`
//! are sums of products of parts, in which what is left out is less than a unit in the last place of
//! each product.

use std::{env, sync::OnceLock};

/// The environment variable that narrows the instruction sets.
pub const VARIABLE: &str = "FERROFLOW_CPU";

/// Instruction sets, each of which includes those before it.
///
/// ```
/// use ferroflow_kernels::instructions::InstructionLevel;
///
/// assert_eq!(InstructionLevel::parse("avx2"), Some(InstructionLevel::Avx2));
/// assert!(InstructionLevel::Portable < InstructionLevel::Avx2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionLevel {
    /// Instructions that every processor of the architecture has.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and its dot products of bytes and of `bfloat16` where there are such.
    Avx512,
    /// Tile registers of AMX, and whatever comes on top.
    Amx,
}

impl InstructionLevel {
    /// The level of a name; `None` if there is none of that name.
    pub fn parse(name: &str) -> Option<InstructionLevel> {
        match name {
            "portable" => Some(InstructionLevel::Portable),
            "avx2" => Some(InstructionLevel::Avx2),
            "avx512" => Some(InstructionLevel::Avx512),
            "amx" => Some(InstructionLevel::Amx),
            _ => None,
        }
    }
}

static ALLOWED: OnceLock<InstructionLevel> = OnceLock::new();

/// The highest level that kernels of this process may use, whatever the processor has. It is settled
/// once, by the first call of this or of [`restrict`]; a name that is no level allows everything, and
/// [`unknown_name`] returns it.
pub fn allowed() -> InstructionLevel {
    *ALLOWED.get_or_init(of_environment)
}

/// Narrows the instruction sets of this process to a level, or to that of the environment if it is
/// lower. It returns the level that is settled: an earlier one, if kernels or another call asked
/// before, because memory may be laid out for it.
///
/// ```
/// use ferroflow_kernels::instructions::{InstructionLevel, allowed, restrict};
///
/// let settled = restrict(InstructionLevel::Avx2);
/// assert!(settled <= InstructionLevel::Avx2);
/// assert_eq!((restrict(InstructionLevel::Amx), allowed()), (settled, settled));
/// ```
pub fn restrict(level: InstructionLevel) -> InstructionLevel {
    *ALLOWED.get_or_init(|| level.min(of_environment()))
}

fn of_environment() -> InstructionLevel {
    let name = env::var(VARIABLE).ok();
    name.and_then(|name| InstructionLevel::parse(&name)).unwrap_or(InstructionLevel::Amx)
}

/// The value of [`VARIABLE`] if it names no level.
pub fn unknown_name() -> Option<String> {
    let name = env::var_os(VARIABLE)?.to_string_lossy().into_owned();
    (!name.is_empty() && InstructionLevel::parse(&name).is_none()).then_some(name)
}
