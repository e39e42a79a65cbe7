//! Elementwise results of windows of tensors: several at once, row by row.

use super::{RegionKernel, operand::RegionOperand};
use crate::{
    device::OpCall,
    elementwise::lines::{
        Along, ElementLines, LineProgram, LinesSource, Runner, compile as program,
    },
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, StridedView, ops::fused_expressions::windows};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::{slice::ChunksMut, sync::Arc};

/// The most elements of a block.
const BLOCK: usize = 1 << 14;

/// Compiles a `_FusedExpressions` call; `None` where there is no code for an expression, or for a window.
pub(super) fn compile(call: &OpCall<'_>) -> Result<Option<RegionKernel>> {
    let Some(expr) = call.expr else { return Ok(None) };
    let (shape, views) = call.with_context(windows)?;
    let of_rows = |n_last: usize| {
        let operand = |(view, input): (&StridedView, &crate::OperandSpec)| {
            RegionOperand::of_view(view, n_last, input.dtype.size()?)
        };
        views.iter().zip(call.inputs).map(operand).collect::<Option<Vec<RegionOperand>>>()
    };
    let longest = (1..=shape.rank()).rev().find_map(|n_last| Some((n_last, of_rows(n_last)?)));
    let Some((n_last, operands)) = longest else { return Ok(None) };
    let cols: usize = shape[shape.rank() - n_last..].iter().product();
    let dtypes: Vec<DType> = call.inputs.iter().map(|input| input.dtype).collect();
    let along: Vec<Along> = operands.iter().map(|operand| operand.along).collect();
    let outputs = call.outputs.iter().map(|output| output.dtype);
    let computed = expr.results().map(|result| expr.nodes()[result.index()].dtype);
    if outputs.clone().any(|dtype| dtype != DType::F32) || !outputs.eq(computed) {
        return Ok(None);
    }
    let Some(program) = program(expr, &dtypes, &along) else { return Ok(None) };
    // The end of a row that does not fill a tile is computed on copies.
    let pays = cols.is_multiple_of(program.tile()) || cols > 2 * program.tile();
    let sized = call.inputs.iter().map(|input| input.shape.num_elements() == shape.num_elements());
    let whole = operands.iter().zip(sized).map(|(operand, is_sized)| {
        is_sized && operand.width == size_of::<f32>() && operand.is_whole(cols)
    });
    let (whole, n_results, runners) = (whole.collect(), call.outputs.len(), Mutex::default());
    let kernel = Expressions { program, operands, whole, cols, n_results, runners };
    Ok(Some(RegionKernel::new(kernel, pays)))
}

/// Expressions as a kernel.
struct Expressions {
    program: Arc<dyn LineProgram>,
    operands: Vec<RegionOperand>,
    /// Whether each operand has the elements of its position, and no others.
    whole: Vec<bool>,
    /// Elements of a row.
    cols: usize,
    n_results: usize,
    /// The runners that no call uses at the moment: making one takes longer than a short row.
    runners: Mutex<Vec<Box<dyn Runner>>>,
}

/// The memory of each result for a block.
type BlockOutputs<'a> = SmallVec<[&'a mut [u8]; 2]>;

/// Some rows, or a part of one.
#[derive(Clone, Copy)]
struct RowBlock {
    row: usize,
    n: usize,
    col: usize,
    len: usize,
    /// Whether there is nothing else.
    is_all: bool,
}

impl Kernel for Expressions {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let mut outs: BlockOutputs<'_> = (0..self.n_results).map(|n| io.output_bytes(n)).collect();
        let rows = outs[0].len() / (self.cols * size_of::<f32>());
        // Rows that are not as far apart come one by one.
        let is_even = rows == 1 || self.operands.iter().all(|operand| operand.step.is_some());
        if is_even && rows * self.cols <= BLOCK {
            let whole = RowBlock { row: 0, n: rows, col: 0, len: self.cols, is_all: true };
            self.with_runner(|runner| self.block(runner, io, whole, &mut outs));
            return Ok(());
        }
        let n = if is_even { (BLOCK / self.cols).max(1) } else { 1 };
        let parts = Parts::new(outs, n * self.cols * size_of::<f32>(), BLOCK * size_of::<f32>());
        io.threads().for_each(parts, |(start, mut outs)| {
            let (first, len) = (start / size_of::<f32>(), outs[0].len() / size_of::<f32>());
            let (row, col) = (first / self.cols, first % self.cols);
            let (n, len) = if len > self.cols { (len / self.cols, self.cols) } else { (1, len) };
            self.with_runner(|runner| {
                self.block(runner, io, RowBlock { row, n, col, len, is_all: false }, &mut outs);
            });
        });
        Ok(())
    }

    fn in_place(&self, index: usize) -> bool {
        self.whole[index]
    }
}

impl Expressions {
    fn with_runner(&self, run: impl FnOnce(&mut dyn Runner)) {
        let pooled = self.runners.lock().pop();
        let mut runner = pooled.unwrap_or_else(|| self.program.clone().into_runner());
        run(&mut *runner);
        self.runners.lock().push(runner);
    }

    fn block(
        &self,
        runner: &mut dyn Runner,
        io: &Io<'_>,
        RowBlock { row, n, col, len, is_all }: RowBlock,
        outs: &mut BlockOutputs<'_>,
    ) {
        let mut sources: SmallVec<[LinesSource<'_>; 16]> = SmallVec::new();
        for (index, operand) in self.operands.iter().enumerate() {
            let step = operand.step.unwrap_or(0);
            sources.push(match operand.along {
                _ if io.is_in_place(index) => LinesSource::InPlace,
                Along::Single | Along::Accumulator => {
                    let bytes = operand.rows(io.bytes(index), row, n);
                    LinesSource::Single { bytes, step, width: operand.width }
                }
                Along::Elements => {
                    let bytes = &operand.rows(io.bytes(index), row, n)[col * operand.width..];
                    LinesSource::Elements { bytes, step, asked: [0, 8] }
                }
            });
        }
        runner.run_lines(&ElementLines { sources: &sources, n, len, is_all }, outs, false);
    }
}

/// Outputs cut into blocks of whole rows, and rows of more than `most` bytes into parts.
struct Parts<'a> {
    rows: SmallVec<[ChunksMut<'a, u8>; 2]>,
    row: SmallVec<[ChunksMut<'a, u8>; 2]>,
    most: usize,
    start: usize,
}

impl<'a> Parts<'a> {
    fn new(outs: BlockOutputs<'a>, rows: usize, most: usize) -> Parts<'a> {
        let rows = outs.into_iter().map(|out| out.chunks_mut(rows)).collect();
        Parts { rows, row: SmallVec::new(), most: most.max(1), start: 0 }
    }
}

impl<'a> Iterator for Parts<'a> {
    /// The position of the first byte in each output, and the outputs' memory.
    type Item = (usize, BlockOutputs<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let part: Option<BlockOutputs<'a>> = self.row.iter_mut().map(Iterator::next).collect();
            if let Some(part) = part.filter(|part| !part.is_empty()) {
                let start = self.start;
                self.start += part[0].len();
                return Some((start, part));
            }
            let block: Option<BlockOutputs<'a>> =
                self.rows.iter_mut().map(Iterator::next).collect();
            self.row = block?.into_iter().map(|block| block.chunks_mut(self.most)).collect();
        }
    }
}
