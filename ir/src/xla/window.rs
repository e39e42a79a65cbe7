//! `reduce_window`: reductions of windows that move over a tensor.
//!
//! A window is reduced one axis after the other, and along an axis by doubling: windows of 2, 4,
//! 8 … elements from pairs of those before. The function is taken to be associative, as the
//! specification of StableHLO does.

use super::{
    pad::{AxisPadding, pad},
    reduce::Pairwise,
    size::{Size, broadcast, sizes, sizes_of_rank},
    slice::strided,
};
use crate::{
    dtype::DType,
    emit::{Value, call},
};

/// Geometry of windows.
#[derive(Debug, Clone)]
pub struct Windows<'e> {
    /// The number of elements along each axis.
    pub size: Vec<i64>,
    /// The steps from window to window.
    pub stride: Vec<i64>,
    /// The steps between the elements that the tensor is spread to.
    pub base_dilation: Vec<i64>,
    /// The steps between the elements of a window.
    pub dilation: Vec<i64>,
    /// The initial values before and after each axis.
    pub padding: Vec<(Size<'e>, Size<'e>)>,
}

impl Windows<'_> {
    /// Whether there is one of everything for each of `rank` axes, and none is too small.
    pub fn fits(&self, rank: usize) -> bool {
        let lists = [&self.size, &self.stride, &self.base_dilation, &self.dilation];
        self.padding.len() == rank
            && lists.iter().all(|list| list.len() == rank && list.iter().all(|&x| x >= 1))
            && self.size.iter().zip(&self.dilation).all(|(a, b)| a.checked_mul(*b).is_some())
    }

    /// Whether there may be positions that are no element of the tensor.
    fn is_padded(&self) -> bool {
        let none = |size: Size<'_>| size.known() == Some(0);
        self.base_dilation.iter().any(|&dilation| dilation > 1)
            || !self.padding.iter().all(|&(low, high)| none(low) && none(high))
    }
}

/// The extent of a window of `size` elements, `dilation` apart.
fn extent(size: i64, dilation: i64) -> i64 {
    (size - 1) * dilation + 1
}

/// The tensors with initial values around and between their elements.
pub fn padded<'e>(x: Value<'e>, value: Value<'e>, windows: &Windows<'e>) -> Value<'e> {
    let (low, high) = windows.padding.iter().copied().unzip();
    let interior = windows.base_dilation.iter().map(|&dilation| Size::Known(dilation - 1));
    pad(x, value, &AxisPadding { low, high, interior: interior.collect() })
}

/// The reductions of all windows, each with the initial values once. Positions around and between
/// the elements are left out, as XLA leaves them out; initial values stand for them where
/// `are_identities` tells that these change nothing.
pub fn reduce_window<'e>(
    xs: &[Value<'e>],
    initial: &[Value<'e>],
    windows: &Windows<'e>,
    are_identities: bool,
    function: Pairwise<'_, 'e>,
) -> Vec<Value<'e>> {
    let Some(&first) = xs.first() else { return Vec::new() };
    let all = |mut values: Vec<Value<'e>>, function: Pairwise<'_, 'e>| {
        for axis in (0..windows.size.len()).rev() {
            values = along(&values, windows, axis, function);
        }
        values
    };
    let mut values: Vec<Value<'e>> =
        xs.iter().zip(initial).map(|(&x, &value)| padded(x, value, windows)).collect();
    if are_identities || !windows.is_padded() {
        let values = all(values, function);
        let shapes: Vec<Vec<Size<'e>>> = values.iter().map(|&value| sizes(value)).collect();
        let results = function(initial, &values).into_iter().zip(shapes);
        return results.map(|(x, shape)| broadcast(x, &shape)).collect();
    }
    // A mask tells which positions are elements, and then which windows have any.
    let elements = broadcast(first.literal(1u8).cast(DType::Bool), &sizes(first));
    values.push(padded(elements, first.literal(0u8).cast(DType::Bool), windows));
    let mut values = all(values, &|a, b| {
        let ([a @ .., in_a], [b @ .., in_b]) = (a, b) else { return Vec::new() };
        let both = function(a, b).into_iter().zip(a.iter().zip(b));
        let mut joined: Vec<Value<'e>> =
            both.map(|(both, (&a, &b))| in_a.select(in_b.select(both, a), b)).collect();
        joined.push(call("LogicalOr", [*in_a, *in_b]));
        joined
    });
    let Some(any) = values.pop() else { return Vec::new() };
    let results = function(initial, &values).into_iter().zip(initial);
    results.map(|(x, &initial)| any.select(x, broadcast(initial, &sizes(any)))).collect()
}

/// The reductions of windows along one axis.
fn along<'e>(
    values: &[Value<'e>],
    windows: &Windows<'e>,
    axis: usize,
    function: Pairwise<'_, 'e>,
) -> Vec<Value<'e>> {
    let (size, dilation, stride) =
        (windows.size[axis], windows.dilation[axis], windows.stride[axis]);
    let Some(&first) = values.first() else { return Vec::new() };
    let n = windows.size.len();
    let whole = sizes_of_rank(first, n)[axis];
    // The windows of the largest power of two, combined for every bit of the size.
    let mut powers = values.to_vec();
    let mut width = 1;
    let mut result: Option<(Vec<Value<'e>>, i64)> = None;
    loop {
        if size & width != 0 {
            result = Some(match result {
                None => (powers.clone(), width),
                Some((done, before)) => {
                    let joined =
                        join(&done, before, &powers, width, (axis, dilation, whole), function);
                    (joined, before + width)
                }
            });
        }
        if width > size / 2 {
            break;
        }
        powers = join(&powers, width, &powers, width, (axis, dilation, whole), function);
        width *= 2;
    }
    let (done, _) = result.expect("a size of 1 or more has a bit");
    if stride == 1 {
        return done;
    }
    let count = whole.minus(extent(size, dilation)).plus(1).at_least(0);
    done.into_iter()
        .map(|x| {
            let mut end = sizes_of_rank(x, n);
            end[axis] = count;
            let mut steps = vec![Size::Known(1); end.len()];
            steps[axis] = Size::Known(stride);
            strided(x, &vec![Size::Known(0); end.len()], &end, &steps)
        })
        .collect()
}

/// Windows of `a + b` elements from those of `a` and those of `b` that come after them.
fn join<'e>(
    left: &[Value<'e>],
    a: i64,
    right: &[Value<'e>],
    b: i64,
    (axis, dilation, whole): (usize, i64, Size<'e>),
    function: Pairwise<'_, 'e>,
) -> Vec<Value<'e>> {
    let count = whole.minus(extent(a + b, dilation)).plus(1).at_least(0);
    let part = |x: &Value<'e>, start: i64| {
        let n = sizes(*x).len().max(axis + 1);
        let mut begin = vec![Size::Known(0); n];
        let mut size = sizes_of_rank(*x, n);
        // With no window at all there is nothing to begin at.
        begin[axis] = Size::Known(start).at_most(size[axis]);
        size[axis] = count;
        super::size::window(*x, &begin, &size)
    };
    let left: Vec<Value<'e>> = left.iter().map(|x| part(x, 0)).collect();
    let right: Vec<Value<'e>> = right.iter().map(|x| part(x, a * dilation)).collect();
    let shape = left.first().map_or(Vec::new(), |&x| sizes(x));
    let joined = function(&left, &right);
    joined.into_iter().map(|x| broadcast(x, &shape)).collect()
}
