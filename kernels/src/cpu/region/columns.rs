//! Column regions: sums and means over the leading dimensions, of an expression that is evaluated
//! on the fly.
//!
//! Pieces of rows have sums of their own, and blocks of rows inside them: rounding errors grow with
//! the logarithm of the number of rows. Pieces are cut by sizes alone, so results do not depend on
//! the number of threads.

use super::{LEAST_ELEMENTS, RegionKernel, epilogue::ExprEpilogue};
use crate::{
    cpu::{
        gemm::{BlockEpilogue, rect::Rect},
        reduce::add_float_rows,
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{
    DType, Expr, ReduceKind, Shape,
    expr::{ExprKind, Replacement},
    infer::reduced_axes,
};

/// Rows shorter than this are faster in other ways.
const LEAST_COLS: usize = 16;

/// Elements of a block, which stays in the first-level cache.
const BLOCK: usize = 1 << 12;

/// Elements per piece of work.
const PIECE: usize = 1 << 16;

/// A reduction over leading dimensions as a kernel.
struct Columns {
    /// Computes the elements of rows, of operands alone.
    prologue: ExprEpilogue,
    rows: usize,
    cols: usize,
    is_mean: bool,
}

/// Compiles a region that is the sum or mean of an expression over its leading dimensions.
pub(super) fn compile(call: &OpCall<'_>, expr: &Expr) -> Result<Option<RegionKernel>> {
    let mut space = Shape::scalar();
    for input in call.inputs {
        space = space.broadcast(&input.shape)?;
    }
    let reduced = reduced_axes(call.attrs.ints("axes")?, space.rank())?;
    let n_last = reduced.iter().rev().take_while(|&&reduced| !reduced).count();
    let (first, last) = space.split_at(space.rank() - n_last);
    let (rows, cols): (usize, usize) = (first.iter().product(), last.iter().product());
    let is_leading = n_last > 0 && reduced[..reduced.len() - n_last].iter().all(|&reduced| reduced);
    let ExprKind::Reduce(kind, arg) = expr.nodes()[expr.root().index()].kind else {
        return Ok(None);
    };
    let is_sum = matches!(kind, ReduceKind::Sum | ReduceKind::Mean) && expr.dtype() == DType::F32;
    let fits = is_leading && is_sum && call.attrs.bool("reduces")?;
    let pays = cols >= LEAST_COLS && space.num_elements() >= LEAST_ELEMENTS.max(2 * cols);
    if !fits || space.num_elements() == 0 {
        return Ok(None);
    }
    // Input 0 of an epilogue is the result that it works on, of which there is none.
    let inputs = call.inputs.iter().enumerate();
    let moved: Vec<Replacement<'_>> =
        inputs.map(|(index, input)| Replacement::Input(index + 1, input.dtype)).collect();
    let part = expr.part(arg, |_| None).substitute(&moved);
    let Some(prologue) = ExprEpilogue::new(&part, &space, n_last, call.inputs) else {
        return Ok(None);
    };
    let is_mean = kind == ReduceKind::Mean;
    Ok(Some(RegionKernel::new(Columns { prologue, rows, cols, is_mean }, pays)))
}

impl Kernel for Columns {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let out: &mut [f32] = io.output(0);
        let (cols, running) = (self.cols, self.prologue.on(io, 0));
        let block_rows = (BLOCK / cols).max(1);
        let piece_rows = (PIECE / cols).max(1).next_multiple_of(block_rows);
        let n_pieces = self.rows.div_ceil(piece_rows);
        let mut sums = vec![0.0f32; n_pieces * cols];
        io.threads().for_each_piece(&mut sums, cols, |start, sums| {
            let first = start / cols * piece_rows;
            let last = self.rows.min(first + piece_rows);
            let (mut block, mut partial) = (vec![0.0; block_rows * cols], vec![0.0; cols]);
            for row in (first..last).step_by(block_rows) {
                let rows = block_rows.min(last - row);
                let block = &mut block[..rows * cols];
                running.apply(row, 0, Rect::new(block, rows, cols, cols));
                partial.fill(0.0);
                add_float_rows(block, &mut partial);
                add_float_rows(&partial, sums);
            }
        });
        let (total, others) = sums.split_at_mut(cols);
        add_float_rows(others, total);
        let scale = |sum: f32| if self.is_mean { sum / self.rows as f32 } else { sum };
        out.iter_mut().zip(total).for_each(|(out, sum)| *out = scale(*sum));
        Ok(())
    }
}
