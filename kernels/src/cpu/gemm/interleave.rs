//! Rows laid side by side: the transposition that packing takes, in registers.

use super::vector::InstructionSet;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Steps that are taken at a time.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 8;

/// Copies rows of equal length into a panel: the first elements of all rows, the second ones, and
/// so on. Steps are `pitch` elements apart.
///
/// # Panics
///
/// When there are not four or six rows of equal length, or the panel is too short.
pub(super) fn interleave<const N: usize>(
    _: InstructionSet,
    rows: [&[f32]; N],
    panel: &mut [f32],
    pitch: usize,
) {
    const { assert!(N == 4 || N == 6, "four rows or six") };
    let len = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == len), "rows of equal length");
    assert!(len == 0 || (len - 1) * pitch + N <= panel.len(), "room for all rows");
    #[cfg(not(target_arch = "x86_64"))]
    let whole = 0;
    #[cfg(target_arch = "x86_64")]
    let whole = len / LANES * LANES;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a machine proves that the processor has AVX2; the rows have `whole` elements and
    // the panel room for them.
    #[expect(unsafe_code, reason = "the registers are filled through pointers")]
    unsafe {
        transpose(rows.map(<[f32]>::as_ptr), whole, panel.as_mut_ptr(), pitch);
    }
    for (step, cell) in panel.chunks_mut(pitch).enumerate().take(len).skip(whole) {
        for (element, row) in cell.iter_mut().zip(rows) {
            *element = row[step];
        }
    }
}

/// Interleaves the first elements of four or six rows.
///
/// # Safety
///
/// The processor has what `has_avx2` asks for. Each row points to `len` floats, a
/// multiple of [`LANES`], and `panel` to as many steps, `pitch` floats apart.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn transpose<const N: usize>(
    rows: [*const f32; N],
    len: usize,
    panel: *mut f32,
    pitch: usize,
) {
    for start in (0..len).step_by(LANES) {
        // SAFETY: the caller vouches for the memory.
        let load = |row: usize| unsafe { _mm256_loadu_ps(rows[row].add(start)) };
        let (a, b, c, d) = (load(0), load(1), load(2), load(3));
        // Pairs of rows, steps 0 1 4 5 and 2 3 6 7.
        let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (ab2, cd2) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        // Four rows, steps 0 4, 1 5, 2 6, 3 7.
        let four = [
            _mm256_shuffle_ps::<0b01_00_01_00>(ab, cd),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd),
            _mm256_shuffle_ps::<0b01_00_01_00>(ab2, cd2),
            _mm256_shuffle_ps::<0b11_10_11_10>(ab2, cd2),
        ];
        // The other pair of rows, steps 0 1 4 5 and 2 3 6 7.
        let two = (N == 6).then(|| {
            let (e, f) = (load(N - 2), load(N - 1));
            [_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f)]
        });
        for (step, four) in four.into_iter().enumerate() {
            let four = [_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four)];
            for (half, four) in four.into_iter().enumerate() {
                // SAFETY: the caller vouches for the memory; this is one of the steps.
                unsafe {
                    let cell = panel.add((start + step + half * 4) * pitch);
                    _mm_storeu_ps(cell, four);
                    let Some(two) = two else { continue };
                    let two = match half {
                        0 => _mm256_castps256_ps128(two[step / 2]),
                        _ => _mm256_extractf128_ps::<1>(two[step / 2]),
                    };
                    let (cell, two) = (cell.add(4).cast::<f64>(), _mm_castps_pd(two));
                    if step % 2 == 0 { _mm_storel_pd(cell, two) } else { _mm_storeh_pd(cell, two) }
                }
            }
        }
    }
}
