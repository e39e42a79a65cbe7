//! Strings.

use super::super::program::{Id, StatementOperand};
use super::{
    Gen, Template,
    operands::{int, ints, value},
};
use ferroflow::ir::{Attrs, DType, HostTensor};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (2.0, from_numbers),
    (3.0, join),
    (2.0, unary),
    (1.0, part),
    (1.0, join_reduced),
    (1.0, replaced),
    (1.0, hashed),
    (1.0, compared),
    (0.7, to_numbers),
];

fn strings(g: &mut Gen) -> Option<Id> {
    g.find(|seen| seen.dtype == DType::String)
}

fn from_numbers(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_int() || seen.dtype == DType::Bool)?;
    g.call("AsString", &[x]).map(drop)
}

fn join(g: &mut Gen) -> Option<()> {
    let x = strings(g)?;
    let y = if g.rng.chance(0.3) { x } else { g.fitting(x)? };
    let attrs = Attrs::new().with("separator", g.rng.pick(&["", " ", "-"]));
    g.op("StringJoin", vec![value(x), value(y)], attrs).map(drop)
}

fn unary(g: &mut Gen) -> Option<()> {
    let names = ["StringLength", "StringUpper", "StringLower", "StringStrip", "Identity"];
    let (name, x) = (g.rng.pick(&names), strings(g)?);
    g.call(name, &[x]).map(drop)
}

fn part(g: &mut Gen) -> Option<()> {
    let x = strings(g)?;
    let args = vec![value(x), int(g.rng.within(0, 1)), int(g.rng.within(0, 3))];
    g.op("Substr", args, Attrs::new()).map(drop)
}

fn join_reduced(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::String && seen.rank() > Some(0))?;
    let axis = g.axis(x)?;
    g.op("ReduceJoin", vec![value(x), ints(&[axis])], Attrs::new()).map(drop)
}

fn text(text: &str) -> StatementOperand {
    StatementOperand::Const(HostTensor::scalar_string(text.to_string()))
}

fn replaced(g: &mut Gen) -> Option<()> {
    let x = strings(g)?;
    let args = vec![value(x), text("[a-c]+"), text("<>")];
    g.op("RegexReplace", args, Attrs::new()).map(drop)
}

fn hashed(g: &mut Gen) -> Option<()> {
    let x = strings(g)?;
    let attrs = Attrs::new().with("num_buckets", 5i64);
    g.op("StringToHashBucketFast", vec![value(x)], attrs).map(drop)
}

fn compared(g: &mut Gen) -> Option<()> {
    let x = strings(g)?;
    let y = g.fitting(x)?;
    let name = g.rng.pick(&["Equal", "NotEqual"]);
    g.call(name, &[x, y]).map(drop)
}

fn to_numbers(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_int())?;
    let text = g.call("AsString", &[x])?;
    let dtype = g.rng.pick(&[DType::F32, DType::I32]);
    let attrs = Attrs::new().with("out_type", dtype);
    g.op("StringToNumber", vec![value(text)], attrs).map(drop)
}
