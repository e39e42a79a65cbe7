//! Running programs.

use crate::{
    context::Context,
    eager_tensor::EagerTensor,
    error::{Error, Result},
    execute::{Scope, execute_op},
    ops::{
        RuntimeCall,
        training::{self, Input},
    },
    panics::caught,
    placement::{Placement, Reason},
    plan::{
        Action, AnySlot, BranchAction, OpAction, Operand, Origin, Place, Program, ScalarAction,
        Source, WhileAction,
    },
};
use ferroflow_ir::{
    Error as IrError, FunctionLibrary, HostTensor, ValueType,
    pass::specialize::{chosen_branch, truthiness},
};
use ferroflow_kernels::{
    Buffer,
    frame::{Frame, Step},
    optimizer::{Optimizer, View},
    scalar::{self, Stop},
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

use crate::resource::ResourceManager;

/// A program ready to run, with the frames it runs in. Any number of threads may run it at once.
#[derive(Debug)]
pub(crate) struct Executable {
    program: Program,
    /// The frame of whoever finds nobody else running the program.
    first: Mutex<Option<Frame>>,
    /// The frames of all others.
    others: Mutex<Vec<Frame>>,
}

impl Executable {
    pub(crate) fn new(program: Program) -> Executable {
        Executable { program, first: Mutex::default(), others: Mutex::default() }
    }

    /// Bytes of the memory that values of known size share.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.program.arena
    }

    /// Runs the program.
    ///
    /// # Errors
    ///
    /// Whatever the data makes impossible, with the node where it happened.
    pub(crate) fn run<'a>(
        &self,
        scope: Scope<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> Result<Vec<EagerTensor>> {
        if let Some(mut place) = self.first.try_lock() {
            let frame = place.take().map_or_else(|| self.frame(), Ok)?;
            let (outcome, frame) = self.run_in(frame, scope, args);
            *place = frame;
            return outcome;
        }
        let pooled = self.others.lock().pop();
        let frame = pooled.map_or_else(|| self.frame(), Ok)?;
        let (outcome, frame) = self.run_in(frame, scope, args);
        self.others.lock().extend(frame);
        outcome
    }

    /// Runs in a frame, and returns it emptied, unless a panic has left it in whatever state.
    fn run_in<'a>(
        &self,
        mut frame: Frame,
        scope: Scope<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> (Result<Vec<EagerTensor>>, Option<Frame>) {
        let outcome = caught(|| self.results(&mut Run { scope, frame: &mut frame }, args));
        if outcome.as_ref().is_err_and(Error::is_panic) {
            return (outcome, None);
        }
        self.reset(&mut frame);
        (outcome, Some(frame))
    }

    fn results<'a>(
        &self,
        run: &mut Run<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> Result<Vec<EagerTensor>> {
        for (index, (&slot, arg)) in self.program.args.iter().zip(args).enumerate() {
            match arg.buffer() {
                Buffer::Host(tensor) => *run.frame.slot_mut(slot) = Some(tensor.clone()),
                Buffer::Device(buffer) => match self.device_arg(index) {
                    Some(slot) => *run.frame.device_slot_mut(slot) = Some(buffer.clone()),
                    None => *run.frame.slot_mut(slot) = Some(buffer.host()?.clone()),
                },
            }
        }
        run.actions(&self.program.actions)?;
        let mut results = Vec::with_capacity(self.program.results.len());
        for result in &self.program.results {
            results.push(run.tensor(result)?);
        }
        Ok(results)
    }

    /// What runs where, on a machine whose CPU has this name.
    pub(crate) fn placement_or(&self, cpu: &str) -> Placement {
        let all_here = || {
            let mut placement = Placement::default();
            self.program.for_each_origin(&mut |origin| {
                placement.add_call(&origin.node, &origin.op, cpu, Reason::Default);
            });
            placement
        };
        let placed = self.program.devices.as_ref().map(|devices| devices.placement.clone());
        placed.unwrap_or_else(all_here)
    }

    /// The device slot of an argument that comes in the memory of a device.
    fn device_arg(&self, index: usize) -> Option<usize> {
        let args = &self.program.devices.as_ref()?.args;
        args.iter().find(|(arg, _)| *arg == index).map(|(_, slot)| *slot)
    }

    fn frame(&self) -> Result<Frame> {
        let mut frame = Frame::new(self.program.arena, self.program.n_slots)?;
        if let Some(devices) = &self.program.devices {
            frame = frame.with_device_slots(devices.n_slots);
            for (slot, value) in &devices.constants {
                *frame.device_slot_mut(*slot) = Some(value.clone());
            }
        }
        for (slot, value) in &self.program.constants {
            *frame.slot_mut(*slot) = Some(value.clone());
        }
        Ok(frame)
    }

    /// Empties all slots but those of constants, so that a resting frame holds no one's tensors.
    fn reset(&self, frame: &mut Frame) {
        let mut constants = self.program.constants.iter().map(|(slot, _)| *slot).peekable();
        for slot in 0..self.program.n_slots {
            if constants.peek() == Some(&slot) {
                constants.next();
            } else {
                *frame.slot_mut(slot) = None;
            }
        }
        if let Some(devices) = &self.program.devices {
            for slot in 0..devices.n_slots {
                if devices.constants.iter().all(|(constant, _)| *constant != slot) {
                    *frame.device_slot_mut(slot) = None;
                }
            }
        }
    }
}

/// One run.
pub(crate) struct Run<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) frame: &'a mut Frame,
}

impl Run<'_> {
    fn actions(&mut self, actions: &[Action]) -> Result<()> {
        for action in actions {
            if let Some(budget) = self.scope.budget {
                budget.check()?;
            }
            match action {
                Action::Kernel(step, origin) => match self.scope.profile {
                    None => self.step(step, origin)?,
                    Some(profile) => profile.note(origin, || {
                        self.step(step, origin)?;
                        Ok(step.output_bytes(self.frame))
                    })?,
                },
                Action::Op(op) => match self.scope.profile {
                    None => self.op(op)?,
                    Some(profile) => profile.note(&op.origin, || {
                        self.op(op)?;
                        let outputs = op.outputs.iter().filter_map(|&slot| self.frame.slot(slot));
                        Ok(outputs.filter(|x| x.is_plain()).map(|x| x.bytes().len()).sum())
                    })?,
                },
                Action::Copy(from, to, None) => self.copy(from, to)?,
                Action::Copy(from, to, Some(device)) => self.transfer(from, to, device)?,
                Action::While(repeat) => self.repeat(repeat)?,
                Action::Branch(branch) => self.branch(branch)?,
                Action::Scalar(scalar) => match (self.scope.profile, self.scope.budget) {
                    (None, None) => self.scalar(scalar)?,
                    (Some(_), _) | (_, Some(_)) => self.actions(&scalar.plain)?,
                },
                Action::Fail(error) => return Err(error.clone()),
                Action::Clear(slots) => slots.iter().for_each(|slot| match *slot {
                    AnySlot::Host(slot) => *self.frame.slot_mut(slot) = None,
                    AnySlot::Device(slot) => *self.frame.device_slot_mut(slot) = None,
                }),
                Action::Device(step) => self.device_step(step)?,
                Action::Sequence(sequence) => match self.scope.profile {
                    None => self.sequence(sequence)?,
                    Some(_) => self.actions(&sequence.plain)?,
                },
                Action::DeviceOp(op) => self.device_op(op)?,
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, origin: &Origin) -> Result<()> {
        let context: &Context = self.scope.context;
        let (threads, limit) = (context.threads(), context.limits().tensor_bytes);
        caught(|| step.run(self.frame, threads, limit).map_err(Error::from))
            .map_err(|error| origin.locate(error))
    }

    fn op(&mut self, action: &OpAction) -> Result<()> {
        caught(|| self.results_of(action)).map_err(|error| action.origin.locate(error))
    }

    fn results_of(&mut self, action: &OpAction) -> Result<()> {
        if let Some(optimizer) = action.optimizer {
            return self.step_of(action, optimizer);
        }
        let mut inputs: SmallVec<[EagerTensor; 4]> = SmallVec::new();
        for input in &action.inputs {
            inputs.push(self.tensor(input)?);
        }
        let scope = Scope { origin: Some(&action.origin), ..self.scope };
        let (op, attrs) = (action.op, &*action.attrs);
        let results = match action.body {
            Some(body) => body(&mut RuntimeCall { scope, op, attrs, inputs })?,
            None => execute_op(scope, op, attrs, inputs)?,
        };
        for ((&slot, ty), result) in action.outputs.iter().zip(&action.types).zip(results) {
            let result = result.into_host()?;
            if !is_typed(&result, ty) {
                return Err(mistyped(action, &result, ty));
            }
            *self.frame.slot_mut(slot) = Some(result);
        }
        Ok(())
    }

    /// Makes a step of an optimizer, which reads the gradient where it lies.
    fn step_of(&mut self, action: &OpAction, optimizer: Optimizer) -> Result<()> {
        let mut tensors: SmallVec<[Option<HostTensor>; 12]> = SmallVec::new();
        for operand in &action.inputs {
            let is_lent = matches!(operand.place, Place::Arena(_)) && operand.shape.is_some();
            tensors.push(if is_lent { None } else { Some(self.tensor(operand)?.into_host()?) });
        }
        let mut inputs: SmallVec<[Input<'_>; 12]> = SmallVec::new();
        for (operand, tensor) in action.inputs.iter().zip(&tensors) {
            inputs.push(match (tensor, &operand.place, &operand.shape) {
                (Some(tensor), ..) => Input::Tensor(tensor),
                (None, Place::Arena(region), Some(shape)) => {
                    let bytes = self.frame.arena(region);
                    Input::View(View { dtype: operand.dtype, shape, bytes })
                }
                (None, ..) => return Err(missing("a value")),
            });
        }
        training::step(self.scope.context, action.op, &action.attrs, optimizer, &inputs)
    }

    /// The value of an operand.
    pub(crate) fn tensor(&mut self, operand: &Operand) -> Result<EagerTensor> {
        match &operand.place {
            Place::Arena(region) => {
                let shape = operand.shape.clone().ok_or_else(|| missing("a shape"))?;
                Ok(HostTensor::from_bytes(operand.dtype, shape, self.frame.arena(region))?.into())
            }
            Place::Device(slot) => {
                let found = self.frame.device_slot(*slot).ok_or_else(|| missing("a value"))?;
                let same = operand.shape.as_ref().is_none_or(|shape| *shape == found.shape);
                if same && found.dtype == operand.dtype {
                    return Ok(found.clone().into());
                }
                let shape = operand.shape.clone().unwrap_or_else(|| found.shape.clone());
                Ok(found.relabelled(operand.dtype, shape).into())
            }
            Place::Slot(slot, bytes) => {
                let found = if operand.take {
                    self.frame.slot_mut(*slot).take()
                } else {
                    self.frame.slot(*slot).cloned()
                };
                match found {
                    Some(tensor) if bytes.is_none() && is_shaped(&tensor, operand) => {
                        Ok(tensor.into())
                    }
                    Some(tensor) => Ok(shaped(tensor, operand, bytes.as_ref())?.into()),
                    None => Err(missing("a value")),
                }
            }
        }
    }

    fn copy(&mut self, from: &Operand, to: &Place) -> Result<()> {
        match (&from.place, to) {
            (Place::Arena(source), Place::Arena(target)) => {
                self.frame.copy_arena(source, target.start);
            }
            (Place::Slot(..) | Place::Device(_), Place::Arena(target)) => {
                let tensor = self.tensor(from)?.into_host()?;
                let target = self.frame.arena_mut(target);
                if tensor.bytes().len() != target.len() {
                    return Err(missing("a value of the planned size"));
                }
                target.copy_from_slice(tensor.bytes());
            }
            (_, Place::Slot(slot, _)) => {
                let tensor = self.tensor(from)?.into_host()?;
                *self.frame.slot_mut(*slot) = Some(tensor);
            }
            (_, Place::Device(_)) => return Err(missing("a place on the host")),
        }
        Ok(())
    }

    fn repeat(&mut self, action: &WhileAction) -> Result<()> {
        let limit = self.scope.context.limits().loop_iterations;
        let mut iterations = 0;
        loop {
            self.actions(&action.condition)?;
            if !self.truth(&action.test).map_err(|error| action.origin.locate(error))? {
                return Ok(());
            }
            if iterations == limit {
                return Err(action.origin.locate(too_many_rounds(limit)));
            }
            iterations += 1;
            if let Some(budget) = self.scope.budget {
                budget.take_round().map_err(|error| action.origin.locate(error))?;
            }
            self.actions(&action.body)?;
        }
    }

    fn scalar(&mut self, action: &ScalarAction) -> Result<()> {
        let mut registers: SmallVec<[u64; 32]> = SmallVec::from_slice(action.program.registers());
        for load in &action.loads {
            let bytes = match &load.from {
                Source::Arena(region) => Some(self.frame.arena(region)),
                Source::Slot(slot, bytes) => {
                    self.frame.slot(*slot).and_then(|tensor| tensor.bytes().get(bytes.clone()))
                }
            };
            scalar::set(&mut registers[load.to.index()], bytes.ok_or_else(|| missing("a number"))?);
        }
        let limit = self.scope.context.limits().loop_iterations;
        if let Err(stop) = action.program.run(&mut registers, limit) {
            return Err(stopped(action, stop, limit));
        }
        for store in &action.stores {
            let number = scalar::get(&registers[store.from.index()], store.to.len());
            self.frame.arena_mut(&store.to).copy_from_slice(number);
        }
        Ok(())
    }

    fn truth(&mut self, test: &Operand) -> Result<bool> {
        if let (Place::Arena(region), ferroflow_ir::DType::Bool) = (&test.place, test.dtype) {
            return Ok(self.frame.arena(region).first().is_some_and(|&byte| byte != 0));
        }
        Ok(truthiness(self.tensor(test)?.host()?)?)
    }

    fn branch(&mut self, action: &BranchAction) -> Result<()> {
        let chooser = self.tensor(&action.chooser)?;
        let taken = chosen_branch(action.call, chooser.host()?, action.branches.len())
            .map_err(|error| action.origin.locate(error))?;
        match action.branches.get(taken) {
            Some(branch) => self.actions(branch),
            None => Ok(()),
        }
    }
}

fn too_many_rounds(limit: u64) -> IrError {
    let needed = format!("more than {limit} iterations");
    IrError::Limit { what: "the loop".into(), needed, limit }
}

/// The error of a program that stopped, with the node where it did.
#[cold]
fn stopped(action: &ScalarAction, stop: Stop, limit: u64) -> Error {
    let (position, error) = match stop {
        Stop::Fault(position, error) => (position, error),
        Stop::Rounds(position) => (position, too_many_rounds(limit)),
    };
    let origin = action.origins.iter().rev().find(|(start, _)| *start <= position);
    origin.map_or_else(|| error.clone().into(), |(_, origin)| origin.locate(error.clone()))
}

/// Whether a tensor is of the type that the graph has for it.
fn is_typed(tensor: &HostTensor, ty: &ValueType) -> bool {
    let Some(dims) = ty.shape.dims() else { return tensor.dtype() == ty.dtype };
    tensor.dtype() == ty.dtype
        && dims.len() == tensor.shape().rank()
        && dims.iter().zip(tensor.shape().iter()).all(|(dim, size)| dim.is_none_or(|x| x == *size))
}

/// The error of an op whose result is not what its shape function said.
#[cold]
fn mistyped(action: &OpAction, result: &HostTensor, ty: &ValueType) -> Error {
    let found = ValueType::new(result.dtype(), result.shape());
    let message =
        format!("the shape function of {} says {ty}, its result is {found}", action.op.name);
    Error::Status { code: ferroflow_ir::Code::Internal, message }
}

/// Whether a tensor has the operand's dtype and shape.
fn is_shaped(tensor: &HostTensor, operand: &Operand) -> bool {
    tensor.dtype() == operand.dtype
        && operand.shape.as_ref().is_none_or(|shape| tensor.shape() == shape)
}

/// A tensor from a slot under the operand's dtype and shape.
fn shaped(
    tensor: HostTensor,
    operand: &Operand,
    bytes: Option<&std::ops::Range<usize>>,
) -> Result<HostTensor> {
    let tensor = match (bytes, &operand.shape) {
        (Some(bytes), Some(shape)) => {
            let size = operand.dtype.size().unwrap_or(1).max(1);
            tensor.window(bytes.start / size..bytes.end / size, shape.clone())?
        }
        (None, Some(shape)) if tensor.shape() != shape => tensor.reshaped(shape.clone())?,
        _ => tensor,
    };
    if tensor.dtype() == operand.dtype {
        return Ok(tensor);
    }
    Ok(tensor.reinterpreted(operand.dtype)?)
}

pub(crate) fn missing(what: &str) -> Error {
    let message = format!("the program has no {what} where it needs one");
    Error::Status { code: ferroflow_ir::Code::Internal, message }
}

/// What a run needs besides the program and its arguments, owned.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) context: Context,
    pub(crate) library: Arc<FunctionLibrary>,
    pub(crate) resources: Arc<ResourceManager>,
}

impl Surroundings {
    pub(crate) fn scope(&self) -> Scope<'_> {
        let (context, library, resources) = (&self.context, &self.library, &self.resources);
        let (origin, profile, budget, device) = (None, None, None, None);
        Scope { context, library, resources, origin, profile, budget, device, depth: 0 }
    }
}
