//! Expressions along lines of elements that are in the cache: rows of a region, blocks of a
//! product.
//!
//! A program runs again and again on short lines, with what does not change between them made ready
//! once. Processors without wide vectors have no such programs.

use crate::simd::last_level_cache;
use ferroflow_ir::{DType, Expr, ReduceKind};
use std::sync::Arc;

/// Results of so many bytes pass the caches by: they are not there any more when they are read.
pub(crate) const STREAMED_FROM: usize = 8 << 20;

/// The same where the next op reads the result as it is: a large cache keeps more.
pub(crate) fn streamed_from() -> usize {
    last_level_cache().map_or(STREAMED_FROM, |bytes| STREAMED_FROM.max(bytes / 4))
}

/// Access to an input along a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    /// An element for each of the line.
    Elements,
    /// A single element for all, set by [`Runner::set`].
    Single,
    /// The accumulator of [`Runner::fold`].
    Accumulator,
}

/// Where an input of a line is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LineSource<'a> {
    /// Its bytes, from the first element of the line on.
    Elements(&'a [u8]),
    /// Bytes that begin again after `period`, from `at` on. They go on for a
    /// [tile](LineProgram::tile) behind the period.
    Cycle { bytes: &'a [u8], period: usize, at: usize },
    /// The memory of the output.
    InPlace,
    /// Nowhere: a single element, the accumulator, or an input that is not used.
    Unread,
}

/// Lines of as many elements each, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementLines<'a> {
    /// Where each input is.
    pub(crate) sources: &'a [LinesSource<'a>],
    /// The number of lines.
    pub(crate) n: usize,
    /// Elements of each.
    pub(crate) len: usize,
    /// Whether these are the last: memory is asked for no more then.
    pub(crate) is_all: bool,
}

/// Where an input of several lines is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LinesSource<'a> {
    /// Its bytes, from the first element of the first line on, and how many there are from line to line.
    /// Of as many lines that follow, the part of each tile from an eighth to another is asked for.
    Elements { bytes: &'a [u8], step: usize, asked: [u8; 2] },
    /// The single element of each line, of this width in bytes.
    Single { bytes: &'a [u8], step: usize, width: usize },
    /// The memory of the output.
    InPlace,
    /// Nowhere: the accumulator, or an input that is not used.
    Unread,
}

/// An expression compiled for lines.
pub(crate) trait LineProgram: Send + Sync {
    /// Something that runs it, on one thread.
    fn runner(&self) -> Box<dyn Runner + '_>;

    /// The same, to be kept.
    fn into_runner(self: Arc<Self>) -> Box<dyn Runner>;

    /// The number of elements that are computed together.
    fn tile(&self) -> usize;
}

/// A running program.
pub(crate) trait Runner: Send {
    /// Sets the only element of a [single](Along::Single) input, until it is set again.
    fn set(&mut self, input: usize, element: &[u8]);

    /// Computes the elements of `out`, the only result.
    ///
    /// # Panics
    ///
    /// When a source is too short.
    fn run(&mut self, sources: &[LineSource<'_>], out: &mut [u8]);

    /// Computes the elements of lines into `outs`, of which there is one for each result. With `streams`,
    /// the first result passes the caches by where there is such a store and its memory is aligned for it: for
    /// results so large that they are not in the caches any more when they are read.
    /// [`settle`](Runner::settle) ends a series of such calls. Sources in place are in the memory of the first
    /// result.
    ///
    /// # Panics
    ///
    /// When a source or an output is too short.
    fn run_lines(&mut self, lines: &ElementLines<'_>, outs: &mut [&mut [u8]], streams: bool);

    /// Orders what was streamed before all later stores.
    fn settle(&self);

    /// Reduces the elements of each line to a total, by a program whose result is the accumulator combined
    /// with an element; a mean is a sum here. Each part of the accumulator takes its share of a line, and
    /// the parts are combined pairwise. No source is in place.
    ///
    /// # Panics
    ///
    /// When a source is too short.
    fn fold_lines(&mut self, lines: &ElementLines<'_>, kind: ReduceKind, totals: &mut [f32]);
}

/// Compiles an expression whose inputs have these dtypes; `None` where there is no code for it.
pub(crate) fn compile(
    expr: &Expr,
    inputs: &[DType],
    along: &[Along],
) -> Option<Arc<dyn LineProgram>> {
    super::tile::line_program(expr, inputs, along)
}
