//! Runs of programs: the actions, one after the other.

use crate::{
    eager_tensor::{EagerTensor, on_device},
    error::{Error, Result},
    execute_op::execute_op_for,
    kernel_call::operand_spec,
    ops::training::{self, StepInput},
    origin::NodeOrigin,
    panics::caught,
    plan::action::{
        Action, BranchAction, CopyAction, GroupProgram, KernelAction, OpAction, ScalarProgram,
        Scheduled, TensorOperand, ValueLocation, WhileAction,
    },
    runtime_call::{RuntimeCall, is_typed, mistyped},
    scope::Scope,
};
use ferroflow_ir::{
    DType, Error as IrError, HostTensor, budget,
    pass::specialize::{chosen_branch, truthiness},
};
use ferroflow_kernels::{
    Buffer, Device, OpCall, OperandSpec,
    cost::OpCost,
    frame::{ArenaRange, Frame},
    optimizer::{OptimizerKind, TensorView},
    scalar::{self, Stop},
};
use smallvec::SmallVec;
use std::sync::Arc;

/// A run of an executable.
pub(crate) struct ExecutableRun<'a> {
    pub(crate) scope: Scope<'a>,
    pub(crate) frame: &'a mut Frame,
}

impl ExecutableRun<'_> {
    pub(crate) fn actions(&mut self, actions: &[Scheduled]) -> Result<()> {
        for Scheduled { action, dead, .. } in actions {
            budget::check()?;
            match action {
                Action::Kernel(kernel) => {
                    let device = kernel.step.device();
                    self.noted(
                        &kernel.origin,
                        device,
                        |_| kernel.cost,
                        |run| run.kernel(kernel),
                        |run| kernel.step.output_bytes(run.frame),
                    )?;
                }
                Action::Op(op) => {
                    let outputs = |run: &Self| run.output_bytes(op);
                    let cost = |run: &mut Self| run.cost(op);
                    self.noted(&op.origin, op.device.as_ref(), cost, |run| run.op(op), outputs)?;
                }
                Action::Copy(copy) => self.copy(copy)?,
                Action::While(repeat) => self.repeat(repeat)?,
                Action::Branch(branch) => self.branch(branch)?,
                Action::Group(group) => match (&group.program, self.scope) {
                    (_, Scope { profile: Some(_), .. }) => self.actions(&group.actions)?,
                    (GroupProgram::Scalar(_), _) if budget::is_bounded() => {
                        self.actions(&group.actions)?;
                    }
                    (GroupProgram::Scalar(program), _) => self.scalar(program)?,
                    (GroupProgram::KernelGraph(graph), _) => self.kernel_graph(graph)?,
                },
                Action::Fail(error) => return Err(error.clone()),
            }
            for &slot in dead {
                *self.frame.slot_mut(slot) = None;
            }
        }
        Ok(())
    }

    /// Runs a call, and notes it if the run is profiled.
    #[inline]
    fn noted(
        &mut self,
        origin: &Arc<NodeOrigin>,
        device: Option<&Arc<dyn Device>>,
        cost: impl FnOnce(&mut Self) -> OpCost,
        call: impl FnOnce(&mut Self) -> Result<()>,
        output_bytes: impl FnOnce(&Self) -> usize,
    ) -> Result<()> {
        let Some(profile) = self.scope.profile else { return call(self) };
        profile.note(origin, device, cost(self), || {
            call(self)?;
            Ok(output_bytes(self))
        })
    }

    fn kernel(&mut self, KernelAction { step, origin, .. }: &KernelAction) -> Result<()> {
        let context = self.scope.context;
        let (threads, limit) = (context.threads(), context.limits().tensor_bytes);
        caught(context, || step.run(self.frame, threads, limit).map_err(Error::from))
            .map_err(|error| origin.locate(error))
    }

    fn op(&mut self, action: &OpAction) -> Result<()> {
        caught(self.scope.context, || self.results_of(action))
            .map_err(|error| action.origin.locate(error))
    }

    /// Bytes of the results of an op in host memory, once it has run.
    fn output_bytes(&self, action: &OpAction) -> usize {
        let slots = action.outputs.iter().filter_map(|output| output.slot);
        let outputs = slots.filter_map(|slot| self.frame.slot(slot));
        let on_host = outputs.filter_map(Buffer::as_host);
        on_host.filter(|tensor| tensor.is_plain()).map(|tensor| tensor.bytes().len()).sum()
    }

    /// The cost of an op that has not run yet, by what its operands are; unknown for a body of the runtime, and
    /// where the call will fail.
    fn cost(&mut self, action: &OpAction) -> OpCost {
        let mut known = || {
            let host = action.op.host_inputs(&action.attrs)?;
            let mut specs: SmallVec<[OperandSpec; 4]> = SmallVec::new();
            for (index, operand) in action.inputs.iter().enumerate() {
                let input = self.tensor(&TensorOperand { take: false, ..operand.clone() })?;
                specs.push(operand_spec(&input, host.get(index) == Some(&true))?);
            }
            Ok::<_, Error>(OpCost::of(&OpCall::new(action.op, &action.attrs, &specs, None)?))
        };
        if action.body.is_some() { OpCost::default() } else { known().unwrap_or_default() }
    }

    fn results_of(&mut self, action: &OpAction) -> Result<()> {
        if let Some(optimizer) = action.optimizer {
            return self.step_of(action, optimizer);
        }
        let mut inputs: SmallVec<[EagerTensor; 4]> = SmallVec::new();
        for input in &action.inputs {
            inputs.push(self.tensor(input)?);
        }
        let device = action.device.as_ref();
        let scope = Scope { origin: Some(&action.origin), device, ..self.scope };
        let (op, attrs) = (action.op, &*action.attrs);
        let results = match &action.body {
            Some(body) => body.run(&mut RuntimeCall { scope, op, attrs, inputs })?,
            None => execute_op_for(scope, op, attrs, inputs, (&action.last, action.unread()))?,
        };
        for (output, result) in action.outputs.iter().zip(results) {
            let Some(slot) = output.slot else { continue };
            if !is_typed(result.dtype(), result.shape(), &output.ty) {
                return Err(mistyped(action.op, &output.ty, &result));
            }
            let device = device.filter(|_| output.on_device);
            *self.frame.slot_mut(slot) = Some(in_memory_of(device, result)?);
        }
        Ok(())
    }

    /// Makes a step of an optimizer, which reads the gradient without a copy.
    fn step_of(&mut self, action: &OpAction, optimizer: OptimizerKind) -> Result<()> {
        let mut tensors: SmallVec<[Option<HostTensor>; 12]> = SmallVec::new();
        for operand in &action.inputs {
            let is_lent =
                matches!(operand.place, ValueLocation::Arena(_)) && operand.shape.is_some();
            tensors.push(if is_lent { None } else { Some(self.tensor(operand)?.into_host()?) });
        }
        let mut inputs: SmallVec<[StepInput<'_>; 12]> = SmallVec::new();
        for (operand, tensor) in action.inputs.iter().zip(&tensors) {
            inputs.push(match (tensor, &operand.place, &operand.shape) {
                (Some(tensor), ..) => StepInput::Tensor(tensor),
                (None, ValueLocation::Arena(region), Some(shape)) => {
                    let bytes = self.frame.arena(region);
                    StepInput::View(TensorView { dtype: operand.dtype, shape, bytes })
                }
                (None, ..) => return Err(Error::missing("a value")),
            });
        }
        training::step(self.scope.context, action.op, &action.attrs, optimizer, &inputs)
    }

    /// The value of an operand.
    pub(crate) fn tensor(&mut self, operand: &TensorOperand) -> Result<EagerTensor> {
        match &operand.place {
            ValueLocation::Arena(region) => {
                let shape = operand.shape.clone().ok_or_else(|| Error::missing("a shape"))?;
                Ok(HostTensor::from_bytes(operand.dtype, shape, self.frame.arena(region))?.into())
            }
            ValueLocation::Slot(slot, bytes) => {
                let found = if operand.take {
                    self.frame.slot_mut(*slot).take()
                } else {
                    self.frame.slot(*slot).cloned()
                };
                match found.ok_or_else(|| Error::missing("a value"))? {
                    buffer if bytes.is_none() && is_shaped(&buffer, operand) => Ok(buffer.into()),
                    Buffer::Host(tensor) => Ok(shaped(tensor, operand, bytes.as_ref())?.into()),
                    Buffer::Device(buffer) => {
                        let shape = operand.shape.as_ref().unwrap_or(&buffer.shape).clone();
                        Ok(buffer.relabelled(operand.dtype, shape).into())
                    }
                }
            }
        }
    }

    fn copy(&mut self, CopyAction { from, to, device }: &CopyAction) -> Result<()> {
        match (&from.place, to) {
            (ValueLocation::Arena(source), ValueLocation::Arena(target)) => {
                self.frame.copy_arena(source, target.start);
            }
            (ValueLocation::Slot(..), ValueLocation::Arena(target)) => {
                let tensor = self.tensor(from)?.into_host()?;
                let target = self.frame.arena_mut(target);
                if tensor.bytes().len() != target.len() {
                    return Err(Error::missing("a value of the planned size"));
                }
                target.copy_from_slice(tensor.bytes());
            }
            (_, ValueLocation::Slot(slot, _)) => {
                let value = in_memory_of(device.as_ref(), self.tensor(from)?)?;
                *self.frame.slot_mut(*slot) = Some(value);
            }
        }
        Ok(())
    }

    fn repeat(&mut self, action: &WhileAction) -> Result<()> {
        let limit = self.scope.context.limits().loop_iterations;
        let mut iterations = 0;
        loop {
            self.actions(&action.condition)?;
            if !self.is_true(&action.test).map_err(|error| action.origin.locate(error))? {
                return Ok(());
            }
            if iterations == limit {
                return Err(action.origin.locate(too_many_rounds(limit)));
            }
            iterations += 1;
            budget::take_round().map_err(|reason| action.origin.locate(reason))?;
            self.actions(&action.body)?;
        }
    }

    fn scalar(&mut self, action: &ScalarProgram) -> Result<()> {
        let mut registers: SmallVec<[u64; 32]> = SmallVec::from_slice(action.program.registers());
        for load in &action.loads {
            let bytes = self.bytes(&load.from).ok_or_else(|| Error::missing("a number"))?;
            scalar::set(&mut registers[load.to.index()], bytes);
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

    /// The bytes of a value of plain elements in host memory.
    fn bytes(&self, place: &ValueLocation) -> Option<&[u8]> {
        match place {
            ValueLocation::Arena(region) => Some(self.frame.arena(region)),
            ValueLocation::Slot(slot, bytes) => {
                let tensor = self.frame.slot(*slot)?.as_host()?;
                bytes.as_ref().map_or(Some(tensor.bytes()), |part| tensor.bytes().get(part.clone()))
            }
        }
    }

    fn is_true(&mut self, test: &TensorOperand) -> Result<bool> {
        if let (ValueLocation::Arena(region), DType::Bool) = (&test.place, test.dtype) {
            return Ok(self.frame.arena(region).first().is_some_and(|&byte| byte != 0));
        }
        Ok(truthiness(self.tensor(test)?.host()?)?)
    }

    fn branch(&mut self, action: &BranchAction) -> Result<()> {
        let index = self.tensor(&action.index)?;
        let taken = chosen_branch(action.call, index.host()?, action.branches.len())
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
fn stopped(action: &ScalarProgram, stop: Stop, limit: u64) -> Error {
    let (position, error) = match stop {
        Stop::Fault(position, error) => (position, error),
        Stop::Rounds(position) => (position, too_many_rounds(limit)),
    };
    let origin = action.origins.iter().rev().find(|(start, _)| *start <= position);
    origin.map_or_else(|| error.clone().into(), |(_, origin)| origin.locate(error.clone()))
}

/// A tensor in the memory of a device, or of the host.
fn in_memory_of(device: Option<&Arc<dyn Device>>, value: EagerTensor) -> Result<Buffer> {
    Ok(match device {
        Some(device) => Buffer::Device(on_device(&value, device)?),
        None => Buffer::Host(value.into_host()?),
    })
}

/// Whether a tensor has the operand's dtype and shape.
fn is_shaped(tensor: &Buffer, operand: &TensorOperand) -> bool {
    tensor.dtype() == operand.dtype
        && operand.shape.as_ref().is_none_or(|shape| tensor.shape() == shape)
}

/// A tensor from a slot under the operand's dtype and shape.
fn shaped(
    tensor: HostTensor,
    operand: &TensorOperand,
    bytes: Option<&ArenaRange>,
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
