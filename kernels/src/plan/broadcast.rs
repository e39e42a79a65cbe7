//! Access to each input of a broadcast op.

use ferroflow_ir::{Shape, StridedView, view::ViewDim};
use smallvec::SmallVec;

/// Access to an input while the output is written in order.
#[derive(Debug, Clone, PartialEq)]
pub enum InputAccess {
    /// Element `n` of the output needs element `n` of the input.
    Contiguous,
    /// Every element of the output needs the only element of the input.
    Scalar,
    /// The input is read through a window.
    Strided(StridedView),
}

/// Access to an input of shape `input` that fills an output of shape `output`, to which it
/// broadcasts.
pub fn access(input: &Shape, output: &Shape) -> InputAccess {
    if input.num_elements() == output.num_elements() {
        return InputAccess::Contiguous;
    }
    if input.num_elements() == 1 {
        return InputAccess::Scalar;
    }
    let view = view(input, output);
    match view.dims.as_slice() {
        [] => InputAccess::Scalar,
        [dim] if dim.stride == 1 => InputAccess::Contiguous,
        _ => InputAccess::Strided(view),
    }
}

/// An input that broadcasts to `output`, as elements of that.
pub fn view(input: &Shape, output: &Shape) -> StridedView {
    let dims = output.iter().zip(strides(input, output));
    let dims = dims.map(|(&size, stride)| ViewDim { size, stride: stride as isize });
    StridedView { offset: 0, dims: dims.collect() }.simplified()
}

/// Strides in an input that broadcasts to `output`, along each dimension of that.
pub fn strides(input: &Shape, output: &Shape) -> SmallVec<[usize; 6]> {
    let (strides, missing) = (input.strides(), output.rank() - input.rank());
    let stride = |axis: usize| {
        let own = axis.checked_sub(missing).filter(|&axis| input[axis] != 1);
        own.map_or(0, |axis| strides[axis])
    };
    (0..output.rank()).map(stride).collect()
}

/// For each element of the output, the element of the input that it needs.
pub fn positions(input: &Shape, output: &Shape) -> Vec<usize> {
    let (own, all) = (strides(input, output), output.strides());
    let position = |element: usize| {
        let dims = own.iter().zip(&all).zip(output.iter());
        dims.map(|((own, stride), size)| element / stride % size * own).sum()
    };
    (0..output.num_elements()).map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_repeat_along_what_is_missing() {
        let shape = |dims: &[usize]| Shape::new(dims.iter().copied()).unwrap();
        assert_eq!(positions(&shape(&[2, 1]), &shape(&[2, 2])), [0, 0, 1, 1]);
        assert_eq!(positions(&shape(&[2]), &shape(&[2, 2])), [0, 1, 0, 1]);
        assert_eq!(positions(&shape(&[]), &shape(&[3])), [0, 0, 0]);
    }

    fn check(input: &[usize], output: &[usize]) -> InputAccess {
        let shape = |dims: &[usize]| Shape::new(dims.iter().copied()).unwrap();
        access(&shape(input), &shape(output))
    }

    #[test]
    fn the_common_cases_are_recognised() {
        assert_eq!(check(&[2, 3], &[2, 3]), InputAccess::Contiguous);
        assert_eq!(check(&[2, 3], &[1, 2, 3]), InputAccess::Contiguous);
        assert_eq!(check(&[1, 1], &[2, 3]), InputAccess::Scalar);
        assert!(matches!(check(&[3], &[2, 3]), InputAccess::Strided(view) if view.dims.len() == 2));
        assert!(
            matches!(check(&[2, 1], &[2, 3]), InputAccess::Strided(view) if view.dims[1].stride == 0)
        );
    }
}
