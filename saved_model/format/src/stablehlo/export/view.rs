//! Views as slices, transpositions and broadcasts.

use super::block::{Block, Typed};
use ferroflow_ir::{Shape, StridedView};

/// Position of a loop of a view in its source.
struct Axis {
    source: usize,
    start: usize,
    size: usize,
    /// Steps of the source's dimension; negative backwards.
    step: isize,
}

/// Adds the operations of a view of `x` whose result has `dims`; `None` if its loops are no steps
/// along dimensions of the source.
pub(super) fn view(
    block: &mut Block<'_>,
    x: &Typed,
    view: &StridedView,
    dims: &[usize],
) -> Option<Typed> {
    if view.num_elements() == 0 {
        let start = vec![0; x.rank()];
        let empty = block.slice(x, &start, &start, &vec![1; x.rank()]);
        return Some(block.reshape(&empty, dims));
    }
    let shape = Shape::new(x.dims.iter().copied()).ok()?;
    let strides = shape.strides();
    let mut rest = usize::try_from(view.offset).ok()?;
    let mut starts: Vec<usize> = Vec::with_capacity(x.rank());
    for (&stride, &size) in strides.iter().zip(&x.dims) {
        let start = if size == 1 { 0 } else { rest / stride };
        rest -= start * stride;
        starts.push(start);
    }
    if rest != 0 {
        return None;
    }
    // By loop that moves: the dimension it moves along.
    let mut axes: Vec<Axis> = Vec::new();
    for dim in view.dims.iter().filter(|dim| dim.size > 1 && dim.stride != 0) {
        let fits = |&source: &usize| {
            let stride = strides[source] as isize;
            let (start, last) = (starts[source] as isize, dim.size as isize - 1);
            let end = start + dim.stride / stride * last;
            x.dims[source] > 1
                && dim.stride % stride == 0
                && (0..x.dims[source] as isize).contains(&end)
                && axes.iter().all(|axis| axis.source != source)
        };
        let source = (0..x.rank()).find(fits)?;
        let step = dim.stride / strides[source] as isize;
        axes.push(Axis { source, start: starts[source], size: dim.size, step });
    }
    let mut limits: Vec<usize> = starts.iter().map(|start| start + 1).collect();
    let mut steps = vec![1; x.rank()];
    let mut reversed = Vec::new();
    for axis in &axes {
        let step = axis.step.unsigned_abs();
        let reach = step * (axis.size - 1);
        if axis.step < 0 {
            starts[axis.source] = axis.start - reach;
            reversed.push(axis.source);
        }
        limits[axis.source] = starts[axis.source] + reach + 1;
        steps[axis.source] = step;
    }
    let sliced = block.slice(x, &starts, &limits, &steps);
    let turned = block.reverse(&sliced, &reversed);
    // Dimensions that no loop moves along are of size 1 now.
    let mut sources: Vec<usize> = axes.iter().map(|axis| axis.source).collect();
    sources.sort_unstable();
    let kept: Vec<usize> = sources.iter().map(|&source| turned.dims[source]).collect();
    let flat = block.reshape(&turned, &kept);
    let position = |source: usize| sources.iter().position(|&other| other == source);
    let order: Vec<usize> = axes.iter().map(|axis| position(axis.source)).collect::<Option<_>>()?;
    let ordered = block.transpose(&flat, &order);
    let loops: Vec<usize> = view.dims.iter().map(|dim| dim.size).collect();
    let moving: Vec<usize> = (0..loops.len())
        .filter(|&at| view.dims[at].size > 1 && view.dims[at].stride != 0)
        .collect();
    let whole = block.broadcast(&ordered, &moving, &loops);
    Some(block.reshape(&whole, dims))
}
