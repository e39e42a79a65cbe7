//! Row regions: reductions of rows and the expressions around them, in one pass over each row.
//!
//! An expression with reductions becomes stages, which run for a block of rows after the other while
//! the block is in the first-level cache: a reduction of an elementwise expression (its prologue,
//! evaluated on the fly), a single number of others, the result. Elements that are costly to
//! compute and needed again are kept in scratch memory of a block.
//!
//! Sums are kept in as many parts as a tile has elements, which are added pairwise. Each row is
//! computed as if it were alone, so results do not depend on the number of threads.

use super::{
    LEAST_ELEMENTS, RegionKernel,
    operand::{self, RegionOperand},
    stages::{Read, Stage, StagePlan},
};
use crate::{
    device::OpCall,
    elementwise::{
        flush::flushed_before,
        lines::{Along, ElementLines, LinesSource, Runner, streamed_from},
        scalar,
    },
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Expr, ReduceKind, Shape, infer::reduced_axes};
use smallvec::SmallVec;
use std::{borrow::Cow, mem};

/// Rows shorter than this are faster in other ways.
const LEAST_COLS: usize = 48;

/// Rows longer than this do not fit the caches near the processor.
const MOST_COLS: usize = 1 << 16;

/// Elements per piece of work.
const PIECE: usize = 1 << 16;

/// Elements of a block of rows.
const BLOCK: usize = 1 << 13;

/// Rows of a block, and of one of rows that share tiles.
const MOST_ROWS: usize = 16;
const MOST_SHORT_ROWS: usize = 64;

/// Rows of fewer elements share tiles.
const SHORT_COLS: usize = 128;

/// Compiles a region without an anchor; `None` where it does not reduce along rows, or rows are too
/// long.
pub(super) fn compile(call: &OpCall<'_>, expr: &Expr) -> Result<Option<RegionKernel>> {
    let mut space = Shape::scalar();
    for input in call.inputs {
        space = space.broadcast(&input.shape)?;
    }
    let reduced = reduced_axes(call.attrs.ints("axes")?, space.rank())?;
    let n_last = reduced.iter().rev().take_while(|&&reduced| reduced).count();
    if reduced[..reduced.len() - n_last].contains(&true) {
        return Ok(None);
    }
    let operand = |input: &crate::OperandSpec| {
        RegionOperand::new(&input.shape, &space, n_last, input.dtype.size()?)
    };
    let operands: Option<Vec<RegionOperand>> = call.inputs.iter().map(operand).collect();
    let Some(operands) = operands.filter(|_| space.num_elements() > 0) else { return Ok(None) };
    let dtypes: Vec<DType> = call.inputs.iter().map(|input| input.dtype).collect();
    let cols = space.iter().rev().take(n_last).product();
    let pays = cols >= LEAST_COLS && space.num_elements() >= LEAST_ELEMENTS;
    let rows = RowRegion::new(expr, &dtypes, operands, cols, call.attrs.bool("reduces")?);
    Ok(rows.map(|rows| RegionKernel::new(rows, pays)))
}

/// A row region as a kernel.
pub(in crate::cpu) struct RowRegion {
    cols: usize,
    operands: Vec<RegionOperand>,
    /// With reciprocals for divisions by numbers of a row.
    fast: StagePlan,
    /// With the divisions, where the other has none: for reciprocals that are not exact enough.
    exact: Option<StagePlan>,
    /// Elements of a row of the output, and the bytes of each.
    out_cols: usize,
    out_width: usize,
    /// The most rows of a block.
    block: usize,
    /// The operands of all rows that are flushed once.
    flushed: Vec<usize>,
    /// The bytes of results that pass the caches by.
    streamed_from: usize,
}

impl RowRegion {
    fn new(
        expr: &Expr,
        dtypes: &[DType],
        operands: Vec<RegionOperand>,
        cols: usize,
        reduces: bool,
    ) -> Option<RowRegion> {
        if !(1..=MOST_COLS).contains(&cols) {
            return None;
        }
        let along: Vec<Along> = operands.iter().map(|operand| operand.along).collect();
        let (expr, flushed) = flushed_before(expr, dtypes, |position| {
            operands[position].is_shared() && along[position] == Along::Elements
        });
        let expr = &*expr;
        let exact = StagePlan::new(expr, dtypes, &along, false, reduces)?;
        let fast = StagePlan::new(expr, dtypes, &along, true, reduces)?;
        let (fast, exact) = if fast.has_reciprocals { (fast, Some(exact)) } else { (exact, None) };
        let (out_cols, out_width) = (if reduces { 1 } else { cols }, expr.dtype().size()?);
        let most = if cols < SHORT_COLS { MOST_SHORT_ROWS } else { MOST_ROWS };
        let block = (BLOCK / cols).clamp(1, most);
        Some(RowRegion {
            cols,
            operands,
            fast,
            exact,
            out_cols,
            out_width,
            block,
            flushed,
            streamed_from: streamed_from(),
        })
    }

    /// The rows of one input, those along its last dimension.
    pub(in crate::cpu) fn of_one(expr: &Expr, dtype: DType, shape: &Shape) -> Option<RowRegion> {
        let operand = RegionOperand::new(shape, shape, 1, dtype.size()?)?;
        RowRegion::new(expr, &[dtype], vec![operand], *shape.last()?, false)
    }
}

impl Kernel for RowRegion {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let out = io.output_bytes(0);
        let row_bytes = self.out_cols * self.out_width;
        let rows = (PIECE / self.cols).max(1);
        // An operand in the output's memory has no bytes of its own.
        let inputs = (0..self.operands.len())
            .map(|index| if io.is_in_place(index) { None } else { Some(io.bytes(index)) });
        let mut inputs: Vec<Option<&[u8]>> = inputs.collect();
        let mut flushed: Vec<Cow<'_, [f32]>> = Vec::new();
        for &operand in &self.flushed {
            flushed
                .push(operand::flushed(bytemuck::cast_slice(inputs[operand].unwrap_or_default())));
        }
        for (&operand, flushed) in self.flushed.iter().zip(&flushed) {
            inputs[operand] = Some(bytemuck::cast_slice(flushed));
        }
        let streams = out.len() >= self.streamed_from && inputs.iter().all(Option::is_some);
        io.threads().try_for_each_piece(out, rows * row_bytes, |start, out| {
            let mut fast = Running::new(self, &self.fast, &inputs, streams);
            let mut exact: Option<Running<'_>> = None;
            for (index, block) in out.chunks_mut(self.block * row_bytes).enumerate() {
                let first = start / row_bytes + index * self.block;
                if fast.block(first, block)? {
                    continue;
                }
                for (index, row) in block.chunks_mut(row_bytes).enumerate() {
                    if !fast.block(first + index, row)?
                        && let Some(plan) = &self.exact
                    {
                        exact
                            .get_or_insert_with(|| Running::new(self, plan, &inputs, streams))
                            .block(first + index, row)?;
                    }
                }
            }
            fast.settle();
            Ok(())
        })
    }

    fn in_place(&self, index: usize) -> bool {
        let operand = &self.operands[index];
        self.out_cols == self.cols && operand.width == self.out_width && operand.is_whole(self.cols)
    }
}

/// Operands and memory of a plan.
#[derive(Clone, Copy)]
struct RowInputs<'p> {
    rows: &'p RowRegion,
    plan: &'p StagePlan,
    bytes: &'p [Option<&'p [u8]>],
}

impl<'p> RowInputs<'p> {
    /// Elements of an operand for `n` rows from row `first` on, and the bytes from row to row. Rows that are not all
    /// as far apart are those that were gathered.
    fn operand<'a>(
        &self,
        index: usize,
        (first, n): (usize, usize),
        gathered: &'a [Vec<u8>],
    ) -> (&'a [u8], usize)
    where
        'p: 'a,
    {
        let operand = &self.rows.operands[index];
        match operand.step {
            Some(step) => (operand.rows(self.bytes[index].unwrap_or_default(), first, n), step),
            None => (&gathered[index], operand.row_bytes()),
        }
    }

    /// Puts rows that are not all as far apart one behind the other.
    fn gather(&self, (first, n): (usize, usize), gathered: &mut [Vec<u8>]) {
        for ((operand, bytes), to) in self.rows.operands.iter().zip(self.bytes).zip(gathered) {
            if operand.step.is_none() {
                to.clear();
                let rows = first..first + n;
                rows.for_each(|row| {
                    to.extend_from_slice(operand.rows(bytes.unwrap_or_default(), row, 1));
                });
            }
        }
    }

    /// Hands `run` the operands of a program for `n` rows from row `first` on. `in_place` is the operand in the
    /// memory of the output.
    fn with_lines(
        &self,
        reads: &[Read],
        made: &Made,
        (first, n): (usize, usize),
        in_place: LinesSource<'_>,
        run: impl FnOnce(&ElementLines<'_>),
    ) {
        let mut sources: SmallVec<[LinesSource<'_>; 6]> = SmallVec::new();
        sources.extend(reads.iter().map(|read| match *read {
            Read::Elements(index, _) if self.bytes[index].is_none() => in_place,
            Read::Elements(index, asked) => {
                let (bytes, step) = self.operand(index, (first, n), &made.gathered);
                let is_read_once = step > 0 && self.rows.operands[index].step.is_some();
                let asked = if is_read_once { asked } else { [0, 0] };
                LinesSource::Elements { bytes, step, asked }
            }
            Read::Single(index) => {
                let (bytes, step) = self.operand(index, (first, n), &made.gathered);
                LinesSource::Single { bytes, step, width: self.rows.operands[index].width }
            }
            Read::Kept(index) => {
                let (bytes, step) =
                    (made.kept[index].as_slice(), self.rows.cols * size_of::<f32>());
                LinesSource::Elements { bytes: bytemuck::cast_slice(bytes), step, asked: [0, 0] }
            }
            Read::Number(number, width) => {
                let bytes = bytemuck::cast_slice(&made.numbers[number]);
                LinesSource::Single { bytes, step: size_of::<f32>(), width }
            }
            Read::Accumulator => LinesSource::Unread,
        }));
        run(&ElementLines { sources: &sources, n, len: self.rows.cols, is_all: false });
    }

    /// Hands `run` the operands of a program along `n` rows from row `first` on, which have a single element in
    /// each.
    fn with_numbers(
        &self,
        reads: &[Read],
        made: &Made,
        (first, n): (usize, usize),
        run: impl FnOnce(&ElementLines<'_>),
    ) {
        let single = |read: &Read| match *read {
            Read::Single(index) => {
                let (bytes, step) = self.operand(index, (first, n), &made.gathered);
                let element = |row: usize| bytemuck::pod_read_unaligned(&bytes[row * step..][..4]);
                (0..n).map(element).collect()
            }
            _ => SmallVec::new(),
        };
        let singles: SmallVec<[SmallVec<[f32; 16]>; 4]> = reads.iter().map(single).collect();
        let sources: SmallVec<[LinesSource<'_>; 4]> = reads
            .iter()
            .zip(&singles)
            .map(|(read, single)| {
                let elements = match *read {
                    Read::Number(number, _) => &made.numbers[number][..n],
                    _ => &single[..],
                };
                let bytes = bytemuck::cast_slice(elements);
                LinesSource::Elements { bytes, step: 0, asked: [0, 0] }
            })
            .collect();
        run(&ElementLines { sources: &sources, n: 1, len: n, is_all: true });
    }
}

/// A runner, if the stage has one, and its registers.
type PreparedRunner<'p> = (Option<Box<dyn Runner + 'p>>, Vec<u64>);

/// A plan that runs on rows, on one thread.
struct Running<'p> {
    at: RowInputs<'p>,
    /// For each stage, what runs it, and the registers of single numbers.
    runners: Vec<PreparedRunner<'p>>,
    made: Made,
    /// Whether the result passes the caches by.
    streams: bool,
}

/// Results of the stages for a block.
struct Made {
    /// Numbers of its rows.
    numbers: Vec<Vec<f32>>,
    /// Elements of its rows.
    kept: Vec<Vec<f32>>,
    /// For each operand whose rows are not all as far apart, those of the block.
    gathered: Vec<Vec<u8>>,
}

impl<'p> Running<'p> {
    fn new(
        rows: &'p RowRegion,
        plan: &'p StagePlan,
        bytes: &'p [Option<&'p [u8]>],
        streams: bool,
    ) -> Running<'p> {
        let runners = plan.stages.iter().map(|stage| match stage {
            Stage::Keep { line, .. } | Stage::Reduce { line, .. } | Stage::Result(line) => {
                (Some(line.program.runner()), Vec::new())
            }
            Stage::Number { line, program, .. } => {
                // Of a single row a number is computed faster alone.
                let line = line.as_ref().filter(|_| rows.block > 1);
                (line.map(|line| line.program.runner()), program.registers().to_vec())
            }
            Stage::Single(_) => (None, Vec::new()),
        });
        let kept = vec![vec![0.0; rows.block * rows.cols]; plan.n_kept];
        let numbers = vec![vec![0.0; rows.block]; plan.n_numbers];
        let (at, runners) = (RowInputs { rows, plan, bytes }, runners.collect());
        let gathered = vec![Vec::new(); rows.operands.len()];
        Running { at, runners, made: Made { numbers, kept, gathered }, streams }
    }

    /// Orders what was streamed before all later stores.
    fn settle(&self) {
        let runner = self.runners.iter().find_map(|(runner, _)| runner.as_ref());
        if let Some(runner) = runner.filter(|_| self.streams) {
            runner.settle();
        }
    }

    /// Computes rows from row `first` on; `false`, with nothing written, where a reciprocal is not exact
    /// enough.
    fn block(&mut self, first: usize, out: &mut [u8]) -> Result<bool> {
        let (plan, rows) = (self.at.plan, self.at.rows);
        let row_bytes = rows.out_cols * rows.out_width;
        let n = out.len() / row_bytes;
        self.at.gather((first, n), &mut self.made.gathered);
        for (index, stage) in plan.stages.iter().enumerate() {
            match stage {
                Stage::Keep { line, kept } => {
                    let mut scratch = mem::take(&mut self.made.kept[*kept]);
                    if let Some(runner) = &mut self.runners[index].0 {
                        let to = bytemuck::cast_slice_mut(&mut scratch[..n * rows.cols]);
                        let run =
                            |lines: &ElementLines<'_>| runner.run_lines(lines, &mut [to], false);
                        let in_place = read_of(out, row_bytes);
                        self.at.with_lines(&line.reads, &self.made, (first, n), in_place, run);
                    }
                    self.made.kept[*kept] = scratch;
                }
                Stage::Reduce { line, kind, number } => {
                    let mut totals = mem::take(&mut self.made.numbers[*number]);
                    let own = &mut totals[..n];
                    if let Some(runner) = &mut self.runners[index].0 {
                        let run = |lines: &ElementLines<'_>| runner.fold_lines(lines, *kind, own);
                        let in_place = read_of(out, row_bytes);
                        self.at.with_lines(&line.reads, &self.made, (first, n), in_place, run);
                    }
                    if *kind == ReduceKind::Mean {
                        totals[..n].iter_mut().for_each(|total| *total /= rows.cols as f32);
                    }
                    self.made.numbers[*number] = totals;
                }
                Stage::Number { line, program, inputs, out, number, is_reciprocal } => {
                    let mut results = mem::take(&mut self.made.numbers[*number]);
                    let own = &mut results[..n];
                    if let (Some(line), Some(runner)) = (line, &mut self.runners[index].0) {
                        let run = |lines: &ElementLines<'_>| {
                            runner.run_lines(lines, &mut [bytemuck::cast_slice_mut(own)], false);
                        };
                        self.at.with_numbers(&line.reads, &self.made, (first, n), run);
                    } else {
                        for (row, result) in own.iter_mut().enumerate() {
                            *result = self.number(index, program, inputs, *out, (first, row))?;
                        }
                    }
                    let is_tiny = |result: &f32| result.abs() < f32::MIN_POSITIVE;
                    let is_inexact = *is_reciprocal && results[..n].iter().any(is_tiny);
                    self.made.numbers[*number] = results;
                    if is_inexact && plan.has_reciprocals {
                        return Ok(false);
                    }
                }
                Stage::Result(line) => {
                    if let Some(runner) = &mut self.runners[index].0 {
                        let streams = self.streams;
                        let run =
                            |lines: &ElementLines<'_>| runner.run_lines(lines, &mut [out], streams);
                        let in_place = LinesSource::InPlace;
                        self.at.with_lines(&line.reads, &self.made, (first, n), in_place, run);
                    }
                }
                Stage::Single(number) => {
                    let numbers = self.made.numbers[*number].iter();
                    for (out, number) in out.chunks_mut(row_bytes).zip(numbers) {
                        out.copy_from_slice(&number.to_ne_bytes()[..row_bytes]);
                    }
                }
            }
        }
        Ok(true)
    }

    /// A number of a row, `row` rows behind the first of the block.
    fn number(
        &mut self,
        stage: usize,
        program: &scalar::ScalarBytecode,
        inputs: &[(usize, scalar::Register)],
        out: scalar::Register,
        (first, row): (usize, usize),
    ) -> Result<f32> {
        let registers = &mut self.runners[stage].1;
        for &(input, register) in inputs {
            let register = &mut registers[register.index()];
            match input.checked_sub(self.at.rows.operands.len()) {
                None => {
                    let operand = &self.at.rows.operands[input];
                    let bytes = self.at.bytes[input].unwrap_or_default();
                    scalar::set(register, operand.rows(bytes, first + row, 1));
                }
                Some(number) => {
                    scalar::set(register, bytemuck::bytes_of(&self.made.numbers[number][row]));
                }
            }
        }
        program.run(registers, u64::MAX).map_err(|stop| match stop {
            scalar::Stop::Fault(_, error) => error,
            scalar::Stop::Rounds(_) => Error::DivisionByZero,
        })?;
        let bytes = scalar::get(&registers[out.index()], size_of::<f32>());
        Ok(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

/// The operand in the memory of an output, before that is written.
fn read_of(out: &[u8], row_bytes: usize) -> LinesSource<'_> {
    LinesSource::Elements { bytes: out, step: row_bytes, asked: [0, 0] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{Operand, Target},
        threads::Threads,
    };
    use ferroflow_ir::{Attrs, HostTensor, ReduceKind, expr::Replacement, pass::region::softmax};

    fn run(x: &[f32], cols: usize, streamed_from: usize) -> Option<HostTensor> {
        let expr = softmax(&Expr::input(0, DType::F32), false).expect("an expression");
        run_expr(&expr, x, cols, streamed_from)
    }

    fn run_expr(expr: &Expr, x: &[f32], cols: usize, streamed_from: usize) -> Option<HostTensor> {
        let shape = Shape::new([x.len() / cols, cols]).expect("a shape");
        let kernel = RowRegion::of_one(expr, DType::F32, &shape)?;
        let kernel = RowRegion { streamed_from, ..kernel };
        let mut out = HostTensor::recycled(DType::F32, shape).expect("room");
        let (operands, threads) = ([Operand::Plain(bytemuck::cast_slice(x))], Threads::single());
        let target = [Target::Plain(out.bytes_mut())];
        kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
        Some(out)
    }

    /// A bool of a row is narrower than its other numbers.
    #[test]
    fn elements_are_selected_by_a_bool_of_their_row() {
        let (x, types) = (Expr::input(0, DType::F32), [DType::F32; 2]);
        let sum = x.reduced(ReduceKind::Sum);
        let chosen = Expr::build(&Attrs::new(), &types, DType::F32, |s| {
            s.x(1).gt(0.0).select(s.x(0), s.x(0) * 100.0)
        });
        let parts = [Replacement::Expr(&x), Replacement::Expr(&sum)];
        let expr = chosen.expect("an expression").substitute(&parts);
        for cols in [17, 40, 128, 300] {
            let x: Vec<f32> =
                (0..5 * cols).map(|at| (at % 7) as f32 - (at / cols) as f32).collect();
            let Some(found) = run_expr(&expr, &x, cols, usize::MAX) else { return };
            let rows = x.chunks(cols).flat_map(|row| {
                let factor = if row.iter().sum::<f32>() > 0.0 { 1.0 } else { 100.0 };
                row.iter().map(move |x| x * factor)
            });
            assert_eq!(found.as_slice::<f32>().expect("floats"), rows.collect::<Vec<_>>());
        }
    }

    /// With rows that are whole tiles, with others, and with several to a tile; in blocks of several rows, of
    /// which the last is not whole, and one by one.
    #[test]
    fn rows_that_pass_the_caches_by_and_rows_alone_are_the_same() {
        for cols in [1024, 1000, 200, 129, 64, 50, 17, 8] {
            let number = |at: usize| ((at * 7919) % 1009) as f32 / 64.0 - 7.0;
            let x: Vec<f32> = (0..203 * cols).map(number).collect();
            let Some(all) = run(&x, cols, usize::MAX) else { return };
            let streamed = run(&x, cols, 0).expect("the same code");
            assert!(all.bytes() == streamed.bytes(), "rows of {cols}");
            let all = all.as_slice::<f32>().expect("floats");
            for (x, found) in x.chunks(cols).zip(all.chunks(cols)) {
                let expected = run(x, cols, usize::MAX).expect("the same code");
                assert!(found == expected.as_slice::<f32>().expect("floats"), "rows of {cols}");
            }
        }
    }

    /// A mask for all heads of an example: its rows are not all as far apart.
    #[test]
    fn rows_of_a_mask_come_again_for_each_head() {
        let types = [DType::F32, DType::Bool];
        let masked = Expr::build(&Attrs::new(), &types, DType::F32, |s| {
            s.x(1).select(s.x(0), s.x(0).like(-1e9))
        });
        let expr = softmax(&masked.expect("an expression"), false).expect("an expression");
        for cols in [9, 64, 130] {
            let (space, own) = (Shape::new([2, 3, 25, cols]), Shape::new([2, 1, 25, cols]));
            let (space, own) = (space.expect("a shape"), own.expect("a shape"));
            let operand = |shape: &Shape, width| RegionOperand::new(shape, &space, 1, width);
            let operands = [operand(&space, 4), operand(&own, 1)];
            let operands = operands.into_iter().collect::<Option<Vec<_>>>().expect("operands");
            assert!(operands[1].step.is_none() && operands[0].step.is_some());
            let Some(kernel) = RowRegion::new(&expr, &types, operands, cols, false) else { return };
            let x: Vec<f32> = (0..150 * cols).map(|at| (at * 7 % 31) as f32 / 8.0).collect();
            let mask: Vec<u8> = (0..50 * cols).map(|at| u8::from(at * 5 % 7 > 2)).collect();
            let (mut out, threads) = (vec![0.0f32; x.len()], Threads::single());
            let inputs = [Operand::Plain(bytemuck::cast_slice(&x)), Operand::Plain(&mask)];
            let target = [Target::Plain(bytemuck::cast_slice_mut(&mut out))];
            kernel.run(&mut Io::new(inputs, target, &threads, usize::MAX)).expect("a result");
            for (row, (x, out)) in x.chunks(cols).zip(out.chunks(cols)).enumerate() {
                let mask = &mask[(row / 75 * 25 + row % 25) * cols..][..cols];
                let is_in = |at: usize| mask[at] != 0;
                let part = |at: usize| if is_in(at) { f64::from(x[at]).exp() } else { 0.0 };
                let sum: f64 = (0..cols).map(part).sum();
                for (at, out) in out.iter().enumerate() {
                    let expected = part(at) / sum;
                    let error = (f64::from(*out) - expected).abs();
                    assert!(error <= 1e-6 * expected.max(1e-3), "row {row} of {cols}: {out}");
                }
            }
        }
    }

    /// Rows with sums whose reciprocals are not normal numbers, among others of their blocks.
    #[test]
    fn rows_of_large_sums_do_not_change_those_beside_them() {
        let (rows, cols, dtype) = (77, 256, DType::F32);
        let shape = Shape::new([rows, cols]).expect("a shape");
        let number = |at: usize| match at / cols {
            3 | 17 | 40 => 6e35,
            _ => ((at * 7919) % 1009) as f32 / 64.0,
        };
        let x: Vec<f32> = (0..rows * cols).map(number).collect();
        let sum = Expr::input(0, dtype).reduced(ReduceKind::Sum);
        let quotient = Expr::build(&Attrs::new(), &[dtype; 2], dtype, |s| s.x(0) / s.x(1));
        let quotient = quotient.expect("an expression");
        let expr = quotient.substitute(&[Replacement::Input(0, dtype), Replacement::Expr(&sum)]);
        let Some(kernel) = RowRegion::of_one(&expr, dtype, &shape) else { return };
        assert!(kernel.exact.is_some() && kernel.in_place(0));
        let (mut out, threads) = (x.clone(), Threads::single());
        let target = [Target::Plain(bytemuck::cast_slice_mut(&mut out))];
        kernel
            .run(&mut Io::new([Operand::InPlace], target, &threads, usize::MAX))
            .expect("a result");
        for (x, out) in x.chunks(cols).zip(out.chunks(cols)) {
            let sum: f32 = x.iter().sum();
            for (x, out) in x.iter().zip(out) {
                assert!((out - x / sum).abs() <= 1e-5 * (x / sum), "{out} for {x} / {sum}");
            }
        }
    }
}
