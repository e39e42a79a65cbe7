//! Runs of actions on single numbers, as programs in registers.
//!
//! What a loop counts and compares, and what small branches choose, are single elements. Where
//! several such actions follow each other, with the loops and branches among them, they become one
//! action: numbers are loaded into registers, computed there, and stored where others find them.

use super::{
    action::{
        Action, CopyAction, KernelAction, Load, ScalarCall, ScalarProgram, Scheduled, Store,
        TensorOperand, ValueLocation, WhileAction,
    },
    layout::MemoryLayout,
    liveness::first_position,
};
use crate::origin::NodeOrigin;
use ferroflow_ir::{Attrs, DType, Expr, op::CallKind};
use ferroflow_kernels::{
    OpCall,
    frame::{ArenaRange, LaunchStep, StepSink},
    scalar::{BytecodePosition, Register, ScalarBytecode},
};
use smallvec::SmallVec;
use std::{collections::HashMap, sync::Arc};

impl ScalarCall {
    /// The call, if a program in registers can do it.
    pub(super) fn of(
        call: &OpCall<'_>,
        attrs: &Arc<Attrs>,
        expr: &Option<Arc<Expr>>,
    ) -> Option<ScalarCall> {
        let [output] = call.outputs.as_slice() else { return None };
        let mut scratch = ScalarBytecode::new();
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
pub(super) fn is_scalar(action: &Action) -> bool {
    match action {
        Action::Kernel(KernelAction { step, scalar, .. }) => {
            scalar.is_some() && matches!(step.sinks(), [StepSink::Arena(_)])
        }
        Action::Copy(CopyAction { from, to, .. }) => {
            width(from).is_some() && matches!(to, ValueLocation::Arena(_))
        }
        Action::While(repeat) => {
            is_bool(&repeat.test) && are_scalar(&repeat.condition) && are_scalar(&repeat.body)
        }
        Action::Branch(branch) => {
            branch.call == CallKind::If
                && is_bool(&branch.index)
                && branch.branches.len() == 2
                && branch.branches.iter().all(|branch| are_scalar(branch))
        }
        Action::Op(_) | Action::Group(_) | Action::Fail(_) => false,
    }
}

fn are_scalar(actions: &[Scheduled]) -> bool {
    actions.iter().all(|scheduled| is_scalar(&scheduled.action))
}

fn is_bool(operand: &TensorOperand) -> bool {
    operand.dtype == DType::Bool && operand.shape.as_ref().is_some_and(|shape| shape.rank() == 0)
}

/// The bytes of an operand that is a single number.
fn width(operand: &TensorOperand) -> Option<usize> {
    let one = operand.shape.as_ref().is_some_and(|shape| shape.num_elements() == 1);
    operand.dtype.size().filter(|&size| one && size <= size_of::<u64>())
}

/// The program of a run of actions, all of which are [scalar](is_scalar).
pub(super) fn program(layout: &MemoryLayout<'_>, run: &[Scheduled]) -> Option<ScalarProgram> {
    let (start, end) = (first_position(run), run.last()?.position);
    let mut translation = Translation {
        layout,
        start,
        end,
        program: ScalarBytecode::new(),
        registers: HashMap::new(),
        loads: Vec::new(),
        written: Vec::new(),
        origins: Vec::new(),
        depth: 0,
    };
    translation.actions(run)?;
    let Translation { program, loads, written, origins, .. } = translation;
    let store = |(_, region, from): (usize, ArenaRange, Register)| Store {
        from,
        to: layout.region(&region),
    };
    let stores = written.into_iter().map(store).collect();
    Some(ScalarProgram { program, loads, stores, origins })
}

/// A program in the making.
struct Translation<'a, 'b> {
    layout: &'a MemoryLayout<'b>,
    /// The positions of the first and the last action of the run.
    start: usize,
    end: usize,
    program: ScalarBytecode,
    registers: HashMap<Key, Register>,
    loads: Vec<Load>,
    /// The buffers that are written and outlive the run, with their addresses.
    written: Vec<(usize, ArenaRange, Register)>,
    origins: Vec<(BytecodePosition, Arc<NodeOrigin>)>,
    /// Number of loops and branches around the current action.
    depth: usize,
}

/// Value that a register stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Buffer(usize),
    Slot(usize, usize),
}

impl Translation<'_, '_> {
    fn actions(&mut self, actions: &[Scheduled]) -> Option<()> {
        actions.iter().try_for_each(|scheduled| self.action(&scheduled.action))
    }

    fn action(&mut self, action: &Action) -> Option<()> {
        match action {
            Action::Kernel(KernelAction { step, scalar, origin, .. }) => {
                self.origins.push((self.program.position(), origin.clone()));
                self.kernel(step, scalar.as_deref()?)
            }
            Action::Copy(CopyAction { from, to, .. }) => {
                let width = width(from)?;
                let from = self.read(&from.place, width)?;
                let to = self.write(to, width)?;
                self.program.copy(from, to);
                Some(())
            }
            Action::While(repeat) => self.repeat(repeat),
            Action::Branch(branch) => {
                let [chosen, otherwise] = branch.branches.as_slice() else { return None };
                let test = self.read(&branch.index.place, 1)?;
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
            Action::Op(_) | Action::Group(_) | Action::Fail(_) => None,
        }
    }

    fn kernel(&mut self, step: &LaunchStep, call: &ScalarCall) -> Option<()> {
        let mut inputs: SmallVec<[Register; 4]> = SmallVec::new();
        for (source, spec) in step.sources().iter().zip(&call.specs) {
            inputs.push(self.read(&ValueLocation::of_source(source)?, spec.dtype.size()?)?);
        }
        let out =
            self.write(&ValueLocation::of_sink(step.sinks().first()?)?, call.output.size()?)?;
        let expr = call.expr.as_deref();
        let call = OpCall::new(call.op, &call.attrs, &call.specs, expr).ok()?;
        self.program.call(&call, &inputs, out)
    }

    fn repeat(&mut self, repeat: &WhileAction) -> Option<()> {
        let WhileAction { condition, test, body, origin, .. } = repeat;
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

    fn read(&mut self, place: &ValueLocation, width: usize) -> Option<Register> {
        let key = self.key(place, width)?;
        if let Some(&register) = self.registers.get(&key) {
            return Some(register);
        }
        let layout = self.layout;
        if let Key::Slot(slot, _) = key
            && let Some(value) = layout.constant(slot)
        {
            let bytes = match place {
                ValueLocation::Slot(_, Some(part)) => value.bytes().get(part.clone())?,
                ValueLocation::Slot(_, None) | ValueLocation::Arena(_) => value.bytes(),
            };
            let register = self.program.constant(bytes.get(..width)?);
            self.registers.insert(key, register);
            return Some(register);
        }
        Some(self.load(key, place, width))
    }

    fn write(&mut self, place: &ValueLocation, width: usize) -> Option<Register> {
        let key = self.key(place, width)?;
        let (Key::Buffer(buffer), ValueLocation::Arena(region)) = (key, place) else { return None };
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
            self.written.push((buffer, region.clone(), register));
        }
        Some(register)
    }

    fn load(&mut self, key: Key, place: &ValueLocation, width: usize) -> Register {
        let to = self.program.register();
        self.registers.insert(key, to);
        let from = match (key, place) {
            (Key::Buffer(buffer), _) if !self.is_live_before(buffer) => return to,
            (_, ValueLocation::Arena(region)) => ValueLocation::Arena(self.layout.region(region)),
            (_, ValueLocation::Slot(slot, _)) => {
                let start = start(place);
                ValueLocation::Slot(*slot, Some(start..start + width))
            }
        };
        self.loads.push(Load { from, to });
        to
    }

    /// The key of the register for a location; none for a part of a buffer.
    fn key(&self, place: &ValueLocation, width: usize) -> Option<Key> {
        match place {
            ValueLocation::Arena(region) => {
                let buffers = &self.layout.buffers;
                let (buffer, bytes) = buffers.find(region);
                let whole = bytes == (0..width) && buffers.size(buffer) == width;
                whole.then_some(Key::Buffer(buffer))
            }
            ValueLocation::Slot(slot, _) if self.layout.is_on_device(*slot) => None,
            ValueLocation::Slot(slot, _) => Some(Key::Slot(*slot, start(place))),
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

/// The first byte of a slot's tensor that a location has.
fn start(place: &ValueLocation) -> usize {
    match place {
        ValueLocation::Slot(_, Some(part)) => part.start,
        ValueLocation::Slot(_, None) | ValueLocation::Arena(_) => 0,
    }
}
