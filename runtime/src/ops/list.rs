//! Lists of tensors: making, reading and changing them.
//!
//! Lists are values: an op that changes one gives a new list. The memory is the old one's if nobody
//! else holds it.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    rows::{RowRun, join, row, rows, split, stacked},
    variant::{
        self,
        tensor_list::{TensorList, checked_length},
    },
};
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor, PartialShape, Shape, workspace};
use smallvec::SmallVec;
use std::sync::Arc;

const A_LIST: &str = "a tensor list";

fn list<'a>(call: &'a RuntimeCall<'_>, index: usize) -> Result<&'a TensorList> {
    variant::value(call.host(index)?, A_LIST)
}

/// The list in input 0, whose elements must be of the dtype the op gives.
fn typed_list<'a>(call: &'a RuntimeCall<'_>) -> Result<&'a TensorList> {
    let list = list(call, 0)?;
    list.check_dtype(call.attrs.dtype("element_dtype")?)?;
    Ok(list)
}

/// The list in input 0, changed.
fn changed(
    call: &mut RuntimeCall<'_>,
    change: impl FnOnce(&mut TensorList) -> Result<()>,
) -> Result<Results> {
    let tensor = call.taken(0)?;
    one(variant::change(tensor, A_LIST, change)?)
}

fn int(call: &RuntimeCall<'_>, index: usize) -> Result<i64> {
    Ok(call.host(index)?.as_scalar::<i32>()?.into())
}

/// Largest number of bytes of the elements of a list, those they refer to not counted.
fn limit(call: &RuntimeCall<'_>) -> usize {
    call.context().limits().tensor_bytes
}

/// The shape in input `index`: a vector, or the scalar -1 for one of which nothing is known.
fn shape_input(call: &RuntimeCall<'_>, index: usize) -> Result<PartialShape> {
    let tensor = call.host(index)?;
    let sizes = tensor.to_i64s()?;
    match (tensor.shape().rank(), sizes.as_slice()) {
        (0, [-1]) => Ok(PartialShape::Unknown),
        (1, sizes) => Ok(PartialShape::from_i64(sizes)?),
        _ => {
            let found = format!("{tensor:?}");
            let expected = "a vector of sizes, or -1";
            Err(IrError::argument(call.op.name, "element_shape", expected, found).into())
        }
    }
}

fn wrong(call: &RuntimeCall<'_>, argument: &'static str, expected: &'static str) -> crate::Error {
    IrError::argument(call.op.name, argument, expected, "something else").into()
}

fn empty(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("element_dtype")?, shape_input(call, 0)?);
    let capacity = usize::try_from(int(call, 1)?).ok();
    one(variant::scalar(TensorList { capacity, ..TensorList::new(dtype, shape, Vec::new()) }))
}

fn reserve(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (dtype, shape) = (call.attrs.dtype("element_dtype")?, shape_input(call, 0)?);
    let length = checked_length(int(call, 1)?, limit(call))?;
    one(variant::scalar(TensorList::new(dtype, shape, workspace::filled(None, length)?)))
}

fn length(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(list(call, 0)?.elements.len() as i32))
}

fn element_shape(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let sizes: Option<Vec<i64>> = list(call, 0)?
        .shape
        .dims()
        .map(|dims| dims.iter().map(|dim| dim.map_or(-1, |dim| dim as i64)).collect());
    let wide = call.attrs.dtype("shape_type")? == DType::I64;
    one(match (sizes, wide) {
        (Some(sizes), true) => HostTensor::vector(&sizes)?,
        (Some(sizes), false) => {
            HostTensor::vector(&sizes.iter().map(|&size| size as i32).collect::<Vec<_>>())?
        }
        (None, true) => HostTensor::scalar(-1i64),
        (None, false) => HostTensor::scalar(-1i32),
    })
}

fn set_item(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (index, limit) = (int(call, 1)?, limit(call));
    let grows = call.attrs.bool("resize_if_index_out_of_bounds")?;
    let item = call.taken(2)?;
    changed(call, |list| {
        list.check(&item)?;
        if grows && index >= list.elements.len() as i64 {
            list.resize(index + 1, limit)?;
        }
        list.set(index, item)
    })
}

fn get_item(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (list, expected) = (typed_list(call)?, shape_input(call, 2)?);
    let position = list.position(int(call, 1)?)?;
    one(element(list, list.elements[position].as_ref(), &expected)?)
}

/// An element as a reader sees it.
fn element(
    list: &TensorList,
    element: Option<&HostTensor>,
    expected: &PartialShape,
) -> Result<HostTensor> {
    let Some(element) = element else {
        return Ok(HostTensor::zeros(list.dtype, list.blank_shape(expected)?)?);
    };
    if !expected.is_compatible_with(&element.shape().into()) {
        let expected = format!("of shape {expected}");
        return Err(IrError::argument("tensor list", "element", expected, element.shape()).into());
    }
    Ok(element.clone())
}

fn push_back(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let item = call.taken(1)?;
    changed(call, |list| list.push(item))
}

fn pop_back(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let expected = shape_input(call, 1)?;
    let list = typed_list(call)?;
    let Some(last) = list.elements.last() else {
        return Err(wrong(call, "input_handle", "a list that is not empty"));
    };
    let item = element(list, last.as_ref(), &expected)?;
    let mut results = changed(call, |list| {
        list.elements.pop();
        Ok(())
    })?;
    results.push(item.into());
    Ok(results)
}

fn push_back_batch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (handles, tensor) = (call.host(0)?, call.host(1)?);
    let rank = handles.shape().rank();
    if tensor.shape().get(..rank) != Some(handles.shape().dims()) {
        let expected = format!("of batches of shape {}", handles.shape());
        return Err(IrError::argument(call.op.name, "tensor", expected, tensor.shape()).into());
    }
    let flat = stacked(handles.len(), &tensor.shape()[rank..])?;
    let items = rows(&tensor.reshaped(flat)?)?;
    let lists = handles.handles()?.iter().zip(items).map(|(handle, item)| {
        let mut list = variant::downcast::<TensorList>(handle, A_LIST)?.clone();
        list.push(item)?;
        Ok(Arc::new(list) as Arc<dyn Handle>)
    });
    let lists = lists.collect::<Result<_>>()?;
    one(HostTensor::from_handles(DType::Variant, handles.shape().clone(), lists)?)
}

fn resize(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (length, limit) = (int(call, 1)?, limit(call));
    changed(call, |list| list.resize(length, limit))
}

/// Elements stacked, with zeros for those that were never written.
fn stack_elements(
    call: &RuntimeCall<'_>,
    list: &TensorList,
    elements: &[Option<HostTensor>],
    expected: &PartialShape,
) -> Result<HostTensor> {
    let asked = list.merged(expected)?;
    if elements.is_empty() && !asked.is_known() {
        return Err(wrong(call, "element_shape", "known, as the list is empty"));
    }
    let common = list.common_shape(asked)?;
    let Some(shape) = common.known() else {
        let expected = "known, as no element was written";
        return Err(IrError::argument(call.op.name, "element_shape", expected, common).into());
    };
    let parts: Vec<RowRun<'_>> = elements
        .iter()
        .map(|element| element.as_ref().map_or(RowRun::Blank(shape.num_elements()), RowRun::Tensor))
        .collect();
    join(call.context(), list.dtype, stacked(parts.len(), &shape)?, &parts)
}

fn stack(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (list, expected) = (typed_list(call)?, shape_input(call, 1)?);
    let n = call.attrs.int("num_elements")?;
    if n != -1 && n != list.elements.len() as i64 {
        let expected = format!("the {} elements of the list", list.elements.len());
        return Err(IrError::argument(call.op.name, "num_elements", expected, n).into());
    }
    one(stack_elements(call, list, &list.elements, &expected)?)
}

fn gather(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (list, expected) = (typed_list(call)?, shape_input(call, 2)?);
    let indices = call.host(1)?.to_i64s()?;
    let element = |&index: &i64| Ok(list.elements[list.position(index)?].clone());
    let elements = indices.iter().map(element).collect::<Result<Vec<_>>>()?;
    one(stack_elements(call, list, &elements, &expected)?)
}

fn concat(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (list, shape) = (typed_list(call)?, call.attrs.shape("element_shape")?.clone());
    // As in TensorFlow, where the list says what it asks for nobody looks at its elements.
    if list.shape.is_known() && !rest_of(call, &shape)?.is_known() {
        return Err(wrong(call, "element_shape", "known but for the first size"));
    }
    concatenated(call, shape, &[])
}

fn concat_v2(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (list, leading) = (typed_list(call)?, call.host(2)?.to_i64s()?);
    let expected = list.merged(&shape_input(call, 1)?)?;
    let found = list.elements.iter().flatten().map(|element| element.shape().first().copied());
    if let Some(length) = expected.dim(0)
        && found.into_iter().any(|found| found != Some(length))
    {
        return Err(wrong(call, "elements", "as long as their expected shape says"));
    }
    concatenated(call, expected, &leading)
}

/// The shape of the rows of a tensor of this shape.
fn rest_of(call: &RuntimeCall<'_>, shape: &PartialShape) -> Result<PartialShape> {
    match shape.dims() {
        None => Ok(PartialShape::Unknown),
        Some([_, rest @ ..]) => Ok(PartialShape::ranked(rest.iter().copied())),
        Some([]) => Err(wrong(call, "elements", "of rank 1 or more")),
    }
}

/// The elements joined along their first dimension, and their lengths along it. Elements that were
/// never written are as long as `leading` says, or as the expected shape does.
fn concatenated(
    call: &RuntimeCall<'_>,
    expected: PartialShape,
    leading: &[i64],
) -> Result<Results> {
    let list = typed_list(call)?;
    let mut rest = rest_of(call, &expected)?;
    for element in list.elements.iter().flatten() {
        let found = rest_of(call, &element.shape().into())?;
        rest = rest.merge(&found).ok_or_else(|| {
            let expected = format!("of rows of shape {rest}");
            IrError::argument(call.op.name, "elements", expected, element.shape())
        })?;
    }
    let Some(rest) = rest.known() else {
        return Err(wrong(call, "element_shape", "known but for the first size"));
    };
    let length = |(index, element): (usize, &Option<HostTensor>)| match element {
        Some(element) => Ok(element.shape()[0]),
        None => leading
            .get(index)
            .and_then(|&length| usize::try_from(length).ok())
            .or(expected.dim(0))
            .ok_or_else(|| wrong(call, "leading_dims", "given for elements never written")),
    };
    let lengths = list.elements.iter().enumerate().map(length).collect::<Result<Vec<usize>>>()?;
    let n_rows = lengths.iter().copied().fold(0, usize::saturating_add);
    let parts: Vec<RowRun<'_>> = list
        .elements
        .iter()
        .zip(&lengths)
        .map(|(element, n)| match element {
            Some(element) => RowRun::Tensor(element),
            None => RowRun::Blank(n.saturating_mul(rest.num_elements())),
        })
        .collect();
    let joined = join(call.context(), list.dtype, stacked(n_rows, &rest)?, &parts)?;
    let lengths: Vec<i64> = lengths.into_iter().map(|length| length as i64).collect();
    Ok(SmallVec::from_iter([joined.into(), HostTensor::vector(&lengths)?.into()]))
}

fn concat_lists(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (a, b) = (call.host(0)?, call.host(1)?);
    if a.shape() != b.shape() {
        return Err(
            IrError::argument(call.op.name, "input_b", a.shape().to_string(), b.shape()).into()
        );
    }
    let dtype = call.attrs.dtype("element_dtype")?;
    let joined = a.handles()?.iter().zip(b.handles()?).map(|(a, b)| {
        let a = variant::downcast::<TensorList>(a, A_LIST)?;
        let b = variant::downcast::<TensorList>(b, A_LIST)?;
        a.check_dtype(dtype)?;
        b.check_dtype(dtype)?;
        if a.shape != b.shape {
            let expected = format!("of elements of shape {}", a.shape);
            return Err(IrError::argument(call.op.name, "input_b", expected, &b.shape).into());
        }
        let mut joined = a.clone();
        joined.elements.extend_from_slice(&b.elements);
        Ok(Arc::new(joined) as Arc<dyn Handle>)
    });
    let joined = joined.collect::<Result<_>>()?;
    one(HostTensor::from_handles(DType::Variant, a.shape().clone(), joined)?)
}

fn from_tensor(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (tensor, shape) = (call.host(0)?, shape_input(call, 1)?);
    if tensor.shape().rank() == 0 {
        return Err(wrong(call, "tensor", "of rank 1 or more"));
    }
    let list = of_rows(call, tensor, shape)?;
    one(variant::scalar(list))
}

/// A list of the rows of a tensor.
fn of_rows(call: &RuntimeCall<'_>, tensor: &HostTensor, shape: PartialShape) -> Result<TensorList> {
    let row = PartialShape::from(&Shape::new(tensor.shape()[1..].iter().copied())?);
    if !shape.is_compatible_with(&row) {
        let expected = format!("of rows of shape {shape}");
        return Err(IrError::argument(call.op.name, "tensor", expected, tensor.shape()).into());
    }
    checked_length(tensor.shape()[0] as i64, limit(call))?;
    let elements = rows(tensor)?.into_iter().map(Some).collect();
    Ok(TensorList::new(tensor.dtype(), shape, elements))
}

fn split_tensor(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (tensor, shape) = (call.host(0)?, shape_input(call, 1)?);
    if tensor.shape().rank() == 0 || shape.rank() == Some(0) {
        return Err(wrong(call, "tensor", "of rank 1 or more"));
    }
    let parts = split(tensor, &call.host(2)?.to_i64s()?)?;
    if let Some(part) = parts.iter().find(|part| !shape.is_compatible_with(&part.shape().into())) {
        let expected = format!("of parts of shape {shape}");
        return Err(IrError::argument(call.op.name, "tensor", expected, part.shape()).into());
    }
    let elements = parts.into_iter().map(Some).collect();
    one(variant::scalar(TensorList::new(tensor.dtype(), shape, elements)))
}

fn scatter(call: &mut RuntimeCall<'_>) -> Result<Results> {
    scattered(call, -1)
}

fn scatter_v2(call: &mut RuntimeCall<'_>) -> Result<Results> {
    scattered(call, int(call, 3)?)
}

/// A list of `length` elements with rows where indices name them; for -1 it is as long as needed.
fn scattered(call: &RuntimeCall<'_>, length: i64) -> Result<Results> {
    let (tensor, indices, shape) = (call.host(0)?, call.host(1)?.to_i64s()?, shape_input(call, 2)?);
    let needed = indices.iter().max().map_or(0, |&index| index.saturating_add(1).max(0));
    let length = if length == -1 { needed } else { length };
    let mut list = TensorList::new(tensor.dtype(), shape, Vec::new());
    list.resize(length, limit(call))?;
    write_rows(call, &mut list, tensor, &indices)?;
    one(variant::scalar(list))
}

/// Writes the rows of a tensor to the elements that indices name.
fn write_rows(
    call: &RuntimeCall<'_>,
    list: &mut TensorList,
    tensor: &HostTensor,
    indices: &[i64],
) -> Result<()> {
    if tensor.shape().first() != Some(&indices.len()) {
        let expected = format!("of {} rows", indices.len());
        return Err(IrError::argument(call.op.name, "tensor", expected, tensor.shape()).into());
    }
    indices.iter().enumerate().try_for_each(|(at, &index)| list.set(index, row(tensor, at)?))
}

fn scatter_into(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (tensor, indices) = (call.host(1)?.clone(), call.host(2)?.to_i64s()?);
    let list = call.taken(0)?;
    let (limit, call) = (limit(call), &*call);
    one(variant::change(list, A_LIST, |list: &mut TensorList| {
        let needed = indices.iter().max().map_or(0, |&index| index.saturating_add(1));
        if needed > list.elements.len() as i64 {
            list.resize(needed, limit)?;
        }
        write_rows(call, list, &tensor, &indices)
    })?)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("EmptyTensorList", empty),
    ("TensorListConcat", concat),
    ("TensorListConcatLists", concat_lists),
    ("TensorListConcatV2", concat_v2),
    ("TensorListElementShape", element_shape),
    ("TensorListFromTensor", from_tensor),
    ("TensorListGather", gather),
    ("TensorListGetItem", get_item),
    ("TensorListLength", length),
    ("TensorListPopBack", pop_back),
    ("TensorListPushBack", push_back),
    ("TensorListPushBackBatch", push_back_batch),
    ("TensorListReserve", reserve),
    ("TensorListResize", resize),
    ("TensorListScatter", scatter),
    ("TensorListScatterIntoExistingList", scatter_into),
    ("TensorListScatterV2", scatter_v2),
    ("TensorListSetItem", set_item),
    ("TensorListSplit", split_tensor),
    ("TensorListStack", stack),
];
