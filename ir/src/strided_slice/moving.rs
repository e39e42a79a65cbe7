//! Slices of one size that begin elsewhere from call to call: a row that a loop counter tells.

use super::{MAX_ENTRIES, SliceMasks, SlicePart, SliceSpec, bit};
use crate::{infer::OpContext, shape::Shape, view::StridedView};
use smallvec::SmallVec;

/// A slice of known size of tensors of one shape, whose begin and end come with each call.
#[derive(Debug, Clone)]
pub struct MovingSlice {
    entries: SmallVec<[MovingEntry; 6]>,
    /// The slice that begins with the first element.
    view: StridedView,
}

/// An entry of the vectors that tell where a slice is.
#[derive(Debug, Clone)]
struct MovingEntry {
    position: usize,
    /// The size of the dimension, and the distance of its elements.
    size: usize,
    distance: isize,
    /// The number of elements that the slice has along it.
    taken: usize,
    rule: EntryRule,
}

#[derive(Debug, Clone)]
enum EntryRule {
    /// `begin` is the first element.
    Inside,
    /// As strided slices have it.
    Strided { stride: i64, begin_masked: bool, end_masked: bool, shrink: bool },
}

impl MovingSlice {
    /// A call of `Slice` on a tensor of a shape, whose result has shape `sliced`.
    pub fn of_slice(shape: &Shape, sliced: &Shape) -> Option<MovingSlice> {
        let mut slice = MovingSlice::whole(shape);
        for (axis, (&size, &taken)) in shape.iter().zip(sliced.iter()).enumerate() {
            slice.push(axis, (axis, size), (taken, 1), EntryRule::Inside);
        }
        (shape.rank() == sliced.rank()).then(|| slice.simplified())
    }

    /// A strided slice of a tensor of a shape, `context` being that of the call, whose result has shape `sliced`;
    /// `None` where the strides are not known, or do not fit.
    pub fn of_strided_slice(
        context: &OpContext<'_>,
        shape: &Shape,
        sliced: &Shape,
    ) -> Option<MovingSlice> {
        let strides = context.ints(3).ok()??;
        if strides.len() > MAX_ENTRIES {
            return None;
        }
        let masks = SliceMasks::of(context).ok()?;
        let parts = masks.parts(context, strides.len(), shape.rank()).ok()?;
        let mut slice = MovingSlice::whole(shape);
        let mut sizes = sliced.iter().copied();
        for part in parts {
            match part {
                SlicePart::New => drop(sizes.next().filter(|&size| size == 1)?),
                SlicePart::Whole(axis) => drop(sizes.next().filter(|&size| size == shape[axis])?),
                SlicePart::Entry { position, axis } => {
                    let shrink = bit(masks.shrink, position);
                    let taken = if shrink { 1 } else { sizes.next()? };
                    let stride = strides[position];
                    let reach = stride.unsigned_abs().checked_mul(taken.saturating_sub(1) as u64)?;
                    if taken > 1 && reach >= shape[axis] as u64 {
                        return None;
                    }
                    let rule = EntryRule::Strided {
                        stride,
                        begin_masked: bit(masks.begin, position),
                        end_masked: bit(masks.end, position),
                        shrink,
                    };
                    let step = if taken > 1 { stride } else { 1 };
                    slice.push(position, (axis, shape[axis]), (taken, step), rule);
                }
            }
        }
        sizes.next().is_none().then(|| slice.simplified())
    }

    fn whole(shape: &Shape) -> MovingSlice {
        MovingSlice { entries: SmallVec::new(), view: StridedView::whole(shape) }
    }

    fn push(
        &mut self,
        position: usize,
        (axis, size): (usize, usize),
        (taken, step): (usize, i64),
        rule: EntryRule,
    ) {
        let distance = self.view.dims[axis].stride;
        self.entries.push(MovingEntry { position, size, distance, taken, rule });
        let whole = StridedView { offset: 0, dims: std::mem::take(&mut self.view.dims) };
        self.view = whole.sliced(axis, 0, taken, step as isize);
    }

    fn simplified(self) -> MovingSlice {
        MovingSlice { view: self.view.simplified(), ..self }
    }

    /// The slice that begins at `begin`, with as few loops as possible; `None` where it has another size or is not
    /// inside. `end` is not looked at by slices without strides.
    pub fn view(&self, begin: &[i64], end: &[i64]) -> Option<StridedView> {
        let mut view = self.view.clone();
        for entry in &self.entries {
            let start = entry.start(begin, end)?;
            if entry.taken > 0 {
                view.offset += start as isize * entry.distance;
            }
        }
        Some(view)
    }
}

impl MovingEntry {
    /// The first element along the dimension.
    fn start(&self, begin: &[i64], end: &[i64]) -> Option<usize> {
        let at = *begin.get(self.position)?;
        match self.rule {
            EntryRule::Inside => {
                let start = usize::try_from(at).ok()?;
                (start.checked_add(self.taken)? <= self.size).then_some(start)
            }
            EntryRule::Strided { stride, begin_masked, end_masked, shrink } => {
                let end = *end.get(self.position)?;
                let begin = (!begin_masked).then_some(at);
                let spec =
                    SliceSpec { begin, end: (!end_masked).then_some(end), stride, at, shrink };
                let (start, taken) = spec.range(self.size)?;
                (taken == self.taken).then_some(start)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Attrs, DType, HostTensor, ValueType, infer::InputFacts, registry,
        strided_slice::strided_slice,
    };

    /// All slices of small bounds and masks of a tensor of shape `[3, 4]`: those of one size are where
    /// [`strided_slice`] has them.
    #[test]
    fn slices_are_where_strided_slices_are() {
        let op = registry::find("StridedSlice").unwrap();
        let shape = Shape::new([3, 4]).unwrap();
        let bounds = |first: i32| HostTensor::vector(&[first, 1]).unwrap();
        let (mut n_equal, mut n_others) = (0, 0);
        for masks in 0..64i64 {
            for strides in [[1, 1], [2, 1], [-1, 2], [1, -1]] {
                let mut attrs = Attrs::new().with("T", DType::F32).with("Index", DType::I32);
                for (name, at) in [("begin_mask", 0), ("end_mask", 2), ("shrink_axis_mask", 4)] {
                    attrs.set(name, masks >> at & 3);
                }
                let attrs = op.complete_attrs(attrs).unwrap();
                let mut types = vec![ValueType::new(DType::F32, shape.clone())];
                types.resize(4, ValueType::new(DType::I32, Shape::new([2]).unwrap()));
                let strides = HostTensor::vector(&strides).unwrap();
                for begin in -4..5 {
                    for end in -4..5 {
                        let values =
                            [None, Some(bounds(begin)), Some(bounds(end)), Some(strides.clone())];
                        let facts: Vec<InputFacts<'_>> = types
                            .iter()
                            .zip(&values)
                            .map(|(ty, value)| InputFacts { ty, value: value.as_ref() })
                            .collect();
                        let context = OpContext::new(op, &attrs, &facts).unwrap();
                        let Ok((view, sliced)) = strided_slice(&context, &shape) else { continue };
                        let ends = [i64::from(end), 1];
                        // The slice of this size, and that of another.
                        for (other, is_equal) in
                            [(sliced.clone(), true), (Shape::new([9, 9]).unwrap(), false)]
                        {
                            let slice = MovingSlice::of_strided_slice(&context, &shape, &other);
                            let found =
                                slice.and_then(|slice| slice.view(&[i64::from(begin), 1], &ends));
                            let expected = is_equal.then(|| view.simplified());
                            if sliced.num_elements() > 0 || !is_equal {
                                assert_eq!(found, expected, "{masks} {begin} {end} {other}");
                            }
                            *(if is_equal { &mut n_equal } else { &mut n_others }) += 1;
                        }
                    }
                }
            }
        }
        assert!(n_equal > 5000 && n_others > 5000);
    }

    /// An update that comes from outside may have any strides and masks beside elements of any shape.
    #[test]
    fn slices_of_more_elements_than_strides_leave_are_none() {
        let op = registry::find("TensorStridedSliceUpdate").unwrap();
        let attrs = Attrs::new().with("T", DType::F32).with("Index", DType::I64);
        let attrs = op.complete_attrs(attrs.with("new_axis_mask", -1i64)).unwrap();
        let plain = op.complete_attrs(attrs.clone().with("new_axis_mask", 0i64)).unwrap();
        let slice = |attrs: &Attrs, strides: &[i64], taken: usize| {
            let (shape, sliced) = (Shape::new([6]).unwrap(), Shape::new([taken]).unwrap());
            let bounds = ValueType::new(DType::I64, Shape::new([strides.len()]).unwrap());
            let tensor = |shape: &Shape| ValueType::new(DType::F32, shape.clone());
            let types = [tensor(&shape), bounds.clone(), bounds.clone(), bounds, tensor(&sliced)];
            let strides = HostTensor::vector(strides).unwrap();
            let facts: Vec<InputFacts<'_>> = types
                .iter()
                .enumerate()
                .map(|(index, ty)| InputFacts { ty, value: (index == 3).then_some(&strides) })
                .collect();
            let context = OpContext::new(op, attrs, &facts).unwrap();
            MovingSlice::of_strided_slice(&context, &shape, &sliced).is_some()
        };
        for stride in [i64::MAX, i64::MIN, 1 << 62, 6, -6] {
            assert!(!slice(&plain, &[stride], 2), "{stride}");
            assert!(!slice(&plain, &[stride], 6), "{stride}");
            assert!(slice(&plain, &[stride], 1), "{stride}");
        }
        assert!(slice(&plain, &[5], 2) && slice(&plain, &[-1], 6));
        assert!(!slice(&attrs, &[1; 70], 1));
    }

    #[test]
    fn slices_that_are_not_inside_are_none() {
        let shapes = [[5, 4], [2, 4]].map(|dims| Shape::new(dims).unwrap());
        let slice = MovingSlice::of_slice(&shapes[0], &shapes[1]).unwrap();
        let offset = |begin: i64, other: i64| Some(slice.view(&[begin, other], &[])?.offset);
        assert_eq!([0, 3, 4, -1].map(|begin| offset(begin, 0)), [Some(0), Some(12), None, None]);
        assert_eq!((offset(1, 1), offset(i64::MAX, 0)), (None, None));
    }
}
