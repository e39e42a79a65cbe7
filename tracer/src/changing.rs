//! Methods that change their object: `#[function]` on `fn step(&mut self, x: &Tensor)`.
//!
//! The object is a [`Nest`], and one more argument of the function: its tensors go into the graph, and
//! come out of it as they are after the method. The traces belong to the type of the object, not to
//! the object, which holds values only; an object whose call failed is what it was before.
//!
//! Only tensors change when a graph runs. A number of Rust, a variable (which keeps its identity; its
//! value may change) or another object in a field must be the same after the method as before, or the
//! method is not traced. The number of tensors may change: a field of type `Option<Tensor>` may get its
//! first value, and the next call has another trace.
//!
//! Under a condition that is a tensor a method of an object that stands outside is not called: the
//! compiler says that the object is borrowed, as it does of methods of any object. A copy that is
//! assigned is carried: `let mut changed = object.clone(); changed.step(x)?; object = changed;`.
//!
//! ```
//! use ferroflow_tracer::{Nest, Result, Tensor, function};
//!
//! #[derive(Nest, Clone)]
//! struct Average {
//!     total: Tensor,
//!     count: Tensor,
//! }
//!
//! impl Average {
//!     #[function]
//!     fn add(&mut self, x: &Tensor) -> Result<Tensor> {
//!         if x.is_finite()? {
//!             self.total += x;
//!             self.count += 1.0;
//!         }
//!         &self.total / &self.count
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let mut average = Average { total: Tensor::from(0.0f32), count: Tensor::from(0.0f32) };
//! for x in [1.0f32, f32::NAN, 4.0] {
//!     average.add(&Tensor::from(x))?;
//! }
//! assert_eq!(average.count.to_scalar::<f32>()?, 2.0);
//! assert_eq!(average.add(&Tensor::from(1.0f32))?.to_scalar::<f32>()?, 2.0);
//! assert_eq!(Average::add_function().tracing_count(), 1);
//! # Ok(())
//! # }
//! ```

use crate::{
    control_flow::structure::{difference, zip_leaves},
    error::{Error, Result},
    nest::Nest,
    value::NestedValue,
};

/// The object before a method, for [`with_state`].
pub fn before<T: Nest>(object: &T) -> NestedValue {
    object.to_value()
}

/// A result of a method with the state of the object that it leaves: its tensors, in its structure.
///
/// A method ends so wherever it returns, for the state is part of what branches and loops return.
///
/// # Errors
///
/// That of the result; [`Error::ChangedObject`] when more than tensors is changed.
pub fn with_state<T: Nest, R, E: From<Error>>(
    result: Result<R, E>,
    method: &str,
    before: &NestedValue,
    object: &T,
) -> Result<(R, NestedValue), E> {
    let result = result?;
    let state =
        zip_leaves(before, object.to_value(), "self", &mut |before, after, part| match is_host(
            before,
        ) || is_host(
            &after,
        ) {
            false => Ok(after),
            true if difference(before, &after, part).is_none() => Ok(NestedValue::None),
            true => Err(Error::ChangedObject {
                method: method.into(),
                part: part.into(),
                before: format!("{before:?}"),
                after: format!("{after:?}"),
            }),
        })?;
    Ok((result, state))
}

/// Makes an object what it is after a call of the function of a method, unless that failed.
///
/// # Errors
///
/// That of the call; [`Error::Conversion`] when the state is not that of such an object.
pub fn apply<T: Nest, R, E: From<Error>>(
    object: &mut T,
    called: Result<(R, NestedValue), E>,
) -> Result<R, E> {
    let (result, state) = called?;
    let value = zip_leaves(&object.to_value(), state, "self", &mut |before, after, _| {
        Ok(if is_host(before) { before.clone() } else { after })
    })?;
    *object = T::from_value(value)?;
    Ok(result)
}

/// Whether the value stays the same when a graph runs.
fn is_host(value: &NestedValue) -> bool {
    matches!(value, NestedValue::Literal(_) | NestedValue::Variable(_) | NestedValue::Custom(_))
}
