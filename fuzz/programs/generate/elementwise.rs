//! Elementwise statements.

use super::super::program::{Id, StatementOperand};
use super::{
    Gen, Seen, Template,
    operands::{int, value},
};
use ferroflow::ir::{Attrs, DType};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (3.0, unary),
    (1.2, rounded),
    (6.0, binary),
    (2.0, with_constant),
    (1.0, divided),
    (2.0, compared),
    (1.0, logical),
    (1.5, selected),
    (1.0, sum_of_many),
    (1.5, cast),
    (0.5, clipped),
    (0.7, constant),
    (0.3, same_twice),
];

fn unary(g: &mut Gen) -> Option<()> {
    let names =
        ["Neg", "Abs", "Square", "Sign", "Identity", "ZerosLike", "OnesLike", "StopGradient"];
    let (name, x) = (g.rng.pick(&names), g.number()?);
    g.call(name, &[x]).map(drop)
}

fn rounded(g: &mut Gen) -> Option<()> {
    let names =
        ["Exp", "Sigmoid", "Tanh", "Sin", "Softplus", "Sqrt", "Log1p", "Erf", "Elu", "Relu"];
    let (name, x) = (g.rng.pick(&names), g.find(Seen::is_float)?);
    g.call(name, &[x]).map(drop)
}

fn binary(g: &mut Gen) -> Option<()> {
    let names = ["AddV2", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference", "AddV2", "Mul"];
    let (name, x) = (g.rng.pick(&names), g.number()?);
    let y = g.fitting(x)?;
    g.call(name, &[x, y]).map(drop)
}

fn same_twice(g: &mut Gen) -> Option<()> {
    let (name, x) = (g.rng.pick(&["AddV2", "Mul", "Sub", "Maximum"]), g.number()?);
    g.call(name, &[x, x]).map(drop)
}

fn with_constant(g: &mut Gen) -> Option<()> {
    let name = g.rng.pick(&["AddV2", "Mul", "Sub", "Maximum"]);
    let x = g.number()?;
    let seen = g.type_of(x).clone();
    let dims: Vec<usize> =
        match seen.rank().filter(|&rank| rank > 0).map(|rank| seen.size(rank - 1)) {
            Some(Some(size)) if g.rng.chance(0.4) => vec![size],
            _ => Vec::new(),
        };
    let constant = g.numbers(seen.dtype, &dims)?;
    let args = if g.rng.chance(0.7) { vec![value(x), constant] } else { vec![constant, value(x)] };
    g.op(name, args, Attrs::new()).map(drop)
}

fn divided(g: &mut Gen) -> Option<()> {
    let (names, x): (&[&str], Id) = match g.rng.chance(0.5) {
        true => (&["RealDiv", "DivNoNan"], g.find(Seen::is_float)?),
        false => (&["FloorDiv", "FloorMod", "BitwiseXor", "BitwiseAnd"], g.find(Seen::is_int)?),
    };
    let y = g.fitting(x)?;
    let name = g.rng.pick(names);
    g.call(name, &[x, y]).map(drop)
}

fn compared(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() && seen.is_exact)?;
    let name = g.rng.pick(&["Less", "GreaterEqual", "Equal", "NotEqual", "Greater"]);
    if g.rng.chance(0.4) {
        let constant = g.numbers(g.type_of(x).dtype, &[])?;
        return g.op(name, vec![value(x), constant], Attrs::new()).map(drop);
    }
    let y = g.fitting(x)?;
    g.call(name, &[x, y]).map(drop)
}

fn logical(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::Bool)?;
    if g.rng.chance(0.4) {
        return g.call("LogicalNot", &[x]).map(drop);
    }
    let y = g.fitting(x)?;
    let name = g.rng.pick(&["LogicalAnd", "LogicalOr"]);
    g.call(name, &[x, y]).map(drop)
}

fn selected(g: &mut Gen) -> Option<()> {
    let x = g.number()?;
    let y = g.fitting(x)?;
    let shapes = g.type_of(x).shapes.clone();
    let condition = g.find(|seen| {
        let fits = seen.shapes.iter().zip(&shapes).all(|(a, b)| a.broadcast(b).is_ok());
        seen.dtype == DType::Bool && fits
    })?;
    g.call("SelectV2", &[condition, x, y]).map(drop)
}

fn sum_of_many(g: &mut Gen) -> Option<()> {
    let x = g.number()?;
    let mut args = vec![value(x)];
    for _ in 0..1 + g.rng.below(3) {
        args.push(value(g.like(x)?));
    }
    g.op("AddN", args, Attrs::new()).map(drop)
}

fn cast(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.is_number() || seen.dtype == DType::Bool)?;
    let to = g.rng.pick(&[DType::F32, DType::I32, DType::F32, DType::I64, DType::F64, DType::Bool]);
    if to == g.type_of(x).dtype && g.rng.chance(0.7) {
        return None;
    }
    g.op("Cast", vec![value(x)], Attrs::new().with("DstT", to)).map(drop)
}

fn clipped(g: &mut Gen) -> Option<()> {
    let x = g.find(|seen| seen.dtype == DType::I32)?;
    let args = vec![value(x), int(g.rng.within(-3, 0)), int(g.rng.within(0, 3))];
    g.op("ClipByValue", args, Attrs::new()).map(drop)
}

fn constant(g: &mut Gen) -> Option<()> {
    let dtype = g.rng.pick(&[DType::F32, DType::I32, DType::F32, DType::I64, DType::Bool]);
    let rank = g.rng.weighted(&[3.0, 3.0, 2.0]);
    let dims: Vec<usize> = (0..rank).map(|_| 1 + g.rng.below(3)).collect();
    let constant: StatementOperand = g.numbers(dtype, &dims)?;
    g.op("Identity", vec![constant], Attrs::new()).map(drop)
}
