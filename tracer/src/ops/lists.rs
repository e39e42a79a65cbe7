//! Attributes of calls with several lists of inputs, where the inputs alone do not tell which
//! belong together.

use crate::{error::Result, tensor::Tensor};
use ferroflow_ir::{AttrValue, DType, Error};

/// The number of tensors in each of the lists that share an attribute.
pub(super) fn count(
    op: &'static str,
    attr: &'static str,
    lists: &[&[&Tensor]],
) -> Result<AttrValue> {
    let lens: Vec<usize> = lists.iter().map(|list| list.len()).collect();
    match lens.as_slice() {
        [first, others @ ..] if others.iter().all(|len| len == first) => {
            Ok(AttrValue::Int(*first as i64))
        }
        _ => {
            Err(Error::argument(op, attr, "the length of all its lists", format!("{lens:?}"))
                .into())
        }
    }
}

/// The dtype of each tensor.
pub(super) fn dtypes(tensors: &[&Tensor]) -> AttrValue {
    AttrValue::Types(tensors.iter().map(|tensor| tensor.dtype()).collect::<Vec<DType>>())
}
