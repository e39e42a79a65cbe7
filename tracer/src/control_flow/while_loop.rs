//! Loops: a body that is repeated while a condition holds.

use super::{
    stage::{self, Condition, RegionTrace, StagedLoop, repeat},
    structure::{described, difference, names, tensors, with_tensors},
};
use crate::{
    context,
    error::{Error, Result},
    nest::Nest,
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::{PartialShape, ValueType, error::SourceLocation};
use std::panic::Location;

/// Options of a loop.
#[derive(Clone, Debug)]
pub struct WhileOptions {
    /// The shapes that the tensors of the state have in all iterations, in order. A shape that is
    /// not given is the one before the loop.
    pub shape_invariants: Vec<PartialShape>,
    /// The loop ends after so many iterations, whatever the condition says.
    pub maximum_iterations: Option<Tensor>,
    /// A hint how many iterations may run at once, which is kept in the graph for others.
    pub parallel_iterations: i64,
}

impl Default for WhileOptions {
    fn default() -> WhileOptions {
        WhileOptions {
            shape_invariants: Vec::new(),
            maximum_iterations: None,
            parallel_iterations: 10,
        }
    }
}

/// The state after `body` was repeated as long as `condition` holds.
///
/// In a trace condition and body are traced once, and become one call. The state keeps its
/// structure, dtypes and shapes.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function, while_loop};
/// # fn main() -> Result<()> {
/// let f = function(|limit: Tensor| {
///     while_loop(
///         |(x, _): &(Tensor, Tensor)| x.less(&limit),
///         |(x, n)| Ok(((x * 2)?, (n + 1)?)),
///         (Tensor::from(1), Tensor::from(0)),
///     )
/// });
/// let (x, n) = f.call((100,))?;
/// assert_eq!((x.to_scalar::<i32>()?, n.to_scalar::<i32>()?), (128, 7));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of condition and body; [`Error::LoopVariable`] when the body changes the structure, a
/// dtype or a shape of the state.
#[track_caller]
pub fn while_loop<S: Nest>(
    condition: impl FnMut(&S) -> Result<Tensor>,
    body: impl FnMut(S) -> Result<S>,
    state: S,
) -> Result<S> {
    while_loop_with(&WhileOptions::default(), condition, body, state)
}

/// [`while_loop`] with options.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, WhileOptions, function, ops, while_loop_with};
/// # fn main() -> Result<()> {
/// let doubled = function(|x: Tensor| {
///     let options = WhileOptions {
///         shape_invariants: vec![ferroflow_ir::PartialShape::vector(None)],
///         maximum_iterations: Some(Tensor::from(3)),
///         ..WhileOptions::default()
///     };
///     let twice = |x: Tensor| ops::concat_v2(&[&x, &x], &Tensor::from(0));
///     while_loop_with(&options, |_| Ok(Tensor::from(true)), twice, x)
/// });
/// assert_eq!(doubled.call(([7],))?.to_vec::<i32>()?, [7; 8]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`while_loop`]; when an invariant does not hold before the loop.
#[track_caller]
pub fn while_loop_with<S: Nest>(
    options: &WhileOptions,
    condition: impl FnMut(&S) -> Result<Tensor>,
    body: impl FnMut(S) -> Result<S>,
    state: S,
) -> Result<S> {
    let location = Location::caller();
    if context::is_tracing() {
        staged(options, condition, body, state, location)
    } else {
        eager(options, condition, body, state)
    }
}

fn eager<S: Nest>(
    options: &WhileOptions,
    mut condition: impl FnMut(&S) -> Result<Tensor>,
    mut body: impl FnMut(S) -> Result<S>,
    mut state: S,
) -> Result<S> {
    let mut left = match &options.maximum_iterations {
        Some(maximum) => Some(count(maximum)?),
        None => None,
    };
    while left != Some(0) && condition(&state)?.to_bool()? {
        state = body(state)?;
        left = left.map(|left| left - 1);
    }
    Ok(state)
}

fn count(maximum: &Tensor) -> Result<u64> {
    let number = maximum.cast(ferroflow_ir::DType::I64)?.to_scalar::<i64>()?;
    Ok(number.try_into().unwrap_or(0))
}

fn staged<S: Nest>(
    options: &WhileOptions,
    mut condition: impl FnMut(&S) -> Result<Tensor>,
    mut body: impl FnMut(S) -> Result<S>,
    state: S,
    location: SourceLocation,
) -> Result<S> {
    let before = state.to_value();
    let names = names(&before, "the state");
    let (mut initial, mut types) = entering(&before, options)?;
    let maximum = options.maximum_iterations.as_ref();
    if let Some(maximum) = maximum {
        let counter = maximum.zeros_like()?;
        types.push(counter.value_type());
        initial.push(counter);
    }

    let (condition, body) = loop {
        let part = RegionTrace::open("while_cond")?;
        let params = arguments(&part, &names, &types)?;
        let entered = S::from_value(with_tensors(&before, &mut params.iter().cloned()))?;
        let goes_on = match stage::condition(&condition(&entered)?)? {
            Condition::Known(known) => Tensor::from(known),
            Condition::Staged(holds) => holds,
        };
        let goes_on = match (maximum, params.last()) {
            (Some(maximum), Some(counter)) => counter.less(maximum)?.logical_and(&goes_on)?,
            _ => goes_on,
        };
        let closed = part.close(vec![goes_on])?;

        let part = RegionTrace::open("while_body")?;
        let params = arguments(&part, &names, &types)?;
        let entered = with_tensors(&before, &mut params.iter().cloned());
        let after = body(S::from_value(entered.clone())?)?.to_value();
        unchanged("while_loop", &entered, &after, "the state", &types, &names)?;
        let mut outputs = tensors(&after);
        // An iteration may leave lists of other elements: both parts are traced for what all have.
        if widen(&mut types, outputs.iter().map(Tensor::value_type)) {
            continue;
        }
        if let (Some(_), Some(counter)) = (maximum, params.last()) {
            outputs.push((counter + 1)?);
        }
        break (closed, part.close(outputs)?);
    };

    let parallel_iterations = options.parallel_iterations;
    let repeated =
        StagedLoop { condition, body, initial: &initial, types: &types, parallel_iterations };
    let results = repeat(repeated, location)?;
    S::from_value(with_tensors(&before, &mut results.into_iter()))
}

/// The tensors of the state before the loop, and the types they have in all iterations.
fn entering(state: &NestedValue, options: &WhileOptions) -> Result<(Vec<Tensor>, Vec<ValueType>)> {
    let initial = tensors(state);
    if options.shape_invariants.len() > initial.len() {
        let found = format!("{} invariants", options.shape_invariants.len());
        let expected = format!("no more than {}, one for each tensor", initial.len());
        return Err(Error::Conversion { expected, found });
    }
    let mut types: Vec<ValueType> = initial.iter().map(Tensor::value_type).collect();
    for ((ty, invariant), name) in
        types.iter_mut().zip(&options.shape_invariants).zip(names(state, "the state"))
    {
        if !ty.shape.is_subtype_of(invariant) {
            let expected = format!("{name} of shape {invariant}, as its invariant says");
            return Err(Error::Conversion { expected, found: format!("shape {}", ty.shape) });
        }
        ty.shape = invariant.clone();
    }
    Ok((initial, types))
}

/// The variables of a loop as arguments of one of its parts.
pub(crate) fn arguments(
    part: &RegionTrace,
    names: &[String],
    types: &[ValueType],
) -> Result<Vec<Tensor>> {
    let name = |index: usize| match names.get(index) {
        Some(name) => node_name(name),
        None => "loop_counter".into(),
    };
    types.iter().enumerate().map(|(index, ty)| part.argument(&name(index), ty.clone())).collect()
}

/// `the state[0].sum` as the name of a node.
fn node_name(name: &str) -> String {
    let letters = name.trim_start_matches("the ").chars();
    let name: String =
        letters.map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    name.trim_matches('_').into()
}

/// Makes types hold for what an iteration left too; tells whether one of them did not.
pub(crate) fn widen(types: &mut [ValueType], found: impl Iterator<Item = ValueType>) -> bool {
    let mut is_wider = false;
    for (ty, found) in types.iter_mut().zip(found) {
        let wide = ty.generalize(&found);
        is_wider |= wide != *ty;
        *ty = wide;
    }
    is_wider
}

const KEEPS: &str = "variables of loops keep their structure and dtypes";
const FITS: &str = "every shape must fit the one before the loop, or the shape invariant that is \
                    given for it";

/// Checks that an iteration leaves structure, dtypes and shapes as they are.
pub(crate) fn unchanged(
    construct: &'static str,
    before: &NestedValue,
    after: &NestedValue,
    name: &str,
    types: &[ValueType],
    names: &[String],
) -> Result<()> {
    if let Some(found) = difference(before, after, name) {
        return Err(Error::LoopVariable {
            construct,
            variable: found.what,
            before: found.first,
            after: found.second,
            rule: KEEPS,
        });
    }
    for ((tensor, ty), name) in tensors(after).iter().zip(types).zip(names) {
        let found = tensor.value_type();
        if ty.generalize(&found).shape != ty.shape {
            return Err(Error::LoopVariable {
                construct,
                variable: name.clone(),
                before: format!("a {} tensor of shape {}", ty.dtype, ty.shape),
                after: described(&NestedValue::Tensor(tensor.clone())),
                rule: FITS,
            });
        }
    }
    Ok(())
}
