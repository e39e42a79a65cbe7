//! How each input of a broadcast op is read.

use ferroflow_ir::{Shape, StridedView, view::ViewDim};

/// How an input is read while the output is written in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Element `n` of the output needs element `n` of the input.
    Contiguous,
    /// Every element of the output needs the only element of the input.
    Scalar,
    /// The input is read through a window.
    Strided(StridedView),
}

/// How an input of shape `input` is read to fill an output of shape `output`, to which it
/// broadcasts.
pub fn access(input: &Shape, output: &Shape) -> Access {
    if input.num_elements() == output.num_elements() {
        return Access::Contiguous;
    }
    if input.num_elements() == 1 {
        return Access::Scalar;
    }
    let strides = input.strides();
    let missing = output.rank() - input.rank();
    let dims = output.iter().enumerate().map(|(axis, &size)| {
        let own = axis.checked_sub(missing).filter(|&axis| input[axis] != 1);
        ViewDim { size, stride: own.map_or(0, |axis| strides[axis] as isize) }
    });
    let view = StridedView { offset: 0, dims: dims.collect() }.simplified();
    match view.dims.as_slice() {
        [] => Access::Scalar,
        [dim] if dim.stride == 1 => Access::Contiguous,
        _ => Access::Strided(view),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[usize], output: &[usize]) -> Access {
        let shape = |dims: &[usize]| Shape::new(dims.iter().copied()).unwrap();
        access(&shape(input), &shape(output))
    }

    #[test]
    fn the_common_cases_are_recognised() {
        assert_eq!(check(&[2, 3], &[2, 3]), Access::Contiguous);
        assert_eq!(check(&[2, 3], &[1, 2, 3]), Access::Contiguous);
        assert_eq!(check(&[1, 1], &[2, 3]), Access::Scalar);
        assert!(matches!(check(&[3], &[2, 3]), Access::Strided(view) if view.dims.len() == 2));
        assert!(
            matches!(check(&[2, 1], &[2, 3]), Access::Strided(view) if view.dims[1].stride == 0)
        );
    }
}
