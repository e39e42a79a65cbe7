//! Lists of tensors: values of dtype variant.
//!
//! What is known of a list's elements travels as the pointee of its handle: a shape that every
//! element has.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
    spec::{ListItems, TensorSpec},
};

/// An op on a list that returns a list.
const UPDATE: OpDef = OpDef {
    outputs: &[arg_of("output_handle", DType::Variant)],
    attrs: &[any_ty("element_dtype")],
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

/// An op that makes a list.
const CREATION: OpDef = OpDef {
    outputs: &[arg_of("output_handle", DType::Variant)],
    attrs: &[any_ty("element_dtype"), ty("shape_type", INDEX)],
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "EmptyTensorList",
        summary: "Makes a list without elements.",
        inputs: &[
            arg("element_shape", "shape_type").host(),
            arg_of("max_num_elements", DType::I32),
        ],
        outputs: &[arg_of("handle", DType::Variant)],
        infer: |context| {
            created(context, 0)?;
            context.set_items(0, Some(ListItems { length: Some(0), written: None }));
            Ok(())
        },
        ..CREATION
    },
    OpDef {
        name: "TensorListConcat",
        summary: "Joins the elements of a list along their first dimension.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg("tensor", "element_dtype"), arg_of("lengths", DType::I64)],
        attrs: &[any_ty("element_dtype"), shape("element_shape").or(AttrDefault::UnknownShape)],
        infer: |context| {
            let shape = context.attrs.shape("element_shape")?.clone();
            concatenated(context, shape)
        },
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::list::concat),
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorListConcatLists",
        summary: "Joins lists: the elements of the first, then those of the second.",
        inputs: &[arg_of("input_a", DType::Variant), arg_of("input_b", DType::Variant)],
        outputs: &[arg_of("output", DType::Variant)],
        infer: concat_lists,
        gradient: Gradient::Rule(gradient::list::concat_lists),
        ..UPDATE
    },
    OpDef {
        name: "TensorListConcatV2",
        summary: "Joins the elements of a list along their first dimension.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg("element_shape", "shape_type").host(),
            arg_of("leading_dims", DType::I64),
        ],
        outputs: &[arg("tensor", "element_dtype"), arg_of("lengths", DType::I64)],
        attrs: &[any_ty("element_dtype"), ty("shape_type", INDEX)],
        infer: |context| {
            let shape = shape_input(context, 1)?;
            concatenated(context, shape)
        },
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::list::concat),
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorListElementShape",
        summary: "Gives the shape that a list asks of its elements, -1 where it does not matter.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg("element_shape", "shape_type")],
        attrs: &[ty("shape_type", INDEX)],
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorListFromTensor",
        summary: "Makes a list of the rows of a tensor.",
        inputs: &[arg("tensor", "element_dtype"), arg("element_shape", "shape_type").host()],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            created(context, 1)?;
            narrow(context, 0)?;
            let (length, written) = (context.shape(0).dim(0), Some(row(context.shape(0))));
            context.set_items(0, Some(ListItems { length, written }));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::from_tensor),
        ..CREATION
    },
    OpDef {
        name: "TensorListGather",
        summary: "Stacks the elements of a list that indices name.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg_of("indices", DType::I32),
            arg_of("element_shape", DType::I32).host(),
        ],
        outputs: &[arg("values", "element_dtype")],
        infer: |context| {
            context.check_rank(1, 1)?;
            let n = context.shape(1).dim(0);
            let element = element(context, 2)?;
            context.set(0, stacked(n, &element));
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::gather),
        ..UPDATE
    },
    OpDef {
        name: "TensorListGetItem",
        summary: "Reads an element of a list; zeros where nothing was written.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg_of("index", DType::I32),
            arg("element_shape", "Tshape").host(),
        ],
        outputs: &[arg("item", "element_dtype")],
        attrs: &[any_ty("element_dtype"), ty_or("Tshape", INDEX, DType::I32)],
        infer: |context| {
            let element = element(context, 2)?;
            context.set(0, element);
            Ok(())
        },
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::list::get_item),
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorListLength",
        summary: "Gives the number of elements of a list.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg_of("length", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorListPopBack",
        summary: "Takes the last element off a list.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg_of("element_shape", DType::I32).host(),
        ],
        outputs: &[arg_of("output_handle", DType::Variant), arg("tensor", "element_dtype")],
        infer: |context| {
            same_list(context)?;
            resized(context, None);
            let element = element(context, 1)?;
            context.set(1, element);
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::pop_back),
        ..UPDATE
    },
    OpDef {
        name: "TensorListPushBack",
        summary: "Appends an element to a list.",
        inputs: &[arg_of("input_handle", DType::Variant), arg("tensor", "element_dtype")],
        infer: |context| {
            same_list(context)?;
            resized(context, None);
            let item = context.shape(1).clone();
            widen(context, &item);
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::push_back),
        ..UPDATE
    },
    OpDef {
        name: "TensorListPushBackBatch",
        summary: "Appends the rows of a tensor to the lists of a batch, one each.",
        inputs: &[arg_of("input_handles", DType::Variant), arg("tensor", "element_dtype")],
        outputs: &[arg_of("output_handles", DType::Variant)],
        infer: |context| {
            context.set(0, context.shape(0).clone());
            Ok(())
        },
        ..UPDATE
    },
    OpDef {
        name: "TensorListReserve",
        summary: "Makes a list of elements that are still to be written.",
        inputs: &[
            arg("element_shape", "shape_type").host(),
            arg_of("num_elements", DType::I32).host(),
        ],
        outputs: &[arg_of("handle", DType::Variant)],
        infer: |context| {
            created(context, 0)?;
            let length = length(context, 1)?;
            context.set_items(0, Some(ListItems { length, written: None }));
            Ok(())
        },
        ..CREATION
    },
    OpDef {
        name: "TensorListResize",
        summary: "Cuts a list off, or appends elements that are still to be written.",
        inputs: &[arg_of("input_handle", DType::Variant), arg_of("size", DType::I32).host()],
        attrs: &[],
        infer: |context| {
            same_list(context)?;
            let length = length(context, 1)?;
            resized(context, length);
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::resize),
        ..UPDATE
    },
    OpDef {
        name: "TensorListScatter",
        summary: "Makes a list in which rows of a tensor are at the places that indices name.",
        inputs: &[
            arg("tensor", "element_dtype"),
            arg_of("indices", DType::I32),
            arg("element_shape", "shape_type").host(),
        ],
        infer: |context| created(context, 2),
        gradient: Gradient::Rule(gradient::list::scatter),
        ..CREATION
    },
    OpDef {
        name: "TensorListScatterIntoExistingList",
        summary: "Writes rows of a tensor to the places in a list that indices name.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg("tensor", "element_dtype"),
            arg_of("indices", DType::I32),
        ],
        infer: |context| {
            same_list(context)?;
            resized(context, None);
            let row = row(context.shape(1));
            widen(context, &row);
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::scatter_into),
        ..UPDATE
    },
    OpDef {
        name: "TensorListScatterV2",
        summary: "Makes a list in which rows of a tensor are at the places that indices name.",
        inputs: &[
            arg("tensor", "element_dtype"),
            arg_of("indices", DType::I32),
            arg("element_shape", "shape_type").host(),
            arg_of("num_elements", DType::I32),
        ],
        infer: |context| created(context, 2),
        gradient: Gradient::Rule(gradient::list::scatter),
        ..CREATION
    },
    OpDef {
        name: "TensorListSetItem",
        summary: "Writes an element of a list.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg_of("index", DType::I32),
            arg("item", "element_dtype"),
        ],
        attrs: &[any_ty("element_dtype"), flag("resize_if_index_out_of_bounds", false)],
        infer: |context| {
            same_list(context)?;
            if context.attrs.bool("resize_if_index_out_of_bounds")? {
                resized(context, None);
            }
            let item = context.shape(2).clone();
            widen(context, &item);
            Ok(())
        },
        gradient: Gradient::Rule(gradient::list::set_item),
        ..UPDATE
    },
    OpDef {
        name: "TensorListSplit",
        summary: "Makes a list of consecutive parts of a tensor.",
        inputs: &[
            arg("tensor", "element_dtype"),
            arg("element_shape", "shape_type").host(),
            arg_of("lengths", DType::I64),
        ],
        infer: |context| created(context, 1),
        gradient: Gradient::Rule(gradient::list::split),
        ..CREATION
    },
    OpDef {
        name: "TensorListStack",
        summary: "Stacks the elements of a list; zeros where nothing was written.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg_of("element_shape", DType::I32).host(),
        ],
        outputs: &[arg("tensor", "element_dtype")],
        attrs: &[any_ty("element_dtype"), int_or("num_elements", -1)],
        infer: |context| {
            let asked = element(context, 1)?;
            let items = context.input(0).ty.items.as_deref();
            let n = usize::try_from(context.attrs.int("num_elements")?).ok();
            let n = n.or_else(|| items?.length);
            // All elements are as those that were written.
            let written = items.and_then(|items| items.written.as_ref());
            let element = written.and_then(|written| asked.merge(written)).unwrap_or(asked);
            context.set(0, stacked(n, &element));
            Ok(())
        },
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::list::stack),
        ..OpDef::PURE
    },
];

/// The shape in input `index`: a vector, or the scalar -1 for one of which nothing is known.
fn shape_input(context: &OpContext<'_>, index: usize) -> Result<PartialShape> {
    if context.shape(index).rank() != Some(0) {
        return context.shape_value(index);
    }
    match context.int(index)? {
        Some(-1) | None => Ok(PartialShape::Unknown),
        Some(found) => Err(context.wrong(index, "a vector of sizes, or -1", found)),
    }
}

/// The number of elements that input `index` says, where that is known.
fn length(context: &OpContext<'_>, index: usize) -> Result<Dim> {
    let known = if context.shape(index).rank() == Some(0) { context.int(index)? } else { None };
    Ok(known.and_then(|length| usize::try_from(length).ok()))
}

/// The list in output 0 has another number of elements than that in input 0.
fn resized(context: &mut OpContext<'_>, length: Dim) {
    let items = context.outputs()[0].items.as_deref().cloned();
    context.set_items(0, items.map(|items| ListItems { length, ..items }));
}

/// Shape of the elements of the list in input 0, as far as it is known.
fn elements(context: &OpContext<'_>) -> PartialShape {
    let pointee = context.input(0).ty.pointee.as_ref();
    pointee.map_or(PartialShape::Unknown, |pointee| pointee.shape.clone())
}

/// Shape of the elements of the list in input 0, which the caller expects to be of the shape in
/// input `index`.
fn element(context: &OpContext<'_>, index: usize) -> Result<PartialShape> {
    let (known, expected) = (elements(context), shape_input(context, index)?);
    known
        .merge(&expected)
        .ok_or_else(|| context.wrong(index, format!("compatible with {known}"), expected))
}

/// A new list of elements of the shape in input `index`.
fn created(context: &mut OpContext<'_>, index: usize) -> Result<()> {
    let shape = shape_input(context, index)?;
    let dtype = context.attrs.dtype("element_dtype")?;
    context.set(0, PartialShape::scalar());
    context.set_pointee(0, TensorSpec::new(dtype, shape));
    Ok(())
}

/// The elements of the list just created are rows of input `index`.
fn narrow(context: &mut OpContext<'_>, index: usize) -> Result<()> {
    let (row, dtype) = (row(context.shape(index)), context.attrs.dtype("element_dtype")?);
    let asked = context.outputs()[0].pointee.as_ref().map(|pointee| pointee.shape.clone());
    let asked = asked.unwrap_or_default();
    let shape = asked
        .merge(&row)
        .ok_or_else(|| context.wrong(index, format!("of rows of shape {asked}"), row))?;
    context.set_pointee(0, TensorSpec::new(dtype, shape));
    Ok(())
}

/// The list in input 0 with elements of the same kind.
fn same_list(context: &mut OpContext<'_>) -> Result<()> {
    context.set(0, PartialShape::scalar());
    let ty = context.input(0).ty;
    if let Some(pointee) = ty.pointee.clone() {
        context.set_pointee(0, *pointee);
    }
    context.set_items(0, ty.items.as_deref().cloned());
    Ok(())
}

/// An element of this shape has joined the list in output 0.
fn widen(context: &mut OpContext<'_>, item: &PartialShape) {
    let written = |items: &ListItems| {
        let written = items.written.as_ref().map_or_else(|| item.clone(), |it| it.generalize(item));
        ListItems { written: Some(written), ..items.clone() }
    };
    let items = context.outputs()[0].items.as_deref().map(written);
    context.set_items(0, items);
    if let Some(pointee) = &context.outputs()[0].pointee {
        let spec = TensorSpec::new(pointee.dtype, pointee.shape.generalize(item));
        context.set_pointee(0, spec);
    }
}

fn concat_lists(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.merged(0, 1)?;
    if shape.rank() == Some(0)
        && let (Some(a), Some(b)) = (&context.input(0).ty.pointee, &context.input(1).ty.pointee)
    {
        let spec = TensorSpec::new(a.dtype, a.shape.generalize(&b.shape));
        context.set_pointee(0, spec);
    }
    context.set(0, shape);
    Ok(())
}

fn concatenated(context: &mut OpContext<'_>, expected: PartialShape) -> Result<()> {
    if expected.rank() == Some(0) {
        return Err(context.wrong(0, "a list of tensors of rank 1 or more", expected));
    }
    let (known, expected) = (row(&elements(context)), row(&expected));
    let rest = known
        .merge(&expected)
        .ok_or_else(|| context.wrong(0, format!("of rows of shape {expected}"), &known))?;
    context.set(0, stacked(None, &rest));
    context.set(1, PartialShape::vector(None));
    Ok(())
}

/// The shape of the rows of a tensor of this shape.
fn row(shape: &PartialShape) -> PartialShape {
    match shape.dims() {
        Some([_, rest @ ..]) => PartialShape::ranked(rest.iter().copied()),
        Some([]) | None => PartialShape::Unknown,
    }
}

fn stacked(n: Dim, element: &PartialShape) -> PartialShape {
    match element.dims() {
        Some(dims) => PartialShape::ranked([n].into_iter().chain(dims.iter().copied())),
        None => PartialShape::Unknown,
    }
}
