//! Values of dtype variant: lists, maps, optional values, ragged tensors, sparse matrices.

pub(crate) mod csr;
pub(crate) mod optional;
pub(crate) mod ragged;
pub(crate) mod tensor_list;
pub(crate) mod tensor_map;

use crate::error::{Error, Result};
use csr::Csr;
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor};
use optional::Optional;
use ragged::Ragged;
use std::{any::Any, sync::Arc};
use tensor_list::TensorList;
use tensor_map::TensorMap;

/// The value in a scalar tensor of dtype variant.
///
/// # Errors
///
/// [`ferroflow_ir::Error::Argument`] when it is not a `T`, which `expected` names.
pub(crate) fn value<'a, T: Handle>(
    tensor: &'a HostTensor,
    expected: &'static str,
) -> Result<&'a T> {
    match tensor.handles()? {
        [handle] => downcast(handle, expected),
        handles => Err(wrong(expected, format!("{} values", handles.len()))),
    }
}

/// A handle as what it is.
///
/// # Errors
///
/// [`ferroflow_ir::Error::Argument`] when it is not a `T`, which `expected` names.
pub(crate) fn downcast<'a, T: Handle>(
    handle: &'a Arc<dyn Handle>,
    expected: &'static str,
) -> Result<&'a T> {
    handle.as_any().downcast_ref().ok_or_else(|| wrong(expected, format!("{handle:?}")))
}

fn wrong(expected: &'static str, found: String) -> Error {
    IrError::argument("variant", "value", expected, found).into()
}

/// A scalar tensor of a value.
pub(crate) fn scalar(value: impl Handle) -> HostTensor {
    HostTensor::scalar_handle(DType::Variant, Arc::new(value))
}

/// Changes the value in a scalar tensor of dtype variant: in place, unless anyone else holds it.
///
/// # Errors
///
/// When it is not a `T`, and those of `change`.
pub(crate) fn change<T: Handle + Clone>(
    mut tensor: HostTensor,
    expected: &'static str,
    change: impl FnOnce(&mut T) -> Result<()>,
) -> Result<HostTensor> {
    if let Some([handle]) = tensor.handles_mut()
        && let Some(handle) = Arc::get_mut(handle)
        && let Some(value) = (handle as &mut dyn Any).downcast_mut::<T>()
    {
        change(value)?;
        return Ok(tensor);
    }
    let mut value = value::<T>(&tensor, expected)?.clone();
    drop(tensor);
    change(&mut value)?;
    Ok(scalar(value))
}

/// A value of the same variant in which `zero` has replaced every tensor.
///
/// # Errors
///
/// When values of this kind have no zero, and those of `zero`.
pub(crate) fn zeros_like(
    handle: &Arc<dyn Handle>,
    zero: &dyn Fn(&HostTensor) -> Result<HostTensor>,
) -> Result<Arc<dyn Handle>> {
    let any = handle.as_any();
    if let Some(list) = any.downcast_ref::<TensorList>() {
        return Ok(Arc::new(list.map(zero)?));
    }
    if let Some(optional) = any.downcast_ref::<Optional>() {
        return Ok(Arc::new(optional.map(zero)?));
    }
    if let Some(ragged) = any.downcast_ref::<Ragged>() {
        return Ok(Arc::new(ragged.map(zero)?));
    }
    if let Some(map) = any.downcast_ref::<TensorMap>() {
        return Ok(Arc::new(map.map(zero)?));
    }
    if let Some(matrix) = any.downcast_ref::<Csr>() {
        return Ok(Arc::new(matrix.map(zero)?));
    }
    Err(unsupported("zeros", handle))
}

/// The sum of two values of one variant; `sum` adds tensors.
///
/// # Errors
///
/// When values of this kind cannot be added, or the two do not fit each other, and those of `sum`.
pub(crate) fn add(
    a: &Arc<dyn Handle>,
    b: &Arc<dyn Handle>,
    sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
) -> Result<Arc<dyn Handle>> {
    if let Some(list) = a.as_any().downcast_ref::<TensorList>() {
        return Ok(Arc::new(list.add(downcast(b, "a list, as the other")?, sum)?));
    }
    if let Some(optional) = a.as_any().downcast_ref::<Optional>() {
        return Ok(Arc::new(optional.add(downcast(b, "an optional, as the other")?, sum)?));
    }
    if let Some(ragged) = a.as_any().downcast_ref::<Ragged>() {
        return Ok(Arc::new(ragged.add(downcast(b, "a ragged tensor, as the other")?, sum)?));
    }
    if let Some(map) = a.as_any().downcast_ref::<TensorMap>() {
        return Ok(Arc::new(map.add(downcast(b, "a map, as the other")?, sum)?));
    }
    if let Some(matrix) = a.as_any().downcast_ref::<Csr>() {
        return Ok(Arc::new(matrix.add(downcast(b, "a matrix, as the other")?, sum)?));
    }
    Err(unsupported("addition", a))
}

fn unsupported(what: &'static str, handle: &Arc<dyn Handle>) -> Error {
    IrError::Unsupported { op: what.into(), what: format!("{handle:?} has none").into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::PartialShape;

    fn list() -> HostTensor {
        scalar(TensorList::new(DType::F32, PartialShape::Unknown, Vec::new()))
    }

    fn push(tensor: HostTensor) -> HostTensor {
        let item = HostTensor::scalar(1.0f32);
        change(tensor, "a list", |list: &mut TensorList| list.push(item)).unwrap()
    }

    fn length(tensor: &HostTensor) -> usize {
        value::<TensorList>(tensor, "a list").unwrap().elements.len()
    }

    #[test]
    fn unshared_values_change_in_place() {
        let address = |tensor: &HostTensor| Arc::as_ptr(&tensor.handles().unwrap()[0]).cast::<()>();
        let before = list();
        let first = address(&before);
        let after = push(before);
        assert_eq!(address(&after), first);
        let shared = after.clone();
        let longer = push(after);
        assert_ne!(address(&longer), first);
        assert_eq!((length(&shared), length(&longer)), (1, 2));
    }

    #[test]
    fn values_are_what_they_are() {
        assert!(value::<Optional>(&list(), "an optional").is_err());
        assert!(change(list(), "an optional", |_: &mut Optional| Ok(())).is_err());
        let sum = add(
            &list().handles().unwrap()[0],
            &scalar(Optional(None)).handles().unwrap()[0],
            &|a, _| Ok(a.clone()),
        );
        assert!(sum.is_err());
    }
}
