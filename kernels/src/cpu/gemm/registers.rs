//! Epilogues on sums while they are in registers: steps that need no more than the sum, what belongs
//! to its column, and what lies at its place in another tensor.

#![expect(unsafe_code, reason = "the registers are filled through pointers")]

use super::vector::Vector;
use crate::elementwise::tile::{Lanes, larger, smaller};

/// The other operand of a step.
#[derive(Debug, Clone)]
pub(in crate::cpu) enum StepOperand<'a> {
    /// One element for each column.
    Columns(Vec<f32>),
    /// One element for each result, in the same order; subnormal numbers count as zero.
    Elements(&'a [f32]),
}

/// What is done to each sum.
#[derive(Debug, Clone)]
pub(in crate::cpu) enum RegisterStep<'a> {
    /// Subnormal numbers become zero.
    Flush,
    Times(StepOperand<'a>),
    Plus(StepOperand<'a>),
    /// The larger of the sum and a number; NaN stays.
    AtLeast(f32),
    /// The smaller of the sum and a number; NaN stays.
    AtMost(f32),
    /// First the larger of the sum and a number, then the smaller of that and another.
    Between(f32, f32),
}

/// Steps on all results of a kernel: rows of `cols` elements.
#[derive(Debug)]
pub(in crate::cpu) struct RegisterEpilogue<'a> {
    steps: Vec<RegisterStep<'a>>,
    cols: usize,
    len: usize,
}

impl<'a> RegisterEpilogue<'a> {
    /// Steps on `len` results.
    ///
    /// # Panics
    ///
    /// When an operand has not as many elements as there are columns, or results.
    pub(in crate::cpu) fn new(
        steps: Vec<RegisterStep<'a>>,
        cols: usize,
        len: usize,
    ) -> RegisterEpilogue<'a> {
        for step in &steps {
            let (RegisterStep::Times(operand) | RegisterStep::Plus(operand)) = step else {
                continue;
            };
            match operand {
                StepOperand::Columns(columns) => assert_eq!(columns.len(), cols, "columns"),
                StepOperand::Elements(elements) => assert_eq!(elements.len(), len, "results"),
            }
        }
        RegisterEpilogue { steps, cols, len }
    }
}

/// An epilogue for a tile of results.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct TileEpilogue<'a> {
    epilogue: &'a RegisterEpilogue<'a>,
    /// The column of the first result, and its number among all.
    col: usize,
    at: usize,
    /// From a row of the tile to the next.
    row_step: usize,
}

impl<'a> TileEpilogue<'a> {
    /// For a tile whose first result is this one, and whose rows are every `step`th of all.
    pub(in crate::cpu) fn new(
        epilogue: &'a RegisterEpilogue<'a>,
        row: usize,
        col: usize,
        step: usize,
    ) -> TileEpilogue<'a> {
        let cols = epilogue.cols;
        TileEpilogue { epilogue, col, at: row * cols + col, row_step: step * cols }
    }

    /// For the part of the tile from a row and a column on.
    #[inline(always)]
    pub(in crate::cpu) fn from(self, row: usize, col: usize) -> TileEpilogue<'a> {
        let (at, col) = (self.at + row * self.row_step + col, self.col + col);
        TileEpilogue { at, col, ..self }
    }

    /// Whether a tile of this size lies inside the results.
    pub(in crate::cpu) fn fits(&self, rows: usize, cols: usize) -> bool {
        let end = (rows - 1).checked_mul(self.row_step).and_then(|rows| rows.checked_add(self.at));
        let inside = end.and_then(|at| at.checked_add(cols));
        self.col + cols <= self.epilogue.cols && inside.is_some_and(|end| end <= self.epilogue.len)
    }

    /// Does the steps to the sums of a tile, of which the last vector is only a part with `PART`.
    ///
    /// # Safety
    ///
    /// The processor has the features of the vector, and the tile [fits](TileEpilogue::fits).
    #[inline(always)]
    pub(in crate::cpu) unsafe fn run<
        X: Vector,
        const PART: bool,
        const R: usize,
        const V: usize,
    >(
        &self,
        sums: &mut [[X; V]; R],
        part: X::Part,
    ) {
        let load = |at: *const f32, vector: usize| {
            let at = at.wrapping_add(vector * X::LANES);
            // SAFETY: the caller vouches for the processor; operands have an element for every
            // column, or for every result, and the tile lies inside.
            let loaded = unsafe {
                if PART && vector + 1 == V { X::load_part(at, part) } else { X::load(at) }
            };
            loaded.to_lanes()
        };
        for step in &self.epilogue.steps {
            match step {
                RegisterStep::Flush => each(sums, Lanes::flush),
                RegisterStep::AtLeast(low) => each(sums, |x| larger(x, x.fill(*low))),
                RegisterStep::AtMost(high) => each(sums, |x| smaller(x, x.fill(*high))),
                RegisterStep::Between(low, high) => each(sums, |x| {
                    let between = x.max_or(x.fill(*low)).min_or(x.fill(*high));
                    x.is_nan().choose(x, between)
                }),
                RegisterStep::Times(StepOperand::Columns(columns)) => {
                    let columns = columns.as_ptr().wrapping_add(self.col);
                    by_columns(sums, |vector| load(columns, vector), Lanes::times);
                }
                RegisterStep::Plus(StepOperand::Columns(columns)) => {
                    let columns = columns.as_ptr().wrapping_add(self.col);
                    by_columns(sums, |vector| load(columns, vector), Lanes::plus);
                }
                RegisterStep::Times(StepOperand::Elements(elements)) => {
                    let first = elements.as_ptr().wrapping_add(self.at);
                    let row = |row: usize| first.wrapping_add(row * self.row_step);
                    by_elements(sums, |at, vector| load(row(at), vector).flush(), Lanes::times);
                }
                RegisterStep::Plus(StepOperand::Elements(elements)) => {
                    let first = elements.as_ptr().wrapping_add(self.at);
                    let row = |row: usize| first.wrapping_add(row * self.row_step);
                    by_elements(sums, |at, vector| load(row(at), vector).flush(), Lanes::plus);
                }
            }
        }
    }
}

#[inline(always)]
fn each<X: Vector, const R: usize, const V: usize>(
    sums: &mut [[X; V]; R],
    f: impl Fn(X::Lanes) -> X::Lanes,
) {
    for row in sums {
        for sum in row {
            *sum = X::of_lanes(f(sum.to_lanes()));
        }
    }
}

#[inline(always)]
fn by_columns<X: Vector, const R: usize, const V: usize>(
    sums: &mut [[X; V]; R],
    load: impl Fn(usize) -> X::Lanes,
    f: impl Fn(X::Lanes, X::Lanes) -> X::Lanes,
) {
    for vector in 0..V {
        let columns = load(vector);
        for row in &mut *sums {
            row[vector] = X::of_lanes(f(row[vector].to_lanes(), columns));
        }
    }
}

#[inline(always)]
fn by_elements<X: Vector, const R: usize, const V: usize>(
    sums: &mut [[X; V]; R],
    load: impl Fn(usize, usize) -> X::Lanes,
    f: impl Fn(X::Lanes, X::Lanes) -> X::Lanes,
) {
    for (index, row) in sums.iter_mut().enumerate() {
        for (vector, sum) in row.iter_mut().enumerate() {
            *sum = X::of_lanes(f(sum.to_lanes(), load(index, vector)));
        }
    }
}
