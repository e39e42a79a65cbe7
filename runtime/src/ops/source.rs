//! Sources of values that come from outside.

use super::{RuntimeCall, RuntimeOpBody};
use crate::{
    eager_tensor::Results,
    error::{Error, Result},
};
use ferroflow_ir::Code;

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[("Placeholder", placeholder)];

/// A placeholder that runs has not been fed: a value that is fed takes its place.
fn placeholder(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("dtype")?, call.attrs.shape("shape")?);
    let message = format!("the placeholder was not fed: it stands for a value of {dtype}{shape}");
    Err(Error::Status { code: Code::InvalidArgument, message })
}
