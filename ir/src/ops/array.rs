//! Shapes, and moving elements about.

use super::sets::*;
use crate::{
    dtype::DType,
    error::{Error, Result},
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape, Shape},
    view::{StridedView, ViewDim},
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BroadcastTo",
        summary: "Repeats a tensor along dimensions of size 1 so that it has a given shape.",
        inputs: &[arg("input", "T"), arg("shape", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tidx", INDEX, DType::I32)],
        infer: broadcast_to,
        lowering: Lowering::View(broadcast_view),
        ..OpDef::PURE
    },
    OpDef {
        name: "ConcatV2",
        summary: "Joins tensors along an axis.",
        inputs: &[args("values", "N", "T"), arg("axis", "Tidx").host()],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(2), any_ty("T"), ty_or("Tidx", INDEX, DType::I32)],
        infer: concat,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "ExpandDims",
        summary: "Inserts a dimension of size 1.",
        inputs: &[arg("input", "T"), arg("dim", "Tdim").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tdim", INDEX, DType::I32)],
        infer: expand_dims,
        lowering: Lowering::Alias,
        ..OpDef::PURE
    },
    OpDef {
        name: "Fill",
        summary: "Makes a tensor of one value.",
        inputs: &[arg("dims", "index_type").host(), arg("value", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("index_type", INDEX, DType::I32)],
        infer: fill,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "GuaranteeConst",
        summary: "Passes a tensor on; a promise to compilers.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias,
        ..OpDef::PURE
    },
    OpDef {
        name: "Identity",
        summary: "Passes a tensor on.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias,
        ..OpDef::PURE
    },
    OpDef {
        name: "Pack",
        summary: "Stacks tensors of one shape along a new axis.",
        inputs: &[args("values", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[int("N").at_least(1), any_ty("T"), int_or("axis", 0)],
        infer: pack,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "PreventGradient",
        summary: "Passes a tensor on; asking for a gradient through it is an error.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), string_or("message", "")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias,
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
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "Reshape",
        summary: "Gives a tensor another shape; one size may be -1 and is computed.",
        inputs: &[arg("tensor", "T"), arg("shape", "Tshape").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty_or("Tshape", INDEX, DType::I32)],
        infer: reshape,
        lowering: Lowering::Alias,
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
        lowering: Lowering::Kernel,
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
        lowering: Lowering::Kernel,
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
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "Slice",
        summary: "Takes a window that begins at `begin` and has `size` elements; -1 takes the rest.",
        inputs: &[arg("input", "T"), arg("begin", "Index").host(), arg("size", "Index").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Index", INDEX)],
        infer: slice,
        lowering: Lowering::View(slice_view),
        ..OpDef::PURE
    },
    OpDef {
        name: "Snapshot",
        summary: "Passes a tensor on.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias,
        ..OpDef::PURE
    },
    OpDef {
        name: "Squeeze",
        summary: "Removes dimensions of size 1.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ints_or("squeeze_dims", &[]).at_least(0)],
        infer: squeeze,
        lowering: Lowering::Alias,
        ..OpDef::PURE
    },
    OpDef {
        name: "StopGradient",
        summary: "Passes a tensor on; gradients stop here.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T")],
        infer: infer::each_unchanged,
        lowering: Lowering::Alias,
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
        infer: strided_slice,
        lowering: Lowering::View(strided_slice_view),
        ..OpDef::PURE
    },
    OpDef {
        name: "Transpose",
        summary: "Puts the dimensions in another order.",
        inputs: &[arg("x", "T"), arg("perm", "Tperm").host()],
        outputs: &[arg("y", "T")],
        attrs: &[any_ty("T"), ty_or("Tperm", INDEX, DType::I32)],
        infer: transpose,
        lowering: Lowering::View(transpose_view),
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
        ..OpDef::PURE
    },
];

/// The sizes in integer input `index` as a shape in which `-1` is unknown.
fn shape_value(context: &OpContext<'_>, index: usize) -> Result<PartialShape> {
    if context.shape(index).rank().is_some_and(|rank| rank != 1) {
        return Err(context.wrong(index, "a vector", context.shape(index)));
    }
    match context.ints(index)? {
        Some(dims) => PartialShape::from_i64(&dims)
            .map_err(|_| context.wrong(index, "a shape", format!("{dims:?}"))),
        None => Ok(match context.shape(index).dim(0) {
            Some(rank) => PartialShape::of_rank(rank),
            None => PartialShape::Unknown,
        }),
    }
}

fn broadcast_to(context: &mut OpContext<'_>) -> Result<()> {
    let target = shape_value(context, 1)?;
    let input = context.shape(0);
    let fits = input.broadcast(&target)?;
    if fits.rank() != target.rank() || !fits.is_compatible_with(&target) {
        return Err(context.wrong(0, format!("broadcastable to {target}"), input));
    }
    context.set(0, target);
    Ok(())
}

fn broadcast_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let input = context.known(0)?;
    let output = context.output(0).known().unwrap_or_default();
    let (strides, missing) = (input.strides(), output.rank() - input.rank());
    let dims = output.iter().enumerate().map(|(axis, &size)| {
        let own = axis.checked_sub(missing).filter(|&axis| input[axis] != 1);
        ViewDim { size, stride: own.map_or(0, |axis| strides[axis] as isize) }
    });
    Ok(vec![StridedView { offset: 0, dims: dims.collect() }])
}

fn concat(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs() - 1;
    let axis = context.int(n)?;
    let shape = concatenated(context, 0..n, axis)?;
    context.set(0, shape);
    Ok(())
}

/// The shape of tensors joined along an axis: everything but that axis must agree.
pub(super) fn concatenated(
    context: &OpContext<'_>,
    inputs: std::ops::Range<usize>,
    axis: Option<i64>,
) -> Result<PartialShape> {
    let known = inputs.clone().find(|&index| context.shape(index).rank().is_some());
    let Some(first) = known else { return Ok(PartialShape::Unknown) };
    let rank = context.shape(first).rank().unwrap_or(0);
    for index in inputs.clone() {
        context.check_rank(index, rank)?;
    }
    if rank == 0 {
        return Err(context.wrong(first, "of rank 1 or more", context.shape(first)));
    }
    let Some(axis) = axis else { return Ok(PartialShape::of_rank(rank)) };
    let axis = normalize_axis(axis, rank)?;
    let mut joined: SmallVec<[Dim; 6]> = SmallVec::from_elem(None, rank);
    joined[axis] = Some(0);
    for index in inputs {
        let Some(dims) = context.shape(index).dims() else {
            joined[axis] = None;
            continue;
        };
        for (position, &dim) in dims.iter().enumerate() {
            joined[position] = match position == axis {
                true => joined[axis].zip(dim).map(|(sum, dim)| sum + dim),
                false => context.same("sizes of all inputs", joined[position], dim)?,
            };
        }
    }
    Ok(PartialShape::Ranked(joined))
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

fn fill(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 0)?;
    let dims = shape_value(context, 0)?;
    if let Some(known) = context.ints(0)? {
        Shape::from_i64(&known).map_err(|_| context.wrong(0, "a shape", format!("{known:?}")))?;
    }
    context.set(0, dims);
    Ok(())
}

fn pack(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs();
    infer::all_same(context)?;
    let shape = context.output(0).clone();
    if let Some(dims) = shape.dims() {
        let axis = normalize_axis(context.attrs.int("axis")?, dims.len() + 1)?;
        let mut packed: SmallVec<[Dim; 6]> = dims.into();
        packed.insert(axis, Some(n));
        context.set(0, PartialShape::Ranked(packed));
    }
    Ok(())
}

fn reshape(context: &mut OpContext<'_>) -> Result<()> {
    let target = shape_value(context, 1)?;
    let Some(sizes) = context.ints(1)? else {
        context.set(0, target);
        return Ok(());
    };
    let wrong = |context: &OpContext<'_>, expected: &'static str| {
        Err(context.wrong(1, expected, format!("{sizes:?} for {}", context.shape(0))))
    };
    let computed = sizes.iter().filter(|&&size| size == -1).count();
    if computed > 1 {
        return wrong(context, "a shape with at most one -1");
    }
    let given: Vec<i64> = sizes.iter().copied().filter(|&size| size != -1).collect();
    let Ok(given) = Shape::from_i64(&given) else { return wrong(context, "a shape") };
    let given = given.num_elements();
    let Some(n) = context.shape(0).known().map(|shape| shape.num_elements()) else {
        context.set(0, target);
        return Ok(());
    };
    let fits = if computed == 0 { given == n } else { given > 0 && n % given == 0 };
    if !fits && !(computed == 1 && n == 0 && given > 0) {
        return wrong(context, "of as many elements as the tensor");
    }
    let dims = sizes.iter().map(|&size| match size {
        -1 => Some(n / given.max(1)),
        size => Some(size as usize),
    });
    context.set(0, PartialShape::ranked(dims));
    Ok(())
}

/// Result `n` is a vector with the shape of input `n`.
fn shape_vectors(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..context.n_outputs() {
        let rank = context.shape(index).rank();
        context.set(index, PartialShape::vector(rank));
    }
    Ok(())
}

fn slice(context: &mut OpContext<'_>) -> Result<()> {
    let rank = context.shape(0).rank();
    for index in 1..3 {
        context.check_rank(index, 1)?;
        context.same("ranks", context.shape(index).dim(0), rank)?;
    }
    let (Some(begin), Some(size)) = (context.ints(1)?, context.ints(2)?) else {
        context.set(0, rank.map_or(PartialShape::Unknown, PartialShape::of_rank));
        return Ok(());
    };
    let dims = context.shape(0).dims().unwrap_or(&[]);
    let mut taken: SmallVec<[Dim; 6]> = SmallVec::new();
    for (axis, (&begin, &size)) in begin.iter().zip(&size).enumerate() {
        let full = dims.get(axis).copied().flatten();
        let outside = |limit: usize| Error::Index {
            what: format!("slice [{begin}, {begin} + {size}) of dimension {axis}").into(),
            index: begin,
            low: 0,
            high: limit as i64 + 1,
        };
        let Ok(start) = usize::try_from(begin) else { return Err(outside(full.unwrap_or(0))) };
        taken.push(match (size, full) {
            (-1, None) => None,
            (-1, Some(full)) if start <= full => Some(full - start),
            (size, full) => match (usize::try_from(size), full) {
                (Ok(size), None) => Some(size),
                (Ok(size), Some(full)) if start <= full && size <= full - start => Some(size),
                (_, full) => return Err(outside(full.unwrap_or(0))),
            },
        });
    }
    context.set(0, PartialShape::Ranked(taken));
    Ok(())
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

/// What a strided slice does with one dimension of its input.
struct SliceDim {
    axis: usize,
    start: usize,
    size: usize,
    step: isize,
    /// Whether the dimension is gone from the result.
    shrink: bool,
}

/// A strided slice, dimension by dimension of its result; `None` is a new dimension.
type SliceDims = SmallVec<[Option<SliceDim>; 6]>;

/// Reads a strided slice of an input of known shape.
pub(super) fn strided_slice_dims(context: &OpContext<'_>, shape: &Shape) -> Result<SliceDims> {
    let mask = |name: &str| Ok::<_, Error>(context.attrs.int(name)? as u64);
    let (begin, end, strides) =
        (context.known_ints(1)?, context.known_ints(2)?, context.known_ints(3)?);
    let masks = SliceMasks {
        begin: mask("begin_mask")?,
        end: mask("end_mask")?,
        ellipsis: mask("ellipsis_mask")?,
        new_axis: mask("new_axis_mask")?,
        shrink: mask("shrink_axis_mask")?,
    };
    if end.len() != begin.len() || strides.len() != begin.len() || begin.len() > 32 {
        let found = format!("{}, {} and {}", begin.len(), end.len(), strides.len());
        return Err(context.wrong(1, "as long as `end` and `strides`, at most 32", found));
    }
    if masks.ellipsis.count_ones() > 1 {
        return Err(context.wrong_attr("ellipsis_mask", "at most one bit", masks.ellipsis));
    }
    let bit = |mask: u64, position: usize| mask >> position & 1 == 1;
    let n_specs = begin.len();
    let ellipsis = (0..n_specs).find(|&position| bit(masks.ellipsis, position));
    let new_axes = |range: std::ops::Range<usize>| {
        range.filter(|&at| bit(masks.new_axis, at) && !bit(masks.ellipsis, at)).count()
    };
    let after = ellipsis.map_or(0, |at| n_specs - at - 1 - new_axes(at + 1..n_specs));
    let mut dims = SliceDims::new();
    let mut axis = 0;
    let whole =
        |axis: usize| Some(SliceDim { axis, start: 0, size: shape[axis], step: 1, shrink: false });
    for position in 0..n_specs {
        if bit(masks.ellipsis, position) {
            let until = shape.rank().saturating_sub(after);
            dims.extend((axis..until).map(whole));
            axis = axis.max(until);
        } else if bit(masks.new_axis, position) {
            dims.push(None);
        } else {
            if axis >= shape.rank() {
                let found = format!("{n_specs} entries for {shape}");
                return Err(context.wrong(1, "no longer than the rank", found));
            }
            let spec = SliceSpec {
                begin: (!bit(masks.begin, position)).then_some(begin[position]),
                end: (!bit(masks.end, position)).then_some(end[position]),
                stride: strides[position],
                at: begin[position],
                shrink: bit(masks.shrink, position),
            };
            dims.push(Some(spec.resolve(context, axis, shape[axis])?));
            axis += 1;
        }
    }
    dims.extend((axis..shape.rank()).map(whole));
    Ok(dims)
}

struct SliceMasks {
    begin: u64,
    end: u64,
    ellipsis: u64,
    new_axis: u64,
    shrink: u64,
}

/// One entry of a strided slice; what is masked out is `None`.
struct SliceSpec {
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
    at: i64,
    shrink: bool,
}

impl SliceSpec {
    fn resolve(&self, context: &OpContext<'_>, axis: usize, size: usize) -> Result<SliceDim> {
        let n = size as i64;
        if self.stride == 0 {
            return Err(context.wrong(3, "not 0", "a stride of 0"));
        }
        if self.shrink {
            let at = if self.at < 0 { self.at + n } else { self.at };
            if !(0..n).contains(&at) {
                let what = format!("slice index of dimension {axis}").into();
                return Err(Error::Index { what, index: self.at, low: -n, high: n });
            }
            if self.stride < 0 {
                return Err(context.wrong(
                    3,
                    "positive where a dimension is taken away",
                    self.stride,
                ));
            }
            return Ok(SliceDim { axis, start: at as usize, size: 1, step: 1, shrink: true });
        }
        let forward = self.stride > 0;
        let (low, high) = if forward { (0, n) } else { (-1, n - 1) };
        let clamp = |value: i64| {
            let value = if value < 0 { value.saturating_add(n) } else { value };
            value.clamp(low, high)
        };
        let begin = self.begin.map_or(if forward { low } else { high }, clamp);
        let end = self.end.map_or(if forward { high } else { low }, clamp);
        let span = if forward { end - begin } else { begin - end };
        let count = if span <= 0 { 0 } else { (span as u64).div_ceil(self.stride.unsigned_abs()) };
        Ok(SliceDim {
            axis,
            start: begin.max(0) as usize,
            size: count as usize,
            step: self.stride as isize,
            shrink: false,
        })
    }
}

fn strided_slice(context: &mut OpContext<'_>) -> Result<()> {
    for index in 1..4 {
        context.check_rank(index, 1)?;
    }
    let known = (1..4).all(|index| context.value(index).is_some());
    let (true, Some(shape)) = (known, context.shape(0).known()) else { return Ok(()) };
    let dims = strided_slice_dims(context, &shape)?;
    let kept = dims.iter().filter_map(|dim| match dim {
        None => Some(Some(1)),
        Some(dim) => (!dim.shrink).then_some(Some(dim.size)),
    });
    context.set(0, PartialShape::ranked(kept));
    Ok(())
}

fn strided_slice_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let shape = context.known(0)?;
    let mut view = StridedView::whole(&shape);
    for dim in strided_slice_dims(context, &shape)?.iter().flatten() {
        view = view.sliced(dim.axis, dim.start, dim.size, dim.step);
    }
    Ok(vec![view])
}

fn transpose(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let rank = context.shape(0).rank().or(context.shape(1).dim(0));
    let Some(rank) = rank else { return Ok(()) };
    context.check_rank(0, rank)?;
    context.same("length of `perm` and rank", context.shape(1).dim(0), Some(rank))?;
    let dims = context.shape(0).dims();
    let shape = match context.ints(1)? {
        None => PartialShape::of_rank(rank),
        Some(permutation) => {
            let axes = permutation_axes(context, &permutation)?;
            PartialShape::ranked(axes.iter().map(|&axis| dims.and_then(|dims| dims[axis])))
        }
    };
    context.set(0, shape);
    Ok(())
}

fn permutation_axes(context: &OpContext<'_>, permutation: &[i64]) -> Result<SmallVec<[usize; 6]>> {
    let rank = permutation.len();
    let axes: Result<SmallVec<[usize; 6]>> =
        permutation.iter().map(|&axis| normalize_axis(axis, rank)).collect();
    let axes = axes?;
    let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, rank);
    axes.iter().for_each(|&axis| seen[axis] = true);
    if seen.contains(&false) {
        return Err(context.wrong(1, "a permutation", format!("{permutation:?}")));
    }
    Ok(axes)
}

fn transpose_view(context: &OpContext<'_>) -> Result<Vec<StridedView>> {
    let axes = permutation_axes(context, &context.known_ints(1)?)?;
    Ok(vec![StridedView::whole(&context.known(0)?).transposed(&axes)])
}

fn unpack(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.attrs.int("num")? as usize;
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
