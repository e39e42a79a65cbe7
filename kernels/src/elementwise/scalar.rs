//! Programs over single elements.
//!
//! Counters, limits and conditions are single numbers: calling a kernel for each costs many times
//! its work. A [`ScalarBytecode`] computes them in registers of eight bytes, loops and branches included.
//! Its arithmetic is that of the kernels: the same loops over blocks, of one element.
//!
//! ```
//! use ferroflow_ir::{Attrs, DType, Shape, registry};
//! use ferroflow_kernels::{OpCall, OperandSpec, scalar::ScalarBytecode};
//! # fn main() -> ferroflow_kernels::Result<()> {
//! let number = || OperandSpec::new(DType::I32, Shape::scalar());
//! let attrs = Attrs::new().with("T", DType::I32);
//! let specs = [number(), number()];
//! let sum = OpCall::new(registry::find("AddV2").unwrap(), &attrs, &specs, None)?;
//! let mut program = ScalarBytecode::new();
//! let (x, y) = (program.register(), program.constant(&3i32.to_ne_bytes()));
//! program.call(&sum, &[x, y], x).unwrap();
//! let mut registers = program.registers().to_vec();
//! registers[x.index()] = 4;
//! program.run(&mut registers, u64::MAX).unwrap();
//! assert_eq!(registers[x.index()], 7);
//! # Ok(())
//! # }
//! ```

use super::{
    portable::constant_bytes,
    spelling::{BlockLoop, spell},
};
use crate::device::OpCall;
use ferroflow_ir::{
    DType, Error, Expr, Lowering, Prim,
    expr::{ExprKind, ExprNode},
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// A register of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Register(u32);

impl Register {
    /// The register as an index of those that a program runs in.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytecodePosition(u32);

/// Reasons why a run ends before its end.
#[derive(Debug)]
pub enum Stop {
    /// Arithmetic that has no result, at this place.
    Fault(BytecodePosition, Error),
    /// A loop goes round more often than it may.
    Rounds(BytecodePosition),
}

/// A program over single elements.
#[derive(Debug, Default)]
pub struct ScalarBytecode {
    code: Vec<Instruction>,
    /// Values of the registers before a run.
    registers: Vec<u64>,
    /// Errors that the arithmetic of some instructions may end with.
    faults: Vec<(BytecodePosition, Error)>,
}

#[derive(Debug, Clone, Copy)]
enum Instruction {
    Apply {
        run: BlockLoop,
        args: [u32; 3],
        out: u32,
        /// The bytes that the arguments take, then those of the result.
        widths: [u8; 4],
    },
    /// Subnormal floats become zeros of their sign. Nearly every float is asked, so this is no loop.
    Flush {
        from: u32,
        to: u32,
        exponent: u64,
        sign: u64,
    },
    Copy {
        from: u32,
        to: u32,
    },
    Jump {
        to: BytecodePosition,
    },
    JumpUnless {
        test: u32,
        to: BytecodePosition,
    },
    /// Counts the rounds of a loop in a register.
    Round {
        counter: u32,
    },
}

/// The widest element a register has room for, in bytes.
const WIDTH: usize = size_of::<u64>();

impl ScalarBytecode {
    /// An empty program.
    pub fn new() -> ScalarBytecode {
        ScalarBytecode::default()
    }

    /// Values of the registers before a run.
    pub fn registers(&self) -> &[u64] {
        &self.registers
    }

    /// A new register.
    pub fn register(&mut self) -> Register {
        self.registers.push(0);
        Register(self.registers.len() as u32 - 1)
    }

    /// A new register that holds these bytes before each run.
    ///
    /// # Panics
    ///
    /// When a register has no room for them.
    pub fn constant(&mut self, bytes: &[u8]) -> Register {
        let register = self.register();
        set(&mut self.registers[register.index()], bytes);
        register
    }

    /// The place of the next instruction.
    pub fn position(&self) -> BytecodePosition {
        BytecodePosition(self.code.len() as u32)
    }

    /// Adds a call of an elementwise op on single elements. Gives `None`, and adds nothing, when
    /// it is none that a program can do to the bit as kernels do.
    pub fn call(&mut self, call: &OpCall<'_>, inputs: &[Register], out: Register) -> Option<()> {
        let dtypes: SmallVec<[DType; 4]> = call.inputs.iter().map(|input| input.dtype).collect();
        let expr = match (call.op.lowering, call.expr) {
            (Lowering::Elementwise(_) | Lowering::Fused, Some(expr)) => Cow::Borrowed(expr),
            (Lowering::Elementwise(_), None) => {
                Cow::Owned(Expr::of(call.op, call.attrs, &dtypes, call.outputs[0].dtype).ok()?)
            }
            _ => return None,
        };
        let one = |spec: &crate::OperandSpec| spec.shape.num_elements() == 1;
        if !call.inputs.iter().all(one) || call.output_shape(0).ok()?.num_elements() != 1 {
            return None;
        }
        let instructions: Vec<Option<(BlockLoop, Prim)>> =
            expr.nodes().iter().map(|node| loop_of(&expr, node, true)).collect::<Option<_>>()?;
        self.translate(&expr, &instructions, inputs, out);
        Some(())
    }

    /// Adds an expression, whose inputs are in registers. Gives `None`, and adds nothing, for
    /// primitives that no loop has. Functions of floats may differ from those of wide vectors in
    /// the last places.
    pub(crate) fn expression(
        &mut self,
        expr: &Expr,
        inputs: &[Register],
        out: Register,
    ) -> Option<()> {
        let instructions: Vec<Option<(BlockLoop, Prim)>> =
            expr.nodes().iter().map(|node| loop_of(expr, node, false)).collect::<Option<_>>()?;
        self.translate(expr, &instructions, inputs, out);
        Some(())
    }

    fn translate(
        &mut self,
        expr: &Expr,
        loops: &[Option<(BlockLoop, Prim)>],
        inputs: &[Register],
        out: Register,
    ) {
        let mut places: Vec<Register> = Vec::with_capacity(loops.len());
        let width = |node: &ExprNode| node.dtype.size().unwrap_or(0) as u8;
        for (index, node) in expr.nodes().iter().enumerate() {
            let is_root = index == expr.root().index();
            let place = match &node.kind {
                ExprKind::Input(input) => inputs[*input],
                ExprKind::Const(constant) => {
                    let bytes = constant_bytes(*constant, node.dtype);
                    self.constant(&bytes.unwrap_or_default())
                }
                ExprKind::Apply(..) | ExprKind::Reduce(..) => {
                    let args = node.kind.args();
                    let place = if is_root { out } else { self.register() };
                    let Some((run, prim)) = loops[index] else { continue };
                    if let (Prim::Flush, Some((exponent, sign))) = (prim, float_masks(node.dtype)) {
                        let (from, to) = (places[args[0].index()].0, place.0);
                        self.code.push(Instruction::Flush { from, to, exponent, sign });
                        places.push(place);
                        continue;
                    }
                    let (mut registers, mut widths) = ([0; 3], [0, 0, 0, width(node)]);
                    for (position, arg) in args.iter().enumerate() {
                        registers[position] = places[arg.index()].0;
                        widths[position] = width(&expr.nodes()[arg.index()]);
                    }
                    if prim.is_fallible() && !node.dtype.is_float() {
                        self.faults.push((self.position(), expr.fault(prim)));
                    }
                    self.code.push(Instruction::Apply {
                        run,
                        args: registers,
                        out: place.0,
                        widths,
                    });
                    place
                }
            };
            places.push(place);
        }
        let root = places[expr.root().index()];
        if root != out {
            self.copy(root, out);
        }
    }

    /// Adds a copy.
    pub fn copy(&mut self, from: Register, to: Register) {
        self.code.push(Instruction::Copy { from: from.0, to: to.0 });
    }

    /// Adds a jump to an earlier place.
    pub fn jump_back(&mut self, to: BytecodePosition) {
        self.code.push(Instruction::Jump { to });
    }

    /// Adds a jump to a place that [`land`](Self::land) names later.
    pub fn jump(&mut self) -> BytecodePosition {
        self.code.push(Instruction::Jump { to: BytecodePosition(0) });
        BytecodePosition(self.code.len() as u32 - 1)
    }

    /// Adds a jump, where the bool `test` is false, to a place that [`land`](Self::land) names
    /// later.
    pub fn jump_unless(&mut self, test: Register) -> BytecodePosition {
        self.code.push(Instruction::JumpUnless { test: test.0, to: BytecodePosition(0) });
        BytecodePosition(self.code.len() as u32 - 1)
    }

    /// Lets a jump go to the next instruction.
    pub fn land(&mut self, jump: BytecodePosition) {
        let here = self.position();
        match &mut self.code[jump.0 as usize] {
            Instruction::Jump { to } | Instruction::JumpUnless { to, .. } => *to = here,
            Instruction::Apply { .. }
            | Instruction::Flush { .. }
            | Instruction::Copy { .. }
            | Instruction::Round { .. } => {}
        }
    }

    /// Counts one more round of a loop in `counter`, which only this uses.
    pub fn round(&mut self, counter: Register) {
        self.code.push(Instruction::Round { counter: counter.0 });
    }

    /// Runs the program in as many registers as it has; no loop goes round more than `limit` times.
    ///
    /// # Errors
    ///
    /// What stops it before its end.
    pub fn run(&self, registers: &mut [u64], limit: u64) -> Result<(), Stop> {
        let mut at = 0;
        while let Some(instruction) = self.code.get(at) {
            at += 1;
            match *instruction {
                Instruction::Apply { run, args, out, widths } => {
                    let mut result = 0u64;
                    let arg = |index: usize| {
                        let register = &registers[args[index] as usize];
                        &bytemuck::bytes_of(register)[..usize::from(widths[index])]
                    };
                    let cell = &mut bytemuck::bytes_of_mut(&mut result)[..usize::from(widths[3])];
                    if !run(cell, arg(0), arg(1), arg(2)) {
                        return Err(self.fault(at - 1));
                    }
                    registers[out as usize] = match widths[3] {
                        1 => widened::<1>(&result),
                        2 => widened::<2>(&result),
                        4 => widened::<4>(&result),
                        _ => result,
                    };
                }
                Instruction::Flush { from, to, exponent, sign } => {
                    let number = registers[from as usize];
                    let kept = if number & exponent == 0 { sign } else { u64::MAX };
                    registers[to as usize] = number & kept;
                }
                Instruction::Copy { from, to } => {
                    registers[to as usize] = registers[from as usize];
                }
                Instruction::Jump { to } => at = to.0 as usize,
                Instruction::JumpUnless { test, to } => {
                    if registers[test as usize].to_ne_bytes()[0] == 0 {
                        at = to.0 as usize;
                    }
                }
                Instruction::Round { counter } => {
                    let counter = &mut registers[counter as usize];
                    if *counter == limit {
                        return Err(Stop::Rounds(BytecodePosition(at as u32 - 1)));
                    }
                    *counter += 1;
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn fault(&self, at: usize) -> Stop {
        let at = BytecodePosition(at as u32);
        let found = self.faults.iter().find(|(position, _)| *position == at);
        Stop::Fault(at, found.map_or(Error::DivisionByZero, |(_, error)| error.clone()))
    }
}

/// Puts the bytes of an element into a register.
///
/// # Panics
///
/// When the register has no room for them.
#[inline]
pub fn set(register: &mut u64, bytes: &[u8]) {
    let mut cell = [0; WIDTH];
    copy(&mut cell[..bytes.len()], bytes);
    *register = u64::from_ne_bytes(cell);
}

/// Copies the bytes of an element. Copies of a known length take no call.
#[inline]
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    match to.len() {
        1 => to[..1].copy_from_slice(&from[..1]),
        2 => to[..2].copy_from_slice(&from[..2]),
        4 => to[..4].copy_from_slice(&from[..4]),
        8 => to[..8].copy_from_slice(&from[..8]),
        _ => to.copy_from_slice(from),
    }
}

/// The bits of the exponent and of the sign in a register with a float.
fn float_masks(dtype: DType) -> Option<(u64, u64)> {
    let masks = |exponent: &[u8], sign: &[u8]| {
        let mut masks = (0, 0);
        set(&mut masks.0, exponent);
        set(&mut masks.1, sign);
        Some(masks)
    };
    match dtype {
        DType::F32 => masks(&f32::INFINITY.to_ne_bytes(), &(-0f32).to_ne_bytes()),
        DType::F64 => masks(&f64::INFINITY.to_ne_bytes(), &(-0f64).to_ne_bytes()),
        _ => None,
    }
}

/// The same register, of which only `WIDTH` bytes were written. Reading no others spares the
/// processor the wait until what was written is in memory.
fn widened<const WIDTH: usize>(register: &u64) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    bytes[..WIDTH].copy_from_slice(&bytemuck::bytes_of(register)[..WIDTH]);
    u64::from_ne_bytes(bytes)
}

/// The bytes of an element in a register.
///
/// # Panics
///
/// When a register has no room for as many.
pub fn get(register: &u64, width: usize) -> &[u8] {
    &bytemuck::bytes_of(register)[..width]
}

/// The loop of a node, if it applies a function; `None` for a node that no program has, with `exact`
/// also for one that kernels with wide vectors compute to other bits.
#[expect(clippy::option_option, reason = "the outer one says whether there is a program at all")]
fn loop_of(expr: &Expr, node: &ExprNode, exact: bool) -> Option<Option<(BlockLoop, Prim)>> {
    node.dtype.size().filter(|&size| size <= WIDTH && size > 0)?;
    match &node.kind {
        ExprKind::Input(_) => Some(None),
        ExprKind::Const(constant) => constant_bytes(*constant, node.dtype).map(|_| None),
        ExprKind::Apply(prim, args) => {
            let typical = &expr.nodes()[args[usize::from(*prim == Prim::Select)].index()];
            if exact && typical.dtype.is_float() && !is_exact(*prim) {
                return None;
            }
            Some(Some((spell(*prim, typical.dtype, node.dtype)?, *prim)))
        }
        ExprKind::Reduce(..) => None,
    }
}

/// Whether a function of floats has one right result, which kernels with wide vectors give too.
fn is_exact(prim: Prim) -> bool {
    use Prim::*;
    matches!(
        prim,
        Neg | Abs
            | Sqrt
            | Floor
            | Ceil
            | Trunc
            | Add
            | Sub
            | Mul
            | Div
            | Eq
            | Ne
            | Lt
            | Le
            | Gt
            | Ge
            | IsNan
            | IsInf
            | IsFinite
            | Select
            | Cast
            | Flush
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperandSpec;
    use ferroflow_ir::{Attrs, Shape, registry};

    fn add(
        program: &mut ScalarBytecode,
        op: &str,
        dtype: DType,
        inputs: &[Register],
        out: Register,
    ) -> Option<()> {
        let op = registry::find(op).unwrap();
        let attrs = op.complete_attrs(Attrs::new().with("T", dtype)).unwrap();
        let specs = vec![OperandSpec::new(dtype, Shape::scalar()); inputs.len()];
        program.call(&OpCall::new(op, &attrs, &specs, None).unwrap(), inputs, out)
    }

    fn int(program: &mut ScalarBytecode, value: i32) -> Register {
        program.constant(&value.to_ne_bytes())
    }

    /// `while i < n { if i % 2 == 0 { sum += i } else { sum -= 1 }; i += 1 }`
    fn looping(n: i32) -> (ScalarBytecode, Register) {
        let mut program = ScalarBytecode::new();
        let [i, sum, n, zero, one, two] = [0, 0, n, 0, 1, 2].map(|x| int(&mut program, x));
        let (test, counter) = (program.register(), program.register());
        let start = program.position();
        add(&mut program, "Less", DType::I32, &[i, n], test).unwrap();
        let out = program.jump_unless(test);
        program.round(counter);
        let rest = program.register();
        add(&mut program, "FloorMod", DType::I32, &[i, two], rest).unwrap();
        add(&mut program, "Equal", DType::I32, &[rest, zero], test).unwrap();
        let otherwise = program.jump_unless(test);
        add(&mut program, "AddV2", DType::I32, &[sum, i], sum).unwrap();
        let end = program.jump();
        program.land(otherwise);
        add(&mut program, "Sub", DType::I32, &[sum, one], sum).unwrap();
        program.land(end);
        add(&mut program, "AddV2", DType::I32, &[i, one], i).unwrap();
        program.jump_back(start);
        program.land(out);
        (program, sum)
    }

    #[test]
    fn loops_and_branches_run_in_registers() {
        let (program, sum) = looping(10);
        let mut registers = program.registers().to_vec();
        program.run(&mut registers, 10).unwrap();
        assert_eq!(registers[sum.index()], 20 - 5);
        let mut registers = program.registers().to_vec();
        assert!(matches!(program.run(&mut registers, 9), Err(Stop::Rounds(_))));
    }

    #[test]
    fn arithmetic_without_a_result_stops_the_run() {
        let mut program = ScalarBytecode::new();
        let [x, zero] = [1, 0].map(|x| int(&mut program, x));
        add(&mut program, "FloorDiv", DType::I32, &[x, zero], x).unwrap();
        let mut registers = program.registers().to_vec();
        let stop = program.run(&mut registers, 1).unwrap_err();
        assert!(
            matches!(stop, Stop::Fault(BytecodePosition(0), Error::DivisionByZero)),
            "{stop:?}"
        );
    }

    #[test]
    fn subnormal_floats_count_as_zeros() {
        let mut program = ScalarBytecode::new();
        let least = f32::MIN_POSITIVE;
        let [x, y] = [least / 2.0, -least].map(|x| program.constant(&x.to_ne_bytes()));
        let (double, less) = (program.register(), program.register());
        add(&mut program, "AddV2", DType::F32, &[x, x], double).unwrap();
        add(&mut program, "AddV2", DType::F32, &[x, y], less).unwrap();
        let mut registers = program.registers().to_vec();
        program.run(&mut registers, 1).unwrap();
        assert_eq!(get(&registers[double.index()], 4), 0f32.to_ne_bytes());
        assert_eq!(get(&registers[less.index()], 4), (-least).to_ne_bytes());
    }

    #[test]
    fn only_exact_functions_of_floats_are_taken() {
        let mut program = ScalarBytecode::new();
        let x = program.constant(&2.25f32.to_ne_bytes());
        assert!(add(&mut program, "Exp", DType::F32, &[x], x).is_none());
        assert_eq!(program.position(), BytecodePosition(0));
        add(&mut program, "Sqrt", DType::F32, &[x], x).unwrap();
        let mut registers = program.registers().to_vec();
        program.run(&mut registers, 1).unwrap();
        assert_eq!(get(&registers[x.index()], 4), 1.5f32.to_ne_bytes());
    }
}
