//! Epilogues on a tile that has just been written: a bias, a factor, a residual, and bounds.

#![expect(unsafe_code, reason = "the registers are filled through pointers")]

use super::{
    rect::Rect,
    vector::{Compiled, InstructionSet, Vector, VectorFunction, compiled},
};
use crate::{
    elementwise::tile::Lanes,
    simd::{prefetch_line, unrolled},
};
use std::borrow::Cow;

const FLOATS_PER_CACHE_LINE: usize = 16;

/// Linear steps on each result `x`: `(x + bias) * factor + shift + residual`, or
/// `(x + residual + bias) * factor + shift`, no less than a number and no more than another. What is not
/// there is left out; NaN stays.
#[derive(Debug, Default)]
pub(in crate::cpu) struct LinearSteps<'a> {
    /// Whether subnormal numbers count as zero, and subnormal results become zero.
    pub(in crate::cpu) flushes: bool,
    /// An element for each column.
    pub(in crate::cpu) bias: Option<Cow<'a, [f32]>>,
    /// An element for each column.
    pub(in crate::cpu) factor: Option<Cow<'a, [f32]>>,
    /// An element for each column.
    pub(in crate::cpu) shift: Option<Cow<'a, [f32]>>,
    /// An element for each result; subnormal numbers count as zero.
    pub(in crate::cpu) residual: Option<&'a [f32]>,
    /// Whether the residual is added before everything else.
    pub(in crate::cpu) adds_first: bool,
    pub(in crate::cpu) bounds: Option<(f32, f32)>,
}

/// Steps on all results of a kernel: rows of `cols` elements.
#[derive(Debug)]
pub(in crate::cpu) struct LinearEpilogue<'a> {
    steps: LinearSteps<'a>,
    /// The [form](form) of the steps.
    form: usize,
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
        LinearEpilogue { form: form(&steps), steps, cols, len }
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
    /// Asks for the residuals of a tile that is about to be computed: they may be far away.
    #[inline]
    pub(in crate::cpu) fn prefetch(&self, tile: &Rect<'_>) {
        let Some(residual) = self.epilogue.steps.residual else { return };
        for row in 0..tile.rows() {
            let line = residual.as_ptr().wrapping_add(self.at + row * self.row_step);
            for col in (0..tile.cols()).step_by(FLOATS_PER_CACHE_LINE) {
                prefetch_line(line.wrapping_add(col));
            }
            prefetch_line(line.wrapping_add(tile.cols() - 1));
        }
    }

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
        let sums = Sums { data: tile.as_ptr(), row_stride: tile.row_stride() };
        // SAFETY: the sums are those of the tile.
        unsafe { self.run_on(machine, sums, &tile) }
    }

    /// Does the steps to sums that are elsewhere, rows of them so far apart, and puts the results into a tile.
    ///
    /// # Panics
    ///
    /// When the tile does not lie inside the results, or there are not so many sums.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(in crate::cpu) fn put(
        &self,
        machine: InstructionSet,
        sums: &[f32],
        row_stride: usize,
        tile: Rect<'_>,
    ) {
        if tile.rows() == 0 || tile.cols() == 0 {
            return;
        }
        let last = (tile.rows() - 1).checked_mul(row_stride);
        let end = last.and_then(|at| at.checked_add(tile.cols()));
        assert!(end.is_some_and(|end| end <= sums.len()), "sums of a tile");
        // SAFETY: the slice has the sums of all rows.
        unsafe { self.run_on(machine, Sums { data: sums.as_ptr(), row_stride }, &tile) }
    }

    /// # Safety
    ///
    /// There are as many sums as the tile, which is not empty, has results.
    #[inline]
    unsafe fn run_on(&self, machine: InstructionSet, sums: Sums, tile: &Rect<'_>) {
        self.check(tile);
        let run = machine.choose(&FUNCTIONS[self.epilogue.form]);
        // SAFETY: `machine` proves that the processor has the features; `tile` is an exclusive borrow
        // of its rows; the operands have an element for each column, or for each result, and the tile
        // lies inside; the caller vouches for the sums.
        unsafe { run((self, sums, tile)) }
    }

    /// Checks that a tile, which is not empty, is inside the results.
    ///
    /// # Panics
    ///
    /// When it does not.
    #[inline]
    pub(super) fn check(&self, tile: &Rect<'_>) {
        let last = (tile.rows() - 1).checked_mul(self.row_step);
        let end = last.and_then(|at| at.checked_add(self.at + tile.cols()));
        let inside = self.col + tile.cols() <= self.epilogue.cols;
        assert!(inside && end.is_some_and(|end| end <= self.epilogue.len), "a tile of the results");
    }

    /// Does the steps to the sums of a tile while they are in registers: each step to all of them, so
    /// that what there is to do is asked once.
    ///
    /// # Safety
    ///
    /// The processor has the features of the vector; the tile was [checked](LinearTile::check), and is of
    /// `R` rows and of `V` vectors, of whose last `part` counts with `PART`.
    #[inline(always)]
    pub(super) unsafe fn finish<X: Vector, const PART: bool, const R: usize, const V: usize>(
        &self,
        sums: &mut [[X; V]; R],
        part: X::Part,
    ) {
        let LinearEpilogue { steps, form, .. } = self.epilogue;
        // No closures: they would not always become a part of a function with the features.
        macro_rules! each {
            (|$x:ident| $result:expr) => {
                unrolled!(row < R, 12, {
                    unrolled!(vector < V, 2, {
                        let $x = sums[row][vector].to_lanes();
                        sums[row][vector] = X::of_lanes($result);
                    });
                });
            };
        }
        macro_rules! each_column {
            ($columns:expr, |$x:ident, $operand:ident| $result:expr) => {
                if let Some(columns) = $columns {
                    let columns = columns.as_ptr().wrapping_add(self.col);
                    unrolled!(vector < V, 2, {
                        let at = columns.wrapping_add(vector * X::LANES);
                        let $operand = match PART && vector + 1 == V {
                            true => load::<X, true>(at, part),
                            false => load::<X, false>(at, part),
                        };
                        unrolled!(row < R, 12, {
                            let $x = sums[row][vector].to_lanes();
                            sums[row][vector] = X::of_lanes($result);
                        });
                    });
                }
            };
        }
        // SAFETY: the caller vouches for the processor and the memory.
        unsafe {
            let none = X::zero().to_lanes();
            if has(*form, FLUSH) {
                each!(|x| x.flush());
            }
            if let Some(residual) = steps.residual.filter(|_| steps.adds_first) {
                self.add::<X, PART, R, V>(residual, sums, part);
            }
            each_column!(&steps.bias, |x, bias| x.plus(bias));
            each_column!(&steps.factor, |x, factor| x.times(factor));
            each_column!(&steps.shift, |x, shift| x.plus(shift));
            if let Some(residual) = steps.residual.filter(|_| !steps.adds_first) {
                self.add::<X, PART, R, V>(residual, sums, part);
            }
            let (low, high) = steps.bounds.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
            let (low, high) = (none.fill(low), none.fill(high));
            if has(*form, RECTIFY) {
                let normal = none.fill(f32::MIN_POSITIVE);
                each!(|x| x.is_lt(normal).choose(none, high.min_or(x)));
            } else {
                if steps.bounds.is_some() {
                    each!(|x| x.is_nan().choose(x, x.max_or(low).min_or(high)));
                }
                if has(*form, FLUSH) {
                    each!(|x| x.flush());
                }
            }
        }
    }
}

impl LinearTile<'_> {
    /// Adds residuals to the sums of a tile.
    ///
    /// # Safety
    ///
    /// As for [`finish`](LinearTile::finish).
    #[inline(always)]
    unsafe fn add<X: Vector, const PART: bool, const R: usize, const V: usize>(
        &self,
        residual: &[f32],
        sums: &mut [[X; V]; R],
        part: X::Part,
    ) {
        let mut line = residual.as_ptr().wrapping_add(self.at);
        // SAFETY: the caller vouches for the processor and the memory.
        unsafe {
            unrolled!(row < R, 12, {
                unrolled!(vector < V, 2, {
                    let at = line.wrapping_add(vector * X::LANES);
                    let residual = match PART && vector + 1 == V {
                        true => load::<X, true>(at, part),
                        false => load::<X, false>(at, part),
                    };
                    let sum = sums[row][vector].to_lanes();
                    sums[row][vector] = X::of_lanes(sum.plus(residual.flush()));
                });
                line = line.wrapping_add(self.row_step);
            });
        }
    }
}

/// Sums of a tile, rows of them so far apart: in the tile itself, or elsewhere.
#[derive(Debug, Clone, Copy)]
struct Sums {
    data: *const f32,
    row_stride: usize,
}

/// A function for tiles of one form.
type Run = for<'a> unsafe fn((&'a LinearTile<'a>, Sums, &'a Rect<'a>));

/// Subnormal numbers count as zero.
const FLUSH: usize = 1;
const RESIDUAL: usize = 2;
const BIAS: usize = 4;
const FACTOR: usize = 8;
/// Subnormal numbers count as zero, as negative ones do: one comparison is for both.
const RECTIFY: usize = 16 | FLUSH;

/// The functions for all forms, by their bits.
macro_rules! forms {
    ($($form:literal)*) => { [$(compiled!(Steps<$form>)),*] };
}

static FUNCTIONS: [Compiled<Run>; 32] = forms!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
);

/// The bits of the form of some steps.
fn form(steps: &LinearSteps<'_>) -> usize {
    let rectifies =
        steps.bounds.is_some_and(|(low, high)| low.to_bits() == 0 && high >= f32::MIN_POSITIVE);
    let bits = [
        (FLUSH, steps.flushes),
        (RESIDUAL, steps.residual.is_some()),
        (BIAS, steps.bias.is_some()),
        (FACTOR, steps.factor.is_some()),
        (RECTIFY, steps.flushes && rectifies),
    ];
    bits.iter().filter(|(_, is_set)| *is_set).fold(0, |form, (bit, _)| form | bit)
}

const fn has(form: usize, bits: usize) -> bool {
    form & bits == bits
}

/// [`steps`] for any vector.
struct Steps<const FORM: usize>;

impl<const FORM: usize> VectorFunction for Steps<FORM> {
    type Call<'a> = (&'a LinearTile<'a>, Sums, &'a Rect<'a>);

    #[inline(always)]
    unsafe fn run<X: Vector>((at, sums, tile): Self::Call<'_>) {
        // SAFETY: the caller vouches for it.
        unsafe { steps::<X, FORM>(at, sums, tile) }
    }
}

/// Does the steps, to a vector of columns after the other.
///
/// # Safety
///
/// The processor has the features of the vector. Nobody else refers to the tile, which lies inside the
/// results of the epilogue, whose steps have the form; there are as many sums.
#[inline(always)]
unsafe fn steps<X: Vector, const FORM: usize>(at: &LinearTile<'_>, sums: Sums, tile: &Rect<'_>) {
    let whole = tile.cols() / X::LANES * X::LANES;
    // SAFETY: the caller vouches for the processor and the memory.
    unsafe {
        let part = X::part(tile.cols() - whole);
        for col in (0..whole).step_by(X::LANES) {
            columns::<X, FORM, false>(at, sums, tile, col, part);
        }
        if whole < tile.cols() {
            columns::<X, FORM, true>(at, sums, tile, whole, part);
        }
    }
}

/// Does the steps to a vector of columns of all rows, or with `PART` to a part of one.
///
/// # Safety
///
/// As for [`steps`].
#[inline(always)]
unsafe fn columns<X: Vector, const FORM: usize, const PART: bool>(
    at: &LinearTile<'_>,
    sums: Sums,
    tile: &Rect<'_>,
    col: usize,
    part: X::Part,
) {
    let LinearEpilogue { steps, .. } = at.epilogue;
    let (first, mut results) = (at.col + col, tile.as_ptr().wrapping_add(col));
    let mut source = sums.data.wrapping_add(col);
    let mut residual = match steps.residual {
        Some(all) => all.as_ptr().wrapping_add(at.at + col),
        None => results.cast_const(),
    };
    let (low, high) = steps.bounds.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
    // SAFETY: the caller vouches for the processor and the memory.
    unsafe {
        let none = X::zero().to_lanes();
        // What is not there is a number that changes no bit.
        let bias = operand::<X, PART>(&steps.bias, -0.0, first, part);
        let factor = operand::<X, PART>(&steps.factor, 1.0, first, part);
        let shift = operand::<X, PART>(&steps.shift, -0.0, first, part);
        let (low, high) = (none.fill(low), none.fill(high));
        let normal = none.fill(f32::MIN_POSITIVE);
        for _ in 0..tile.rows() {
            let mut x = load::<X, PART>(source, part);
            if has(FORM, FLUSH) {
                x = x.flush();
            }
            if has(FORM, RESIDUAL) && steps.adds_first {
                x = x.plus(load::<X, PART>(residual, part).flush());
            }
            if has(FORM, BIAS) {
                x = x.plus(bias);
            }
            if has(FORM, FACTOR) {
                x = x.times(factor);
            }
            x = x.plus(shift);
            if has(FORM, RESIDUAL) && !steps.adds_first {
                x = x.plus(load::<X, PART>(residual, part).flush());
            }
            if has(FORM, RECTIFY) {
                // Comparisons with NaN are false, and the smaller of it and a number is NaN here.
                x = x.is_lt(normal).choose(none, high.min_or(x));
            } else {
                x = x.is_nan().choose(x, x.max_or(low).min_or(high));
                if has(FORM, FLUSH) {
                    x = x.flush();
                }
            }
            match PART {
                true => X::of_lanes(x).store_part(results, part),
                false => X::of_lanes(x).store(results),
            }
            source = source.wrapping_add(sums.row_stride);
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
    columns: &Option<Cow<'_, [f32]>>,
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
