//! Where calls of ops meet: they are executed, or go to the trace at hand.

use crate::{
    context, debugging,
    error::Result,
    func_graph::{self, Call},
    library_call::caller_of,
    recording,
    tensor::{Repr, Tensor},
};
use ferroflow_ir::{Attrs, OpDef, error::SourceLocation, registry};
use ferroflow_runtime::{EagerTensor, Results};
use smallvec::SmallVec;
use std::{panic::Location, sync::OnceLock};

pub use crate::func_graph::Outputs;

/// An op by name, whose record is looked up once.
pub(crate) struct NamedOp {
    name: &'static str,
    record: OnceLock<&'static OpDef>,
}

impl NamedOp {
    /// The op of this name, which must have a record.
    pub(crate) const fn new(name: &'static str) -> NamedOp {
        NamedOp { name, record: OnceLock::new() }
    }

    pub(crate) fn record(&self) -> &'static OpDef {
        let find =
            || registry::find(self.name).unwrap_or_else(|| panic!("{} has no record", self.name));
        self.record.get_or_init(find)
    }
}

/// Calls an op.
pub(crate) fn call(
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[&Tensor],
    name: &str,
    location: SourceLocation,
) -> Result<Outputs> {
    let mut outputs = match context::current_trace() {
        Some(trace) => trace.call(Call { op, attrs, inputs, name, location: Some(location) })?,
        None => {
            let results =
                execute(op, &attrs, inputs).map_err(|e| e.at_call(op.name, caller_of(location)))?;
            let outputs: Outputs = results.into_iter().map(Tensor::from).collect();
            if context::is_taped() {
                recording::record(op, &attrs, inputs, &outputs);
            }
            outputs
        }
    };
    debugging::check(op, &mut outputs, location)?;
    Ok(outputs)
}

fn execute(op: &'static OpDef, attrs: &Attrs, inputs: &[&Tensor]) -> Result<Results> {
    let mut values: SmallVec<[&EagerTensor; 4]> = SmallVec::with_capacity(inputs.len());
    for input in inputs {
        match &input.0 {
            Repr::Eager(tensor) => values.push(tensor),
            Repr::Failed(_) => input.check()?,
            Repr::Symbolic(symbolic) => {
                let used_in = format!("by the op {}, called eagerly", op.name);
                return Err(func_graph::out_of_scope(input, symbolic, used_in));
            }
        }
    }
    context::execute(op, attrs, &values)
}

/// Calls an op by its record: for code that learns at run time which op it calls, such as
/// interpreters. Attributes that follow from the inputs need not be given.
///
/// ```
/// use ferroflow_tracer::{Tensor, ops};
/// use ferroflow_ir::{Attrs, registry};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let square = registry::find("Square").expect("a built-in op");
/// let y = ops::raw(square, Attrs::new(), &[&Tensor::from(3.0f32)])?;
/// assert_eq!(y[0].to_scalar::<f32>()?, 9.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the call does not fit the op, or cannot be run.
#[track_caller]
pub fn raw(op: &'static OpDef, attrs: Attrs, inputs: &[&Tensor]) -> Result<Outputs> {
    call(op, attrs, inputs, "", Location::caller())
}

/// As [`raw`], on behalf of code at another location, which errors name.
///
/// # Errors
///
/// As [`raw`].
pub fn raw_at(
    op: &'static OpDef,
    attrs: Attrs,
    inputs: &[&Tensor],
    location: SourceLocation,
) -> Result<Outputs> {
    call(op, attrs, inputs, "", location)
}

/// Calls an op with one result.
#[track_caller]
pub(crate) fn one(op: &'static NamedOp, attrs: Attrs, inputs: &[&Tensor]) -> Result<Tensor> {
    named(op, "", attrs, inputs)
}

/// Calls an op with one result; its node is called `name`.
#[track_caller]
pub(crate) fn named(
    op: &'static NamedOp,
    name: &str,
    attrs: Attrs,
    inputs: &[&Tensor],
) -> Result<Tensor> {
    let (op, missing, location) = (op.record(), "the op has a result", Location::caller());
    if context::is_plain() && !debugging::checks_numerics() {
        let results =
            execute(op, &attrs, inputs).map_err(|e| e.at_call(op.name, caller_of(location)));
        return Ok(results?.pop().expect(missing).into());
    }
    Ok(call(op, attrs, inputs, name, location)?.pop().expect(missing))
}

/// Calls an op without results.
#[track_caller]
pub(crate) fn none(op: &'static NamedOp, attrs: Attrs, inputs: &[&Tensor]) -> Result<()> {
    call(op.record(), attrs, inputs, "", Location::caller()).map(drop)
}

/// Calls an op with any number of results.
#[track_caller]
pub(crate) fn many(op: &'static NamedOp, attrs: Attrs, inputs: &[&Tensor]) -> Result<Outputs> {
    call(op.record(), attrs, inputs, "", Location::caller())
}

/// Calls an op with `N` results.
#[track_caller]
pub(crate) fn fixed<const N: usize>(
    op: &'static NamedOp,
    attrs: Attrs,
    inputs: &[&Tensor],
) -> Result<[Tensor; N]> {
    let outputs = call(op.record(), attrs, inputs, "", Location::caller())?;
    let outputs: [Tensor; N] =
        outputs.into_vec().try_into().unwrap_or_else(|_| panic!("{} gives {N} results", op.name));
    Ok(outputs)
}
