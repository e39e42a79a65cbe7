//! Expressions of any element types, one block of elements at a time.
//!
//! An expression becomes a list of instructions over registers; a register holds one block of
//! elements. An instruction is a loop from [`spelling`](super::spelling).

use super::{
    gather, reads_in_place,
    spelling::{BlockLoop, spell},
};
use crate::{
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast::InputAccess,
};
use bytemuck::Pod;
use ferroflow_ir::{
    DType, Expr, Prim, StridedView,
    expr::{Constant, ExprKind},
};
use half::{bf16, f16};
use num_complex::Complex;
use smallvec::{SmallVec, smallvec};
use std::{
    mem,
    sync::{Arc, OnceLock},
};

/// Elements per block: a few registers of the widest type fit the first-level cache.
const BLOCK: usize = 512;

/// Outputs of fewer elements are not worth a second thread.
const ELEMENTS_PER_PIECE: usize = 1 << 15;

/// Where an instruction finds a block of arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Register(usize),
    /// A contiguous input, read at the position that is written.
    Input(usize),
}

#[derive(Debug)]
struct Instruction {
    run: BlockLoop,
    prim: Prim,
    args: SmallVec<[Place; 3]>,
    /// The register written; the output if none.
    out: Option<usize>,
}

/// Content of a register before the first instruction of each block.
#[derive(Debug)]
enum Fill {
    /// The same constant everywhere, as the bytes of one element.
    Constant(Vec<u8>),
    /// The only element of an input everywhere.
    Scalar(usize),
    /// The next block of a strided input.
    Strided(usize, StridedView),
}

#[derive(Debug)]
struct Program {
    instructions: Vec<Instruction>,
    fills: Vec<(usize, Fill)>,
    /// The width of each register's elements in bytes.
    widths: Vec<usize>,
    accesses: Vec<InputAccess>,
    input_widths: Vec<usize>,
    output_width: usize,
    expr: Expr,
}

/// Compiles an expression; `None` when a primitive has no loop for a dtype.
pub(super) fn compile(
    expr: &Expr,
    inputs: &[DType],
    accesses: Vec<InputAccess>,
) -> Option<Arc<dyn Kernel>> {
    let input_widths: Option<Vec<usize>> = inputs.iter().map(|dtype| dtype.size()).collect();
    let mut program = Program {
        instructions: Vec::new(),
        fills: Vec::new(),
        widths: Vec::new(),
        accesses,
        input_widths: input_widths?,
        output_width: expr.dtype().size()?,
        expr: expr.clone(),
    };
    program.translate(expr)?;
    Some(Arc::new(program))
}

/// The kernel for inputs that do not broadcast: `Ne` is true of them, anything else false.
pub(super) fn unequal_shapes(expr: &Expr) -> Arc<dyn Kernel> {
    let root = &expr.nodes()[expr.root().index()].kind;
    let value = matches!(root, ExprKind::Apply(Prim::Ne, _));
    Arc::new(move |io: &mut Io<'_>| {
        io.output::<u8>(0).fill(u8::from(value));
        Ok(())
    })
}

impl Program {
    fn translate(&mut self, expr: &Expr) -> Option<()> {
        let nodes = expr.nodes();
        let last_use = last_uses(expr);
        let mut places: Vec<Place> = Vec::with_capacity(nodes.len());
        let mut free: Vec<usize> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let width = node.dtype.size()?;
            let place = match &node.kind {
                ExprKind::Input(input) => self.input(*input, width),
                ExprKind::Const(constant) => {
                    let bytes = constant_bytes(*constant, node.dtype)?;
                    Place::Register(self.filled(width, Fill::Constant(bytes)))
                }
                ExprKind::Reduce(..) => return None,
                ExprKind::Apply(prim, args) => {
                    let typical = &nodes[args[usize::from(*prim == Prim::Select)].index()];
                    let run = spell(*prim, typical.dtype, node.dtype)?;
                    let args = args.iter().map(|arg| places[arg.index()]).collect();
                    let is_root = index == expr.root().index();
                    let out = (!is_root).then(|| {
                        let fitting = free.iter().position(|&free| self.widths[free] == width);
                        let reused = fitting.map(|position| free.swap_remove(position));
                        reused.unwrap_or_else(|| self.register(width))
                    });
                    self.instructions.push(Instruction { run, prim: *prim, args, out });
                    Place::Register(out.unwrap_or(0))
                }
            };
            places.push(place);
            free.extend(freed_after(expr, &last_use, index).filter_map(|done| {
                match places[done] {
                    Place::Register(register) => Some(register),
                    Place::Input(_) => None,
                }
            }));
        }
        if !matches!(nodes[expr.root().index()].kind, ExprKind::Apply(..)) {
            let args = SmallVec::from_slice(&[places[expr.root().index()]]);
            self.instructions.push(Instruction { run: copy, prim: Prim::Cast, args, out: None });
        }
        Some(())
    }

    fn register(&mut self, width: usize) -> usize {
        self.widths.push(width);
        self.widths.len() - 1
    }

    fn filled(&mut self, width: usize, fill: Fill) -> usize {
        let register = self.register(width);
        self.fills.push((register, fill));
        register
    }

    fn input(&mut self, input: usize, width: usize) -> Place {
        match self.accesses[input].clone() {
            InputAccess::Contiguous => Place::Input(input),
            InputAccess::Scalar => Place::Register(self.filled(width, Fill::Scalar(input))),
            InputAccess::Strided(view) => {
                Place::Register(self.filled(width, Fill::Strided(input, view)))
            }
        }
    }

    /// Computes the elements from `start` on that fill `out`.
    fn run_piece(&self, io: &Io<'_>, start: usize, out: &mut [u8]) -> Result<()> {
        let block = BLOCK.min(out.len() / self.output_width);
        let in_place = (0..self.accesses.len()).find(|&input| io.is_in_place(input));
        let mut registers: Registers =
            self.widths.iter().map(|width| smallvec![0; (block * width).div_ceil(8)]).collect();
        for (register, fill) in &self.fills {
            let own = bytemuck::cast_slice_mut(&mut registers[*register]);
            match fill {
                Fill::Constant(bytes) => splat(own, bytes),
                Fill::Scalar(input) => splat(own, io.bytes(*input)),
                Fill::Strided(..) => {}
            }
        }
        for (index, out) in out.chunks_mut(block * self.output_width).enumerate() {
            let start = start + index * block;
            for (register, fill) in &self.fills {
                if let Fill::Strided(input, view) = fill {
                    let width = self.widths[*register];
                    let own = bytemuck::cast_slice_mut(&mut registers[*register]);
                    let n = out.len() / self.output_width;
                    gather(view, io.bytes(*input), start, &mut own[..n * width], width);
                }
            }
            self.run_block(io, start, out, &mut registers, in_place)?;
        }
        Ok(())
    }

    fn run_block(
        &self,
        io: &Io<'_>,
        start: usize,
        out: &mut [u8],
        registers: &mut Registers,
        in_place: Option<usize>,
    ) -> Result<()> {
        let n = out.len() / self.output_width;
        // An input that lies in the output's memory is set aside before it is overwritten.
        let mut aside = Register::new();
        if in_place.is_some() {
            aside.resize(out.len().div_ceil(8), 0);
            bytemuck::cast_slice_mut(&mut aside)[..out.len()].copy_from_slice(out);
        }
        for instruction in &self.instructions {
            let mut own = instruction.out.map(|register| mem::take(&mut registers[register]));
            let arg = |position: usize| -> &[u8] {
                match instruction.args.get(position) {
                    None => &[],
                    Some(&Place::Register(register)) => {
                        &bytemuck::cast_slice(&registers[register])[..n * self.widths[register]]
                    }
                    Some(&Place::Input(input)) => {
                        let width = self.input_widths[input];
                        if in_place == Some(input) {
                            return &bytemuck::cast_slice(&aside)[..n * width];
                        }
                        &io.bytes(input)[start * width..(start + n) * width]
                    }
                }
            };
            let target: &mut [u8] = match (&mut own, instruction.out) {
                (Some(own), Some(register)) => {
                    &mut bytemuck::cast_slice_mut(own)[..n * self.widths[register]]
                }
                _ => out,
            };
            if !(instruction.run)(target, arg(0), arg(1), arg(2)) {
                return Err(self.expr.fault(instruction.prim).into());
            }
            if let (Some(own), Some(register)) = (own, instruction.out) {
                registers[register] = own;
            }
        }
        Ok(())
    }
}

/// A block of elements; eight bytes a word, so that it is aligned for every type.
type Register = SmallVec<[u64; 8]>;
type Registers = SmallVec<[Register; 6]>;

impl Kernel for Program {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let out = io.output_bytes(0);
        if out.len() <= ELEMENTS_PER_PIECE * self.output_width {
            return if out.is_empty() { Ok(()) } else { self.run_piece(io, 0, out) };
        }
        let first_error = OnceLock::new();
        let piece = ELEMENTS_PER_PIECE * self.output_width;
        io.threads().for_each_piece(out, piece, |start, out| {
            if let Err(error) = self.run_piece(io, start / self.output_width, out) {
                first_error.get_or_init(|| error);
            }
        });
        first_error.into_inner().map_or(Ok(()), Err)
    }

    fn in_place(&self, index: usize) -> bool {
        reads_in_place(&self.accesses, index) && self.input_widths[index] == self.output_width
    }
}

/// For each node, the last node that uses it.
fn last_uses(expr: &Expr) -> Vec<usize> {
    let mut last_use = vec![0; expr.nodes().len()];
    for (index, node) in expr.nodes().iter().enumerate() {
        node.kind.args().iter().for_each(|arg| last_use[arg.index()] = index);
    }
    last_use
}

/// The computed nodes that are used at `index` for the last time.
fn freed_after<'a>(
    expr: &'a Expr,
    last_use: &'a [usize],
    index: usize,
) -> impl Iterator<Item = usize> + 'a {
    let args = expr.nodes()[index].kind.args().iter().map(|arg| arg.index());
    let mut seen: SmallVec<[usize; 3]> = SmallVec::new();
    args.filter(move |&arg| {
        let first = !seen.contains(&arg);
        seen.push(arg);
        let computed = matches!(expr.nodes()[arg].kind, ExprKind::Apply(..));
        first && computed && last_use[arg] == index
    })
}

fn copy(out: &mut [u8], a: &[u8], _: &[u8], _: &[u8]) -> bool {
    out.copy_from_slice(a);
    true
}

/// Repeats an element.
fn splat(out: &mut [u8], element: &[u8]) {
    out.chunks_exact_mut(element.len().max(1)).for_each(|cell| cell.copy_from_slice(element));
}

/// The bytes of a constant element; `None` for dtypes without plain elements.
pub(super) fn constant_bytes(constant: Constant, dtype: DType) -> Option<Vec<u8>> {
    fn bytes<T: Pod>(value: T) -> Option<Vec<u8>> {
        Some(bytemuck::bytes_of(&value).to_vec())
    }
    let (float, int) = match constant {
        Constant::Float(value) => (value, value as i128),
        Constant::Int(value) => (value as f64, value),
    };
    match dtype.unquantized() {
        DType::Bool => bytes(u8::from(int != 0)),
        DType::I8 => bytes(int as i8),
        DType::I16 => bytes(int as i16),
        DType::I32 => bytes(int as i32),
        DType::I64 => bytes(int as i64),
        DType::U8 => bytes(int as u8),
        DType::U16 => bytes(int as u16),
        DType::U32 => bytes(int as u32),
        DType::U64 => bytes(int as u64),
        DType::F16 => bytes(f16::from_f64(float)),
        DType::BF16 => bytes(bf16::from_f64(float)),
        DType::F32 => bytes(float as f32),
        DType::F64 => bytes(float),
        DType::C64 => bytes(Complex::new(float as f32, 0.0)),
        DType::C128 => bytes(Complex::new(float, 0.0)),
        _ => None,
    }
}
