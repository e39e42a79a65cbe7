//! Reading and writing strided windows.

use ferroflow_ir::StridedView;
use smallvec::SmallVec;

/// Copies elements `start..start + out.len()` of a window, counted row-major, into `out`.
///
/// # Panics
///
/// When the window does not [fit](StridedView::fits) the source.
pub fn read<T: Clone>(view: &StridedView, source: &[T], start: usize, out: &mut [T]) {
    read_by(view, source, start, out, |from, to| to.clone_from_slice(from));
}

/// As [`read`], where `copy` copies contiguous runs.
pub(crate) fn read_by<T: Clone>(
    view: &StridedView,
    source: &[T],
    start: usize,
    out: &mut [T],
    copy: impl Fn(&[T], &mut [T]),
) {
    let n = out.len();
    let mut rest = out;
    for_each_run(view, start, n, |first, stride, run| {
        let (now, later) = std::mem::take(&mut rest).split_at_mut(run);
        match stride {
            1 => copy(&source[first as usize..][..run], now),
            _ => read_run(source, first, stride, now),
        }
        rest = later;
    });
}

/// Copies `elements`, counted row-major, to the positions that a window of `target` shows.
///
/// # Panics
///
/// When the window does not [fit](StridedView::fits) the target, or has fewer elements.
pub fn write<T: Clone>(view: &StridedView, target: &mut [T], elements: &[T]) {
    let mut rest = elements;
    for_each_run(view, 0, elements.len(), |first, stride, run| {
        let (now, later) = rest.split_at(run);
        for (step, element) in now.iter().enumerate() {
            target[(first + step as isize * stride) as usize].clone_from(element);
        }
        rest = later;
    });
}

/// Calls `visit` for each run of elements along the innermost loop, from element `start` of a
/// window on until `n` elements have been seen: with the place of the first one, the stride, and
/// their number.
fn for_each_run(
    view: &StridedView,
    start: usize,
    n: usize,
    mut visit: impl FnMut(isize, isize, usize),
) {
    let mut left = n;
    if left == 0 {
        return;
    }
    let Some((inner, outer)) = view.dims.split_last() else {
        return visit(view.offset, 1, 1);
    };
    // The position in each outer loop, and in the inner one.
    let mut rest = start / inner.size;
    let mut step = start % inner.size;
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
    let mut base = view.offset;
    for (position, dim) in index.iter_mut().zip(outer).rev() {
        *position = rest % dim.size;
        rest /= dim.size;
        base += *position as isize * dim.stride;
    }
    loop {
        let run = (inner.size - step).min(left);
        visit(base + step as isize * inner.stride, inner.stride, run);
        left -= run;
        if left == 0 {
            return;
        }
        step = 0;
        for (position, dim) in index.iter_mut().zip(outer).rev() {
            *position += 1;
            base += dim.stride;
            if *position < dim.size {
                break;
            }
            base -= dim.stride * dim.size as isize;
            *position = 0;
        }
    }
}

fn read_run<T: Clone>(source: &[T], first: isize, stride: isize, out: &mut [T]) {
    let first = first as usize;
    match stride {
        0 => out.fill(source[first].clone()),
        stride if stride > 0 => {
            let cells = source[first..].iter().step_by(stride as usize);
            out.iter_mut().zip(cells).for_each(|(out, cell)| out.clone_from(cell));
        }
        stride => {
            let cells = source[..=first].iter().rev().step_by(stride.unsigned_abs());
            out.iter_mut().zip(cells).for_each(|(out, cell)| out.clone_from(cell));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::Shape;
    use proptest::prelude::*;

    fn reference(view: &StridedView, source: &[i32]) -> Vec<i32> {
        (0..view.num_elements())
            .map(|mut n| {
                let mut at = view.offset;
                for dim in view.dims.iter().rev() {
                    at += (n % dim.size) as isize * dim.stride;
                    n /= dim.size;
                }
                source[at as usize]
            })
            .collect()
    }

    proptest! {
        #[test]
        fn any_part_of_any_window_is_read_in_order(
            dims in prop::collection::vec(1usize..5, 1..4),
            flip in prop::collection::vec(any::<bool>(), 4),
            cut in 0.0f64..1.0,
        ) {
            let shape = Shape::new(dims.iter().copied()).unwrap();
            let source: Vec<i32> = (0..shape.num_elements() as i32).collect();
            let mut view = StridedView::whole(&shape);
            let permutation: Vec<usize> = (0..dims.len()).rev().collect();
            view = view.transposed(&permutation);
            for (axis, &flip) in flip.iter().enumerate().take(dims.len()) {
                if flip {
                    let size = view.dims[axis].size;
                    view = view.sliced(axis, size - 1, size, -1);
                }
            }
            let expected = reference(&view, &source);
            let start = (cut * expected.len() as f64) as usize;
            for view in [view.clone(), view.simplified()] {
                let mut out = vec![-1; expected.len() - start];
                read(&view, &source, start, &mut out);
                prop_assert_eq!(&out, &expected[start..]);
                let mut back = vec![-1; source.len()];
                write(&view, &mut back, &expected);
                prop_assert_eq!(&back, &source);
            }
        }
    }
}
