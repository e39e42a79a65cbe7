//! Programs ready to run, and the frames that they run in.

#[cfg(all(test, shuttle))]
mod interleavings;

use crate::{
    eager_tensor::EagerTensor,
    error::{Error, Result},
    panics::caught,
    placement::{Placement, Reason},
    plan::{ExecutionPlan, estimate::MemoryEstimate},
    run::ExecutableRun,
    scope::Scope,
    sync::Mutex,
};
use ferroflow_ir::budget;
use ferroflow_kernels::{Buffer, frame::Frame};

/// A program ready to run, with the frames it runs in. Any number of threads may run it at once.
#[derive(Debug)]
pub(crate) struct Executable {
    program: ExecutionPlan,
    /// The frame of a call that finds no other call running the program.
    first: Mutex<Option<Frame>>,
    /// The frames of all others.
    others: Mutex<Vec<Frame>>,
}

impl Executable {
    pub(crate) fn new(program: ExecutionPlan) -> Executable {
        Executable { program, first: Mutex::default(), others: Mutex::default() }
    }

    /// Bytes of the memory that values of known size share.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.program.arena
    }

    /// The memory that a run takes.
    pub(crate) fn memory_estimate(&self) -> MemoryEstimate {
        self.program.memory_estimate()
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
        if budget::is_bounded() || scope.context.memory_in_use().is_some() {
            return self.run_bounded(scope, args);
        }
        self.run_in_pool(scope, args)
    }

    /// Runs the program where a budget counts its arena.
    #[cold]
    fn run_bounded<'a>(
        &self,
        scope: Scope<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> Result<Vec<EagerTensor>> {
        let _memory = scope.context.count_memory();
        let _arena = budget::charge_calls(self.program.arena)?;
        self.run_in_pool(scope, args)
    }

    /// Runs the program in a frame of the pool.
    fn run_in_pool<'a>(
        &self,
        scope: Scope<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> Result<Vec<EagerTensor>> {
        let _active = scope.context.threads().active_call();
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
        let outcome = caught(scope.context, || {
            self.results(&mut ExecutableRun { scope, frame: &mut frame }, args)
        });
        if outcome.as_ref().is_err_and(Error::is_panic) {
            return (outcome, None);
        }
        self.reset(&mut frame);
        (outcome, Some(frame))
    }

    fn results<'a>(
        &self,
        run: &mut ExecutableRun<'_>,
        args: impl Iterator<Item = &'a EagerTensor>,
    ) -> Result<Vec<EagerTensor>> {
        for (argument, arg) in self.program.args.iter().zip(args) {
            *run.frame.slot_mut(argument.slot) = Some(match arg.buffer() {
                Buffer::Device(buffer) if !argument.on_device => buffer.host()?.clone().into(),
                buffer => buffer.clone(),
            });
        }
        run.actions(&self.program.actions)?;
        let mut results = Vec::with_capacity(self.program.results.len());
        for result in &self.program.results {
            results.push(run.tensor(result)?);
        }
        Ok(results)
    }

    /// The devices of all nodes, on a machine whose CPU has this name.
    pub(crate) fn placement_or(&self, cpu: &str) -> Placement {
        let all_here = || {
            let mut placement = Placement::default();
            self.program.for_each_origin(&mut |origin| {
                placement.add_call(&origin.node, &origin.op, cpu, Reason::Default);
            });
            placement
        };
        self.program.placement.as_deref().cloned().unwrap_or_else(all_here)
    }

    fn frame(&self) -> Result<Frame> {
        let mut frame = Frame::new(self.program.arena, self.program.n_slots)?;
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
    }
}
