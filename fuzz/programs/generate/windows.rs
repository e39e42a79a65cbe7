//! Windows between bounds that are computed: clamped, moved, put together of elements, as compilers write slices
//! of symbolic sizes.

use super::super::program::Id;
use super::{
    Gen,
    operands::{int, ints, value},
};
use ferroflow::ir::{Attrs, DType};

/// A slice of `x` from clamped indices on. Some clamps are off by one, so that windows are cut off.
pub(super) fn clamped_slice(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let rank = g.type_of(x).rank().filter(|rank| (1..4).contains(rank))?;
    let at = g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0))?;
    let (mut entries, mut lengths, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for axis in 0..rank {
        let n = g.type_of(x).sizes(axis).min()? as i64;
        let length = g.rng.within(0, n);
        entries.push(match g.rng.chance(0.6) {
            true => value(at),
            false => int(g.rng.within(-1, n)),
        });
        last.push(n - length + i64::from(g.rng.chance(0.1)));
        lengths.push(length);
    }
    let first = vec![if g.rng.chance(0.1) { -1 } else { 0 }; rank];
    let mut begin = g.op("Pack", entries, Attrs::new())?;
    let mut bounds = [("Maximum", ints(&first)), ("Minimum", ints(&last))];
    if g.rng.chance(0.3) {
        bounds.swap(0, 1);
    }
    for (op, bound) in bounds {
        begin = g.op(op, vec![value(begin), bound], Attrs::new())?;
    }
    if g.rng.chance(0.2) {
        let step = g.rng.within(-1, 1);
        begin = g.op("AddV2", vec![int(step), value(begin)], Attrs::new())?;
    }
    let backwards: Vec<i64> = lengths.iter().map(|length| -length).collect();
    let mut end = match g.rng.chance(0.7) {
        true => g.op("AddV2", vec![value(begin), ints(&lengths)], Attrs::new())?,
        false => g.op("Sub", vec![value(begin), ints(&backwards)], Attrs::new())?,
    };
    if g.rng.chance(0.3) {
        end = taken_apart(g, end, rank)?;
    }
    if g.rng.chance(0.3) {
        begin = taken_apart(g, begin, rank)?;
    }
    let args = vec![value(x), value(begin), value(end), ints(&vec![1; rank])];
    g.op("StridedSlice", args, Attrs::new()).map(drop)
}

/// An update of `x` by a window of constants at computed starts, which XLA moves to be inside, or the window there.
pub(super) fn dynamic_window(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let rank = g.type_of(x).rank().filter(|rank| (1..4).contains(rank))?;
    let at = g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0))?;
    let (mut starts, mut lengths) = (Vec::new(), Vec::new());
    let row = g.rng.chance(0.6).then(|| g.rng.below(rank));
    for axis in 0..rank {
        let n = g.type_of(x).sizes(axis).min()? as i64;
        let length = match row {
            Some(moving) => {
                if axis == moving {
                    n.min(1)
                } else {
                    n
                }
            }
            None => g.rng.within(0, n),
        };
        starts.push(match g.rng.chance(0.6) || row == Some(axis) {
            true => value(at),
            false => int(g.rng.within(-1, n)),
        });
        lengths.push(length);
    }
    let starts = g.op("Pack", starts, Attrs::new())?;
    if g.rng.chance(0.4) {
        let args = vec![value(x), value(starts), ints(&lengths)];
        return g.op("XlaDynamicSlice", args, Attrs::new()).map(drop);
    }
    let dims: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
    let update = g.numbers(g.type_of(x).dtype, &dims)?;
    let args = vec![value(x), update, value(starts)];
    g.op("XlaDynamicUpdateSlice", args, Attrs::new()).map(drop)
}

/// The same vector, put together of its elements.
fn taken_apart(g: &mut Gen, vector: Id, n: usize) -> Option<Id> {
    let mut parts = Vec::new();
    for index in 0..n as i64 {
        let part = match g.rng.chance(0.5) {
            true => g.op("GatherV2", vec![value(vector), int(index), int(0)], Attrs::new())?,
            false => {
                let masks = Attrs::new().with("shrink_axis_mask", 1i64);
                let (from, to) = (ints(&[index]), ints(&[index + 1]));
                g.op("StridedSlice", vec![value(vector), from, to, ints(&[1])], masks)?
            }
        };
        parts.push(value(part));
    }
    g.op("Pack", parts, Attrs::new())
}
