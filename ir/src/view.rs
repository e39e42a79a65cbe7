//! Strided windows: how data-moving ops describe what they read.

use crate::shape::Shape;
use smallvec::SmallVec;

/// A loop of a [`StridedView`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewDim {
    /// The number of steps.
    pub size: usize,
    /// Distance of a step in the source, in elements; 0 repeats, negative runs backwards.
    pub stride: isize,
}

/// A strided window of a tensor, in elements: output element number `n` (row-major over `dims`)
/// is the source element at `offset + Σ index[d] · dims[d].stride`.
///
/// The number of loops need not be the rank of the result; only the order of elements counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StridedView {
    /// The first element read.
    pub offset: isize,
    /// The loops, outermost first.
    pub dims: SmallVec<[ViewDim; 6]>,
}

impl StridedView {
    /// The whole of a tensor of this shape, in order.
    pub fn whole(shape: &Shape) -> StridedView {
        let strides = shape.strides();
        let dims = shape.iter().zip(&strides);
        StridedView {
            offset: 0,
            dims: dims.map(|(&size, &stride)| ViewDim { size, stride: stride as isize }).collect(),
        }
    }

    /// The loops in another order.
    #[must_use]
    pub fn transposed(&self, permutation: &[usize]) -> StridedView {
        let dims = permutation.iter().map(|&axis| self.dims[axis]).collect();
        StridedView { offset: self.offset, dims }
    }

    /// Loop `axis` reduced to `size` steps of `step` old steps, beginning at `start`.
    #[must_use]
    pub fn sliced(mut self, axis: usize, start: usize, size: usize, step: isize) -> StridedView {
        let dim = &mut self.dims[axis];
        if size > 0 {
            self.offset += start as isize * dim.stride;
        }
        *dim = ViewDim { size, stride: dim.stride * step };
        self
    }

    /// The number of elements.
    pub fn num_elements(&self) -> usize {
        self.dims.iter().map(|dim| dim.size).product()
    }

    /// The same window with as few loops as possible: loops of one step are gone, and neighbours
    /// that continue each other are one. A contiguous window has at most one loop, of stride 1.
    #[must_use]
    pub fn simplified(&self) -> StridedView {
        let mut dims: SmallVec<[ViewDim; 6]> = SmallVec::new();
        for &dim in self.dims.iter().filter(|dim| dim.size != 1) {
            match dims.last_mut() {
                Some(outer) if outer.stride == dim.stride * dim.size as isize => {
                    *outer = ViewDim { size: outer.size * dim.size, stride: dim.stride };
                }
                _ => dims.push(dim),
            }
        }
        StridedView { offset: self.offset, dims }
    }

    /// Where element number `n` (row-major over `dims`) is in the source.
    pub fn position(&self, n: usize) -> isize {
        let (mut rest, mut position) = (n, self.offset);
        for dim in self.dims.iter().rev() {
            position += (rest % dim.size.max(1)) as isize * dim.stride;
            rest /= dim.size.max(1);
        }
        position
    }

    /// The number of elements after which the window begins again, if it does.
    pub fn period(&self) -> Option<usize> {
        let repeats = self.dims.iter().take_while(|dim| dim.stride == 0).count();
        let again = &self.dims[repeats..];
        (repeats > 0 && !again.is_empty()).then(|| again.iter().map(|dim| dim.size).product())
    }

    /// Whether the elements are contiguous in order.
    pub fn is_contiguous(&self) -> bool {
        match self.simplified().dims.as_slice() {
            [] => true,
            [dim] => dim.stride == 1 || dim.size == 0,
            dims => dims.iter().any(|dim| dim.size == 0),
        }
    }

    /// Whether every element is inside a source of `len` elements.
    pub fn fits(&self, len: usize) -> bool {
        if self.num_elements() == 0 {
            return true;
        }
        let (mut low, mut high) = (self.offset, self.offset);
        for dim in &self.dims {
            let reach = dim.stride * (dim.size as isize - 1);
            if reach < 0 { low += reach } else { high += reach }
        }
        low >= 0 && (high as usize) < len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(dims: &[usize]) -> StridedView {
        StridedView::whole(&Shape::new(dims.iter().copied()).unwrap())
    }

    #[test]
    fn contiguous_windows_are_recognised() {
        assert!(whole(&[2, 3, 4]).is_contiguous());
        assert!(whole(&[2, 3, 4]).sliced(0, 1, 1, 1).is_contiguous());
        assert!(!whole(&[2, 3]).sliced(1, 0, 2, 1).is_contiguous());
        assert!(!whole(&[2, 3]).transposed(&[1, 0]).is_contiguous());
        assert!(whole(&[1, 3]).transposed(&[1, 0]).is_contiguous());
    }

    #[test]
    fn neighbouring_loops_merge() {
        let view = whole(&[2, 3, 4]).transposed(&[2, 0, 1]).simplified();
        let expected = [ViewDim { size: 4, stride: 1 }, ViewDim { size: 6, stride: 4 }];
        assert_eq!(view.dims.as_slice(), expected);
    }

    #[test]
    fn windows_that_repeat_have_a_period() {
        let mut view = whole(&[2, 3, 4]);
        assert_eq!(view.period(), None);
        view.dims[0].stride = 0;
        assert_eq!(view.period(), Some(12));
        view.dims[1].stride = 0;
        assert_eq!(view.period(), Some(4));
    }

    #[test]
    fn elements_are_found() {
        let view = whole(&[2, 3]).transposed(&[1, 0]);
        let positions: Vec<isize> = (0..6).map(|n| view.position(n)).collect();
        assert_eq!(positions, [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn windows_outside_the_source_are_recognised() {
        assert!(whole(&[4]).sliced(0, 3, 4, -1).fits(4));
        assert!(!whole(&[4]).sliced(0, 3, 5, -1).fits(4));
        assert!(!whole(&[2, 3]).fits(5));
    }
}
