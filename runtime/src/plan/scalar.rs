//! Runs of actions on single numbers, as programs in registers.
//!
//! What a loop counts and compares, and what small branches choose, are single elements. Where
//! several such actions follow each other, with the loops and branches among them, they become one
//! action: numbers are loaded into registers, computed there, and stored where others find them.

use super::{
    Action, Origin,
    draft::{Draft, DraftAction, DraftOperand, DraftSink, Positioned},
    liveness::first_position,
    lower::Layout,
};
use ferroflow_ir::{Attrs, DType, Expr, OpDef, op::Call};
use ferroflow_kernels::{
    OpCall, OperandSpec,
    frame::Region,
    scalar::{Position, Program, Register},
};
use smallvec::SmallVec;
use std::{collections::HashMap, ops::Range, sync::Arc};

/// A run of actions as one.
#[derive(Debug)]
pub(crate) struct ScalarAction {
    pub(crate) program: Program,
    pub(crate) loads: Vec<Load>,
    pub(crate) stores: Vec<Store>,
    /// From which place of the program on errors stem from which node.
    pub(crate) origins: Vec<(Position, Arc<Origin>)>,
    /// The actions themselves, for runs of which every op is noted.
    pub(crate) plain: Vec<Action>,
}

/// A number that is read before the program runs.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) from: Source,
    pub(crate) to: Register,
}

/// Where a number is.
#[derive(Debug)]
pub(crate) enum Source {
    Arena(Region),
    /// These bytes of the tensor in a slot.
    Slot(usize, Range<usize>),
}

/// A number that is written after the program has run.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) from: Register,
    pub(crate) to: Region,
}

/// A call of an elementwise op on single elements.
pub(super) struct ScalarCall {
    op: &'static OpDef,
    attrs: Arc<Attrs>,
    specs: SmallVec<[OperandSpec; 4]>,
    expr: Option<Arc<Expr>>,
    output: DType,
}

impl ScalarCall {
    /// The call, if a program in registers can do it.
    pub(super) fn of(
        call: &OpCall<'_>,
        attrs: &Arc<Attrs>,
        expr: &Option<Arc<Expr>>,
    ) -> Option<ScalarCall> {
        let [output] = call.outputs.as_slice() else { return None };
        let mut scratch = Program::new();
        let inputs: SmallVec<[Register; 4]> =
            call.inputs.iter().map(|_| scratch.register()).collect();
        let out = scratch.register();
        scratch.call(call, &inputs, out)?;
        let specs = call.inputs.iter().cloned().collect();
        let (attrs, expr) = (attrs.clone(), expr.clone());
        Some(ScalarCall { op: call.op, attrs, specs, expr, output: output.dtype })
    }
}

/// Whether an action is one on single numbers.
pub(super) fn is_scalar(action: &DraftAction) -> bool {
    match action {
        DraftAction::Kernel { scalar, sinks, .. } => {
            scalar.is_some() && matches!(sinks.as_slice(), [DraftSink::Buffer(..)])
        }
        DraftAction::Copy { from, to, .. } => {
            width(from).is_some() && matches!(to, Draft::Buffer(..))
        }
        DraftAction::While { condition, test, body, .. } => {
            is_truth(test) && are_scalar(condition) && are_scalar(body)
        }
        DraftAction::Branch { call: Call::If, chooser, branches, .. } => {
            is_truth(chooser)
                && branches.len() == 2
                && branches.iter().all(|branch| are_scalar(branch))
        }
        DraftAction::Branch { .. }
        | DraftAction::Op { .. }
        | DraftAction::Fail(_)
        | DraftAction::Device(_)
        | DraftAction::DeviceOp { .. } => false,
    }
}

fn are_scalar(actions: &[Positioned]) -> bool {
    actions.iter().all(|positioned| is_scalar(&positioned.action))
}

fn is_truth(operand: &DraftOperand) -> bool {
    operand.ty.dtype == DType::Bool && operand.ty.shape.rank() == Some(0)
}

/// The bytes of an operand that is a single number.
fn width(operand: &DraftOperand) -> Option<usize> {
    let one = operand.ty.shape.known().is_some_and(|shape| shape.num_elements() == 1);
    operand.ty.dtype.size().filter(|&size| one && size <= size_of::<u64>())
}

/// The program of a run of actions, all of which are [scalar](is_scalar).
pub(super) fn program(layout: &Layout<'_, '_>, run: &[Positioned]) -> Option<ScalarAction> {
    let (start, end) = (first_position(run), run.last()?.position);
    let mut translation = Translation {
        layout,
        start,
        end,
        program: Program::new(),
        registers: HashMap::new(),
        loads: Vec::new(),
        written: Vec::new(),
        origins: Vec::new(),
        depth: 0,
    };
    translation.actions(run)?;
    let Translation { program, loads, written, origins, .. } = translation;
    let store = |(buffer, width, from): (usize, usize, Register)| Store {
        from,
        to: layout.region(buffer, &(0..width)),
    };
    let stores = written.into_iter().map(store).collect();
    Some(ScalarAction { program, loads, stores, origins, plain: Vec::new() })
}

/// A program in the making.
struct Translation<'a, 'b, 'c> {
    layout: &'a Layout<'b, 'c>,
    /// The positions of the first and the last action of the run.
    start: usize,
    end: usize,
    program: Program,
    registers: HashMap<Key, Register>,
    loads: Vec<Load>,
    /// The buffers that are written and outlive the run, with their bytes.
    written: Vec<(usize, usize, Register)>,
    origins: Vec<(Position, Arc<Origin>)>,
    /// How many loops and branches are around the action at hand.
    depth: usize,
}

/// What a register stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Buffer(usize),
    Slot(usize, usize),
}

impl Translation<'_, '_, '_> {
    fn actions(&mut self, actions: &[Positioned]) -> Option<()> {
        actions.iter().try_for_each(|positioned| self.action(&positioned.action))
    }

    fn action(&mut self, action: &DraftAction) -> Option<()> {
        match action {
            DraftAction::Kernel { scalar: Some(call), sources, sinks, origin, .. } => {
                self.origins.push((self.program.position(), origin.clone()));
                let mut inputs: SmallVec<[Register; 4]> = SmallVec::new();
                for (source, spec) in sources.iter().zip(&call.specs) {
                    inputs.push(self.read(source, spec.dtype.size()?)?);
                }
                let [DraftSink::Buffer(buffer, width)] = sinks.as_slice() else { return None };
                let whole = Draft::Buffer(*buffer, 0..*width);
                let out = self.write(&whole, call.output.size()?)?;
                let expr = call.expr.as_deref();
                let call = OpCall::new(call.op, &call.attrs, &call.specs, expr).ok()?;
                self.program.call(&call, &inputs, out)
            }
            DraftAction::Copy { from, to, .. } => {
                let width = width(from)?;
                let from = self.read(&from.place, width)?;
                let to = self.write(to, width)?;
                self.program.copy(from, to);
                Some(())
            }
            DraftAction::While { condition, test, body, origin, .. } => {
                self.repeat(condition, test, body, origin)
            }
            DraftAction::Branch { chooser, branches, .. } => {
                let [chosen, otherwise] = branches.as_slice() else { return None };
                let test = self.read(&chooser.place, 1)?;
                self.depth += 1;
                let to_other = self.program.jump_unless(test);
                self.actions(chosen)?;
                let to_end = self.program.jump();
                self.program.land(to_other);
                self.actions(otherwise)?;
                self.program.land(to_end);
                self.depth -= 1;
                Some(())
            }
            DraftAction::Kernel { .. }
            | DraftAction::Op { .. }
            | DraftAction::Fail(_)
            | DraftAction::Device(_)
            | DraftAction::DeviceOp { .. } => None,
        }
    }

    fn repeat(
        &mut self,
        condition: &[Positioned],
        test: &DraftOperand,
        body: &[Positioned],
        origin: &Arc<Origin>,
    ) -> Option<()> {
        let (counter, zero) = (self.program.register(), self.program.constant(&[]));
        self.program.copy(zero, counter);
        self.depth += 1;
        let start = self.program.position();
        self.actions(condition)?;
        let test = self.read(&test.place, 1)?;
        let to_end = self.program.jump_unless(test);
        self.origins.push((self.program.position(), origin.clone()));
        self.program.round(counter);
        self.actions(body)?;
        self.program.jump_back(start);
        self.program.land(to_end);
        self.depth -= 1;
        Some(())
    }

    fn read(&mut self, place: &Draft, width: usize) -> Option<Register> {
        let key = self.key(place, width)?;
        if let Some(&register) = self.registers.get(&key) {
            return Some(register);
        }
        let layout = self.layout;
        if let Key::Slot(slot, _) = key
            && let Some(value) = layout.constant(slot)
        {
            let bytes = match place {
                Draft::Slot(_, Some(part)) => value.bytes().get(part.clone())?,
                Draft::Slot(_, None) | Draft::Buffer(..) | Draft::Device(_) => value.bytes(),
            };
            let register = self.program.constant(bytes.get(..width)?);
            self.registers.insert(key, register);
            return Some(register);
        }
        Some(self.load(key, place, width))
    }

    fn write(&mut self, place: &Draft, width: usize) -> Option<Register> {
        let key = self.key(place, width)?;
        let Key::Buffer(buffer) = key else { return None };
        let register = match self.registers.get(&key) {
            Some(&register) => register,
            // What may not be written keeps what it had.
            None if self.depth > 0 => self.load(key, place, width),
            None => {
                let register = self.program.register();
                self.registers.insert(key, register);
                register
            }
        };
        if self.is_live_after(buffer) && !self.written.iter().any(|(other, ..)| *other == buffer) {
            self.written.push((buffer, width, register));
        }
        Some(register)
    }

    fn load(&mut self, key: Key, place: &Draft, width: usize) -> Register {
        let to = self.program.register();
        self.registers.insert(key, to);
        let from = match key {
            Key::Buffer(buffer) if !self.is_live_before(buffer) => return to,
            Key::Buffer(buffer) => Source::Arena(self.layout.region(buffer, &(0..width))),
            Key::Slot(slot, _) => {
                let start = start(place);
                Source::Slot(slot, start..start + width)
            }
        };
        self.loads.push(Load { from, to });
        to
    }

    /// What a register stands for that has this place; none for a part of a buffer.
    fn key(&self, place: &Draft, width: usize) -> Option<Key> {
        match place {
            Draft::Buffer(buffer, bytes) => {
                let whole = *bytes == (0..width) && self.layout.buffer_bytes(*buffer) == width;
                whole.then_some(Key::Buffer(*buffer))
            }
            Draft::Slot(slot, _) => Some(Key::Slot(*slot, start(place))),
            Draft::Device(_) => None,
        }
    }

    /// Whether a buffer may hold a value when the run begins.
    fn is_live_before(&self, buffer: usize) -> bool {
        self.layout.arena.interval(buffer).is_some_and(|interval| interval.first < self.start)
    }

    /// Whether an action after the run may read a buffer.
    fn is_live_after(&self, buffer: usize) -> bool {
        self.layout.arena.interval(buffer).is_some_and(|interval| interval.last > self.end)
    }
}

/// Where in a slot's tensor a place begins.
fn start(place: &Draft) -> usize {
    match place {
        Draft::Slot(_, Some(part)) => part.start,
        Draft::Slot(_, None) | Draft::Buffer(..) | Draft::Device(_) => 0,
    }
}
