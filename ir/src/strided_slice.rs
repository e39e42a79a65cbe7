//! The rules of NumPy slices, as TensorFlow encodes them: `begin`, `end` and `strides`, and five bit
//! masks that change what their entries mean (`tensorflow/core/util/strided_slice_op.cc`).

mod moving;

use crate::{
    error::{Error, Result},
    infer::OpContext,
    shape::{Dim, PartialShape, Shape},
    view::StridedView,
};
use smallvec::SmallVec;

pub use moving::MovingSlice;

/// The part of a tensor of shape `shape` that a call with `begin`, `end` and `strides` as inputs 1
/// to 3 selects: where it lies, and its shape.
///
/// # Errors
///
/// [`Error::Index`] for an index that is taken away and out of range, [`Error::Argument`] for
/// inputs and masks that contradict each other.
pub fn strided_slice(context: &OpContext<'_>, shape: &Shape) -> Result<(StridedView, Shape)> {
    let dims = slice_dims(context, shape)?;
    let mut view = StridedView::whole(shape);
    for dim in dims.iter().flatten() {
        view = view.sliced(dim.axis, dim.start, dim.size, dim.step);
    }
    let kept = dims.iter().filter_map(|dim| match dim {
        None => Some(1),
        Some(dim) => (!dim.shrink).then_some(dim.size),
    });
    Ok((view, Shape::new(kept)?))
}

/// Slice of a single dimension of the input of a strided slice.
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

fn slice_dims(context: &OpContext<'_>, shape: &Shape) -> Result<SliceDims> {
    let (begin, end, strides) =
        (context.known_ints(1)?, context.known_ints(2)?, context.known_ints(3)?);
    let masks = SliceMasks::of(context)?;
    if end.len() != begin.len() || strides.len() != begin.len() || begin.len() > MAX_ENTRIES {
        let found = format!("{}, {} and {}", begin.len(), end.len(), strides.len());
        return Err(context.wrong(1, "as long as `end` and `strides`, at most 32", found));
    }
    let whole =
        |axis: usize| SliceDim { axis, start: 0, size: shape[axis], step: 1, shrink: false };
    let resolve = |part: SlicePart| match part {
        SlicePart::Whole(axis) => Ok(Some(whole(axis))),
        SlicePart::New => Ok(None),
        SlicePart::Entry { position, axis } => {
            let spec = SliceSpec {
                begin: (!bit(masks.begin, position)).then_some(begin[position]),
                end: (!bit(masks.end, position)).then_some(end[position]),
                stride: strides[position],
                at: begin[position],
                shrink: bit(masks.shrink, position),
            };
            Ok(Some(spec.resolve(context, axis, shape[axis])?))
        }
    };
    masks.parts(context, begin.len(), shape.rank())?.into_iter().map(resolve).collect()
}

/// A dimension of a strided slice, or of its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SliceAxis {
    /// A dimension of the result that the input has not.
    New,
    /// All of a dimension of the input, in order. `position` is that of the entry of `end` that says so.
    Whole {
        /// The dimension of the input.
        axis: usize,
        /// Its size.
        size: usize,
        /// The position of the entry that says so, unless there is none or a mask stands for it.
        position: Option<usize>,
    },
    /// A part of a dimension of the input.
    Part,
    /// A dimension of the input that the result has not.
    Gone,
}

/// The dimensions of a strided slice, in the order of the result.
///
/// # Errors
///
/// As [`strided_slice`].
pub(crate) fn slice_axes(
    context: &OpContext<'_>,
    shape: &Shape,
) -> Result<SmallVec<[SliceAxis; 6]>> {
    let (masks, n_entries) = (SliceMasks::of(context)?, context.known_ints(1)?.len());
    let parts = masks.parts(context, n_entries, shape.rank())?;
    let axis = |(part, dim): (SlicePart, &Option<SliceDim>)| match (part, dim) {
        (SlicePart::New, _) | (_, None) => SliceAxis::New,
        (SlicePart::Whole(axis), _) => SliceAxis::Whole { axis, size: shape[axis], position: None },
        (SlicePart::Entry { .. }, Some(dim)) if dim.shrink => SliceAxis::Gone,
        (SlicePart::Entry { position, axis }, Some(dim)) => {
            let is_whole = dim.start == 0 && dim.size == shape[axis] && dim.step == 1;
            let position = Some(position).filter(|&position| !bit(masks.end, position));
            if is_whole {
                SliceAxis::Whole { axis, size: shape[axis], position }
            } else {
                SliceAxis::Part
            }
        }
    };
    Ok(parts.into_iter().zip(&slice_dims(context, shape)?).map(axis).collect())
}

/// The shape of a strided slice, as far as it is known where some of its inputs are not.
///
/// # Errors
///
/// As [`strided_slice`], where what is known contradicts itself.
pub fn partial_slice_shape(context: &OpContext<'_>) -> Result<PartialShape> {
    let (begin, end, strides) = (context.ints(1)?, context.ints(2)?, context.ints(3)?);
    let n_specs = (1..4).find_map(|input| context.shape(input).dim(0));
    let (Some(n_specs), Some(dims)) = (n_specs, context.shape(0).dims()) else {
        return Ok(PartialShape::Unknown);
    };
    let masks = SliceMasks::of(context)?;
    if n_specs > MAX_ENTRIES {
        return Err(context.wrong(1, "at most 32 long", n_specs));
    }
    let entry = |values: &Option<Vec<i64>>, position: usize| {
        values.as_ref().and_then(|values| values.get(position).copied())
    };
    // The outer option is whether the bound is known, the inner one whether there is one.
    let bound = |mask: u64, values: &Option<Vec<i64>>, position: usize| {
        if bit(mask, position) { Some(None) } else { entry(values, position).map(Some) }
    };
    let mut shape: SmallVec<[Dim; 6]> = SmallVec::new();
    for part in masks.parts(context, n_specs, dims.len())? {
        match part {
            SlicePart::Whole(axis) => shape.push(dims[axis]),
            SlicePart::New => shape.push(Some(1)),
            SlicePart::Entry { position, .. } if bit(masks.shrink, position) => {}
            SlicePart::Entry { position, axis } => {
                let known = (
                    bound(masks.begin, &begin, position),
                    bound(masks.end, &end, position),
                    entry(&strides, position),
                    dims[axis],
                );
                shape.push(match known {
                    (Some(begin), Some(end), Some(stride), Some(size)) => {
                        let spec = SliceSpec { begin, end, stride, at: 0, shrink: false };
                        Some(spec.resolve(context, axis, size)?.size)
                    }
                    _ => None,
                });
            }
        }
    }
    Ok(PartialShape::Ranked(shape))
}

/// The most entries of `begin`.
const MAX_ENTRIES: usize = 32;

fn bit(mask: u64, position: usize) -> bool {
    position < u64::BITS as usize && mask >> position & 1 == 1
}

/// A dimension of the result, or one that is taken away.
enum SlicePart {
    /// All of a dimension of the input.
    Whole(usize),
    /// A new dimension.
    New,
    /// An entry of `begin`, `end` and `strides`, and the dimension of the input that it is about.
    Entry { position: usize, axis: usize },
}

struct SliceMasks {
    begin: u64,
    end: u64,
    ellipsis: u64,
    new_axis: u64,
    shrink: u64,
}

impl SliceMasks {
    fn of(context: &OpContext<'_>) -> Result<SliceMasks> {
        let mask = |name: &str| Ok::<_, Error>(context.attrs.int(name)? as u64);
        Ok(SliceMasks {
            begin: mask("begin_mask")?,
            end: mask("end_mask")?,
            ellipsis: mask("ellipsis_mask")?,
            new_axis: mask("new_axis_mask")?,
            shrink: mask("shrink_axis_mask")?,
        })
    }

    /// Meaning of `n_specs` entries for an input of `rank` dimensions.
    fn parts(
        &self,
        context: &OpContext<'_>,
        n_specs: usize,
        rank: usize,
    ) -> Result<SmallVec<[SlicePart; 6]>> {
        if self.ellipsis.count_ones() > 1 {
            return Err(context.wrong_attr("ellipsis_mask", "at most one bit", self.ellipsis));
        }
        let ellipsis = (0..n_specs).find(|&position| bit(self.ellipsis, position));
        let new_axes = |range: std::ops::Range<usize>| {
            range.filter(|&at| bit(self.new_axis, at) && !bit(self.ellipsis, at)).count()
        };
        let after = ellipsis.map_or(0, |at| n_specs - at - 1 - new_axes(at + 1..n_specs));
        let mut parts = SmallVec::new();
        let mut axis = 0;
        for position in 0..n_specs {
            if bit(self.ellipsis, position) {
                let until = rank.saturating_sub(after);
                parts.extend((axis..until).map(SlicePart::Whole));
                axis = axis.max(until);
            } else if bit(self.new_axis, position) {
                parts.push(SlicePart::New);
            } else {
                if axis >= rank {
                    let found = format!("{n_specs} entries for rank {rank}");
                    return Err(context.wrong(1, "no longer than the rank", found));
                }
                parts.push(SlicePart::Entry { position, axis });
                axis += 1;
            }
        }
        parts.extend((axis..rank).map(SlicePart::Whole));
        Ok(parts)
    }
}

/// An entry of a strided slice; what is masked out is `None`.
struct SliceSpec {
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
    at: i64,
    shrink: bool,
}

impl SliceSpec {
    fn resolve(&self, context: &OpContext<'_>, axis: usize, size: usize) -> Result<SliceDim> {
        let (n, stride) = (size as i64, self.stride);
        if stride == 0 {
            return Err(context.wrong(3, "not 0", "a stride of 0"));
        }
        if self.shrink && !(-n..n).contains(&self.at) {
            let what = format!("slice index of dimension {axis}").into();
            return Err(Error::Index { what, index: self.at, low: -n, high: n });
        }
        let Some((start, size)) = self.range(size) else {
            return Err(context.wrong(3, "positive where a dimension is taken away", stride));
        };
        let step = if size > 1 { stride as isize } else { 1 };
        Ok(SliceDim { axis, start, size, step, shrink: self.shrink })
    }

    /// The first element, and the number of elements, along a dimension of `size`; `None` if there is none to
    /// take the dimension away by, or the stride is wrong.
    fn range(&self, size: usize) -> Option<(usize, usize)> {
        let n = size as i64;
        if self.shrink {
            let at = if self.at < 0 { self.at.saturating_add(n) } else { self.at };
            return ((0..n).contains(&at) && self.stride > 0).then_some((at as usize, 1));
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
        let step = self.stride.unsigned_abs();
        if step == 0 {
            return None;
        }
        let count = if span <= 0 { 0 } else { (span as u64).div_ceil(step) };
        Some((begin.max(0) as usize, count as usize))
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Attrs, DType, HostTensor, PartialShape, Shape, ValueType,
        infer::{InputFacts, infer},
        registry,
    };

    /// The shape of a slice of a tensor of shape `[2, ?, 5]` whose bounds are vectors of `n` numbers; those
    /// that are `None` are not known.
    fn sliced(n: usize, bounds: [Option<&[i32]>; 3], masks: &[(&'static str, i64)]) -> String {
        let op = registry::find("StridedSlice").unwrap();
        let mut attrs = Attrs::new().with("T", DType::F32).with("Index", DType::I32);
        for (mask, value) in masks {
            attrs = attrs.with(*mask, *value);
        }
        let attrs = op.complete_attrs(attrs).unwrap();
        let mut types =
            vec![ValueType::new(DType::F32, PartialShape::ranked([Some(2), None, Some(5)]))];
        types.resize(4, ValueType::new(DType::I32, PartialShape::vector(Some(n))));
        let values = bounds.map(|bound| {
            bound.map(|bound| HostTensor::from_slice(Shape::new([n]).unwrap(), bound).unwrap())
        });
        let facts: Vec<InputFacts<'_>> = types
            .iter()
            .zip(std::iter::once(None).chain(values.iter().map(Option::as_ref)))
            .map(|(ty, value)| InputFacts { ty, value })
            .collect();
        infer(op, &attrs, &facts).unwrap()[0].shape.to_string()
    }

    #[test]
    fn shapes_are_known_as_far_as_bounds_are() {
        let unknown = [None, None, Some(&[1, 1][..])];
        assert_eq!(sliced(2, unknown, &[]), "[?,?,5]");
        assert_eq!(sliced(2, unknown, &[("shrink_axis_mask", 1)]), "[?,5]");
        let first_kept = [("begin_mask", 1), ("end_mask", 1), ("shrink_axis_mask", 2)];
        assert_eq!(sliced(2, unknown, &first_kept), "[2,5]");
        assert_eq!(sliced(2, unknown, &[("new_axis_mask", 1), ("shrink_axis_mask", 2)]), "[1,?,5]");
        assert_eq!(sliced(2, unknown, &[("ellipsis_mask", 1), ("shrink_axis_mask", 2)]), "[2,?]");
        // The bounds are known, and a dimension is not.
        let known = [Some(&[0, 1][..]), Some(&[1, 3][..]), Some(&[1, 1][..])];
        assert_eq!(sliced(2, known, &[]), "[1,?,5]");
        // A whole dimension in steps that are not known.
        let no_stride = [None, None, None];
        assert_eq!(sliced(1, no_stride, &[("begin_mask", 1), ("end_mask", 1)]), "[?,?,5]");
        let every_second = [None, None, Some(&[2][..])];
        assert_eq!(sliced(1, every_second, &[("begin_mask", 1), ("end_mask", 1)]), "[1,?,5]");
    }
}
