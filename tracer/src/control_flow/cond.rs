//! Choices: one of two branches, the first whose condition holds, the one of a number.

use super::{
    stage::{self, ChoiceKind, Closed, Condition, RegionTrace, choose, scalar},
    structure::{difference, tensors, with_tensors},
};
use crate::{
    context,
    error::{Error, Result},
    nest::Nest,
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::{DType, error::SourceLocation};
use std::panic::Location;

/// Result of `then` where `condition` is true, otherwise that of `otherwise`.
///
/// In a trace both branches are traced, and one of them runs when the trace does. They give values
/// of the same structure and dtypes; of shapes that differ the common part is known. A condition
/// whose value is known chooses at once.
///
/// ```
/// use ferroflow_tracer::{Tensor, cond, function};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let f = function(|x: Tensor, y: Tensor| cond(&y.equal(0.0)?, || Ok(y.clone()), || &x / &y));
/// assert_eq!(f.call((2.0f32, 2.0f32))?.to_scalar::<f32>()?, 1.0);
/// assert_eq!(f.call((2.0f32, 0.0f32))?.to_scalar::<f32>()?, 0.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of the branches; [`Error::Branches`] when they differ; when the condition is not one truth
/// value.
#[track_caller]
pub fn cond<T: Nest>(
    condition: &Tensor,
    then: impl FnOnce() -> Result<T>,
    otherwise: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let location = Location::caller();
    match stage::condition(condition)? {
        Condition::Known(true) => then(),
        Condition::Known(false) => otherwise(),
        Condition::Staged(chooser) => {
            let branches = vec![traced("cond_true", then)?, traced("cond_false", otherwise)?];
            T::from_value(chosen("cond", ChoiceKind::If, &chooser, branches, location)?)
        }
    }
}

/// Result of the branch of number `index`; the last one where there is no such branch.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function, switch_case};
/// # fn main() -> Result<()> {
/// let f = function(|n: Tensor, x: Tensor| {
///     switch_case(&n, &[&|| x.neg(), &|| x.square(), &|| x.exp()])
/// });
/// assert_eq!(f.call((1, 3.0f32))?.to_scalar::<f32>()?, 9.0);
/// assert_eq!(f.call((-1, 0.0f32))?.to_scalar::<f32>()?, 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`cond`]; when there are no branches, or the number is not an int32.
#[track_caller]
pub fn switch_case<T: Nest>(index: &Tensor, branches: &[&dyn Fn() -> Result<T>]) -> Result<T> {
    let location = Location::caller();
    let Some(last) = branches.last() else {
        let (expected, found) = ("one branch or more".into(), "none".into());
        return Err(Error::Conversion { expected, found });
    };
    if index.dtype() != DType::I32 {
        let (expected, found) = ("a number of dtype int32".into(), index.to_string());
        return Err(Error::Conversion { expected, found });
    }
    if !index.is_symbolic() || !context::is_tracing() {
        let number = usize::try_from(index.to_scalar::<i32>()?).ok();
        let branch = number.and_then(|number| branches.get(number)).unwrap_or(last);
        return branch();
    }
    let chooser = scalar(index)?;
    let branches = branches.iter().enumerate().map(|(number, branch)| {
        traced(&format!("switch_case_indexed_case_branch{number}"), branch)
    });
    let branches = branches.collect::<Result<Vec<_>>>()?;
    T::from_value(chosen("switch_case", ChoiceKind::Case, &chooser, branches, location)?)
}

/// Result of the first branch whose condition is true, or of `default`, if none is.
///
/// ```
/// use ferroflow_tracer::{Tensor, case};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (x, y) = (Tensor::from(1), Tensor::from(2));
/// let first = case(
///     &[(x.less(&y)?, &|| Ok(Tensor::from(17))), (x.greater(&y)?, &|| Ok(Tensor::from(23)))],
///     || Ok(Tensor::from(-1)),
/// )?;
/// assert_eq!(first.to_scalar::<i32>()?, 17);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`cond`].
#[track_caller]
pub fn case<T: Nest>(
    pairs: &[(Tensor, &dyn Fn() -> Result<T>)],
    default: impl Fn() -> Result<T>,
) -> Result<T> {
    let location = Location::caller();
    first(pairs, &default, location)
}

fn first<T: Nest>(
    pairs: &[(Tensor, &dyn Fn() -> Result<T>)],
    default: &dyn Fn() -> Result<T>,
    location: SourceLocation,
) -> Result<T> {
    let Some(((condition, branch), others)) = pairs.split_first() else { return default() };
    match stage::condition(condition)? {
        Condition::Known(true) => branch(),
        Condition::Known(false) => first(others, default, location),
        Condition::Staged(chooser) => {
            let branches = vec![
                traced("case_cond_true", branch)?,
                traced("case_cond_false", || first(others, default, location))?,
            ];
            T::from_value(chosen("case", ChoiceKind::If, &chooser, branches, location)?)
        }
    }
}

/// A branch that has been traced, and the value it gives.
pub(crate) type TracedCase = (Closed, NestedValue);

fn traced<T: Nest>(name: &str, branch: impl FnOnce() -> Result<T>) -> Result<TracedCase> {
    let part = RegionTrace::open(name)?;
    let value = branch()?.to_value();
    Ok((part.close(tensors(&value))?, value))
}

/// The value that the chosen branch gives.
pub(crate) fn chosen(
    construct: &'static str,
    choice: ChoiceKind,
    chooser: &Tensor,
    branches: Vec<TracedCase>,
    location: SourceLocation,
) -> Result<NestedValue> {
    let (parts, values): (Vec<Closed>, Vec<NestedValue>) = branches.into_iter().unzip();
    let (first, others) = values.split_first().expect("there are branches");
    for other in others {
        if let Some(found) = difference(first, other, "the result") {
            let (what, first, second) = (found.what, found.first, found.second);
            return Err(Error::Branches { construct, what, first, second });
        }
    }
    let results = choose(choice, chooser, parts, location)?;
    Ok(with_tensors(first, &mut results.into_iter()))
}
