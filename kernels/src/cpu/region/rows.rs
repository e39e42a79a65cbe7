//! Row regions: reductions of rows and the expressions around them, in one pass over each row.
//!
//! An expression with reductions becomes stages, which run for one row after the other while the
//! row is in the first-level cache: a reduction of an elementwise expression (its prologue,
//! evaluated on the fly), a single number of others, the result. Elements that are costly to
//! compute and needed again are kept in scratch memory of a row.
//!
//! Sums are kept in as many parts as a tile has elements, which are added pairwise. Rows are
//! computed one by one, so results do not depend on the number of threads.

use super::{
    LEAST_ELEMENTS, RegionKernel,
    operand::RegionOperand,
    stages::{Read, Stage, StagePlan},
};
use crate::{
    device::OpCall,
    elementwise::{
        lines::{Along, LineSource, Runner, STREAMED_FROM},
        scalar,
    },
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Expr, ReduceKind, Shape, infer::reduced_axes};
use smallvec::SmallVec;
use std::mem;

/// Rows shorter than this are faster in other ways.
const LEAST_COLS: usize = 48;

/// Rows longer than this do not fit the caches near the processor.
const MOST_COLS: usize = 1 << 16;

/// Elements per piece of work.
const PIECE: usize = 1 << 16;

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
        let exact = StagePlan::new(expr, dtypes, &along, false, reduces)?;
        let fast = StagePlan::new(expr, dtypes, &along, true, reduces)?;
        let (fast, exact) = if fast.has_reciprocals { (fast, Some(exact)) } else { (exact, None) };
        let out_cols = if reduces { 1 } else { cols };
        Some(RowRegion { cols, operands, fast, exact, out_cols, out_width: expr.dtype().size()? })
    }

    /// The rows of one input, those along its last dimension.
    pub(in crate::cpu) fn of_one(expr: &Expr, dtype: DType, shape: &Shape) -> Option<RowRegion> {
        let operand = RegionOperand::new(shape, shape, 1, dtype.size()?)?;
        let cols = shape.last().copied().filter(|&cols| cols >= LEAST_COLS)?;
        RowRegion::new(expr, &[dtype], vec![operand], cols, false)
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
        let inputs: Vec<Option<&[u8]>> = inputs.collect();
        let streams = out.len() >= STREAMED_FROM && inputs.iter().all(Option::is_some);
        io.threads().try_for_each_piece(out, rows * row_bytes, |start, out| {
            let mut fast = Running::new(self, &self.fast, &inputs, streams);
            let mut exact: Option<Running<'_>> = None;
            for (index, out) in out.chunks_mut(row_bytes).enumerate() {
                let row = start / row_bytes + index;
                if fast.row(row, out)? {
                    continue;
                }
                if let Some(plan) = &self.exact {
                    exact
                        .get_or_insert_with(|| Running::new(self, plan, &inputs, streams))
                        .row(row, out)?;
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

impl RowInputs<'_> {
    /// Elements of an operand for row `row`.
    fn operand(&self, index: usize, row: usize) -> &[u8] {
        self.rows.operands[index].row(self.bytes[index].unwrap_or_default(), row, 0)
    }

    /// Operands of a program of a row. `in_place` is the operand in the memory of the output.
    fn sources<'s>(
        &'s self,
        reads: &[Read],
        kept: &'s [Vec<f32>],
        row: usize,
        in_place: LineSource<'s>,
    ) -> Sources<'s> {
        let mut sources = Sources::new();
        for read in reads {
            sources.push(match *read {
                Read::Elements(index, _) if self.bytes[index].is_none() => in_place,
                Read::Elements(index, _) if self.rows.operands[index].is_same_for_all() => {
                    LineSource::Near(self.operand(index, row))
                }
                Read::Elements(index, turn) => LineSource::Shared {
                    bytes: self.operand(index, row),
                    turn,
                    turns: self.plan.n_reads[index],
                },
                Read::Kept(index) => LineSource::Near(bytemuck::cast_slice(&kept[index])),
                Read::Single(_) | Read::Number(_) | Read::Accumulator => LineSource::Unread,
            });
        }
        sources
    }
}

/// A runner, if the stage has one, and its registers.
type PreparedRunner<'p> = (Option<Box<dyn Runner + 'p>>, Vec<u64>);

/// A plan that runs on rows, on one thread.
struct Running<'p> {
    at: RowInputs<'p>,
    /// For each stage, what runs it, and the registers of single numbers.
    runners: Vec<PreparedRunner<'p>>,
    numbers: Vec<[u8; 4]>,
    kept: Vec<Vec<f32>>,
    /// Whether operands that are the same for all rows have been set.
    is_set: bool,
    /// Whether the result passes the caches by.
    streams: bool,
}

/// Operands of the programs of a row.
type Sources<'a> = SmallVec<[LineSource<'a>; 6]>;

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
            Stage::Number { program, .. } => (None, program.registers().to_vec()),
            Stage::Single(_) => (None, Vec::new()),
        });
        let kept = vec![vec![0.0; rows.cols]; plan.n_kept];
        let numbers = vec![[0; 4]; plan.n_numbers];
        let (at, runners) = (RowInputs { rows, plan, bytes }, runners.collect());
        Running { at, runners, numbers, kept, is_set: false, streams }
    }

    /// Orders what was streamed before all later stores.
    fn settle(&self) {
        let runner = self.runners.iter().find_map(|(runner, _)| runner.as_ref());
        if let Some(runner) = runner.filter(|_| self.streams) {
            runner.settle();
        }
    }

    /// Computes a row; `false`, with nothing written, where a reciprocal is not exact enough.
    fn row(&mut self, row: usize, out: &mut [u8]) -> Result<bool> {
        let plan = self.at.plan;
        for (index, stage) in plan.stages.iter().enumerate() {
            match stage {
                Stage::Keep { line, kept } => {
                    self.set(index, &line.reads, row);
                    let mut scratch = mem::take(&mut self.kept[*kept]);
                    let sources =
                        self.at.sources(&line.reads, &self.kept, row, LineSource::Elements(out));
                    if let Some(runner) = &mut self.runners[index].0 {
                        runner.run(&sources, bytemuck::cast_slice_mut(&mut scratch));
                    }
                    drop(sources);
                    self.kept[*kept] = scratch;
                }
                Stage::Reduce { line, kind, number } => {
                    self.set(index, &line.reads, row);
                    let sources =
                        self.at.sources(&line.reads, &self.kept, row, LineSource::Elements(out));
                    let Some(runner) = &mut self.runners[index].0 else { continue };
                    runner.start(start(*kind));
                    runner.fold(&sources, self.at.rows.cols);
                    let mut total = runner.total(*kind);
                    if *kind == ReduceKind::Mean {
                        total /= self.at.rows.cols as f32;
                    }
                    self.numbers[*number] = total.to_ne_bytes();
                }
                Stage::Number { program, inputs, out, number, is_reciprocal } => {
                    let bits = self.number(index, program, inputs, *out, row)?;
                    self.numbers[*number] = bits;
                    let is_tiny = f32::from_ne_bytes(bits).abs() < f32::MIN_POSITIVE;
                    if *is_reciprocal && is_tiny && plan.has_reciprocals {
                        return Ok(false);
                    }
                }
                Stage::Result(line) => {
                    self.set(index, &line.reads, row);
                    let sources =
                        self.at.sources(&line.reads, &self.kept, row, LineSource::InPlace);
                    match &mut self.runners[index].0 {
                        Some(runner) if self.streams => runner.stream(&sources, out),
                        Some(runner) => runner.run(&sources, out),
                        None => {}
                    }
                }
                Stage::Single(number) => out.copy_from_slice(&self.numbers[*number][..out.len()]),
            }
        }
        self.is_set = true;
        Ok(true)
    }

    /// Sets the single elements that a stage reads.
    fn set(&mut self, stage: usize, reads: &[Read], row: usize) {
        let Some(runner) = &mut self.runners[stage].0 else { return };
        for (input, read) in reads.iter().enumerate() {
            match *read {
                Read::Single(index) => {
                    if !self.is_set || !self.at.rows.operands[index].is_same_for_all() {
                        runner.set(input, self.at.operand(index, row));
                    }
                }
                Read::Number(number) => runner.set(input, &self.numbers[number]),
                Read::Elements(..) | Read::Kept(_) | Read::Accumulator => {}
            }
        }
    }

    /// A number of the row.
    fn number(
        &mut self,
        stage: usize,
        program: &scalar::ScalarBytecode,
        inputs: &[(usize, scalar::Register)],
        out: scalar::Register,
        row: usize,
    ) -> Result<[u8; 4]> {
        let registers = &mut self.runners[stage].1;
        for &(input, register) in inputs {
            let bytes = match input.checked_sub(self.at.rows.operands.len()) {
                None => self.at.operand(input, row),
                Some(number) => &self.numbers[number],
            };
            scalar::set(&mut registers[register.index()], bytes);
        }
        program.run(registers, u64::MAX).map_err(|stop| match stop {
            scalar::Stop::Fault(_, error) => error,
            scalar::Stop::Rounds(_) => Error::DivisionByZero,
        })?;
        let bytes = scalar::get(&registers[out.index()], size_of::<f32>());
        Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

/// Initial value of a reduction.
fn start(kind: ReduceKind) -> f32 {
    match kind {
        ReduceKind::Max => f32::NEG_INFINITY,
        ReduceKind::Min => f32::INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kernel::{Operand, Target},
        threads::Threads,
    };
    use ferroflow_ir::{HostTensor, pass::region::softmax};

    fn run(x: &[f32], cols: usize) -> Option<HostTensor> {
        let shape = Shape::new([x.len() / cols, cols]).expect("a shape");
        let expr = softmax(&Expr::input(0, DType::F32), false).expect("an expression");
        let kernel = RowRegion::of_one(&expr, DType::F32, &shape)?;
        let mut out = HostTensor::recycled(DType::F32, shape).expect("room");
        let (operands, threads) = ([Operand::Plain(bytemuck::cast_slice(x))], Threads::single());
        let target = [Target::Plain(out.bytes_mut())];
        kernel.run(&mut Io::new(operands, target, &threads, usize::MAX)).expect("a result");
        Some(out)
    }

    /// With rows that are whole tiles, and with others.
    #[test]
    fn rows_that_pass_the_caches_by_are_the_same() {
        for cols in [1024, 1000] {
            let few = 50;
            let rows = (STREAMED_FROM / (size_of::<f32>() * cols)).next_multiple_of(few) + few;
            let number = |at: usize| ((at * 7919) % 1009) as f32 / 64.0 - 7.0;
            let x: Vec<f32> = (0..rows * cols).map(number).collect();
            let Some(all) = run(&x, cols) else { return };
            let all = all.as_slice::<f32>().expect("floats");
            for (x, found) in x.chunks(few * cols).zip(all.chunks(few * cols)) {
                let expected = run(x, cols).expect("the same code");
                assert!(found == expected.as_slice::<f32>().expect("floats"), "rows of {cols}");
            }
        }
    }
}
