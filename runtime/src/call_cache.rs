//! Compiled eager calls, kept by what they were compiled for.
//!
//! What is found runs at once: nothing is inferred, completed or compiled again.

use crate::{
    call_key::{CallKey, fingerprint},
    context::{Context, WeakContext},
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    execute::of_op,
    execute_op::{alias_as, complete, execute_op},
    kernel_call::KernelCall,
    panics::caught,
    placed_calls::execute_placed,
    scope::Scope,
    single_op::SingleOp,
};
use ferroflow_ir::{Attrs, DType, Effect, FunctionLibrary, Lowering, OpDef, Shape};
use ferroflow_kernels::Device;
use std::{mem, sync::Arc};

/// Compiled eager calls, by what they were compiled for: the latest few hundred, of one context at
/// a time.
///
/// Calls of functions and of ops with state are not compiled, nor are calls on large tensors, for
/// which it would not show; those run as [`execute`](crate::execute()) runs them.
#[derive(Debug, Default)]
pub struct CallCache {
    /// Whose calls these are.
    context: WeakContext,
    /// Whether it runs calls on another device than the CPU unless they say otherwise.
    is_elsewhere: bool,
    /// No functions.
    library: Arc<FunctionLibrary>,
    /// By fingerprint; empty before the first call.
    sets: Vec<Set>,
}

/// Calls that share a slot, the last used first.
type Set = [Option<Box<Entry>>; 2];

/// The number of slots.
const SETS: usize = 128;

/// Calls with more elements in a tensor are not kept: kernels and programs may hold as much memory.
const MOST_ELEMENTS: usize = 1 << 18;

/// Calls with more elements in an input that is a shape operand are not kept.
const MOST_STEERING: usize = 1 << 8;

#[derive(Debug)]
struct Entry {
    key: CallKey,
    op: &'static OpDef,
    call: Compiled,
}

/// Specialization of a call. Attributes are complete here.
#[derive(Debug)]
enum Compiled {
    Kernel(KernelCall),
    /// The result is input 0 as this dtype, of this shape.
    Alias(DType, Shape),
    /// A formula that has run once. It becomes a program when it is wanted again: for a single call
    /// that would not pay.
    Once(Attrs),
    Program(SingleOp, Attrs),
    /// Nothing more is known ahead.
    Ordinary(Attrs),
}

impl CallCache {
    /// Runs an op. Attributes that follow from the inputs or have defaults may be left out.
    ///
    /// # Errors
    ///
    /// As [`execute`](crate::execute()).
    pub fn execute(
        &mut self,
        context: &Context,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
    ) -> Result<Results> {
        let outcome = caught(context, || self.execute_uncaught(context, op, attrs, inputs));
        outcome.map_err(|error| self.after(op, error))
    }

    /// Forgets all calls where a panic is behind an error, and names the op in it.
    #[cold]
    fn after(&mut self, op: &OpDef, error: Error) -> Error {
        if error.is_panic() {
            self.sets.clear();
            self.context = WeakContext::default();
        }
        of_op(op.name)(error)
    }

    fn execute_uncaught(
        &mut self,
        context: &Context,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
    ) -> Result<Results> {
        if !self.context.is(context) {
            self.context = context.downgrade();
            self.is_elsewhere = context.default_device().is_some();
            self.sets.clear();
            self.sets.resize_with(SETS, Set::default);
        }
        let scope = Scope::eager(context, &self.library);
        if self.is_elsewhere || inputs.iter().any(|input| input.device().is_some()) {
            return execute_placed(scope, context.default_device(), op, attrs, inputs);
        }
        let set = &mut self.sets[fingerprint(op, attrs, inputs) as usize % SETS];
        for way in 0..set.len() {
            if set[way].as_ref().is_some_and(|entry| entry.key.is_for(op, attrs, inputs)) {
                set[..=way].rotate_right(1);
                return set[0].as_mut().expect("found above").run(scope, inputs);
            }
        }
        let (results, entry) = first_call(scope, op, attrs, inputs)?;
        if let Some(entry) = entry {
            set.rotate_right(1);
            set[0] = Some(Box::new(entry));
        }
        Ok(results)
    }
}

impl CallCache {
    /// Runs an op on a device, where that has a kernel for it.
    ///
    /// # Errors
    ///
    /// As [`execute`](CallCache::execute).
    pub fn execute_on(
        &mut self,
        context: &Context,
        device: &Arc<dyn Device>,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
    ) -> Result<Results> {
        let scope = Scope::eager(context, &self.library);
        let outcome = caught(context, || execute_placed(scope, Some(device), op, attrs, inputs));
        outcome.map_err(|error| self.after(op, error))
    }
}

impl Entry {
    fn run(&mut self, scope: Scope<'_>, inputs: &[&EagerTensor]) -> Result<Results> {
        if let Compiled::Once(attrs) = &mut self.call {
            self.call = program(scope, self.op, mem::take(attrs), inputs);
        }
        match &self.call {
            Compiled::Kernel(call) => call.run(scope.context, inputs),
            Compiled::Alias(dtype, shape) => alias_as(inputs[0].host()?, *dtype, shape.clone()),
            // If it fails, then with the error it would have without being compiled.
            Compiled::Program(program, attrs) => {
                program.run(scope, inputs).or_else(|_| ordinary(scope, self.op, attrs, inputs))
            }
            Compiled::Once(attrs) | Compiled::Ordinary(attrs) => {
                ordinary(scope, self.op, attrs, inputs)
            }
        }
    }
}

/// A formula as a program, if it can be one that holds little memory.
fn program(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[&EagerTensor],
) -> Compiled {
    let host = op.host_inputs(&attrs).unwrap_or_default();
    match SingleOp::new(scope, op, &attrs, inputs, &host) {
        Ok(program) if program.arena_bytes() <= MOST_ELEMENTS => Compiled::Program(program, attrs),
        Ok(_) | Err(_) => Compiled::Ordinary(attrs),
    }
}

fn ordinary(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&EagerTensor],
) -> Result<Results> {
    execute_op(scope, op, attrs, inputs.iter().map(|&input| input.clone()).collect())
}

/// Runs a call that is not kept; returns what is to be kept of it.
fn first_call(
    scope: Scope<'_>,
    op: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&EagerTensor],
) -> Result<(Results, Option<Entry>)> {
    let complete = complete(op, attrs.clone(), inputs.iter().map(|input| input.dtype()))?;
    let lowered = op.for_dtype(inputs.first().map(|input| input.dtype()));
    let (results, kernel) = match lowered.lowering {
        Lowering::Elementwise(_)
        | Lowering::Fused
        | Lowering::Reduce(_)
        | Lowering::View(_)
        | Lowering::Kernel
        | Lowering::HostKernel(_) => {
            let call = KernelCall::new(scope.context, lowered, &complete, inputs)?;
            (call.run(scope.context, inputs)?, Some(call))
        }
        Lowering::Alias(_) | Lowering::Composite(_) | Lowering::Runtime | Lowering::Interface => {
            (ordinary(scope, lowered, &complete, inputs)?, None)
        }
    };
    // A program is dropped again if it holds much; see [`program`].
    let is_formula =
        matches!(lowered.lowering, Lowering::Composite(_)) && lowered.effect == Effect::Pure;
    let small = |tensor: &EagerTensor| is_formula || tensor.shape().num_elements() <= MOST_ELEMENTS;
    if !inputs.iter().all(|input| small(input)) || !results.iter().all(small) {
        return Ok((results, None));
    }
    let mut host = lowered.host_inputs(&complete)?;
    let call = match (kernel, lowered.lowering) {
        (Some(kernel), _) => Compiled::Kernel(kernel),
        (None, Lowering::Alias(_)) => {
            Compiled::Alias(results[0].dtype(), results[0].shape().clone())
        }
        (None, Lowering::Composite(_)) if is_formula => Compiled::Once(complete),
        _ => {
            host.clear();
            Compiled::Ordinary(complete)
        }
    };
    let has_large_shape_operand = |(input, host): (&&EagerTensor, &bool)| {
        *host && input.shape().num_elements() > MOST_STEERING
    };
    if inputs.iter().zip(&host).any(has_large_shape_operand) {
        return Ok((results, None));
    }
    let key = CallKey::new(op, attrs, inputs, &host)?;
    Ok((results, Some(Entry { key, op: lowered, call })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_calls_are_kept_than_there_are_slots() {
        let (context, mut cache) = (Context::new(), CallCache::default());
        let add = ferroflow_ir::registry::find("AddV2").expect("a built-in record");
        for n in 0..4 * SETS {
            let x = ferroflow_ir::HostTensor::vector(&vec![1.0f32; n]).expect("a small tensor");
            let x = EagerTensor::from(x);
            cache.execute(&context, add, &Attrs::new(), &[&x, &x]).expect("a sum");
        }
        let kept = cache.sets.iter().flatten().flatten().count();
        assert!((SETS..=2 * SETS).contains(&kept), "{kept} calls are kept");
    }
}
