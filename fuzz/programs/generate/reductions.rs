//! Reductions, sorts and counts.

use super::super::program::{Head, StatementOperand};
use super::{
    Gen, Seen, Template,
    operands::{int, ints, value},
};
use ferroflow::ir::{Attrs, DType, HostTensor};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (5.0, reduced),
    (1.0, decided),
    (1.0, chosen_by_row),
    (0.7, over_computed_axes),
    (1.0, largest_index),
    (1.0, largest),
    (1.2, cumulated),
    (0.7, one_hot),
    (0.5, einsum),
];

fn axes(g: &mut Gen, rank: usize) -> Vec<i64> {
    match g.rng.below(4) {
        0 => (0..rank as i64).collect(),
        1 => (0..rank as i64).filter(|_| g.rng.chance(0.5)).collect(),
        _ => vec![g.rng.within(-(rank as i64), rank as i64 - 1)],
    }
}

fn kept(g: &mut Gen) -> Attrs {
    if g.rng.chance(0.35) { Attrs::new().with("keep_dims", true) } else { Attrs::new() }
}

fn reduced(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let rank = g.type_of(x).rank()?;
    let (axes, attrs) = (axes(g, rank), kept(g));
    let names = ["Sum", "Sum", "Max", "Min", "Prod", "Mean"];
    let name = g.rng.pick(&names);
    let name = if name == "Mean" && !g.type_of(x).is_float() { "Sum" } else { name };
    g.op(name, vec![value(x), ints(&axes)], attrs).map(drop)
}

fn decided(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::Bool && seen.rank() > Some(0))?;
    let rank = g.type_of(x).rank()?;
    let (axes, attrs, name) = (axes(g, rank), kept(g), g.rng.pick(&["Any", "All"]));
    g.op(name, vec![value(x), ints(&axes)], attrs).map(drop)
}

/// Elements chosen or scaled by a condition that has one value for all along an axis.
fn chosen_by_row(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_float() && seen.is_exact && seen.rank() > Some(0))?;
    let (axis, keep) = (g.axis(x)?, Attrs::new().with("keep_dims", true));
    let (reduction, comparison) =
        (g.rng.pick(&["Max", "Min", "Sum"]), g.rng.pick(&["Greater", "LessEqual", "NotEqual"]));
    let row = g.op(reduction, vec![value(x), ints(&[axis])], keep)?;
    let constant = g.numbers(g.type_of(row).dtype, &[])?;
    let condition = g.op(comparison, vec![value(row), constant], Attrs::new())?;
    let y = g.like(x)?;
    if g.rng.chance(0.7) {
        return g.call("SelectV2", &[condition, x, y]).map(drop);
    }
    let to = Attrs::new().with("DstT", g.type_of(x).dtype);
    let factor = g.op("Cast", vec![value(condition)], to)?;
    g.call("Mul", &[y, factor]).map(drop)
}

fn over_computed_axes(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let rank = g.call("Rank", &[x])?;
    let axes = g.op("Range", vec![int(0), value(rank), int(1)], Attrs::new())?;
    let (attrs, name) = (kept(g), g.rng.pick(&["Sum", "Max"]));
    g.op(name, vec![value(x), value(axes)], attrs).map(drop)
}

fn largest_index(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() && seen.is_exact && seen.rank() > Some(0))?;
    let axis = g.axis(x)?;
    let name = g.rng.pick(&["ArgMax", "ArgMin"]);
    g.op(name, vec![value(x), int(axis)], Attrs::new()).map(drop)
}

fn largest(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() && seen.is_exact && seen.rank() > Some(0))?;
    let seen = g.type_of(x).clone();
    let least = seen.sizes(seen.rank()? - 1).min()? as i64;
    let args = vec![value(x), int(g.rng.within(0, least.min(2)))];
    g.emit(Head::Op("TopKV2", Attrs::new()), args, Vec::new(), 2, None).map(drop)
}

fn cumulated(g: &mut Gen) -> Option<()> {
    let x = g.array()?;
    let axis = g.axis(x)?;
    let mut attrs = Attrs::new();
    for name in ["exclusive", "reverse"] {
        if g.rng.chance(0.3) {
            attrs.set(name, true);
        }
    }
    g.op("Cumsum", vec![value(x), int(axis)], attrs).map(drop)
}

fn one_hot(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_int() && seen.rank() < Some(3))?;
    let on = StatementOperand::Const(HostTensor::scalar(1.0f32));
    let off = StatementOperand::Const(HostTensor::scalar(0.0f32));
    let depth = int(g.rng.within(1, 4));
    g.op("OneHot", vec![value(x), depth, on, off], Attrs::new()).map(drop)
}

fn einsum(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen: &Seen| seen.is_float() && seen.rank() == Some(2))?;
    let y = g.like(x)?;
    let equation = g.rng.pick(&["ij,kj->ik", "ij,ij->i", "ij,ik->jk", "ij,ij->"]);
    let attrs = Attrs::new().with("equation", equation);
    g.op("Einsum", vec![value(x), value(y)], attrs).map(drop)
}
