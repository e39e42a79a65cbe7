//! Data sets of some elements of another, by their positions.

use super::{Cardinality, Dataset, DatasetSource, RoundLimit, Stream};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
    ops::RuntimeCall,
};
use ferroflow_ir::{Code, Error as IrError};

/// The first elements; all of them without a number.
#[derive(Debug)]
struct Take {
    input: Dataset,
    n: Option<u64>,
}

impl DatasetSource for Take {
    fn stream(&self) -> Stream {
        let (mut input, mut left) = (self.input.stream(), self.n.unwrap_or(u64::MAX));
        Stream::new(move |scope| {
            if left == 0 {
                return Ok(None);
            }
            left -= 1;
            input.next(scope)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.n) {
            (own, None) => own,
            (Cardinality::Infinite, Some(n)) => Cardinality::Known(n),
            (own, Some(n)) => own.map(|own| own.min(n)),
        }
    }
}

/// All elements but the first; none without a number.
#[derive(Debug)]
struct Skip {
    input: Dataset,
    n: Option<u64>,
}

impl DatasetSource for Skip {
    fn stream(&self) -> Stream {
        let (mut input, mut left) = (self.input.stream(), self.n);
        Stream::new(move |scope| {
            let Some(n) = &mut left else { return Ok(None) };
            let mut rounds = RoundLimit::new(scope);
            while *n > 0 {
                rounds.count()?;
                if input.next(scope)?.is_none() {
                    left = None;
                    return Ok(None);
                }
                *n -= 1;
            }
            input.next(scope)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.n) {
            (Cardinality::Infinite | Cardinality::Known(_), None) => Cardinality::Known(0),
            (own, n) => own.map(|own| own.saturating_sub(n.unwrap_or(u64::MAX))),
        }
    }
}

/// Every element of one number modulo another.
#[derive(Debug)]
struct Shard {
    input: Dataset,
    n_shards: u64,
    index: u64,
    require_non_empty: bool,
}

impl DatasetSource for Shard {
    fn stream(&self) -> Stream {
        let &Shard { n_shards, index, require_non_empty, .. } = self;
        let (mut input, mut at, mut is_first) = (self.input.stream(), 0u64, true);
        Stream::new(move |scope| {
            loop {
                let Some(element) = input.next(scope)? else { return Ok(None) };
                let shard = at % n_shards;
                at += 1;
                if shard != index {
                    continue;
                }
                // Whether later shards have an element is only known once they were passed.
                if is_first && require_non_empty {
                    for _ in index + 1..n_shards {
                        if input.next(scope)?.is_none() {
                            return Err(too_few(n_shards));
                        }
                        at += 1;
                    }
                }
                is_first = false;
                return Ok(Some(element));
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        let own = self.input.cardinality();
        own.map(|n| n / self.n_shards + u64::from(self.index < n % self.n_shards))
    }
}

fn too_few(n_shards: u64) -> crate::Error {
    let expected = format!("of {n_shards} elements or more");
    IrError::argument("ShardDataset", "input_dataset", expected, "fewer").into()
}

/// A data set that must have a number of elements.
#[derive(Debug)]
struct Counted {
    input: Dataset,
    n: i64,
}

impl DatasetSource for Counted {
    fn stream(&self) -> Stream {
        let (mut input, expected, mut found) = (self.input.stream(), self.n, 0i64);
        Stream::new(move |scope| {
            let element = input.next(scope)?;
            found += i64::from(element.is_some());
            let is_end = element.is_none();
            let is_wrong = match expected {
                -2 => false,
                -1 => is_end,
                n => found > n || is_end && found < n,
            };
            if is_wrong {
                let message = format!("a data set of {expected} elements has {found}");
                return Err(crate::Error::Status { code: Code::FailedPrecondition, message });
            }
            Ok(element)
        })
    }

    fn cardinality(&self) -> Cardinality {
        match self.n {
            -1 => Cardinality::Infinite,
            n => u64::try_from(n).map_or(Cardinality::Unknown, Cardinality::Known),
        }
    }
}

pub(super) fn take(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n = u64::try_from(call.integer(1)?).ok();
    call.dataset(Take { input: call.input_dataset(0)?, n })
}

pub(super) fn skip(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n = u64::try_from(call.integer(1)?).ok();
    call.dataset(Skip { input: call.input_dataset(0)?, n })
}

pub(super) fn shard(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (n_shards, index) = (call.count(1, "num_shards")? as u64, call.integer(2)?);
    let Some(index) = u64::try_from(index).ok().filter(|index| *index < n_shards) else {
        let expected = format!("from 0 to {}", n_shards - 1);
        return Err(IrError::argument(call.op.name, "index", expected, index).into());
    };
    let require_non_empty = call.attrs.bool("require_non_empty")?;
    call.dataset(shard_of(call.input_dataset(0)?, n_shards, index, require_non_empty))
}

/// The elements of one number modulo `n_shards`.
pub(super) fn shard_of(
    input: Dataset,
    n_shards: u64,
    index: u64,
    require_non_empty: bool,
) -> impl DatasetSource {
    Shard { input, n_shards, index, require_non_empty }
}

pub(super) fn assert_cardinality(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.dataset(Counted { input: call.input_dataset(0)?, n: call.integer(1)? })
}

/// The elements that can be computed.
#[derive(Debug)]
struct IgnoreErrors {
    input: Dataset,
}

impl DatasetSource for IgnoreErrors {
    fn stream(&self) -> Stream {
        let mut input = self.input.stream();
        Stream::new(move |scope| {
            let mut rounds = RoundLimit::new(scope);
            loop {
                match input.next(scope) {
                    Err(error) if is_ignored(&error) => rounds.count()?,
                    result => return result,
                }
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// Whether an error is about an element. Others end the run: limits, deadlines, cancellation, and
/// what is not supported.
fn is_ignored(error: &Error) -> bool {
    match error.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::DataLoss => true,
        Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::Aborted
        | Code::Cancelled
        | Code::DeadlineExceeded => false,
    }
}

pub(super) fn ignore_errors(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.dataset(IgnoreErrors { input: call.input_dataset(0)? })
}
