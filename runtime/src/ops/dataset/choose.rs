//! Data sets of elements that another data set chooses from several.

use super::{Cardinality, Dataset, DatasetSource, RoundLimit, Stream, function::ElementFunction};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall};
use ferroflow_ir::{Error as IrError, HostTensor};

#[derive(Debug)]
struct DirectedInterleave {
    selector: Dataset,
    inputs: Vec<Dataset>,
    stops_on_empty: bool,
}

impl DatasetSource for DirectedInterleave {
    fn stream(&self) -> Stream {
        let (mut selector, stops_on_empty) = (self.selector.stream(), self.stops_on_empty);
        let mut inputs: Vec<Option<Stream>> =
            self.inputs.iter().map(|input| Some(input.stream())).collect();
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            while inputs.iter().any(Option::is_some) {
                rounds.count()?;
                let Some(chosen) = selector.next(scope)? else { return Ok(None) };
                let index = chosen.first().map(|chosen| chosen.to_i64s()).transpose()?;
                let index = index.and_then(|index| index.first().copied()).unwrap_or(-1);
                let n = inputs.len();
                let Some(input) = usize::try_from(index).ok().and_then(|i| inputs.get_mut(i))
                else {
                    let (op, expected) =
                        ("DirectedInterleaveDataset", format!("from 0 to {}", n - 1));
                    return Err(IrError::argument(op, "selector", expected, index).into());
                };
                let Some(stream) = input else { continue };
                if let Some(element) = stream.next(scope)? {
                    return Ok(Some(element));
                }
                *input = None;
                if stops_on_empty {
                    inputs.clear();
                }
            }
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        let mut all = self.inputs.iter().map(Dataset::cardinality);
        match all.any(|own| own != Cardinality::Infinite) {
            true => Cardinality::Unknown,
            false => self.selector.cardinality(),
        }
    }
}

pub(super) fn directed_interleave(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let inputs = (1..call.inputs.len()).map(|index| call.input_dataset(index));
    let inputs = inputs.collect::<Result<_>>()?;
    let stops_on_empty = call.attrs.bool("stop_on_empty_dataset").unwrap_or(false);
    call.dataset(DirectedInterleave { selector: call.input_dataset(0)?, inputs, stops_on_empty })
}

/// The elements of the data set that a function makes of another one. As many as the ratio says: with
/// others TensorFlow ends somewhere in between.
#[derive(Debug)]
struct Branch {
    op: &'static str,
    input: HostTensor,
    function: ElementFunction,
    /// The fewest and the most elements that the ratio allows.
    bounds: Option<[u64; 2]>,
    /// As TensorFlow tells it: by the ratio the other way round.
    cardinality: Cardinality,
}

impl DatasetSource for Branch {
    fn stream(&self) -> Stream {
        let (input, function) = (self.input.clone(), self.function.clone());
        let (op, bounds) = (self.op, self.bounds);
        let (mut stream, mut n_found) = (None, 0u64);
        Stream::new(move |scope| {
            let stream = match &mut stream {
                Some(stream) => stream,
                empty => empty.insert(function.stream(scope, vec![input.clone()])?),
            };
            let element = stream.next(scope)?;
            n_found += u64::from(element.is_some());
            match bounds {
                Some([least, most]) if n_found > most || (element.is_none() && n_found < least) => {
                    let expected = format!("a data set of {most} elements, by the ratio");
                    Err(IrError::argument(op, "branches", expected, n_found).into())
                }
                _ => Ok(element),
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }
}

/// Branches compute the same in several ways, of which TensorFlow measures the fastest: here the
/// first.
pub(super) fn fastest_branch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let branches = call.attrs.funcs("branches")?;
    let lengths = call.attrs.ints("other_arguments_lengths")?;
    let wrong = |name: &'static str, expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, name, expected, found).into()
    };
    if branches.len() != lengths.len() {
        let expected = format!("{} numbers", branches.len());
        return Err(wrong("other_arguments_lengths", expected, lengths.len().to_string()));
    }
    let (numerator, denominator) =
        (call.integer_named(1, "ratio_numerator")?, call.count(2, "ratio_denominator")?);
    let numerator = u64::try_from(numerator)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| wrong("ratio_numerator", "greater than 0".into(), numerator.to_string()))?;
    let n_others = call.inputs.len().saturating_sub(FIRST_OTHER);
    let sizes: Option<Vec<usize>> = lengths.iter().map(|&n| usize::try_from(n).ok()).collect();
    let all = sizes.as_ref().and_then(|all| all.iter().try_fold(0usize, |a, &b| a.checked_add(b)));
    let (Some(first), true) = (branches.first(), all == Some(n_others)) else {
        let expected = format!("{n_others} in all");
        return Err(wrong("other_arguments_lengths", expected, format!("{lengths:?}")));
    };
    let n_own = sizes.and_then(|sizes| sizes.first().copied()).unwrap_or_default();
    let function = ElementFunction::named(call, &first.name, FIRST_OTHER..FIRST_OTHER + n_own)?;
    let input = call.input_dataset(0)?;
    let scaled = |n: u64| (n as f64 * numerator as f64 / denominator as f64) as u64;
    let cardinality = input.cardinality().map(scaled);
    let bounds = match input.cardinality() {
        Cardinality::Known(n) => n
            .checked_mul(denominator as u64)
            .map(|produced| [produced / numerator, produced.div_ceil(numerator)]),
        Cardinality::Infinite | Cardinality::Unknown => None,
    };
    let (op, input) = (call.op.name, call.host(0)?.clone());
    call.dataset(Branch { op, input, function, bounds, cardinality })
}

/// The first of the arguments that functions capture.
const FIRST_OTHER: usize = 3;
