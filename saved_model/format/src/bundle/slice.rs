//! Slices of tensors: boxes of elements, as checkpoints of partitioned variables name them.

use crate::{
    error::{Error, Result},
    proto,
};
use ferroflow_ir::Shape;
use smallvec::SmallVec;
use std::{fmt, str::FromStr};

/// The part of one dimension that a slice covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// All of it.
    Full,
    /// `length` elements from `start` on.
    Range {
        /// The first element.
        start: usize,
        /// The number of elements, at least one.
        length: usize,
    },
}

/// A box within a tensor: one extent per dimension.
///
/// Its text form is `0,5:-`: start and length, or `-` for a whole dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorSlice {
    extents: SmallVec<[Extent; 4]>,
}

impl TensorSlice {
    /// A slice of these extents.
    pub fn new(extents: impl IntoIterator<Item = Extent>) -> TensorSlice {
        TensorSlice { extents: extents.into_iter().collect() }
    }

    /// The whole of a tensor of this rank.
    pub fn full(rank: usize) -> TensorSlice {
        TensorSlice { extents: SmallVec::from_elem(Extent::Full, rank) }
    }

    /// The extents, outermost dimension first.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Whether every dimension is covered whole.
    pub fn is_full(&self) -> bool {
        self.extents.iter().all(|extent| *extent == Extent::Full)
    }

    /// The box that the slice is in a tensor of this shape.
    ///
    /// # Errors
    ///
    /// [`Error::Slice`] when the slice is not within the tensor.
    pub(crate) fn region(&self, shape: &Shape) -> Result<SliceRegion> {
        let wrong = |rule| Error::Slice { slice: self.to_string(), shape: shape.clone(), rule };
        if self.extents.len() != shape.rank() {
            return Err(wrong("has another rank"));
        }
        let (mut start, mut dims) = (SmallVec::new(), SmallVec::<[usize; 6]>::new());
        for (extent, &dim) in self.extents.iter().zip(shape.dims()) {
            let (first, length) = match *extent {
                Extent::Full => (0, dim),
                Extent::Range { start, length } => (start, length),
            };
            if first.checked_add(length).is_none_or(|end| end > dim) {
                return Err(wrong("leaves the tensor"));
            }
            start.push(first);
            dims.push(length);
        }
        Ok(SliceRegion { start, shape: Shape::new(dims)? })
    }

    /// The slice of a message; `None` when it has negative or partial extents.
    pub(crate) fn from_proto(slice: &proto::TensorSliceProto) -> Option<TensorSlice> {
        let extents = slice.extent.iter().map(|extent| {
            use proto::tensor_slice_proto::extent::HasLength;
            let start = usize::try_from(extent.start).ok()?;
            match extent.has_length {
                None => (start == 0).then_some(Extent::Full),
                Some(HasLength::Length(length)) => range(start, usize::try_from(length).ok()?),
            }
        });
        Some(TensorSlice { extents: extents.collect::<Option<_>>()? })
    }
}

fn range(start: usize, length: usize) -> Option<Extent> {
    (length > 0).then_some(Extent::Range { start, length })
}

impl fmt::Display for TensorSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, extent) in self.extents.iter().enumerate() {
            if index > 0 {
                f.write_str(":")?;
            }
            match extent {
                Extent::Full => f.write_str("-")?,
                Extent::Range { start, length } => write!(f, "{start},{length}")?,
            }
        }
        Ok(())
    }
}

/// Text that is not a slice or a slice specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a slice such as `4 5 0,2:-`")]
pub struct InvalidSlice(pub String);

impl FromStr for TensorSlice {
    type Err = InvalidSlice;

    fn from_str(text: &str) -> Result<TensorSlice, InvalidSlice> {
        let parse = |extent: &str| match extent {
            "-" => Some(Extent::Full),
            _ => {
                let (start, length) = extent.split_once(',')?;
                range(start.parse().ok()?, length.parse().ok()?)
            }
        };
        let extents = text.split(':').filter(|extent| !extent.is_empty()).map(parse);
        let extents: Option<SmallVec<_>> = extents.collect();
        extents.map(|extents| TensorSlice { extents }).ok_or_else(|| InvalidSlice(text.into()))
    }
}

/// A slice together with the shape of the tensor it is taken from: what `RestoreV2` and `SaveV2`
/// call `shape_and_slices`.
///
/// ```
/// use ferroflow_format::bundle::SliceSpec;
/// let spec: SliceSpec = "10 4 0,5:-".parse().unwrap();
/// assert_eq!(spec.shape.dims(), [10, 4]);
/// assert_eq!(spec.slice.to_string(), "0,5:-");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceSpec {
    /// The shape of the whole tensor.
    pub shape: Shape,
    /// The part that is meant.
    pub slice: TensorSlice,
}

impl fmt::Display for SliceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dim in self.shape.dims() {
            write!(f, "{dim} ")?;
        }
        write!(f, "{}", self.slice)
    }
}

impl FromStr for SliceSpec {
    type Err = InvalidSlice;

    fn from_str(text: &str) -> Result<SliceSpec, InvalidSlice> {
        let invalid = || InvalidSlice(text.into());
        let (dims, slice) = text.rsplit_once(' ').ok_or_else(invalid)?;
        let dims: Result<SmallVec<[usize; 6]>, _> = dims.split(' ').map(str::parse).collect();
        let shape = Shape::new(dims.map_err(|_| invalid())?).map_err(|_| invalid())?;
        Ok(SliceSpec { shape, slice: slice.parse().map_err(|_| invalid())? })
    }
}

/// A box of elements: where it begins, and its sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SliceRegion {
    pub(crate) start: SmallVec<[usize; 6]>,
    pub(crate) shape: Shape,
}

impl SliceRegion {
    /// The whole of a tensor of this shape.
    pub(crate) fn whole(shape: &Shape) -> SliceRegion {
        SliceRegion { start: SmallVec::from_elem(0, shape.rank()), shape: shape.clone() }
    }

    /// Whether both boxes share an element.
    pub(crate) fn overlaps(&self, other: &SliceRegion) -> bool {
        let boxes = self.start.iter().zip(self.shape.dims());
        let mut axes = boxes.zip(other.start.iter().zip(other.shape.dims()));
        axes.all(|((a, len), (b, other_len))| {
            a < &(b + other_len) && b < &(a + len) && *len.min(other_len) > 0
        })
    }

    /// Intersection of both boxes, if there is one.
    pub(crate) fn intersect(&self, other: &SliceRegion) -> Option<SliceRegion> {
        let (mut start, mut dims) = (SmallVec::new(), SmallVec::<[usize; 6]>::new());
        for axis in 0..self.start.len() {
            let first = self.start[axis].max(other.start[axis]);
            let end = |region: &SliceRegion| region.start[axis] + region.shape[axis];
            dims.push(end(self).min(end(other)).checked_sub(first).filter(|&len| len > 0)?);
            start.push(first);
        }
        Some(SliceRegion { start, shape: Shape::new(dims).ok()? })
    }

    /// Calls `visit` with each stretch of elements of this box that lies in one piece in both
    /// `source` and `target`: its position there and there, and its length, in elements.
    ///
    /// This box must be within both others.
    pub(crate) fn runs(
        &self,
        source: &SliceRegion,
        target: &SliceRegion,
        mut visit: impl FnMut(usize, usize, usize),
    ) {
        let rank = self.start.len();
        let spans = |axis: usize| {
            self.shape[axis] == source.shape[axis] && self.shape[axis] == target.shape[axis]
        };
        let n_inner = (0..rank).rev().take_while(|&axis| spans(axis)).count();
        let n_outer = rank.saturating_sub(n_inner + 1);
        let length: usize = self.shape[n_outer..].iter().product();
        let n_runs: usize = self.shape[..n_outer].iter().product();
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, n_outer);
        for _ in 0..n_runs {
            visit(self.position(&index, source), self.position(&index, target), length);
            for axis in (0..n_outer).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    }

    /// The position in `other` of the element at `index` of this box; missing indices are 0.
    fn position(&self, index: &[usize], other: &SliceRegion) -> usize {
        let strides = other.shape.strides();
        let offsets = (0..strides.len()).map(|axis| {
            let index = index.get(axis).copied().unwrap_or(0);
            (self.start[axis] + index - other.start[axis]) * strides[axis]
        });
        offsets.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims.iter().copied()).unwrap()
    }

    #[test]
    fn text_forms() {
        let check = |text: &str, valid: bool| {
            let parsed = text.parse::<SliceSpec>();
            assert_eq!(parsed.is_ok(), valid, "{text}");
            if let Ok(spec) = parsed {
                assert_eq!(spec.to_string(), text);
            }
        };
        check("10 4 0,5:0,4", true);
        check("10 4 -:2,2", true);
        check("7 -", true);
        check("", false);
        check("10", false);
        check("10 x -", false);
        check("10 -1 -", false);
        check("10 1,0", false);
        check("10 1", false);
        check("18446744073709551615 18446744073709551615 -:-", false);
    }

    #[test]
    fn regions_are_within_the_tensor() {
        let region =
            |text: &str, dims: &[usize]| text.parse::<TensorSlice>().unwrap().region(&shape(dims));
        assert_eq!(region("2,3:-", &[5, 4]).unwrap().shape, shape(&[3, 4]));
        assert!(region("3,3:-", &[5, 4]).is_err());
        assert!(region("-", &[5, 4]).is_err());
        assert!(region(&format!("{},2", usize::MAX), &[5]).is_err());
    }

    fn slice() -> impl Strategy<Value = (Shape, TensorSlice)> {
        prop::collection::vec((1usize..6, 0usize..6, 0usize..6, any::<bool>()), 0..4).prop_map(
            |dims| {
                let extents = dims.iter().map(|&(dim, a, b, full)| {
                    let start = a % dim;
                    let range = Extent::Range { start, length: 1 + b % (dim - start) };
                    if full { Extent::Full } else { range }
                });
                (
                    shape(&dims.iter().map(|dim| dim.0).collect::<Vec<_>>()),
                    TensorSlice::new(extents),
                )
            },
        )
    }

    fn elements(region: &SliceRegion, whole: &Shape) -> Vec<usize> {
        let strides = whole.strides();
        let mut found = vec![0];
        for (axis, stride) in strides.into_iter().enumerate() {
            let along = region.start[axis]..region.start[axis] + region.shape[axis];
            found = found
                .iter()
                .flat_map(|base| along.clone().map(move |i| base + i * stride))
                .collect();
        }
        found
    }

    proptest! {
        #[test]
        fn specs_round_trip_through_text((shape, slice) in slice()) {
            prop_assume!(shape.rank() > 0);
            let spec = SliceSpec { shape, slice };
            prop_assert_eq!(spec.to_string().parse::<SliceSpec>(), Ok(spec));
        }

        #[test]
        fn runs_cover_a_slice_in_order((shape, slice) in slice()) {
            let region = slice.region(&shape).unwrap();
            let (mut sources, mut targets) = (Vec::new(), Vec::new());
            region.runs(&SliceRegion::whole(&shape), &region, |source, target, length| {
                sources.extend(source..source + length);
                targets.extend(target..target + length);
            });
            prop_assert_eq!(sources, elements(&region, &shape));
            prop_assert_eq!(targets, (0..region.shape.num_elements()).collect::<Vec<_>>());
        }

        #[test]
        fn intersections_are_what_both_hold((shape, a) in slice(), seed in any::<u64>()) {
            let b = TensorSlice::new(shape.dims().iter().enumerate().map(|(axis, &dim)| {
                let start = (seed >> (axis * 8)) as usize % dim;
                Extent::Range { start, length: 1 + (seed >> (axis * 8 + 4)) as usize % (dim - start) }
            }));
            let (a, b) = (a.region(&shape).unwrap(), b.region(&shape).unwrap());
            let in_b = elements(&b, &shape);
            let both: Vec<_> =
                elements(&a, &shape).into_iter().filter(|e| in_b.contains(e)).collect();
            prop_assert_eq!(a.overlaps(&b), !both.is_empty());
            let found = a.intersect(&b).map_or(Vec::new(), |region| elements(&region, &shape));
            prop_assert_eq!(found, both);
        }
    }
}
