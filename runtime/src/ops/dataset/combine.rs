//! Data sets of the elements of others: repeated, one after the other, side by side.

use super::{Cardinality, Dataset, DatasetSource, Stream};
use crate::{eager_tensor::Results, error::Result, ops::RuntimeCall};

/// All elements, a number of times; for ever without a number.
#[derive(Debug)]
struct Repeat {
    input: Dataset,
    n: Option<u64>,
}

impl DatasetSource for Repeat {
    fn stream(&self) -> Stream {
        let (input, mut left) = (self.input.clone(), self.n);
        let (mut current, mut any) = (input.stream(), false);
        Stream::new(move |scope| {
            while left != Some(0) {
                if let Some(element) = current.next(scope)? {
                    any = true;
                    return Ok(Some(element));
                }
                left = match left {
                    // An empty data set stays empty, however often it is repeated.
                    _ if !any => Some(0),
                    Some(n) => Some(n - 1),
                    None => None,
                };
                (current, any) = (input.stream(), false);
            }
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.n) {
            (_, Some(0)) => Cardinality::Known(0),
            (own, Some(n)) => own.map(|own| own.saturating_mul(n)),
            (Cardinality::Known(0), None) => Cardinality::Known(0),
            (_, None) => Cardinality::Infinite,
        }
    }
}

/// The elements of one data set, then those of another.
#[derive(Debug)]
struct Concatenate([Dataset; 2]);

impl DatasetSource for Concatenate {
    fn stream(&self) -> Stream {
        let [mut first, mut second] = [Some(self.0[0].stream()), Some(self.0[1].stream())];
        Stream::new(move |scope| {
            while let Some(current) = &mut first {
                if let Some(element) = current.next(scope)? {
                    return Ok(Some(element));
                }
                first = second.take();
            }
            Ok(None)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.0[0].cardinality(), self.0[1].cardinality()) {
            (Cardinality::Infinite, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
            (Cardinality::Known(a), Cardinality::Known(b)) => {
                Cardinality::Known(a.saturating_add(b))
            }
            _ => Cardinality::Unknown,
        }
    }
}

/// The components of one element of each data set, until one of them ends.
#[derive(Debug)]
struct Zip(Vec<Dataset>);

impl DatasetSource for Zip {
    fn stream(&self) -> Stream {
        let mut inputs: Vec<Stream> = self.0.iter().map(Dataset::stream).collect();
        Stream::new(move |scope| {
            let mut components = Vec::new();
            for input in &mut inputs {
                match input.next(scope)? {
                    Some(element) => components.extend(element),
                    None => return Ok(None),
                }
            }
            Ok(Some(components))
        })
    }

    fn cardinality(&self) -> Cardinality {
        let own = self.0.iter().map(Dataset::cardinality);
        own.fold(Cardinality::Infinite, |all, own| match (all, own) {
            (Cardinality::Unknown, _) | (_, Cardinality::Unknown) => Cardinality::Unknown,
            (Cardinality::Known(a), Cardinality::Known(b)) => Cardinality::Known(a.min(b)),
            (Cardinality::Infinite, other) | (other, Cardinality::Infinite) => other,
        })
    }
}

pub(super) fn repeat(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n = u64::try_from(call.integer(1)?).ok();
    call.dataset(Repeat { input: call.input_dataset(0)?, n })
}

pub(super) fn concatenate(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.dataset(Concatenate([call.input_dataset(0)?, call.input_dataset(1)?]))
}

pub(super) fn zip(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let inputs = (0..call.inputs.len()).map(|index| call.input_dataset(index));
    call.dataset(Zip(inputs.collect::<Result<_>>()?))
}
