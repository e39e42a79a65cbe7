//! Ops that run over a data set at once, or ask about it.

use super::{
    Cardinality, ElementSpec, KeptBytes, RoundLimit, batch::stack, end_of_sequence,
    function::ElementFunction, map::n_types,
};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    ops::{self, RuntimeCall, one},
    table::LookupTable,
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use std::sync::Arc;

/// Results whose types the call tells.
fn results(
    call: &RuntimeCall<'_>,
    signature: &ElementSpec,
    tensors: Vec<HostTensor>,
) -> Result<Results> {
    signature.check(call.op.name, &tensors)?;
    Ok(tensors.into_iter().map(Into::into).collect())
}

/// The last state of a function of a state and each element.
pub(super) fn reduce(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_state = n_types(call, "Tstate")?;
    let others = 1 + n_state;
    let function = ElementFunction::of(call, "f", others..others + n_types(call, "Targuments")?)?;
    let signature = call.signature()?;
    if function.n_results() != n_state {
        let (expected, found) = (format!("of {n_state} results"), function.n_results());
        return Err(IrError::argument(call.op.name, "f", expected, found).into());
    }
    let mut state = call.tensors()?.get(1..others).unwrap_or_default().to_vec();
    let mut stream = call.input_dataset(0)?.stream();
    let mut rounds = RoundLimit::new(call.scope);
    while let Some(element) = stream.next(call.scope)? {
        rounds.count()?;
        let args = std::mem::take(&mut state).into_iter().chain(element);
        state = function.call(call.scope, args.collect::<Vec<_>>())?;
    }
    results(call, &signature, state)
}

/// The only element.
pub(super) fn single_element(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wrong = |found: &'static str| -> Error {
        IrError::argument(call.op.name, "dataset", "of one element", found).into()
    };
    let mut stream = call.input_dataset(0)?.stream();
    let element = stream.next(call.scope)?.ok_or_else(|| wrong("an empty one"))?;
    if stream.next(call.scope)?.is_some() {
        return Err(wrong("one of more"));
    }
    results(call, &call.signature()?, element)
}

/// The element of this number.
pub(super) fn element_at(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let index = call.integer_named(1, "index")?;
    let outside = || -> Error {
        let message = format!("there is no element {index}");
        Error::Status { code: Code::OutOfRange, message }
    };
    let mut stream = call.input_dataset(0)?.stream();
    let mut rounds = RoundLimit::new(call.scope);
    for _ in 0..u64::try_from(index).map_err(|_| outside())? {
        rounds.count()?;
        stream.next(call.scope)?.ok_or_else(outside)?;
    }
    let element = stream.next(call.scope)?.ok_or_else(outside)?;
    results(call, &call.signature()?, element)
}

pub(super) fn cardinality(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let cardinality: Cardinality = call.input_dataset(0)?.cardinality();
    one(HostTensor::scalar(cardinality.to_i64()))
}

/// Fills a table with the keys and values that are the elements.
pub(super) fn initialize_table(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let table: Arc<LookupTable> = call.resource(0, "a lookup table")?;
    let mut stream = call.input_dataset(1)?.stream();
    let (mut rounds, mut kept) = (RoundLimit::new(call.scope), KeptBytes::default());
    let mut elements = Vec::new();
    while let Some(element) = stream.next(call.scope)? {
        rounds.count()?;
        kept.add(call.scope, &element)?;
        elements.push(element);
    }
    if elements.is_empty() {
        return Err(end_of_sequence());
    }
    let columns = stack(call.context(), call.op.name, &elements)?;
    match columns.as_slice() {
        [keys, values] => table.fill(keys, values)?,
        other => {
            let (expected, found) = ("of a key and a value", other.len());
            return Err(IrError::argument(call.op.name, "dataset", expected, found).into());
        }
    }
    ops::none()
}
