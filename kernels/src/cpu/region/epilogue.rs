//! Epilogues: elementwise expressions on blocks of results that are in the cache.

use super::{linear::LinearPlan, operand::RegionOperand};
use crate::{
    cpu::gemm::{BlockEpilogue, linear::LinearEpilogue, rect::Rect},
    elementwise::lines::{Along, LineProgram, LineSource, Runner, compile},
    kernel::Io,
};
use ferroflow_ir::{DType, Expr, Shape};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// An expression on the results of an anchor, compiled.
pub(in crate::cpu) struct ExprEpilogue {
    program: Arc<dyn LineProgram>,
    operands: Vec<RegionOperand>,
    /// Elements of a row of results.
    cols: usize,
    /// Whether rows that are contiguous may be computed as one line.
    flattens: bool,
    /// The same as steps on tiles, if it is that.
    plan: Option<LinearPlan>,
    /// The number of results.
    len: usize,
}

impl ExprEpilogue {
    /// The epilogue `expr` on results of `f32` and shape `space`, of which the last `n_last`
    /// dimensions are a row. Input 0 is the result, the others are those of `extras`. `None` where
    /// there is no code for it.
    pub(super) fn new(
        expr: &Expr,
        space: &Shape,
        n_last: usize,
        extras: &[crate::OperandSpec],
    ) -> Option<ExprEpilogue> {
        let cols = space[space.rank().checked_sub(n_last)?..].iter().product();
        if expr.dtype() != DType::F32 || cols == 0 {
            return None;
        }
        let operand = |extra: &crate::OperandSpec| {
            RegionOperand::new(&extra.shape, space, n_last, extra.dtype.size()?)
        };
        let operands: Vec<RegionOperand> = extras.iter().map(operand).collect::<Option<_>>()?;
        let dtypes: Vec<DType> =
            [DType::F32].into_iter().chain(extras.iter().map(|extra| extra.dtype)).collect();
        let along: Vec<Along> = [Along::Elements]
            .into_iter()
            .chain(operands.iter().map(|operand| operand.along))
            .collect();
        let program = compile(expr, &dtypes, &along)?;
        let flattens =
            operands.iter().all(|operand| operand.is_same_for_all() || operand.is_whole(cols));
        let plan = dtypes.iter().all(|&dtype| dtype == DType::F32);
        let plan = if plan { LinearPlan::of(expr, &operands, cols) } else { None };
        let len = space.num_elements();
        Some(ExprEpilogue { program, operands, cols, flattens, plan, len })
    }

    /// Whether rows that are contiguous are computed as one line.
    pub(super) fn flattens(&self) -> bool {
        self.flattens
    }

    /// Whether it is steps on tiles.
    #[cfg(test)]
    pub(super) fn is_linear(&self) -> bool {
        self.plan.is_some()
    }

    /// The same by its program alone.
    #[cfg(test)]
    pub(super) fn without_steps(self) -> ExprEpilogue {
        ExprEpilogue { plan: None, ..self }
    }

    /// The epilogue with the inputs from `first` on.
    pub(in crate::cpu) fn on<'a, 'io: 'a>(&'a self, io: &Io<'io>, first: usize) -> Running<'a> {
        let bytes: SmallVec<[&[u8]; 4]> =
            (0..self.operands.len()).map(|index| io.bytes(first + index)).collect();
        let plan = self.plan.as_ref();
        let linear = plan.map(|plan| plan.on(&self.operands, &bytes, self.cols, self.len));
        let (cycles, runners) = (OnceLock::new(), Mutex::default());
        Running { epilogue: self, bytes, linear, cycles, runners }
    }

    /// For an operand that is the same for all rows, a row and the beginning of the next.
    fn cycle(&self, operand: &RegionOperand, bytes: &[u8]) -> Vec<u8> {
        let turns = self.flattens && operand.along == Along::Elements;
        if !turns || !operand.is_same_for_all() {
            return Vec::new();
        }
        let row = operand.row(bytes, 0, 0);
        let n = row.len() + self.program.tile() * operand.width;
        row.iter().copied().cycle().take(n).collect()
    }
}

/// An epilogue and what it reads.
pub(in crate::cpu) struct Running<'a> {
    epilogue: &'a ExprEpilogue,
    bytes: SmallVec<[&'a [u8]; 4]>,
    linear: Option<LinearEpilogue<'a>>,
    /// For operands that are the same for all rows, a row and the beginning of the next.
    cycles: OnceLock<SmallVec<[Vec<u8>; 4]>>,
    /// The runners that no thread uses at the moment: making one takes longer than a short block.
    runners: Mutex<Vec<Box<dyn Runner + 'a>>>,
}

/// Operands of a program: the result, then the operands.
type Sources<'a> = SmallVec<[LineSource<'a>; 8]>;

impl Running<'_> {
    /// Sets the operands that are single elements: all, or those that differ from row to row.
    fn set(&self, runner: &mut dyn Runner, row: usize, all: bool) {
        for (index, operand) in self.epilogue.operands.iter().enumerate() {
            if operand.along == Along::Single && (all || !operand.is_same_for_all()) {
                runner.set(index + 1, operand.row(self.bytes[index], row, 0));
            }
        }
    }

    /// Operands of contiguous rows, from the first on.
    fn flat(&self, row: usize) -> Sources<'_> {
        let cycles = self.cycles.get_or_init(|| {
            let operands = self.epilogue.operands.iter().zip(&self.bytes);
            operands.map(|(operand, bytes)| self.epilogue.cycle(operand, bytes)).collect()
        });
        let operands = self.epilogue.operands.iter().enumerate();
        let sources = operands.map(|(index, operand)| {
            let period = self.epilogue.cols * operand.width;
            match operand.along {
                Along::Single | Along::Accumulator => LineSource::Unread,
                Along::Elements if operand.is_same_for_all() => {
                    LineSource::Cycle { bytes: &cycles[index], period, at: 0 }
                }
                Along::Elements => LineSource::Elements(&self.bytes[index][row * period..]),
            }
        });
        [LineSource::InPlace].into_iter().chain(sources).collect()
    }

    /// Operands of a row from a column on.
    fn row(&self, row: usize, col: usize) -> Sources<'_> {
        let operands = self.epilogue.operands.iter().enumerate();
        let sources = operands.map(|(index, operand)| match operand.along {
            Along::Single | Along::Accumulator => LineSource::Unread,
            Along::Elements => LineSource::Elements(operand.row(self.bytes[index], row, col)),
        });
        [LineSource::InPlace].into_iter().chain(sources).collect()
    }
}

impl Running<'_> {
    fn run(&self, runner: &mut dyn Runner, row: usize, col: usize, block: &mut Rect<'_>) {
        self.set(runner, row, true);
        let is_whole = self.epilogue.flattens && block.cols() == self.epilogue.cols;
        if is_whole && let Some(out) = block.contiguous() {
            return runner.run(&self.flat(row), bytemuck::cast_slice_mut(out));
        }
        for index in 0..block.rows() {
            if index > 0 {
                self.set(runner, row + index, false);
            }
            let out = bytemuck::cast_slice_mut(block.row(index));
            runner.run(&self.row(row + index, col), out);
        }
    }
}

impl BlockEpilogue for Running<'_> {
    fn linear(&self) -> Option<(&LinearEpilogue<'_>, usize)> {
        Some((self.linear.as_ref()?, 0))
    }

    fn apply(&self, row: usize, col: usize, mut block: Rect<'_>) {
        if block.rows() == 0 || block.cols() == 0 {
            return;
        }
        let pooled = self.runners.lock().pop();
        let mut runner = pooled.unwrap_or_else(|| self.epilogue.program.runner());
        self.run(&mut *runner, row, col, &mut block);
        self.runners.lock().push(runner);
    }
}
