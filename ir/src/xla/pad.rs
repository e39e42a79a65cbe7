//! `pad`: values at the edges and between elements; negative edges cut off.

use super::size::{Size, reshape, sizes, sizes_of_rank, vector, window};
use crate::{
    Attrs,
    emit::{Value, call, calls_with},
};

/// The padding before, after and between the elements of each axis.
#[derive(Debug, Clone)]
pub struct AxisPadding<'e> {
    /// Before the first element; negative to cut off.
    pub low: Vec<Size<'e>>,
    /// After the last element; negative to cut off.
    pub high: Vec<Size<'e>>,
    /// Between neighbours; not negative.
    pub interior: Vec<Size<'e>>,
}

/// `x` with `value` around and between its elements.
pub fn pad<'e>(x: Value<'e>, value: Value<'e>, padding: &AxisPadding<'e>) -> Value<'e> {
    let spread = spread(x, value, &padding.interior);
    let edges = padding.low.iter().chain(&padding.high);
    if edges.clone().all(|size| size.known() == Some(0)) {
        return spread;
    }
    let grown = match edges.clone().all(|size| size.known().is_some_and(|size| size <= 0)) {
        true => spread,
        false => {
            let pairs: Vec<Value<'e>> = [&padding.low, &padding.high]
                .map(|sizes| {
                    let grown: Vec<Size<'e>> = sizes.iter().map(|size| size.at_least(0)).collect();
                    vector(&grown, x)
                })
                .into();
            let attrs = Attrs::new().with("N", 2i64).with("axis", 1i64);
            let paddings = match all_known(padding) {
                Some(pairs) => pairs_constant(x, &pairs),
                None => calls_with("Pack", attrs, &pairs).at(0),
            };
            call("PadV2", [spread, paddings, value])
        }
    };
    if edges.clone().all(|size| size.known().is_some_and(|size| size >= 0)) {
        return grown;
    }
    let cut = |size: &Size<'e>| Size::Known(0).minus(*size).at_least(0);
    let begin: Vec<Size<'e>> = padding.low.iter().map(cut).collect();
    let ends = padding.high.iter().map(cut);
    let whole = sizes(grown).into_iter().zip(begin.iter().zip(ends));
    let size: Vec<Size<'e>> = whole.map(|(size, (&a, b))| size.minus(a).minus(b)).collect();
    window(grown, &begin, &size)
}

fn all_known(padding: &AxisPadding<'_>) -> Option<Vec<i64>> {
    let pairs = padding.low.iter().zip(&padding.high);
    let mut known = Vec::new();
    for (low, high) in pairs {
        known.extend([low.known()?.max(0), high.known()?.max(0)]);
    }
    Some(known)
}

fn pairs_constant<'e>(x: Value<'e>, pairs: &[i64]) -> Value<'e> {
    x.int_vector(pairs).reshape(&[pairs.len() as i64 / 2, 2])
}

/// `x` with `value` between neighbours: behind every element, and the last ones cut off again.
fn spread<'e>(x: Value<'e>, value: Value<'e>, interior: &[Size<'e>]) -> Value<'e> {
    let mut result = x;
    for (axis, &between) in interior.iter().enumerate() {
        if between.known() == Some(0) {
            continue;
        }
        let whole = sizes_of_rank(result, interior.len());
        let mut split = whole.clone();
        split.insert(axis + 1, Size::Known(1));
        let mut after = vec![Size::Known(0); split.len()];
        after[axis + 1] = between;
        let zero = vec![Size::Known(0); split.len()];
        let padding = AxisPadding { low: zero.clone(), high: after, interior: zero };
        let padded = pad(reshape(result, &split), value, &padding);
        let mut merged = whole.clone();
        merged[axis] = whole[axis].times(between.plus(1));
        let mut size = merged.clone();
        size[axis] = merged[axis].minus(between).at_least(0);
        let begin = vec![Size::Known(0); merged.len()];
        result = window(reshape(padded, &merged), &begin, &size);
    }
    result
}
