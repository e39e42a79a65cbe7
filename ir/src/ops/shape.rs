//! Shapes as data, and tensors under other shapes.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape, Shape},
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BroadcastArgs",
        summary: "Gives the shape that two shapes broadcast to.",
        inputs: &[arg("s0", "T"), arg("s1", "T")],
        outputs: &[arg("r0", "T")],
        attrs: &[ty_or("T", INDEX, DType::I32)],
        infer: broadcast_args,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "BroadcastGradientArgs",
        summary: "Gives, for two shapes, the axes along which gradients are summed when they broadcast.",
        inputs: &[arg("s0", "T"), arg("s1", "T")],
        outputs: &[arg("r0", "T"), arg("r1", "T")],
        attrs: &[ty_or("T", INDEX, DType::I32)],
        infer: broadcast_gradient_args,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "ConcatOffset",
        summary: "Gives where each part begins in the result of joining tensors of these shapes.",
        inputs: &[arg_of("concat_dim", DType::I32), args("shape", "N", "shape_type")],
        outputs: &[args("offset", "N", "shape_type")],
        attrs: &[int("N").at_least(2), ty_or("shape_type", INDEX, DType::I32)],
        infer: concat_offset,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "EnsureShape",
        summary: "Passes a tensor on if it has a given shape.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[shape("shape"), any_ty("T")],
        infer: ensure_shape,
        lowering: Lowering::Alias(AliasKind::Identity),
        gradient: Gradient::Rule(gradient::array::same),
        ..OpDef::PURE
    },
    OpDef {
        name: "ExpandDims",
        summary: "Inserts a dimension of size 1.",
        inputs: &[arg("input", "T"), arg("dim", "Tdim").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tdim", INDEX, DType::I32)],
        infer: expand_dims,
        lowering: Lowering::Alias(AliasKind::Reinterpret),
        gradient: Gradient::Rule(gradient::array::reshape),
        ..OpDef::PURE
    },
    OpDef {
        name: "Rank",
        summary: "Gives the number of dimensions.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::I32)],
        attrs: &[any_ty("T")],
        infer: infer::scalar,
        shape_only: true,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "Reshape",
        summary: "Gives a tensor another shape; one size may be -1 and is computed.",
        inputs: &[arg("tensor", "T"), arg("shape", "Tshape").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tshape", INDEX, DType::I32)],
        infer: reshape,
        lowering: Lowering::Alias(AliasKind::Reinterpret),
        gradient: Gradient::Rule(gradient::array::reshape),
        ..OpDef::PURE
    },
    OpDef {
        name: "Shape",
        summary: "Gives the shape.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "out_type")],
        attrs: &[any_ty("T"), ty_or("out_type", INDEX, DType::I32)],
        infer: shape_vectors,
        shape_only: true,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "ShapeN",
        summary: "Gives the shapes of several tensors.",
        inputs: &[args("input", "N", "T")],
        outputs: &[args("output", "N", "out_type")],
        attrs: &[int("N").at_least(1), any_ty("T"), ty_or("out_type", INDEX, DType::I32)],
        infer: shape_vectors,
        shape_only: true,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Size",
        summary: "Gives the number of elements.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "out_type")],
        attrs: &[any_ty("T"), ty_or("out_type", INDEX, DType::I32)],
        infer: infer::scalar,
        shape_only: true,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
    OpDef {
        name: "Squeeze",
        summary: "Removes dimensions of size 1.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ints_or("squeeze_dims", &[]).at_least(0)],
        infer: squeeze,
        lowering: Lowering::Alias(AliasKind::Reinterpret),
        gradient: Gradient::Rule(gradient::array::reshape),
        ..OpDef::PURE
    },
    OpDef {
        name: "UnravelIndex",
        summary: "Turns positions in the row-major order of a shape into coordinates.",
        inputs: &[arg("indices", "Tidx"), arg("dims", "Tidx")],
        outputs: &[arg("output", "Tidx")],
        attrs: &[ty_or("Tidx", INDEX, DType::I32)],
        infer: unravel_index,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        ..OpDef::PURE
    },
];

fn broadcast_args(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.check_rank(1, 1)?;
    let rank = context.shape(0).dim(0).zip(context.shape(1).dim(0)).map(|(a, b)| a.max(b));
    context.set(0, PartialShape::vector(rank));
    Ok(())
}

fn broadcast_gradient_args(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    context.check_rank(1, 1)?;
    context.set_all(&PartialShape::vector(None));
    Ok(())
}

fn concat_offset(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)?;
    let mut rank = None;
    for index in 1..context.n_inputs() {
        context.check_rank(index, 1)?;
        rank = context.same("ranks", rank, context.shape(index).dim(0))?;
    }
    context.set_all(&PartialShape::vector(rank));
    Ok(())
}

fn ensure_shape(context: &mut OpContext<'_>) -> Result<()> {
    let (expected, found) = (context.attrs.shape("shape")?, context.shape(0));
    match found.merge(expected) {
        Some(shape) => context.set(0, shape),
        None => return Err(context.wrong(0, format!("of shape {expected}"), found)),
    }
    Ok(())
}

fn expand_dims(context: &mut OpContext<'_>) -> Result<()> {
    let (Some(dims), Some(axis)) = (context.shape(0).dims(), context.ints(1)?) else {
        return Ok(());
    };
    let [axis] = axis[..] else {
        return Err(context.wrong(1, "one axis", format!("{axis:?}")));
    };
    let axis = normalize_axis(axis, dims.len() + 1)?;
    let mut expanded: SmallVec<[Dim; 6]> = dims.into();
    expanded.insert(axis, Some(1));
    context.set(0, PartialShape::Ranked(expanded));
    Ok(())
}

pub(super) fn reshape(context: &mut OpContext<'_>) -> Result<()> {
    let target = context.shape_value(1)?;
    let Some(sizes) = context.ints(1)? else {
        // No sizes are those of a scalar, whatever else is known.
        if let (Some(input), Some(shape)) = (context.shape(0).known(), target.known())
            && input.num_elements() != shape.num_elements()
        {
            return Err(context.wrong(
                1,
                "of as many elements as the tensor",
                format!("{shape} for {input}"),
            ));
        }
        context.set(0, target);
        return Ok(());
    };
    let wrong = |expected: &'static str| {
        Err(context.wrong(1, expected, format!("{sizes:?} for {}", context.shape(0))))
    };
    let computed = sizes.iter().filter(|&&size| size == -1).count();
    if computed > 1 {
        return wrong("a shape with at most one -1");
    }
    let Some(input) = context.shape(0).known() else {
        context.set(0, target);
        return Ok(());
    };
    // Sizes of 0 do not count when the size -1 is computed, if both sides have some.
    let both_empty = sizes.contains(&0) && input.contains(&0);
    let n: usize = input.iter().filter(|&&size| size != 0 || !both_empty).product();
    let known: Vec<i64> = sizes.iter().copied().filter(|&size| size != -1 && (size != 0)).collect();
    let Ok(given) = Shape::from_i64(&known) else { return wrong("a shape") };
    let rest = n / given.num_elements();
    let dims = sizes.iter().map(|&size| usize::try_from(size).unwrap_or(rest));
    match Shape::new(dims) {
        Ok(shape) if shape.num_elements() == input.num_elements() => context.set(0, shape),
        _ => return wrong("of as many elements as the tensor"),
    }
    Ok(())
}

fn shape_vectors(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..context.n_outputs() {
        let rank = context.shape(index).rank();
        context.set(index, PartialShape::vector(rank));
    }
    Ok(())
}

fn squeeze(context: &mut OpContext<'_>) -> Result<()> {
    let axes = context.attrs.ints("squeeze_dims")?;
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    let mut removed: SmallVec<[bool; 6]> = SmallVec::from_elem(false, dims.len());
    for &axis in axes {
        let axis = normalize_axis(axis, dims.len())?;
        if dims[axis].is_some_and(|dim| dim != 1) {
            let expected = format!("of size 1 at dimension {axis}");
            return Err(context.wrong(0, expected, context.shape(0)));
        }
        removed[axis] = true;
    }
    if axes.is_empty() {
        if dims.contains(&None) {
            return Ok(());
        }
        dims.iter().zip(&mut removed).for_each(|(dim, removed)| *removed = *dim == Some(1));
    }
    let kept = dims.iter().zip(&removed).filter(|(_, removed)| !**removed).map(|(dim, _)| *dim);
    context.set(0, PartialShape::ranked(kept));
    Ok(())
}

fn unravel_index(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    if context.shape(0).dim(0) == Some(0) {
        return Err(context.wrong(0, "not empty", context.shape(0)));
    }
    let rank = context.shape(1).dim(0);
    match context.shape(0).dims() {
        Some([]) => context.set(0, PartialShape::vector(rank)),
        Some([n]) => context.set(0, PartialShape::ranked([rank, *n])),
        Some(_) => return Err(context.wrong(0, "a scalar or a vector", context.shape(0))),
        None => {}
    }
    Ok(())
}
