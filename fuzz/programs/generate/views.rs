//! Views and moves of elements: reshapes, slices, transpositions, concatenations, gathers.

use super::super::program::{Head, Id, StatementOperand};
use super::{
    Gen, Seen, Template,
    operands::{int, ints, pairs, value},
};
use ferroflow::ir::{Attrs, DType};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (4.0, reshape),
    (3.0, expand_dims),
    (2.0, squeeze),
    (3.0, transpose),
    (4.0, strided_slice),
    (1.5, slice),
    (3.0, concat),
    (2.5, split),
    (1.5, pack),
    (2.0, unpack),
    (2.5, moved),
    (2.0, gather),
    (1.0, gather_rows),
    (1.2, scatter),
    (1.0, spread),
    (0.7, diagonal),
];

/// Chains around a value that may be written over.
pub(super) const CHAINS: &[(f64, Template)] = &[(1.0, views_of_result)];

fn reshape(g: &mut Gen) -> Option<()> {
    let x = g.find(Seen::is_tensor)?;
    reshape_of(g, x).map(drop)
}

fn reshape_of(g: &mut Gen, x: Id) -> Option<Id> {
    let seen = g.type_of(x).clone();
    let sizes: Vec<usize> = seen.shapes.iter().map(|shape| shape.num_elements()).collect();
    let mut all: Vec<Vec<i64>> = vec![vec![-1], vec![1, -1], vec![-1, 1]];
    for k in [2usize, 3, 4] {
        if sizes.iter().all(|n| n % k == 0) {
            let k = k as i64;
            all.extend([vec![-1, k], vec![k, -1], vec![k, 1, -1]]);
        }
    }
    if seen.shapes.iter().all(|shape| *shape == seen.shapes[0]) {
        let mut dims = seen.shapes[0].to_i64();
        all.push(dims.clone());
        dims.reverse();
        all.push(dims);
        all.push(vec![sizes[0] as i64]);
    }
    let shape = g.rng.pick(&all);
    g.op("Reshape", vec![value(x), ints(&shape)], Attrs::new())
}

fn expand_dims(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_tensor() && seen.rank().is_some_and(|rank| rank < 5))?;
    let rank = g.type_of(x).rank()? as i64;
    let axis = g.rng.within(-rank - 1, rank);
    g.op("ExpandDims", vec![value(x), int(axis)], Attrs::new()).map(drop)
}

fn squeeze(g: &mut Gen) -> Option<()> {
    let has_one = |seen: &Seen| {
        seen.is_tensor() && (0..seen.rank().unwrap_or(0)).any(|axis| seen.size(axis) == Some(1))
    };
    let x = g.find(has_one)?;
    let seen = g.type_of(x).clone();
    let ones: Vec<i64> =
        (0..seen.rank()?).filter(|&a| seen.size(a) == Some(1)).map(|a| a as i64).collect();
    let attrs = match g.rng.chance(0.7) {
        true => Attrs::new().with("squeeze_dims", vec![g.rng.pick(&ones)]),
        false => Attrs::new(),
    };
    g.op("Squeeze", vec![value(x)], attrs).map(drop)
}

fn transpose(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let mut order: Vec<i64> = (0..g.type_of(x).rank()? as i64).collect();
    g.rng.shuffle(&mut order);
    g.op("Transpose", vec![value(x), ints(&order)], Attrs::new()).map(drop)
}

fn strided_slice(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let rank = g.type_of(x).rank()?;
    let n = 1 + g.rng.below(rank);
    let (mut begin, mut end, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    let mut masks = [0i64; 5];
    for bit in 0..n {
        let (b, e, s, mask) = match g.rng.below(6) {
            0 => (0, 0, 1, vec![3]),
            1 => (g.rng.pick(&[0, -1]), 0, 1, vec![4]),
            2 => (0, 0, g.rng.pick(&[-1, 2, -2]), vec![0, 1]),
            3 => (0, g.rng.within(-1, 2), 1, vec![0]),
            4 => (g.rng.within(-2, 1), 0, 1, vec![1]),
            _ => (0, 0, 1, vec![0, 1]),
        };
        begin.push(b);
        end.push(e);
        strides.push(s);
        mask.into_iter().for_each(|mask: usize| masks[mask] |= 1 << bit);
    }
    if g.rng.chance(0.1) && masks[3] & 1 == 0 {
        masks[2] = 1;
    }
    let names = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
    let mut attrs = Attrs::new();
    for (name, mask) in names.into_iter().zip(masks) {
        if mask != 0 {
            attrs.set(name, mask);
        }
    }
    g.op("StridedSlice", vec![value(x), ints(&begin), ints(&end), ints(&strides)], attrs).map(drop)
}

/// Rows from the first on, or without it.
fn rows_of(g: &mut Gen, x: Id) -> Option<Id> {
    let (begin, end, mask) =
        g.rng.pick(&[(0, 1, "begin_mask"), (1, 0, "end_mask"), (-1, 0, "end_mask")]);
    let args = vec![value(x), ints(&[begin]), ints(&[end]), ints(&[1])];
    g.op("StridedSlice", args, Attrs::new().with(mask, 1i64))
}

fn slice(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let seen = g.type_of(x).clone();
    let (mut begin, mut size) = (Vec::new(), Vec::new());
    for axis in 0..seen.rank()? {
        let least = seen.sizes(axis).min()? as i64;
        let from = g.rng.within(0, least.min(1));
        begin.push(from);
        size.push(if g.rng.chance(0.6) { -1 } else { least - from });
    }
    g.op("Slice", vec![value(x), ints(&begin), ints(&size)], Attrs::new()).map(drop)
}

fn concat(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let axis = g.axis(x)?;
    let (at, seen) = (g.index_of(x, axis), g.type_of(x).clone());
    let mut args = vec![value(x)];
    for _ in 0..1 + g.rng.below(2) {
        let other = g.find(|other| {
            let same = (0..seen.rank().unwrap_or(0))
                .all(|axis| axis == at || seen.sizes(axis).eq(other.sizes(axis)));
            other.dtype == seen.dtype && other.rank() == seen.rank() && same
        })?;
        args.push(value(other));
    }
    args.push(int(axis));
    g.op("ConcatV2", args, Attrs::new()).map(drop)
}

fn split(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    split_of(g, x).map(drop)
}

fn split_of(g: &mut Gen, x: Id) -> Option<Vec<Id>> {
    let axis = g.axis(x)?;
    let sizes: Vec<usize> = g.type_of(x).sizes(g.index_of(x, axis)).collect();
    if g.rng.chance(0.6) {
        let counts: Vec<usize> =
            (1..5).filter(|n| sizes.iter().all(|size| size % n == 0)).collect();
        let n = g.rng.pick(&counts);
        let attrs = Attrs::new().with("num_split", n as i64);
        return g.emit(Head::Op("Split", attrs), vec![int(axis), value(x)], Vec::new(), n, None);
    }
    let least = *sizes.iter().min()? as i64;
    let part = g.rng.within(0, least);
    let parts = if g.rng.chance(0.5) { [part, -1] } else { [-1, part] };
    let attrs = Attrs::new().with("num_split", 2i64);
    let args = vec![value(x), ints(&parts), int(axis)];
    g.emit(Head::Op("SplitV", attrs), args, Vec::new(), 2, None)
}

fn pack(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_tensor() && seen.rank().is_some_and(|rank| rank < 5))?;
    let mut args = vec![value(x)];
    for _ in 0..g.rng.below(3) {
        args.push(value(g.like(x)?));
    }
    let axis = g.rng.within(-1, g.type_of(x).rank()? as i64);
    g.op("Pack", args, Attrs::new().with("axis", axis)).map(drop)
}

fn unpack(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    unpack_of(g, x).map(drop)
}

fn unpack_of(g: &mut Gen, x: Id) -> Option<Vec<Id>> {
    let seen = g.type_of(x).clone();
    let fixed: Vec<usize> =
        (0..seen.rank()?).filter(|&axis| matches!(seen.size(axis), Some(1..=4))).collect();
    if fixed.is_empty() {
        return None;
    }
    let axis = g.rng.pick(&fixed);
    let n = seen.size(axis)?;
    let attrs = Attrs::new().with("num", n as i64).with("axis", axis as i64);
    g.emit(Head::Op("Unpack", attrs), vec![value(x)], Vec::new(), n, None)
}

fn moved(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let (rank, axis) = (g.type_of(x).rank()?, g.axis(x)?);
    let pads: Vec<[i64; 2]> = (0..rank).map(|_| [g.rng.within(0, 2), g.rng.within(0, 1)]).collect();
    let (name, args, attrs) = match g.rng.below(6) {
        0 => {
            let times: Vec<i64> = (0..rank).map(|_| g.rng.pick(&[1, 1, 2, 3, 0])).collect();
            ("Tile", vec![value(x), ints(&times)], Attrs::new())
        }
        1 => ("Pad", vec![value(x), pairs(&pads)?], Attrs::new()),
        2 => {
            let constant = g.numbers(g.type_of(x).dtype, &[])?;
            ("PadV2", vec![value(x), pairs(&pads)?, constant], Attrs::new())
        }
        3 => {
            let mode = g.rng.pick(&["REFLECT", "SYMMETRIC"]);
            ("MirrorPad", vec![value(x), pairs(&pads)?], Attrs::new().with("mode", mode))
        }
        4 => ("ReverseV2", vec![value(x), ints(&[axis])], Attrs::new()),
        _ => ("Roll", vec![value(x), int(g.rng.within(-3, 3)), int(axis)], Attrs::new()),
    };
    g.op(name, args, attrs).map(drop)
}

fn gather(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let axis = g.axis(x)?;
    let least = g.type_of(x).sizes(g.index_of(x, axis)).min()? as i64;
    let indices = match g.rng.chance(0.4) {
        true => value(g.find(|seen| seen.is_int() && seen.rank() < Some(3))?),
        false if least == 0 => ints(&[]),
        false => {
            let n = g.rng.below(4);
            ints(&(0..n).map(|_| g.rng.within(0, least - 1)).collect::<Vec<_>>())
        }
    };
    g.op("GatherV2", vec![value(x), indices, int(axis)], Attrs::new()).map(drop)
}

fn gather_rows(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let least = g.type_of(x).sizes(0).min()?.max(1) as i64;
    let rows = [[g.rng.within(0, least - 1)], [g.rng.within(0, least - 1)]];
    let numbers: Vec<i32> = rows.iter().flatten().map(|&n| n as i32).collect();
    let shape = ferroflow::ir::Shape::new([2, 1]).ok()?;
    let indices = ferroflow::ir::HostTensor::from_slice(shape, &numbers).ok()?;
    g.op("GatherNd", vec![value(x), StatementOperand::Const(indices)], Attrs::new()).map(drop)
}

fn scatter(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let sizes: Vec<usize> = g.type_of(x).sizes(0).collect();
    let indices = g.find(|seen| {
        seen.is_int() && seen.rank() == Some(1) && seen.sizes(0).eq(sizes.iter().copied())
    });
    if let (Some(indices), true) = (indices, g.rng.chance(0.5)) {
        let n = int(g.rng.within(1, 5));
        let args = vec![value(x), value(indices), n];
        let names = ["UnsortedSegmentSum", "UnsortedSegmentSum", "UnsortedSegmentProd"];
        let name = g.rng.pick(&names);
        return g.op(name, args, Attrs::new()).map(drop);
    }
    let row = g.call("ZerosLike", &[x])?;
    let args = vec![value(row), pairs_of_one(0)?, value(first_row(g, x)?)];
    let name = g.rng.pick(&["TensorScatterUpdate", "TensorScatterAdd"]);
    g.op(name, args, Attrs::new()).map(drop)
}

fn pairs_of_one(index: i32) -> Option<StatementOperand> {
    let shape = ferroflow::ir::Shape::new([1, 1]).ok()?;
    Some(StatementOperand::Const(ferroflow::ir::HostTensor::from_slice(shape, &[index]).ok()?))
}

fn first_row(g: &mut Gen, x: Id) -> Option<Id> {
    let args = vec![value(x), ints(&[0]), ints(&[1]), ints(&[1])];
    g.op("StridedSlice", args, Attrs::new())
}

fn spread(g: &mut Gen) -> Option<()> {
    let x = g.number()?;
    let y = g.fitting(x)?;
    let shape = g.call("Shape", &[y])?;
    g.call("BroadcastTo", &[x, shape]).map(drop)
}

fn diagonal(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() && seen.rank() > Some(1))?;
    match g.rng.below(3) {
        0 => {
            let args = vec![value(x), int(g.rng.within(-1, 1)), int(g.rng.within(-1, 1))];
            g.op("MatrixBandPart", args, Attrs::new()).map(drop)
        }
        1 => g.call("MatrixDiagPart", &[x]).map(drop),
        _ => g.call("MatrixDiag", &[x]).map(drop),
    }
}

/// A result, views of it, ops that may be written over it, and uses of the views after them.
fn views_of_result(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::F32 && seen.rank() > Some(0))?;
    let result = match g.rng.below(5) {
        0 => {
            let x = g.find(|seen| seen.dtype == DType::F32 && seen.rank() == Some(2))?;
            g.op("MatMul", vec![value(x), value(x)], Attrs::new().with("transpose_b", true))?
        }
        1 => g.op("Cumsum", vec![value(x), int(0)], Attrs::new())?,
        2 => g.op("ReverseV2", vec![value(x), ints(&[0])], Attrs::new())?,
        3 => g.op("ConcatV2", vec![value(x), value(x), int(0)], Attrs::new())?,
        _ => {
            let mut order: Vec<i64> = (0..g.type_of(x).rank()? as i64).collect();
            order.reverse();
            g.op("Transpose", vec![value(x), ints(&order)], Attrs::new())?
        }
    };
    let mut views = vec![result];
    for _ in 0..1 + g.rng.below(3) {
        let of = g.rng.pick(&views);
        match g.rng.below(5) {
            0 | 1 => views.extend(rows_of(g, of)),
            2 => views.extend(split_of(g, of).unwrap_or_default()),
            3 => views.extend(unpack_of(g, of).unwrap_or_default()),
            _ => views.extend(reshape_of(g, of)),
        }
    }
    let mut over = result;
    for _ in 0..1 + g.rng.below(3) {
        let name = g.rng.pick(&["Neg", "Square", "Abs", "Relu"]);
        over = g.call(name, &[over])?;
    }
    views.remove(0);
    for _ in 0..g.rng.below(3).min(views.len()) {
        let view = g.rng.pick(&views);
        match g.rng.below(4) {
            0 => g.op("Cumsum", vec![value(view), int(0)], Attrs::new()),
            1 => g.call("Neg", &[view]),
            2 => g.op("ConcatV2", vec![value(view), value(view), int(0)], Attrs::new()),
            _ => g.call("AddV2", &[view, view]),
        };
    }
    Some(())
}
