//! Epilogues on a tile that has just been written: a bias, a factor, a residual, and bounds.

#![expect(unsafe_code, reason = "the registers are filled through pointers")]

use super::{
    rect::Rect,
    tile::{InstructionSet, Set},
    vector::Vector,
};
use crate::elementwise::tile::Lanes;
use std::arch::x86_64::{__m256, __m512};

/// Linear steps on each result `x`: `(x + bias) * factor + shift + residual`, no less than a number and
/// no more than another. What is not there is left out; NaN stays.
#[derive(Debug, Default)]
pub(in crate::cpu) struct LinearSteps<'a> {
    /// Whether subnormal numbers count as zero, and subnormal results become zero.
    pub(in crate::cpu) flushes: bool,
    /// An element for each column.
    pub(in crate::cpu) bias: Option<Vec<f32>>,
    /// An element for each column.
    pub(in crate::cpu) factor: Option<Vec<f32>>,
    /// An element for each column.
    pub(in crate::cpu) shift: Option<Vec<f32>>,
    /// An element for each result; subnormal numbers count as zero.
    pub(in crate::cpu) residual: Option<&'a [f32]>,
    pub(in crate::cpu) bounds: Option<(f32, f32)>,
}

/// Steps on all results of a kernel: rows of `cols` elements.
#[derive(Debug)]
pub(in crate::cpu) struct LinearEpilogue<'a> {
    steps: LinearSteps<'a>,
    cols: usize,
    len: usize,
}

impl<'a> LinearEpilogue<'a> {
    /// Steps on `len` results.
    ///
    /// # Panics
    ///
    /// When an operand has not as many elements as there are columns, or results.
    pub(in crate::cpu) fn new(
        steps: LinearSteps<'a>,
        cols: usize,
        len: usize,
    ) -> LinearEpilogue<'a> {
        for columns in [&steps.bias, &steps.factor, &steps.shift].into_iter().flatten() {
            assert_eq!(columns.len(), cols, "an element for each column");
        }
        assert!(steps.residual.is_none_or(|all| all.len() == len), "an element for each result");
        LinearEpilogue { steps, cols, len }
    }

    /// For a tile whose first result is this one, and whose rows are every `step`th of all.
    pub(in crate::cpu) fn tile(&self, row: usize, col: usize, step: usize) -> LinearTile<'_> {
        let cols = self.cols;
        LinearTile { epilogue: self, col, at: row * cols + col, row_step: step * cols }
    }
}

/// An epilogue for a tile of results.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct LinearTile<'a> {
    epilogue: &'a LinearEpilogue<'a>,
    /// The column of the first result, and its number among all.
    col: usize,
    at: usize,
    /// From a row of the tile to the next.
    row_step: usize,
}

impl LinearTile<'_> {
    /// Does the steps to a tile.
    ///
    /// # Panics
    ///
    /// When the tile does not lie inside the results.
    #[inline]
    pub(in crate::cpu) fn run(&self, machine: InstructionSet, tile: Rect<'_>) {
        if tile.rows() == 0 || tile.cols() == 0 {
            return;
        }
        let last = (tile.rows() - 1).checked_mul(self.row_step);
        let end = last.and_then(|at| at.checked_add(self.at + tile.cols()));
        let inside = self.col + tile.cols() <= self.epilogue.cols;
        assert!(inside && end.is_some_and(|end| end <= self.epilogue.len), "a tile of the results");
        let steps = &self.epilogue.steps;
        let run = match (machine.0, steps.flushes, steps.residual.is_some()) {
            (Set::Avx2, false, false) => avx2::<false, false>,
            (Set::Avx2, false, true) => avx2::<false, true>,
            (Set::Avx2, true, false) => avx2::<true, false>,
            (Set::Avx2, true, true) => avx2::<true, true>,
            (Set::Avx512, false, false) => avx512::<false, false>,
            (Set::Avx512, false, true) => avx512::<false, true>,
            (Set::Avx512, true, false) => avx512::<true, false>,
            (Set::Avx512, true, true) => avx512::<true, true>,
        };
        let run: unsafe fn(&LinearTile<'_>, &Rect<'_>) = run;
        // SAFETY: `machine` proves that the processor has the features; `tile` is an exclusive borrow
        // of its rows; the operands have an element for each column, or for each result, and the tile
        // lies inside.
        unsafe { run(self, &tile) }
    }
}

/// # Safety
///
/// As for [`steps`]; the processor has what [`has_avx2`](crate::simd::has_avx2) asks for.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<const FLUSH: bool, const RESIDUAL: bool>(at: &LinearTile<'_>, tile: &Rect<'_>) {
    // SAFETY: the caller vouches for it.
    unsafe { steps::<__m256, FLUSH, RESIDUAL>(at, tile) }
}

/// # Safety
///
/// As for [`steps`]; the processor has what [`has_avx512`](crate::simd::has_avx512) asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn avx512<const FLUSH: bool, const RESIDUAL: bool>(at: &LinearTile<'_>, tile: &Rect<'_>) {
    // SAFETY: the caller vouches for it.
    unsafe { steps::<__m512, FLUSH, RESIDUAL>(at, tile) }
}

/// Does the steps, to a vector of columns after the other.
///
/// # Safety
///
/// The processor has the features of the vector. Nobody else refers to the tile, which lies inside the
/// results of the epilogue; there is a residual if `RESIDUAL` says so.
#[inline(always)]
unsafe fn steps<X: Vector, const FLUSH: bool, const RESIDUAL: bool>(
    at: &LinearTile<'_>,
    tile: &Rect<'_>,
) {
    let whole = tile.cols() / X::LANES * X::LANES;
    // SAFETY: the caller vouches for the processor and the memory.
    unsafe {
        let part = X::part(tile.cols() - whole);
        for col in (0..whole).step_by(X::LANES) {
            columns::<X, FLUSH, RESIDUAL, false>(at, tile, col, part);
        }
        if whole < tile.cols() {
            columns::<X, FLUSH, RESIDUAL, true>(at, tile, whole, part);
        }
    }
}

/// Does the steps to a vector of columns of all rows, or with `PART` to a part of one. What is not
/// there is a number that changes no bit.
///
/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn columns<X: Vector, const FLUSH: bool, const RESIDUAL: bool, const PART: bool>(
    at: &LinearTile<'_>,
    tile: &Rect<'_>,
    col: usize,
    part: X::Part,
) {
    let LinearEpilogue { steps, .. } = at.epilogue;
    let (first, mut results) = (at.col + col, tile.as_ptr().wrapping_add(col));
    let mut residual = match steps.residual {
        Some(all) => all.as_ptr().wrapping_add(at.at + col),
        None => results.cast_const(),
    };
    let (low, high) = steps.bounds.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
    // SAFETY: the caller vouches for the processor and the memory.
    unsafe {
        let none = X::zero().to_lanes();
        let bias = operand::<X, PART>(&steps.bias, -0.0, first, part);
        let factor = operand::<X, PART>(&steps.factor, 1.0, first, part);
        let shift = operand::<X, PART>(&steps.shift, -0.0, first, part);
        let (low, high) = (none.fill(low), none.fill(high));
        for _ in 0..tile.rows() {
            let mut x = load::<X, PART>(results, part);
            if FLUSH {
                x = x.flush();
            }
            x = x.plus(bias).times(factor).plus(shift);
            if RESIDUAL {
                x = x.plus(load::<X, PART>(residual, part).flush());
            }
            x = x.is_nan().choose(x, x.max_or(low).min_or(high));
            if FLUSH {
                x = x.flush();
            }
            match PART {
                true => X::of_lanes(x).store_part(results, part),
                false => X::of_lanes(x).store(results),
            }
            results = results.wrapping_add(tile.row_stride());
            residual = residual.wrapping_add(at.row_step);
        }
    }
}

/// The elements of some columns, or a number where there are none.
///
/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn operand<X: Vector, const PART: bool>(
    columns: &Option<Vec<f32>>,
    none: f32,
    first: usize,
    part: X::Part,
) -> X::Lanes {
    // SAFETY: the caller vouches for the processor and the memory.
    unsafe {
        match columns {
            Some(columns) => load::<X, PART>(columns.as_ptr().wrapping_add(first), part),
            None => X::zero().to_lanes().fill(none),
        }
    }
}

/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn load<X: Vector, const PART: bool>(from: *const f32, part: X::Part) -> X::Lanes {
    // SAFETY: the caller vouches for the processor and the memory.
    let loaded = unsafe { if PART { X::load_part(from, part) } else { X::load(from) } };
    loaded.to_lanes()
}
