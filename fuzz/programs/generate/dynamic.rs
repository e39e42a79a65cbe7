//! Statements whose results have sizes that only values tell.

use super::super::program::{Head, Id};
use super::{
    Gen, Seen, Template,
    operands::{int, ints, value},
    windows::{clamped_slice, dynamic_window},
};
use ferroflow::ir::{Attrs, DType, PartialShape};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (3.0, reshape_computed),
    (3.0, masked),
    (1.0, indices),
    (1.5, unique),
    (1.5, shape_of),
    (1.0, range),
    (2.0, hidden),
    (1.0, slice_computed),
    (1.5, clamped_slice),
    (1.5, dynamic_window),
    (0.7, partition),
    (0.6, fill),
    (0.4, assertion),
];

fn reshape_computed(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let shape = g.call("Shape", &[x])?;
    let shape = match g.rng.below(5) {
        0 => shape,
        1 => g.op("ReverseV2", vec![value(shape), ints(&[0])], Attrs::new())?,
        2 => {
            let at = g.rng.below(2);
            let mut args = vec![value(shape), ints(&[1]), int(0)];
            args.swap(0, at);
            g.op("ConcatV2", args, Attrs::new())?
        }
        3 => {
            let n =
                g.op("Prod", vec![value(shape), ints(&[0])], Attrs::new().with("keep_dims", true))?;
            let other = g.rng.chance(0.5).then(|| ints(&[1]));
            let args = [Some(value(n)), other, Some(int(0))].into_iter().flatten().collect();
            g.op("ConcatV2", args, Attrs::new()).unwrap_or(n)
        }
        _ => {
            let all: Vec<usize> = g.type_of(x).shapes.iter().map(|s| s.num_elements()).collect();
            let other = g.find(|seen| {
                seen.is_tensor()
                    && seen.shapes.iter().map(|s| s.num_elements()).eq(all.iter().copied())
            })?;
            g.call("Shape", &[other])?
        }
    };
    g.call("Reshape", &[x, shape]).map(drop)
}

/// The rows or elements of a value for which a mask is true.
fn masked(g: &mut Gen) -> Option<()> {
    let mask = match g.find(|seen| seen.dtype == DType::Bool && seen.rank() > Some(0)) {
        Some(mask) if g.rng.chance(0.6) => mask,
        _ => {
            let x = g.find(|seen| seen.is_number() && seen.is_exact && seen.rank() > Some(0))?;
            let bound = g.numbers(g.type_of(x).dtype, &[])?;
            g.op("Greater", vec![value(x), bound], Attrs::new())?
        }
    };
    let shapes = g.type_of(mask).shapes.clone();
    let x = g.find(|seen| {
        let begins =
            |(a, b): (&ferroflow::ir::Shape, &ferroflow::ir::Shape)| a.dims().starts_with(b.dims());
        seen.is_tensor() && seen.shapes.iter().zip(&shapes).all(begins)
    })?;
    let indices = g.call("Where", &[mask])?;
    g.call("GatherNd", &[x, indices]).map(drop)
}

fn indices(g: &mut Gen) -> Option<()> {
    let is_mask = |seen: &Seen| seen.dtype == DType::Bool || seen.is_int();
    let x = g.find(|seen| is_mask(seen) && seen.rank() > Some(0))?;
    g.call("Where", &[x]).map(drop)
}

fn unique(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| {
        seen.rank() == Some(1) && seen.is_exact && (seen.is_number() || seen.dtype == DType::String)
    })?;
    match g.rng.chance(0.7) {
        true => outs(g, "Unique", x, 2),
        false => outs(g, "UniqueWithCounts", x, 3),
    }
}

fn outs(g: &mut Gen, name: &'static str, x: Id, n: usize) -> Option<()> {
    g.emit(Head::Op(name, Attrs::new()), vec![value(x)], Vec::new(), n, None).map(drop)
}

fn shape_of(g: &mut Gen) -> Option<()> {
    let (name, x) = (g.rng.pick(&["Shape", "Size", "Rank", "Shape"]), g.find(Seen::is_tensor)?);
    g.call(name, &[x]).map(drop)
}

fn range(g: &mut Gen) -> Option<()> {
    let n = g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0))?;
    g.op("Range", vec![int(0), value(n), int(g.rng.clone().within(1, 2))], Attrs::new()).map(drop)
}

/// The value, of which nothing is known while tracing.
fn hidden(g: &mut Gen) -> Option<()> {
    let x = g.find(Seen::is_tensor)?;
    let shape = match g.type_of(x).rank() {
        Some(rank) if g.rng.chance(0.5) => PartialShape::of_rank(rank),
        _ => PartialShape::Unknown,
    };
    g.op("PlaceholderWithDefault", vec![value(x)], Attrs::new().with("shape", shape)).map(drop)
}

fn slice_computed(g: &mut Gen) -> Option<()> {
    let x = g.any_array()?;
    let at = g.find(|seen| seen.dtype == DType::I32 && seen.rank() == Some(0))?;
    let begin = g.op("Pack", vec![value(at)], Attrs::new())?;
    let (mask, end) = match g.rng.chance(0.5) {
        true => ("end_mask", value(begin)),
        false => ("begin_mask", value(begin)),
    };
    let args = vec![value(x), value(begin), end, ints(&[1])];
    g.op("StridedSlice", args, Attrs::new().with(mask, 1i64)).map(drop)
}

fn partition(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let sizes: Vec<usize> = g.type_of(x).sizes(0).collect();
    let parts = g.find(|seen| {
        seen.dtype == DType::I32
            && seen.rank() == Some(1)
            && seen.sizes(0).eq(sizes.iter().copied())
    })?;
    let parts = g.op("FloorMod", vec![value(parts), int(2)], Attrs::new())?;
    let attrs = Attrs::new().with("num_partitions", 2i64);
    let head = Head::Op("DynamicPartition", attrs);
    g.emit(head, vec![value(x), value(parts)], Vec::new(), 2, None).map(drop)
}

fn fill(g: &mut Gen) -> Option<()> {
    let x = g.find(Seen::is_tensor)?;
    let scalar = g.find(|seen| seen.is_number() && seen.rank() == Some(0))?;
    let shape = g.call("Shape", &[x])?;
    g.call("Fill", &[shape, scalar]).map(drop)
}

fn assertion(g: &mut Gen) -> Option<()> {
    let x = g.find(Seen::is_tensor)?;
    let size = g.call("Size", &[x])?;
    let is_large = g.op("GreaterEqual", vec![value(size), int(0)], Attrs::new())?;
    let args = vec![value(is_large), value(size)];
    g.emit(Head::Op("Assert", Attrs::new()), args, Vec::new(), 0, None).map(drop)
}
