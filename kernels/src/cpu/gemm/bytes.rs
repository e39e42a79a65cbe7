//! Products of bytes with sums of 32 bits, which wrap.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use super::amx::{self, TileForm, TileUnit};
use super::{GemmOutput, GemmSizes, Matrix, gemm, grouped::Grouped};
use crate::threads::Threads;

/// A byte, signed or not.
pub(in crate::cpu) trait Byte: Grouped + Into<i32> {
    #[cfg_attr(
        not(all(target_arch = "x86_64", target_os = "linux")),
        expect(dead_code, reason = "registers of x86-64 ask")
    )]
    const IS_SIGNED: bool;
}

impl Byte for i8 {
    const IS_SIGNED: bool = true;
}

impl Byte for u8 {
    const IS_SIGNED: bool = false;
}

/// Computes `a × b`.
///
/// # Panics
///
/// As [`gemm`].
pub(in crate::cpu) fn gemm_of_bytes<A: Byte, B: Byte>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, A>,
    b: Matrix<'_, B>,
    out: GemmOutput<'_, i32>,
) {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if let Some(unit) = TileUnit::detect()
        && amx::serves::<A>(sizes)
    {
        let form = match (A::IS_SIGNED, B::IS_SIGNED) {
            (true, true) => TileForm::SignedSigned,
            (true, false) => TileForm::SignedUnsigned,
            (false, true) => TileForm::UnsignedSigned,
            (false, false) => TileForm::UnsignedUnsigned,
        };
        let accumulate = out.accumulate;
        return amx::multiply((unit, form), threads, sizes, a, b, out, |sums, out: &mut [i32]| {
            let sums: &[i32] = bytemuck::cast_slice(sums);
            match accumulate {
                true => out.iter_mut().zip(sums).for_each(|(out, x)| *out = out.wrapping_add(*x)),
                false => out.copy_from_slice(sums),
            }
        });
    }
    let wide_a: Vec<i32> = a.data.iter().map(|&x| x.into()).collect();
    let wide_b: Vec<i32> = b.data.iter().map(|&x| x.into()).collect();
    gemm(threads, sizes, a.with_data(&wide_a), b.with_data(&wide_b), out);
}
