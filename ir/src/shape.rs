//! Known and partly known shapes, and how shapes broadcast.

use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::{fmt, ops::Deref};

/// A known shape: the size of each dimension, outermost first.
///
/// The product of the sizes that are not zero always fits an `isize`, so element counts and strides
/// of a `Shape` never overflow. A shape without elements costs no memory, so its other sizes are
/// bounded here ([`MAX_EMPTY_ROWS`], [`MAX_EMPTY_ELEMENTS`]): otherwise a file of a few bytes could
/// ask a kernel for a loop or a workspace over 2⁶² rows of nothing.
#[derive(PartialEq, Eq, Hash, Default)]
pub struct Shape(SmallVec<[usize; 6]>);

/// The most dimensions a shape may have, as in TensorFlow.
pub const MAX_RANK: usize = 254;

/// The largest product of the sizes before the first zero: the rows of a tensor without elements.
pub const MAX_EMPTY_ROWS: usize = 1 << 24;

/// The largest product of the sizes that are not zero, of a shape without elements. It leaves room
/// for a batch of no examples whose examples are large.
pub const MAX_EMPTY_ELEMENTS: usize = 1 << 28;

/// A number from a program, which is not negative, as a size. One that cannot be addressed is the
/// greatest there is: no shape takes it.
pub fn counted(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Clone for Shape {
    #[inline]
    fn clone(&self) -> Shape {
        // The clone of a `SmallVec` goes element by element.
        if self.0.is_empty() { Shape::scalar() } else { Shape(SmallVec::from_slice(&self.0)) }
    }
}

impl Shape {
    /// The shape of a scalar.
    pub fn scalar() -> Shape {
        Shape::default()
    }

    /// A shape of these sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] when the number of elements cannot be counted in an `isize`, when a shape
    /// without elements is too large in its other dimensions, or for too many dimensions.
    pub fn new(dims: impl IntoIterator<Item = usize>) -> Result<Shape> {
        let dims: SmallVec<[usize; 6]> = dims.into_iter().collect();
        if dims.len() > MAX_RANK || !is_countable(&dims) {
            return Err(too_large(&dims));
        }
        Ok(Shape(dims))
    }

    /// A shape from signed sizes, as attributes and shape tensors hold them.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] for a negative size or too many elements.
    pub fn from_i64(dims: &[i64]) -> Result<Shape> {
        let checked: Result<SmallVec<[usize; 6]>> = dims
            .iter()
            .map(|&dim| {
                usize::try_from(dim)
                    .map_err(|_| Error::Size { what: "dimension".into(), size: dim.to_string() })
            })
            .collect();
        Shape::new(checked?)
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The sizes.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// The number of elements; 1 for a scalar.
    #[inline]
    pub fn num_elements(&self) -> usize {
        self.0.iter().product()
    }

    /// The sizes as `i64`, the form in which shape tensors hold them.
    pub fn to_i64(&self) -> Vec<i64> {
        self.0.iter().map(|&dim| dim as i64).collect()
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> SmallVec<[usize; 6]> {
        let mut strides: SmallVec<[usize; 6]> = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis].max(1);
        }
        strides
    }

    /// The shape both shapes broadcast to, by NumPy's rule: aligned at the last dimension, sizes
    /// must agree or be 1.
    ///
    /// # Errors
    ///
    /// [`Error::Broadcast`] when they do not.
    pub fn broadcast(&self, other: &Shape) -> Result<Shape> {
        let rank = self.rank().max(other.rank());
        let at = |shape: &Shape, axis: usize| -> usize {
            (axis + shape.rank()).checked_sub(rank).map_or(1, |axis| shape.0[axis])
        };
        let dims: Option<SmallVec<[usize; 6]>> = (0..rank)
            .map(|axis| match (at(self, axis), at(other, axis)) {
                (a, b) if a == b => Some(a),
                (1, b) => Some(b),
                (a, 1) => Some(a),
                _ => None,
            })
            .collect();
        match dims {
            Some(dims) => Shape::new(dims),
            None => Err(Error::broadcast(self, other)),
        }
    }
}

/// Whether strides, element counts and loops over a shape of these sizes are bounded.
fn is_countable(dims: &[usize]) -> bool {
    let mut product: isize = 1;
    let mut rows = None;
    for &dim in dims {
        if dim == 0 {
            rows.get_or_insert(product);
            continue;
        }
        match isize::try_from(dim).ok().and_then(|dim| product.checked_mul(dim)) {
            Some(larger) => product = larger,
            None => return false,
        }
    }
    rows.is_none_or(|rows| {
        rows <= MAX_EMPTY_ROWS as isize && product <= MAX_EMPTY_ELEMENTS as isize
    })
}

fn too_large(dims: &[usize]) -> Error {
    let size = match dims.len() {
        0..=MAX_RANK => format!("{dims:?}"),
        rank => format!("of {rank} dimensions"),
    };
    Error::Size { what: "shape".into(), size }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dims(f, self.0.iter())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_dims(f, self.0.iter())
    }
}

fn write_dims<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    dims: impl Iterator<Item = T>,
) -> fmt::Result {
    f.write_str("[")?;
    for (index, dim) in dims.enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write!(f, "{dim}")?;
    }
    f.write_str("]")
}

/// The size of one dimension, `None` when it is not known.
pub type Dim = Option<usize>;

/// A shape of which the rank or some sizes may not be known.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub enum PartialShape {
    /// Nothing is known, not even the rank.
    #[default]
    Unknown,
    /// The rank is known, and some of the sizes.
    Ranked(SmallVec<[Dim; 6]>),
}

impl PartialShape {
    /// The shape of a scalar.
    pub fn scalar() -> PartialShape {
        PartialShape::Ranked(SmallVec::new())
    }

    /// A shape of known rank.
    pub fn ranked(dims: impl IntoIterator<Item = Dim>) -> PartialShape {
        PartialShape::Ranked(dims.into_iter().collect())
    }

    /// A shape of known rank and unknown sizes.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape::Ranked(SmallVec::from_elem(None, rank))
    }

    /// A vector of this length.
    pub fn vector(length: Dim) -> PartialShape {
        PartialShape::ranked([length])
    }

    /// A shape from signed sizes in which `-1` means unknown.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] for sizes below `-1`.
    pub fn from_i64(dims: &[i64]) -> Result<PartialShape> {
        let dims: Result<SmallVec<[Dim; 6]>> = dims
            .iter()
            .map(|&dim| match dim {
                -1 => Ok(None),
                dim => usize::try_from(dim)
                    .map(Some)
                    .map_err(|_| Error::Size { what: "dimension".into(), size: dim.to_string() }),
            })
            .collect();
        Ok(PartialShape::Ranked(dims?))
    }

    /// The number of dimensions, if known.
    pub fn rank(&self) -> Option<usize> {
        self.dims().map(<[Dim]>::len)
    }

    /// The sizes, if the rank is known.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            PartialShape::Unknown => None,
            PartialShape::Ranked(dims) => Some(dims),
        }
    }

    /// The size of dimension `axis`, if known; negative axes count from the end.
    pub fn dim(&self, axis: isize) -> Dim {
        let dims = self.dims()?;
        let axis = if axis < 0 { axis + dims.len() as isize } else { axis };
        usize::try_from(axis).ok().and_then(|axis| dims.get(axis).copied().flatten())
    }

    /// The shape, if everything is known and countable.
    pub fn known(&self) -> Option<Shape> {
        let dims: Option<SmallVec<[usize; 6]>> = self.dims()?.iter().copied().collect();
        Shape::new(dims?).ok()
    }

    /// Whether everything is known.
    pub fn is_known(&self) -> bool {
        self.dims().is_some_and(|dims| dims.iter().all(Option::is_some))
    }

    /// Whether a value of shape `other` could also have this shape.
    pub fn is_compatible_with(&self, other: &PartialShape) -> bool {
        self.merge(other).is_some()
    }

    /// Whether every value of this shape also has shape `other`: unknown parts of `other` accept
    /// anything.
    pub fn is_subtype_of(&self, other: &PartialShape) -> bool {
        match (self.dims(), other.dims()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(lhs), Some(rhs)) => {
                lhs.len() == rhs.len()
                    && lhs.iter().zip(rhs).all(|(lhs, rhs)| rhs.is_none() || lhs == rhs)
            }
        }
    }

    /// The most specific shape that holds where both hold, `None` when they contradict.
    pub fn merge(&self, other: &PartialShape) -> Option<PartialShape> {
        let (Some(lhs), Some(rhs)) = (self.dims(), other.dims()) else {
            return Some(if self.rank().is_some() { self.clone() } else { other.clone() });
        };
        if lhs.len() != rhs.len() {
            return None;
        }
        let merged: Option<SmallVec<[Dim; 6]>> = lhs
            .iter()
            .zip(rhs)
            .map(|pair| match pair {
                (Some(a), Some(b)) if a != b => None,
                (a, b) => Some(a.or(*b)),
            })
            .collect();
        merged.map(PartialShape::Ranked)
    }

    /// The most specific shape that both shapes are subtypes of.
    #[must_use]
    pub fn generalize(&self, other: &PartialShape) -> PartialShape {
        match (self.dims(), other.dims()) {
            (Some(lhs), Some(rhs)) if lhs.len() == rhs.len() => PartialShape::ranked(
                lhs.iter().zip(rhs).map(|(a, b)| if a == b { *a } else { None }),
            ),
            _ => PartialShape::Unknown,
        }
    }

    /// The shape both shapes broadcast to, as far as it can be told.
    ///
    /// # Errors
    ///
    /// [`Error::Broadcast`] when no sizes for the unknown parts would make them compatible.
    pub fn broadcast(&self, other: &PartialShape) -> Result<PartialShape> {
        let (Some(lhs), Some(rhs)) = (self.dims(), other.dims()) else {
            return Ok(PartialShape::Unknown);
        };
        let rank = lhs.len().max(rhs.len());
        let at = |dims: &[Dim], axis: usize| -> Dim {
            (axis + dims.len()).checked_sub(rank).map_or(Some(1), |axis| dims[axis])
        };
        let dims: Option<SmallVec<[Dim; 6]>> = (0..rank)
            .map(|axis| match (at(lhs, axis), at(rhs, axis)) {
                (Some(a), Some(b)) if a == b => Some(Some(a)),
                (Some(1), other) | (other, Some(1)) => Some(other),
                (Some(_), Some(_)) => None,
                (Some(known), None) | (None, Some(known)) => Some(Some(known)),
                (None, None) => Some(None),
            })
            .collect();
        match dims {
            Some(dims) => Ok(PartialShape::Ranked(dims)),
            None => Err(Error::broadcast(self.clone(), other.clone())),
        }
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape::ranked(shape.iter().map(|&dim| Some(dim)))
    }
}

impl From<Shape> for PartialShape {
    fn from(shape: Shape) -> PartialShape {
        PartialShape::from(&shape)
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PartialShape {
    /// Unknown sizes print as `?`, an unknown rank as `<unknown>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.dims() {
            None => f.write_str("<unknown>"),
            Some(dims) => write_dims(
                f,
                dims.iter().map(|dim| dim.map_or_else(|| "?".to_string(), |dim| dim.to_string())),
            ),
        }
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
    fn counting_never_overflows() {
        assert!(Shape::new([1 << 40, 1 << 40]).is_err());
        assert!(Shape::new([usize::MAX]).is_err());
        assert!(Shape::new([1 << 40, 1 << 40, 0]).is_err());
        assert_eq!(shape(&[3, 0, 5]).num_elements(), 0);
        assert_eq!(Shape::scalar().num_elements(), 1);
        assert!(Shape::from_i64(&[2, -1]).is_err());
    }

    #[test]
    fn shapes_without_elements_are_bounded_too() {
        for fits in [&[1 << 24, 0][..], &[0, 1 << 28], &[0, 1024, 1024, 64], &[1 << 12, 0, 1 << 12]]
        {
            assert_eq!(shape(fits).num_elements(), 0, "{fits:?}");
        }
        for huge in [&[1 << 36, 0][..], &[0, 1 << 36], &[1 << 20, 1 << 20, 0], &[0, 0, 1 << 29]] {
            assert!(Shape::new(huge.iter().copied()).is_err(), "{huge:?}");
            assert_eq!(PartialShape::ranked(huge.iter().map(|&dim| Some(dim))).known(), None);
        }
        assert!(shape(&[1; MAX_RANK]).rank() == MAX_RANK && Shape::new([1; MAX_RANK + 1]).is_err());
    }

    #[test]
    fn broadcasting_agrees_with_numpy() {
        let check = |lhs: &[usize], rhs: &[usize], expected: Option<&[usize]>| {
            let result = shape(lhs).broadcast(&shape(rhs)).ok();
            assert_eq!(result, expected.map(shape), "{lhs:?} {rhs:?}");
        };
        check(&[2, 3], &[3], Some(&[2, 3]));
        check(&[2, 1], &[1, 3], Some(&[2, 3]));
        check(&[], &[4], Some(&[4]));
        check(&[0], &[1], Some(&[0]));
        check(&[2, 3], &[4], None);
    }

    #[test]
    fn unknown_parts_print_as_question_marks() {
        assert_eq!(PartialShape::ranked([None, Some(3)]).to_string(), "[?,3]");
        assert_eq!(PartialShape::Unknown.to_string(), "<unknown>");
    }

    fn partial() -> impl Strategy<Value = PartialShape> {
        prop_oneof![
            Just(PartialShape::Unknown),
            prop::collection::vec(prop::option::of(0usize..4), 0..4).prop_map(PartialShape::ranked),
        ]
    }

    proptest! {
        #[test]
        fn generalizing_returns_a_supertype_of_both(a in partial(), b in partial()) {
            let general = a.generalize(&b);
            prop_assert!(a.is_subtype_of(&general) && b.is_subtype_of(&general));
        }

        #[test]
        fn merging_returns_a_subtype_of_both(a in partial(), b in partial()) {
            if let Some(merged) = a.merge(&b) {
                prop_assert!(merged.is_subtype_of(&a) && merged.is_subtype_of(&b));
            }
        }

        #[test]
        fn partial_broadcast_agrees_with_the_known_one(
            a in prop::collection::vec(0usize..4, 0..4), b in prop::collection::vec(0usize..4, 0..4)
        ) {
            let known = shape(&a).broadcast(&shape(&b)).ok();
            let partial = PartialShape::from(shape(&a)).broadcast(&shape(&b).into()).ok();
            prop_assert_eq!(known.map(PartialShape::from), partial);
        }
    }
}
