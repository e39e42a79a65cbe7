//! GEMM of each element type.

use super::{
    GemmElement, GemmOutput, GemmSizes, Matrix, integer::multiply_integers, panels::by_panels,
};
#[cfg(target_arch = "x86_64")]
use super::{
    amx::TileUnit,
    blocks::{self, SummedBlock, TileKind},
    dots::DotUnit,
};
use super::{line, packed, small, split, vector::InstructionSet};
#[cfg(target_arch = "x86_64")]
use crate::simd::{Vectorized, vectorize};
use crate::{Precision, number::Number, threads::Threads, wide::WideElement};
use gemm::Parallelism;
use half::{bf16, f16};
use num_complex::Complex;

impl GemmElement for f32 {
    fn floats(elements: &[f32]) -> Option<&[f32]> {
        Some(elements)
    }

    fn floats_mut(elements: &mut [f32]) -> Option<&mut [f32]> {
        Some(elements)
    }

    fn multiply(
        sizes: GemmSizes,
        a: Matrix<'_, f32>,
        b: Matrix<'_, f32>,
        out: GemmOutput<'_, f32>,
    ) {
        if let Some(out) = by_vectors(&Threads::single(), sizes, a, b, out) {
            by_the_crate(sizes, a, b, out);
        }
    }

    fn multiply_on(
        threads: &Threads,
        sizes: GemmSizes,
        a: Matrix<'_, f32>,
        b: Matrix<'_, f32>,
        out: GemmOutput<'_, f32>,
    ) {
        if let Some(out) = by_vectors(threads, sizes, a, b, out) {
            by_panels(threads, sizes, a, b, out);
        }
    }
}

/// Whether tiles are the better way. The crate has others for matmuls of columns by rows, and for
/// small tables of dot products.
pub(super) fn in_tiles(sizes: GemmSizes, a: Matrix<'_, f32>, b: Matrix<'_, f32>) -> bool {
    let GemmSizes { m, k, n } = sizes;
    let dot_products = a.col_stride == 1 && b.row_stride == 1 && m.saturating_mul(n) <= 256;
    m > 1 && n > 1 && k > 2 && !dot_products
}

/// Computes a matmul by vectors, where ours is the better way; returns `out` where it is not.
fn by_vectors<'o>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: GemmOutput<'o, f32>,
) -> Option<GemmOutput<'o, f32>> {
    if let Some(machine) = InstructionSet::detect() {
        if let Some((sizes, a, b)) = line::as_row(sizes, a, b, &out) {
            line::multiply(machine, threads, sizes, a, b, out);
            return None;
        }
        if !in_tiles(sizes, a, b) {
            return Some(out);
        }
        if let Some(unit) = split::unit_for(sizes, Precision::Full) {
            split::multiply((unit, machine), threads, sizes, a, b.into(), out, None);
        } else if small::serves(machine, sizes, a, b) {
            small::multiply(machine, threads, sizes, a, b, out);
        } else {
            packed::multiply(machine, threads, sizes, a, b.into(), out, None);
        }
        return None;
    }
    Some(out)
}

macro_rules! all_by {
    ($function:path: $($type:ty)*) => {$(
        impl GemmElement for $type {
            fn multiply(
                sizes: GemmSizes,
                a: Matrix<'_, Self>,
                b: Matrix<'_, Self>,
                out: GemmOutput<'_, Self>,
            ) {
                $function(sizes, a, b, out);
            }
        }
    )*};
}

all_by! { by_the_crate: f64 Complex<f32> Complex<f64> }
all_by! { multiply_integers: i8 i16 i32 i64 u8 u16 u32 u64 }

/// Computes a matmul of a type that the `gemm` crate knows.
pub(super) fn by_the_crate<T: Number>(
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    let GemmSizes { m, k, n } = sizes;
    assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product {sizes:?}");
    let output = Matrix::row_major(&*out.data, out.row_stride);
    assert!(
        output.fits(m, n) && (m < 2 || n <= out.row_stride),
        "the place of a product {sizes:?}"
    );
    let stride = |stride: usize| stride as isize;
    // SAFETY: every element the call reads or writes lies inside the slices, as the assertions
    // above say; `out` is borrowed exclusively, its rows do not overlap, and all three are
    // initialised memory of the same plain type.
    #[expect(unsafe_code, reason = "the crate takes pointers")]
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.data.as_mut_ptr(),
            1,
            stride(out.row_stride),
            out.accumulate,
            a.data.as_ptr(),
            stride(a.col_stride),
            stride(a.row_stride),
            b.data.as_ptr(),
            stride(b.col_stride),
            stride(b.row_stride),
            T::ONE,
            T::ONE,
            false,
            a.conjugate,
            b.conjugate,
            Parallelism::None,
        );
    }
}

/// Computes a matmul of 16-bit floats in `f32`.
fn by_widening<T: WideElement<Acc = f32>>(
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    let (wide_a, wide_b) = (T::widen(a.data), T::widen(b.data));
    let (a, b) = (a.with_data(&wide_a), b.with_data(&wide_b));
    let GemmOutput { data, row_stride, accumulate } = out;
    T::through_acc(data, |data| {
        f32::multiply(sizes, a, b, GemmOutput { data, row_stride, accumulate });
    });
}

all_by! { by_widening: f16 }

impl GemmElement for bf16 {
    fn multiply(
        sizes: GemmSizes,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: GemmOutput<'_, Self>,
    ) {
        if let Some(out) = by_tiles(&Threads::single(), sizes, a, b, out) {
            by_widening(sizes, a, b, out);
        }
    }

    fn multiply_on(
        threads: &Threads,
        sizes: GemmSizes,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: GemmOutput<'_, Self>,
    ) {
        if let Some(out) = by_tiles(threads, sizes, a, b, out) {
            by_panels(threads, sizes, a, b, out);
        }
    }
}

/// Computes a matmul on tile registers; returns `out` where there are none or another way is
/// better.
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "the registers are those of one processor family")
)]
fn by_tiles<'o>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, bf16>,
    b: Matrix<'_, bf16>,
    out: GemmOutput<'o, bf16>,
) -> Option<GemmOutput<'o, bf16>> {
    #[cfg(target_arch = "x86_64")]
    if blocks::serves::<bf16>(sizes) && sizes.m >= blocks::FEWEST && !out.accumulate {
        let store = |block: SummedBlock<'_, bf16>| vectorize(Rounded(block));
        if let Some(unit) = TileUnit::detect() {
            blocks::multiply((unit, TileKind::Brain), threads, sizes, a, b, out, store);
            return None;
        }
        if let Some(unit) = DotUnit::detect() {
            blocks::multiply((unit, ()), threads, sizes, a, b, out, store);
            return None;
        }
    }
    Some(out)
}

/// Sums of `float32` that are rounded.
#[cfg(target_arch = "x86_64")]
struct Rounded<'a>(SummedBlock<'a, bf16>);

#[cfg(target_arch = "x86_64")]
impl Vectorized for Rounded<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (sums, out) in self.0.rows() {
            for (out, &sum) in out.iter_mut().zip(sums) {
                *out = bf16::from_f32(f32::from_bits(sum));
            }
        }
    }
}
