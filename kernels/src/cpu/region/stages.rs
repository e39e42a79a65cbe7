//! From an expression with reductions to stages that run row by row.

use crate::elementwise::{
    lines::{Along, LineProgram, compile},
    scalar::{Register, ScalarBytecode},
};
use ferroflow_ir::{
    DType, Expr, Prim, ReduceKind,
    expr::{Constant, ExprId, ExprKind, ExprNode},
};
use std::{collections::HashMap, sync::Arc};

/// Nodes of an expression from which on its elements are kept rather than computed again.
const MANY_NODES: usize = 6;

/// Stages of a row, in order.
pub(super) struct StagePlan {
    pub(super) stages: Vec<Stage>,
    pub(super) n_numbers: usize,
    pub(super) n_kept: usize,
    /// Whether there are divisions that became multiplications by a reciprocal.
    pub(super) has_reciprocals: bool,
}

/// Something that is done to a row.
pub(super) enum Stage {
    /// Computes elements that are needed again.
    Keep { line: Line, kept: usize },
    /// Reduces elements to a number of the row.
    Reduce { line: Line, kind: ReduceKind, number: usize },
    /// Computes a number of the row from others and from operands, by their positions: those of all rows of a
    /// block by the line, if there is one.
    Number {
        line: Option<Line>,
        program: ScalarBytecode,
        inputs: Vec<(usize, Register)>,
        out: Register,
        number: usize,
        is_reciprocal: bool,
    },
    /// Computes the elements of the result.
    Result(Line),
    /// The result is this number.
    Single(usize),
}

/// A program along a row, and what it reads.
pub(super) struct Line {
    pub(super) program: Arc<dyn LineProgram>,
    pub(super) reads: Vec<Read>,
}

/// An input of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The elements of an operand. Of those of the next row the stage asks for a share, from an eighth of
    /// each tile to another.
    Elements(usize, [u8; 2]),
    /// The single element of an operand.
    Single(usize),
    /// A number of the row, and its width in bytes.
    Number(usize, usize),
    /// Elements that were kept.
    Kept(usize),
    Accumulator,
}

impl StagePlan {
    /// The stages of an expression over operands; `None` where there is no code for some. With
    /// `inverts`, elements are multiplied by reciprocals of numbers of the row rather than divided.
    pub(super) fn new(
        expr: &Expr,
        dtypes: &[DType],
        along: &[Along],
        inverts: bool,
        reduces: bool,
    ) -> Option<StagePlan> {
        let inverted = inverts.then(|| {
            let is_element = elements(expr, along);
            let constant = |id: ExprId| matches!(kind(expr, id), ExprKind::Const(_));
            expr.with_reciprocals(|divisor| !is_element[divisor.index()] && !constant(divisor))
        });
        let has_reciprocals = inverted.as_ref().is_some_and(|inverted| inverted != expr);
        let expr = inverted.as_ref().unwrap_or(expr);
        let mut builder = Builder::new(expr, dtypes, along);
        builder.stages(reduces)?;
        builder.share_reads();
        let Builder { stages, numbers, kept, .. } = builder;
        let (n_numbers, n_kept) = (numbers.len(), kept.len());
        Some(StagePlan { stages, n_numbers, n_kept, has_reciprocals })
    }
}

fn kind(expr: &Expr, id: ExprId) -> &ExprKind {
    &expr.nodes()[id.index()].kind
}

/// For each node, whether it has a value of its own for each element of a row.
fn elements(expr: &Expr, along: &[Along]) -> Vec<bool> {
    let mut elements: Vec<bool> = Vec::with_capacity(expr.nodes().len());
    for node in expr.nodes() {
        elements.push(match &node.kind {
            ExprKind::Input(position) => along[*position] == Along::Elements,
            ExprKind::Const(_) | ExprKind::Reduce(..) => false,
            ExprKind::Apply(_, args) => args.iter().any(|arg| elements[arg.index()]),
        });
    }
    elements
}

struct Builder<'a> {
    expr: &'a Expr,
    is_element: Vec<bool>,
    /// Number of nodes that use each.
    uses: Vec<usize>,
    /// Dtypes and ways of everything that programs may read: the operands, the numbers of the row,
    /// what is kept of it, the accumulator.
    dtypes: Vec<DType>,
    along: Vec<Along>,
    n_operands: usize,
    /// Nodes that are numbers of the row and used by elements, with their numbers.
    numbers: HashMap<ExprId, usize>,
    /// Nodes that are kept.
    kept: HashMap<ExprId, usize>,
    first_kept: usize,
    /// The number of stages that have read each operand.
    n_reads: Vec<usize>,
    stages: Vec<Stage>,
}

impl<'a> Builder<'a> {
    fn new(expr: &'a Expr, dtypes: &[DType], along: &[Along]) -> Builder<'a> {
        let is_element = elements(expr, along);
        let mut uses = vec![0; expr.nodes().len()];
        let mut numbers: HashMap<ExprId, usize> = HashMap::new();
        let mut number = |id: ExprId| {
            let next = numbers.len();
            numbers.entry(id).or_insert(next);
        };
        for (id, node) in expr.iter() {
            for arg in node.kind.args() {
                uses[arg.index()] += 1;
                let is_number =
                    matches!(kind(expr, *arg), ExprKind::Apply(..) | ExprKind::Reduce(..));
                if is_element[id.index()] && !is_element[arg.index()] && is_number {
                    number(*arg);
                }
            }
            if matches!(node.kind, ExprKind::Reduce(..)) {
                number(id);
            }
        }
        uses[expr.root().index()] += 1;
        if !is_element[expr.root().index()] {
            number(expr.root());
        }
        let n_reductions =
            expr.nodes().iter().filter(|node| matches!(node.kind, ExprKind::Reduce(..))).count();
        let (mut dtypes, mut along) = (dtypes.to_vec(), along.to_vec());
        let n_operands = dtypes.len();
        let first_kept = n_operands + numbers.len();
        let mut of_numbers = vec![DType::F32; numbers.len()];
        for (id, number) in &numbers {
            of_numbers[*number] = expr.nodes()[id.index()].dtype;
        }
        dtypes.extend(of_numbers);
        along.extend(std::iter::repeat_n(Along::Single, numbers.len()));
        dtypes.extend(std::iter::repeat_n(DType::F32, n_reductions + 1));
        along.extend(std::iter::repeat_n(Along::Elements, n_reductions));
        along.push(Along::Accumulator);
        let (kept, n_reads, stages) = (HashMap::new(), vec![0; n_operands], Vec::new());
        Builder {
            expr,
            is_element,
            uses,
            dtypes,
            along,
            n_operands,
            numbers,
            kept,
            first_kept,
            n_reads,
            stages,
        }
    }

    fn stages(&mut self, reduces: bool) -> Option<()> {
        for (id, node) in self.expr.iter() {
            match &node.kind {
                ExprKind::Reduce(kind, arg) => self.reduce(id, *kind, *arg)?,
                ExprKind::Apply(..) if self.numbers.contains_key(&id) => self.number(id)?,
                ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Apply(..) => {}
            }
        }
        let root = self.expr.root();
        let stage = match (self.is_element[root.index()], reduces) {
            (true, false) => {
                let part = self.part(root);
                Stage::Result(self.line(&part)?)
            }
            (false, true) => Stage::Single(*self.numbers.get(&root)?),
            (true, true) | (false, false) => return None,
        };
        self.stages.push(stage);
        Some(())
    }

    /// The expression of a node, of what is known when its stage runs.
    fn part(&self, root: ExprId) -> Expr {
        self.expr.part(root, |id| {
            if let Some(kept) = self.kept.get(&id) {
                return Some(self.first_kept + kept);
            }
            let number = self.numbers.get(&id).filter(|_| id != root)?;
            Some(self.n_operands + number)
        })
    }

    /// The program of an expression, with the inputs that it reads alone.
    fn line(&mut self, expr: &Expr) -> Option<Line> {
        let (expr, used) = expr.compacted();
        let dtypes: Vec<DType> = used.iter().map(|&position| self.dtypes[position]).collect();
        let along: Vec<Along> = used.iter().map(|&position| self.along[position]).collect();
        let reads = used.iter().map(|&position| self.read(position)).collect();
        Some(Line { program: compile(&expr, &dtypes, &along)?, reads })
    }

    fn read(&mut self, position: usize) -> Read {
        match self.along[position] {
            Along::Accumulator => Read::Accumulator,
            Along::Elements if position < self.n_operands => {
                self.n_reads[position] += 1;
                Read::Elements(position, [0, 8])
            }
            Along::Elements => Read::Kept(position - self.first_kept),
            Along::Single if position < self.n_operands => Read::Single(position),
            Along::Single => {
                let width = self.dtypes[position].size().unwrap_or(size_of::<f32>());
                Read::Number(position - self.n_operands, width)
            }
        }
    }

    /// Shares what is asked for of the next row among the stages that read an operand.
    fn share_reads(&mut self) {
        let mut turns = vec![0; self.n_operands];
        let lines = self.stages.iter_mut().filter_map(|stage| match stage {
            Stage::Keep { line, .. } | Stage::Reduce { line, .. } | Stage::Result(line) => {
                Some(line)
            }
            Stage::Number { .. } | Stage::Single(_) => None,
        });
        for read in lines.flat_map(|line| &mut line.reads) {
            if let Read::Elements(operand, asked) = read {
                let eighths = |turn: usize| (8 * turn / self.n_reads[*operand]) as u8;
                *asked = [eighths(turns[*operand]), eighths(turns[*operand] + 1)];
                turns[*operand] += 1;
            }
        }
    }

    fn reduce(&mut self, id: ExprId, kind: ReduceKind, arg: ExprId) -> Option<()> {
        let nodes = self.expr.nodes();
        if !self.is_element[arg.index()] || nodes[arg.index()].dtype != DType::F32 {
            return None;
        }
        let prim = match kind {
            ReduceKind::Sum | ReduceKind::Mean => Prim::Add,
            ReduceKind::Max => Prim::Max,
            ReduceKind::Min => Prim::Min,
            ReduceKind::Prod | ReduceKind::All | ReduceKind::Any | ReduceKind::EuclideanNorm => {
                return None;
            }
        };
        let own = self.part(arg);
        if self.uses[arg.index()] > 1 && !self.kept.contains_key(&arg) && is_costly(&own) {
            let kept = self.kept.len();
            let line = self.line(&own)?;
            self.kept.insert(arg, kept);
            self.stages.push(Stage::Keep { line, kept });
        }
        let accumulator = self.along.len() - 1;
        let folded = self.part(arg).combined(prim, accumulator);
        let line = self.line(&folded)?;
        let number = *self.numbers.get(&id)?;
        self.stages.push(Stage::Reduce { line, kind, number });
        Some(())
    }

    fn number(&mut self, id: ExprId) -> Option<()> {
        let part = self.part(id);
        let mut program = ScalarBytecode::new();
        let mut registers = Vec::new();
        let mut inputs = Vec::new();
        for position in 0..part.n_inputs() {
            let register = program.register();
            registers.push(register);
            let reads = |node: &ExprNode| node.kind == ExprKind::Input(position);
            if part.nodes().iter().any(reads) {
                inputs.push((position, register));
            }
        }
        let out = program.register();
        program.expression(&part, &registers, out)?;
        part.dtype().size().filter(|&size| size <= size_of::<f32>())?;
        let number = *self.numbers.get(&id)?;
        let is_reciprocal = match kind(self.expr, id) {
            ExprKind::Apply(Prim::Div, args) => {
                *kind(self.expr, args[0]) == ExprKind::Const(Constant::Float(1.0))
            }
            _ => false,
        };
        let line = self.number_line(&part);
        self.stages.push(Stage::Number { line, program, inputs, out, number, is_reciprocal });
        Some(())
    }

    /// The program that computes a number of several rows, along them.
    fn number_line(&mut self, part: &Expr) -> Option<Line> {
        let (expr, used) = part.compacted();
        let dtypes: Vec<DType> = used.iter().map(|&position| self.dtypes[position]).collect();
        if expr.dtype() != DType::F32 || dtypes.iter().any(|&dtype| dtype != DType::F32) {
            return None;
        }
        let program = compile(&expr, &dtypes, &vec![Along::Elements; used.len()])?;
        Some(Line { program, reads: used.iter().map(|&position| self.read(position)).collect() })
    }
}

/// Whether computing an expression twice takes longer than keeping it.
fn is_costly(expr: &Expr) -> bool {
    use Prim::*;
    let slow = |prim: &Prim| {
        !matches!(prim, Neg | Abs | Add | Sub | Mul | Max | Min | Flush | Select | Cast)
    };
    let applied = expr.nodes().iter().filter_map(|node| match &node.kind {
        ExprKind::Apply(prim, _) => Some(prim),
        ExprKind::Input(_) | ExprKind::Const(_) | ExprKind::Reduce(..) => None,
    });
    let (slow, all) = (applied.clone().any(slow), applied.count());
    slow || all >= MANY_NODES
}
