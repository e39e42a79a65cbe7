//! Lists of tensors.

use crate::error::{Error, Result};
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor, PartialShape, Shape};
use std::any::Any;

/// A list of tensors of one dtype, as a value of dtype variant.
///
/// As in TensorFlow, elements that were never written read as zeros, of a shape that follows from
/// what the list asks of its elements, what the reader expects, and what the others are.
#[derive(Debug, Clone)]
pub(crate) struct TensorList {
    pub(crate) dtype: DType,
    /// Shape that it asks of its elements.
    pub(crate) shape: PartialShape,
    /// Largest number of elements when elements are appended.
    pub(crate) capacity: Option<usize>,
    pub(crate) elements: Vec<Option<HostTensor>>,
}

impl Handle for TensorList {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Error of an op about its list.
fn wrong(argument: &'static str, expected: String, found: impl std::fmt::Display) -> Error {
    IrError::argument("tensor list", argument, expected, found).into()
}

impl TensorList {
    /// A list of these elements.
    pub(crate) fn new(
        dtype: DType,
        shape: PartialShape,
        elements: Vec<Option<HostTensor>>,
    ) -> TensorList {
        TensorList { dtype, shape, capacity: None, elements }
    }

    /// Checks that the elements are of this dtype.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when they are not.
    pub(crate) fn check_dtype(&self, dtype: DType) -> Result<()> {
        if self.dtype == dtype {
            return Ok(());
        }
        Err(wrong("elements", format!("of dtype {dtype}"), self.dtype))
    }

    /// Checks that a tensor may be an element.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when its dtype or shape is not what the list asks for.
    pub(crate) fn check(&self, item: &HostTensor) -> Result<()> {
        self.check_dtype(item.dtype())?;
        if self.shape.is_compatible_with(&item.shape().into()) {
            return Ok(());
        }
        Err(wrong("item", format!("of shape {}", self.shape), item.shape()))
    }

    /// The element of this index.
    ///
    /// # Errors
    ///
    /// [`IrError::Index`] when there is none.
    pub(crate) fn position(&self, index: i64) -> Result<usize> {
        let found = usize::try_from(index).ok().filter(|&index| index < self.elements.len());
        found.ok_or_else(|| self.outside(index))
    }

    fn outside(&self, index: i64) -> Error {
        let high = self.elements.len() as i64;
        IrError::Index { what: "list element".into(), index, low: 0, high }.into()
    }

    /// Replaces an element.
    ///
    /// # Errors
    ///
    /// When there is none of this index, or the item does not fit.
    pub(crate) fn set(&mut self, index: i64, item: HostTensor) -> Result<()> {
        let position = self.position(index)?;
        self.check(&item)?;
        self.elements[position] = Some(item);
        Ok(())
    }

    /// Appends an element.
    ///
    /// # Errors
    ///
    /// When the list is full, or the item does not fit.
    pub(crate) fn push(&mut self, item: HostTensor) -> Result<()> {
        self.check(&item)?;
        if let Some(capacity) = self.capacity.filter(|&capacity| self.elements.len() >= capacity) {
            return Err(wrong("list", format!("of at most {capacity} elements"), "one more"));
        }
        self.elements.push(Some(item));
        Ok(())
    }

    /// Cuts elements off, or appends some that are still to be written; no more elements than take
    /// `limit` bytes themselves.
    ///
    /// # Errors
    ///
    /// [`IrError::Size`] for a negative length, [`IrError::Limit`] for one beyond the limit.
    pub(crate) fn resize(&mut self, length: i64, limit: usize) -> Result<()> {
        self.elements.resize(checked_length(length, limit)?, None);
        Ok(())
    }

    /// The shape of elements that were never written.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when nothing tells it.
    pub(crate) fn blank_shape(&self, expected: &PartialShape) -> Result<Shape> {
        let asked = self.merged(expected)?;
        let shape = if asked.is_known() { asked } else { self.common_shape(asked)? };
        shape.known().ok_or_else(|| {
            wrong("element", "written, or of known shape".into(), format!("one of shape {shape}"))
        })
    }

    /// Shape that the list asks of its elements and the reader expects.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when the two contradict.
    pub(crate) fn merged(&self, expected: &PartialShape) -> Result<PartialShape> {
        self.shape.merge(expected).ok_or_else(|| {
            wrong("element shape", format!("compatible with {}", self.shape), expected)
        })
    }

    /// Shape that `shape` and all elements agree on.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when they contradict.
    pub(crate) fn common_shape(&self, shape: PartialShape) -> Result<PartialShape> {
        self.elements.iter().flatten().try_fold(shape, |shape, element| {
            shape
                .merge(&element.shape().into())
                .ok_or_else(|| wrong("elements", format!("of shape {shape}"), element.shape()))
        })
    }

    /// The same variant in which `change` has replaced every element that was written.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub(crate) fn map(
        &self,
        change: &dyn Fn(&HostTensor) -> Result<HostTensor>,
    ) -> Result<TensorList> {
        let element = |element: &Option<HostTensor>| element.as_ref().map(change).transpose();
        let elements = self.elements.iter().map(element).collect::<Result<_>>()?;
        Ok(TensorList { elements, ..TensorList::new(self.dtype, self.shape.clone(), Vec::new()) })
    }

    /// The sums of the elements; an element that only one of the lists has is taken as it is.
    ///
    /// # Errors
    ///
    /// When dtypes, shapes or numbers of elements differ, and those of `sum`.
    pub(crate) fn add(
        &self,
        other: &TensorList,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<TensorList> {
        other.check_dtype(self.dtype)?;
        let shape = self.merged(&other.shape)?;
        if self.elements.len() != other.elements.len() {
            let expected = format!("of {} elements, as the other", self.elements.len());
            return Err(wrong("list", expected, other.elements.len()));
        }
        let pairs = self.elements.iter().zip(&other.elements).map(|pair| match pair {
            (Some(a), Some(b)) => sum(a, b).map(Some),
            (a, b) => Ok(a.clone().or_else(|| b.clone())),
        });
        Ok(TensorList::new(self.dtype, shape, pairs.collect::<Result<_>>()?))
    }
}

/// The length of a list that is asked for; no more elements than take `limit` bytes themselves.
///
/// # Errors
///
/// [`IrError::Size`] for a negative length, [`IrError::Limit`] for one beyond the limit.
pub(crate) fn checked_length(length: i64, limit: usize) -> Result<usize> {
    let size = || IrError::Size { what: "length of the list".into(), size: length.to_string() };
    let length = usize::try_from(length).map_err(|_| size())?;
    let most = limit / size_of::<Option<HostTensor>>();
    if length <= most {
        return Ok(length);
    }
    let (what, needed) = ("a list".into(), format!("{length} elements"));
    Err(IrError::Limit { what, needed, limit: most as u64 }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(elements: Vec<Option<HostTensor>>) -> TensorList {
        TensorList::new(DType::F32, PartialShape::from_i64(&[-1]).unwrap(), elements)
    }

    #[test]
    fn blank_elements_take_the_shape_of_the_others() {
        let written = HostTensor::vector(&[1.0f32, 2.0]).unwrap();
        let pair = list(vec![None, Some(written)]);
        assert_eq!(pair.blank_shape(&PartialShape::Unknown).unwrap().dims(), [2]);
        assert!(list(vec![None]).blank_shape(&PartialShape::Unknown).is_err());
        let expected = PartialShape::from_i64(&[3]).unwrap();
        assert_eq!(list(vec![None]).blank_shape(&expected).unwrap().dims(), [3]);
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(checked_length(-1, 1 << 20).is_err());
        assert!(checked_length(1 << 40, 1 << 20).is_err());
        assert_eq!(checked_length(3, 1 << 20).unwrap(), 3);
    }

    #[test]
    fn sums_take_what_only_one_list_has() {
        let one = HostTensor::vector(&[1.0f32]).unwrap();
        let (a, b) = (list(vec![Some(one.clone()), None]), list(vec![None, None]));
        let sum = a.add(&b, &|a, _| Ok(a.clone())).unwrap();
        assert_eq!(sum.elements, [Some(one), None]);
        assert!(a.add(&list(vec![]), &|a, _| Ok(a.clone())).is_err());
    }
}
