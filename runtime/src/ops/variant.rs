//! Arithmetic on values of dtype variant: that of the tensors in them.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    context::Context,
    eager_tensor::{EagerTensor, Results},
    error::Result,
    execute::execute,
    variant,
};
use ferroflow_ir::{Attrs, DType, Error as IrError, HostTensor, gradient::is_differentiable};

fn zeros_like(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (value, context) = (call.host(0)?, call.context());
    let zero = |tensor: &HostTensor| run(context, "ZerosLike", &[tensor]);
    let handles = value.handles()?.iter().map(|handle| variant::zeros_like(handle, &zero));
    let handles = handles.collect::<Result<_>>()?;
    one(HostTensor::from_handles(DType::Variant, value.shape().clone(), handles)?)
}

fn add(call: &mut RuntimeCall<'_>) -> Result<Results> {
    total(call, |_| true)
}

/// Adds gradients: a list of truth values has a gradient in which there is nothing to add.
fn add_gradients(call: &mut RuntimeCall<'_>) -> Result<Results> {
    total(call, |dtype| dtype == DType::Variant || is_differentiable(dtype))
}

/// Adds the tensors of all inputs, those of the dtypes that have a sum.
fn total(call: &mut RuntimeCall<'_>, has_sum: impl Fn(DType) -> bool) -> Result<Results> {
    let context = call.context();
    let sum = |a: &HostTensor, b: &HostTensor| {
        if !has_sum(a.dtype()) {
            return Ok(a.clone());
        }
        if a.dtype() != DType::Variant && a.shape() != b.shape() {
            return Err(IrError::broadcast(a.shape(), b.shape()).into());
        }
        run(context, "AddN", &[a, b])
    };
    let mut total = call.host(0)?.clone();
    for index in 1..call.inputs.len() {
        let other = call.host(index)?;
        if other.shape() != total.shape() {
            return Err(IrError::broadcast(total.shape(), other.shape()).into());
        }
        let pairs = total.handles()?.iter().zip(other.handles()?);
        let sums = pairs.map(|(a, b)| variant::add(a, b, &sum)).collect::<Result<_>>()?;
        total = HostTensor::from_handles(DType::Variant, total.shape().clone(), sums)?;
    }
    one(total)
}

fn run(context: &Context, op: &str, tensors: &[&HostTensor]) -> Result<HostTensor> {
    let inputs: Vec<EagerTensor> = tensors.iter().map(|&tensor| tensor.clone().into()).collect();
    execute(context, op, Attrs::new(), &inputs)?.remove(0).into_host()
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("_AddVariants", add),
    ("_AddVariantGradients", add_gradients),
    ("_VariantZerosLike", zeros_like),
];
