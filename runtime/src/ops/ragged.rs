//! Ragged tensors as values of dtype variant.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    variant::{
        self,
        ragged::{Ragged, concat, stack},
    },
};
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor, Shape};
use std::sync::Arc;

fn to_variant(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let n_splits = call.inputs.len() - 1;
    let splits =
        (0..n_splits).map(|index| Ok(call.host(index)?.to_i64s()?)).collect::<Result<_>>()?;
    let ragged = Ragged::new(splits, call.host(n_splits)?.clone())?;
    if !call.attrs.bool("batched_input")? {
        return one(variant::scalar(ragged));
    }
    let rows = ragged.into_rows()?;
    let handles: Vec<Arc<dyn Handle>> =
        rows.into_iter().map(|row| Arc::new(row) as Arc<dyn Handle>).collect();
    one(HostTensor::from_handles(DType::Variant, Shape::new([handles.len()])?, handles)?)
}

fn from_variant(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let encoded = call.host(0)?;
    let dims = encoded.shape().dims();
    let wrong = |argument: &'static str, expected: String, found: i64| -> crate::Error {
        IrError::argument(call.op.name, argument, expected, found).into()
    };
    let (n_inner, n_outer) =
        (call.attrs.int("input_ragged_rank")?, call.attrs.int("output_ragged_rank")?);
    let rank = dims.len() as i64;
    let n_inner = if n_inner == -1 { n_outer.saturating_sub(rank) } else { n_inner };
    if n_inner < -1 || n_inner.checked_add(rank) != Some(n_outer) {
        let expected = n_inner.max(-1).saturating_add(rank).to_string();
        return Err(wrong("output_ragged_rank", expected, n_outer));
    }
    let n_inner = usize::try_from(n_inner).ok();
    let parts = encoded.handles()?.iter().map(|handle| variant::downcast(handle, A_RAGGED_TENSOR));
    let parts: Vec<&Ragged> = parts.collect::<Result<_>>()?;
    let dtype = call.attrs.dtype("Tvalues")?;
    for part in &parts {
        part.values.check(dtype)?;
    }
    let ragged = match (dims, parts.as_slice()) {
        ([], [part]) => {
            if Some(part.splits.len()) != n_inner {
                let expected = part.splits.len().to_string();
                return Err(wrong("output_ragged_rank", expected, n_outer));
            }
            (*part).clone()
        }
        _ => stack(call.context(), dims, &parts, dtype, n_inner)?,
    };
    let wide = call.attrs.dtype("Tsplits")? == DType::I64;
    let mut results = Results::new();
    for splits in &ragged.splits {
        let tensor = match wide {
            true => HostTensor::vector(splits)?,
            false => {
                HostTensor::vector(&splits.iter().map(|&split| split as i32).collect::<Vec<_>>())?
            }
        };
        results.push(tensor.into());
    }
    results.push(ragged.values.into());
    Ok(results)
}

const A_RAGGED_TENSOR: &str = "a ragged tensor";

fn gradient(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dtype = call.attrs.dtype("Tvalues")?;
    let handles = call.host(0)?.handles()?.iter();
    let parts = handles.map(|handle| variant::downcast::<Ragged>(handle, A_RAGGED_TENSOR));
    let parts: Vec<&Ragged> = parts.collect::<Result<_>>()?;
    let expected = Shape::from_i64(&call.host(2)?.to_i64s()?)?;
    let values: Vec<&HostTensor> = parts.iter().map(|part| &part.values).collect();
    let joined = match values.as_slice() {
        [only] => (*only).clone(),
        values => concat(call.context(), dtype, values)?,
    };
    joined.check(dtype)?;
    if *joined.shape() != expected {
        let expected = expected.to_string();
        let argument = "dense_values_shape";
        return Err(IrError::argument(
            call.op.name,
            argument,
            joined.shape().to_string(),
            expected,
        )
        .into());
    }
    one(joined)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("RaggedTensorFromVariant", from_variant),
    ("RaggedTensorToVariant", to_variant),
    ("RaggedTensorToVariantGradient", gradient),
];
