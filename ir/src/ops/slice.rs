//! Parts of tensors.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    attr::Attrs,
    dtype::DType,
    error::{Error, Result},
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape, Shape, counted},
    strided_slice::{partial_slice_shape, strided_slice},
    view::StridedView,
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Slice",
        summary: "Takes a window that begins at `begin` and has `size` elements; -1 takes the rest.",
        inputs: &[arg("input", "T"), arg("begin", "Index").host(), arg("size", "Index").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Index", INDEX)],
        infer: slice,
        lowering: Lowering::View(slice_view),
        gradient: Gradient::Rule(gradient::array::slice),
        sharding: Some(ShardingRule::Slice),
        ..OpDef::PURE
    },
    OpDef {
        name: "Split",
        summary: "Takes a tensor apart along an axis into equal parts.",
        inputs: &[arg_of("split_dim", DType::I32).host(), arg("value", "T")],
        outputs: &[args("output", "num_split", "T")],
        attrs: &[int("num_split").at_least(1), any_ty("T")],
        infer: split,
        lowering: Lowering::Composite(|c| {
            let n = c.int("num_split");
            let attrs = Attrs::new().with("num_split", n).with("T", c.dtype(1));
            let sizes = part_sizes(&c.x(1).shape(), &c.ints(0), n);
            c.call("SplitV", attrs.with("Tlen", DType::I64), &[c.x(1), c.vector(&sizes), c.x(0)])
        }),
        gradient: Gradient::Rule(gradient::array::split),
        ..OpDef::PURE
    },
    OpDef {
        name: "SplitV",
        summary: "Takes a tensor apart along an axis into parts of given sizes; one may be -1.",
        inputs: &[
            arg("value", "T"),
            arg("size_splits", "Tlen").host(),
            arg_of("split_dim", DType::I32).host(),
        ],
        outputs: &[args("output", "num_split", "T")],
        attrs: &[
            int("num_split").at_least(1),
            any_ty("T"),
            ty_or("Tlen", &[DType::I8, DType::I32, DType::I64], DType::I64),
        ],
        infer: split_sizes,
        lowering: Lowering::View(split_views),
        gradient: Gradient::Rule(gradient::array::split_v),
        sharding: Some(ShardingRule::Split),
        ..OpDef::PURE
    },
    OpDef {
        name: "StridedSlice",
        summary: "Takes every so many elements of a range, by the rules of NumPy slices.",
        inputs: &[
            arg("input", "T"),
            arg("begin", "Index").host(),
            arg("end", "Index").host(),
            arg("strides", "Index").host(),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            ty("Index", &[DType::I16, DType::I32, DType::I64]),
            int_or("begin_mask", 0),
            int_or("end_mask", 0),
            int_or("ellipsis_mask", 0),
            int_or("new_axis_mask", 0),
            int_or("shrink_axis_mask", 0),
        ],
        infer: infer_strided_slice,
        lowering: Lowering::View(strided_slice_view),
        gradient: Gradient::Rule(gradient::array::strided_slice),
        sharding: Some(ShardingRule::StridedSlice),
        ..OpDef::PURE
    },
    OpDef {
        name: "StridedSliceGrad",
        summary: "Puts a tensor where a strided slice would read it, among zeros.",
        inputs: &[
            arg("shape", "Index").host(),
            arg("begin", "Index").host(),
            arg("end", "Index").host(),
            arg("strides", "Index").host(),
            arg("dy", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            ty("Index", INDEX),
            int_or("begin_mask", 0),
            int_or("end_mask", 0),
            int_or("ellipsis_mask", 0),
            int_or("new_axis_mask", 0),
            int_or("shrink_axis_mask", 0),
        ],
        infer: strided_slice_grad,
        lowering: Lowering::Kernel,
        writes_window: true,
        gradient: Gradient::Rule(gradient::array::strided_slice_grad),
        sharding: Some(ShardingRule::StridedSliceGrad),
        ..OpDef::PURE
    },
    OpDef {
        name: "TensorStridedSliceUpdate",
        summary: "Puts a tensor in the place of a strided slice of another.",
        inputs: &[
            arg("input", "T"),
            arg("begin", "Index").host(),
            arg("end", "Index").host(),
            arg("strides", "Index").host(),
            arg("value", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            any_ty("T"),
            ty("Index", INDEX),
            int_or("begin_mask", 0),
            int_or("end_mask", 0),
            int_or("ellipsis_mask", 0),
            int_or("new_axis_mask", 0),
            int_or("shrink_axis_mask", 0),
        ],
        infer: strided_slice_update,
        lowering: Lowering::Kernel,
        writes_window: true,
        gradient: Gradient::Rule(gradient::array::strided_slice_update),
        ..OpDef::PURE
    },
    OpDef {
        name: "Unpack",
        summary: "Takes a tensor apart along an axis.",
        inputs: &[arg("value", "T")],
        outputs: &[args("output", "num", "T")],
        attrs: &[int("num").at_least(0), any_ty("T"), int_or("axis", 0)],
        infer: unpack,
        lowering: Lowering::View(unpack_view),
        gradient: Gradient::Rule(gradient::array::unpack),
        sharding: Some(ShardingRule::Unpack),
        ..OpDef::PURE
    },
];

fn slice(context: &mut OpContext<'_>) -> Result<()> {
    let rank = context.shape(0).rank();
    for index in 1..3 {
        context.check_rank(index, 1)?;
        context.same("ranks", context.shape(index).dim(0), rank)?;
    }
    let Some(size) = context.ints(2)? else {
        context.set(0, rank.map_or(PartialShape::Unknown, PartialShape::of_rank));
        return Ok(());
    };
    let begin = context.ints(1)?;
    let dims = context.shape(0).dims().unwrap_or(&[]);
    let mut taken: SmallVec<[Dim; 6]> = SmallVec::new();
    for (axis, &size) in size.iter().enumerate() {
        let full = dims.get(axis).copied().flatten();
        let begin = begin.as_ref().and_then(|begin| begin.get(axis).copied());
        taken.push(slice_dim(axis, begin, size, full)?);
    }
    context.set(0, PartialShape::Ranked(taken));
    Ok(())
}

/// The size of one dimension of a slice, of which the begin may not be known.
fn slice_dim(axis: usize, begin: Option<i64>, size: i64, full: Dim) -> Result<Dim> {
    let Some(begin) = begin else { return Ok(usize::try_from(size).ok()) };
    let Ok(start) = usize::try_from(begin) else {
        return Err(outside_slice(axis, begin, size, full));
    };
    Ok(match (size, full) {
        (-1, None) => None,
        (-1, Some(full)) if start <= full => Some(full - start),
        (size, full) => match (usize::try_from(size), full) {
            (Ok(size), None) => Some(size),
            (Ok(size), Some(full)) if start <= full && size <= full - start => Some(size),
            (_, full) => return Err(outside_slice(axis, begin, size, full)),
        },
    })
}

fn outside_slice(axis: usize, begin: i64, size: i64, full: Dim) -> Error {
    Error::Index {
        what: format!("slice [{begin}, {begin} + {size}) of dimension {axis}").into(),
        index: begin,
        low: 0,
        high: full.unwrap_or(0) as i64 + 1,
    }
}

fn slice_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let begin = context.known_ints(1)?;
    let output = context.output(0).known().unwrap_or_default();
    let mut view = StridedView::whole(&context.known(0)?);
    for (axis, (&begin, &size)) in begin.iter().zip(output.iter()).enumerate() {
        view = view.sliced(axis, begin as usize, size, 1);
    }
    Ok(vec![view])
}

fn split(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_outputs();
    context.check_rank_at_least(1, 1)?;
    let (Some(axis), Some(dims)) = (context.int(0)?, context.shape(1).dims()) else {
        return Ok(());
    };
    let axis = normalize_axis(axis, dims.len())?;
    let mut part: SmallVec<[Dim; 6]> = dims.into();
    if let Some(size) = part[axis] {
        if size % n != 0 {
            let expected = format!("divisible by {n} along dimension {axis}");
            return Err(context.wrong(1, expected, context.shape(1)));
        }
        part[axis] = Some(size / n);
    }
    context.set_all(&PartialShape::Ranked(part));
    Ok(())
}

/// The sizes of `n` equal parts along the only axis in `axis`.
fn part_sizes(shape: &Shape, axis: &[i64], n: i64) -> Vec<i64> {
    let axis = axis.first().and_then(|&axis| normalize_axis(axis, shape.rank()).ok());
    let size = axis.map_or(0, |axis| shape[axis] as i64);
    vec![size / n.max(1); counted(n.max(0))]
}

fn split_sizes(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_outputs();
    context.check_rank(1, 1)?;
    context.check_rank_at_least(0, 1)?;
    context.same("`num_split` and number of sizes", context.shape(1).dim(0), Some(n))?;
    let (Some(axis), Some(dims)) = (context.int(2)?, context.shape(0).dims()) else {
        return Ok(());
    };
    let axis = normalize_axis(axis, dims.len())?;
    let sizes = match context.ints(1)? {
        Some(sizes) => resolve_sizes(context, &sizes, dims[axis])?,
        None => vec![None; n],
    };
    for (index, size) in sizes.into_iter().enumerate() {
        let mut part: SmallVec<[Dim; 6]> = dims.into();
        part[axis] = size;
        context.set(index, PartialShape::Ranked(part));
    }
    Ok(())
}

/// Sizes of parts of a whole; the one that is -1 is what the others leave.
fn resolve_sizes(context: &OpContext<'_>, sizes: &[i64], whole: Dim) -> Result<Vec<Dim>> {
    let wrong = |expected: &'static str| Err(context.wrong(1, expected, format!("{sizes:?}")));
    if sizes.iter().any(|&size| size < -1) {
        return wrong("not negative");
    }
    let open = sizes.iter().filter(|&&size| size == -1).count();
    let known = sizes.iter().filter(|&&size| size != -1);
    let known = known.fold(0usize, |sum, &size| sum.saturating_add(counted(size)));
    let rest = match (open, whole) {
        (0, Some(whole)) if known != whole => return wrong("parts of the whole"),
        (1, Some(whole)) if known > whole => return wrong("parts of the whole"),
        (0 | 1, whole) => whole.map(|whole| whole - known),
        _ => return wrong("sizes with at most one -1"),
    };
    Ok(sizes.iter().map(|&size| usize::try_from(size).ok().or(rest)).collect())
}

fn split_views(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let axis = normalize_axis(context.known_ints(2)?[0], shape.rank())?;
    let mut start = 0;
    let views = (0..context.n_outputs()).map(|index| {
        let size = context.output(index).dim(axis as isize).unwrap_or(0);
        let view = StridedView::whole(&shape).sliced(axis, start, size, 1);
        start += size;
        view
    });
    Ok(views.collect())
}

fn infer_strided_slice(context: &mut OpContext<'_>) -> Result<()> {
    for index in 1..4 {
        context.check_rank(index, 1)?;
    }
    let known = (1..4).all(|index| context.value(index).is_some());
    let (true, Some(shape)) = (known, context.shape(0).known()) else {
        let shape = partial_slice_shape(context)?;
        context.set(0, shape);
        return Ok(());
    };
    let (_, sliced) = strided_slice(context, &shape)?;
    context.set(0, sliced);
    Ok(())
}

fn strided_slice_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let (view, _) = strided_slice(context, &context.known(0)?)?;
    Ok(vec![view])
}

fn strided_slice_grad(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.shape_value(0)?;
    let known = (0..4).all(|index| context.value(index).is_some());
    if let (true, Some(shape)) = (known, shape.known()) {
        check_slice_shape(context, &shape, 4)?;
    }
    context.set(0, shape);
    Ok(())
}

fn strided_slice_update(context: &mut OpContext<'_>) -> Result<()> {
    let known = (1..4).all(|index| context.value(index).is_some());
    if let (true, Some(shape)) = (known, context.shape(0).known()) {
        let (_, sliced) = strided_slice(context, &shape)?;
        let (value, sliced) = (context.shape(4), PartialShape::from(&sliced));
        if !value.broadcast(&sliced).is_ok_and(|both| both.is_compatible_with(&sliced)) {
            let expected = format!("of a shape that broadcasts to {sliced}, as the slice");
            return Err(context.wrong(4, expected, value));
        }
    }
    infer::unchanged(context)
}

fn check_slice_shape(context: &OpContext<'_>, shape: &Shape, index: usize) -> Result<()> {
    let (_, sliced) = strided_slice(context, shape)?;
    let found = context.shape(index);
    match found.is_compatible_with(&PartialShape::from(&sliced)) {
        true => Ok(()),
        false => Err(context.wrong(index, format!("of shape {sliced}, as the slice"), found)),
    }
}

fn unpack(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.attrs.size("num")?;
    let Some(dims) = context.shape(0).dims() else { return Ok(()) };
    let axis = normalize_axis(context.attrs.int("axis")?, dims.len())?;
    context.same("`num` and the size of the axis", dims[axis], Some(n))?;
    let mut rest: SmallVec<[Dim; 6]> = dims.into();
    rest.remove(axis);
    context.set_all(&PartialShape::Ranked(rest));
    Ok(())
}

fn unpack_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let axis = normalize_axis(context.attrs.int("axis")?, shape.rank())?;
    let one = |index| StridedView::whole(&shape).sliced(axis, index, 1, 1);
    Ok((0..context.n_outputs()).map(one).collect())
}
