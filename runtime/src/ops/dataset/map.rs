//! Data sets that call a function on each element of another.

use super::{Cardinality, Dataset, DatasetSource, RoundLimit, Stream, function::ElementFunction};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall};
use ferroflow_ir::{Error as IrError, HostTensor};

/// The results of a function of each element.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) input: Dataset,
    pub(super) function: ElementFunction,
    preserves_cardinality: bool,
}

impl DatasetSource for Map {
    fn stream(&self) -> Stream {
        let (mut input, function) = (self.input.stream(), self.function.clone());
        Stream::new(move |scope| {
            let Some(element) = input.next(scope)? else { return Ok(None) };
            function.call(scope, element).map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match self.preserves_cardinality {
            true => self.input.cardinality(),
            false => Cardinality::Unknown,
        }
    }
}

/// The elements for which a function is true.
#[derive(Debug)]
struct Filter {
    input: Dataset,
    predicate: ElementFunction,
}

impl DatasetSource for Filter {
    fn stream(&self) -> Stream {
        let (mut input, predicate) = (self.input.stream(), self.predicate.clone());
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            while let Some(element) = input.next(scope)? {
                rounds.count()?;
                if predicate.test(scope, &element)? {
                    return Ok(Some(element));
                }
            }
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// The elements before the first for which a function is false.
#[derive(Debug)]
struct TakeWhile {
    input: Dataset,
    predicate: ElementFunction,
}

impl DatasetSource for TakeWhile {
    fn stream(&self) -> Stream {
        let (mut input, predicate) = (Some(self.input.stream()), self.predicate.clone());
        Stream::new(move |scope| {
            let Some(current) = &mut input else { return Ok(None) };
            if let Some(element) = current.next(scope)?
                && predicate.test(scope, &element)?
            {
                return Ok(Some(element));
            }
            input = None;
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// The results of a function of a state and each element, whose first results are the next state.
#[derive(Debug)]
struct ScanStates {
    input: Dataset,
    state: Vec<HostTensor>,
    function: ElementFunction,
    preserves_cardinality: bool,
}

impl DatasetSource for ScanStates {
    fn stream(&self) -> Stream {
        let (mut input, function) = (self.input.stream(), self.function.clone());
        let mut state = self.state.clone();
        Stream::new(move |scope| {
            let Some(element) = input.next(scope)? else { return Ok(None) };
            let args: Vec<HostTensor> = state.iter().cloned().chain(element).collect();
            let mut results = function.call(scope, args)?;
            // As many as the state, or more: see `scan`.
            let outputs = results.split_off(state.len());
            state = results;
            Ok(Some(outputs))
        })
    }

    fn cardinality(&self) -> Cardinality {
        match self.preserves_cardinality {
            true => self.input.cardinality(),
            false => Cardinality::Unknown,
        }
    }
}

/// The number of types in an attribute.
pub(super) fn n_types(call: &RuntimeCall<'_>, attr: &str) -> Result<usize> {
    Ok(call.attrs.types(attr)?.len())
}

/// The function `f` of a call whose other arguments follow the data set.
pub(super) fn function(call: &RuntimeCall<'_>, attr: &str) -> Result<ElementFunction> {
    ElementFunction::of(call, attr, 1..1 + n_types(call, "Targuments")?)
}

pub(super) fn map(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.check_parallel_calls(call.inputs.len() - 1, i64::MAX)?;
    call.dataset(of_call(call)?)
}

/// The results of the function of a call.
pub(super) fn of_call(call: &RuntimeCall<'_>) -> Result<Map> {
    Ok(Map {
        input: call.input_dataset(0)?,
        function: function(call, "f")?,
        preserves_cardinality: call.attrs.bool("preserve_cardinality")?,
    })
}

pub(super) fn filter(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.check_parallel_calls(call.inputs.len() - 1, i64::MAX)?;
    let (input, predicate) = (call.input_dataset(0)?, function(call, "predicate")?);
    call.dataset(Filter { input, predicate })
}

pub(super) fn take_while(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (input, predicate) = (call.input_dataset(0)?, function(call, "predicate")?);
    call.dataset(TakeWhile { input, predicate })
}

pub(super) fn scan(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_state = n_types(call, "Tstate")?;
    let others = 1 + n_state;
    let function = ElementFunction::of(call, "f", others..others + n_types(call, "Targuments")?)?;
    if function.n_results() < n_state {
        let expected = format!("of {n_state} results or more");
        let found = function.n_results();
        return Err(IrError::argument(call.op.name, "f", expected, found).into());
    }
    let state = call.tensors()?.get(1..others).unwrap_or_default().to_vec();
    let preserves_cardinality = call.attrs.bool("preserve_cardinality")?;
    call.dataset(ScanStates {
        input: call.input_dataset(0)?,
        state,
        function,
        preserves_cardinality,
    })
}
