//! Variables: reads, assignments, updates of rows, steps of optimizers.

use super::super::program::{Head, Id, StatementOperand};
use super::{
    Gen, Template,
    operands::{ints, value},
};
use ferroflow::ir::{Attrs, DType, HostTensor, Shape};

pub(super) const TEMPLATES: &[(f64, Template)] = &[
    (4.0, read),
    (5.0, assign),
    (2.0, assign_reduced),
    (2.0, update_rows),
    (1.0, gather_rows),
    (2.0, optimizer_step),
];

fn variable(g: &mut Gen) -> Option<usize> {
    let n = g.program.vars.len();
    (n > 0).then(|| g.rng.below(n))
}

/// A value that may be assigned to a variable.
fn fitting(g: &mut Gen, number: usize) -> Option<Id> {
    let declared = g.program.vars[number].clone();
    let shape = declared.initial.shape().clone();
    g.find(|seen| {
        let fits = match declared.is_flexible {
            true => seen.rank() == Some(shape.rank()),
            false => seen.shapes.iter().all(|found| *found == shape),
        };
        seen.dtype == declared.initial.dtype() && (seen.is_exact || declared.is_inexact) && fits
    })
}

fn run(g: &mut Gen, name: &'static str, args: Vec<StatementOperand>, attrs: Attrs) -> Option<()> {
    g.emit(Head::Op(name, attrs), args, Vec::new(), 0, None).map(drop)
}

fn dtype_of(g: &Gen, number: usize) -> Attrs {
    Attrs::new().with("dtype", g.program.vars[number].initial.dtype())
}

fn read(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    let attrs = dtype_of(g, number);
    g.op("ReadVariableOp", vec![StatementOperand::Variable(number)], attrs).map(drop)
}

fn assign(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    let x = fitting(g, number)?;
    let names = ["AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"];
    let (name, attrs) = (g.rng.pick(&names), dtype_of(g, number));
    run(g, name, vec![StatementOperand::Variable(number), value(x)], attrs)
}

/// An assignment of a reduction to a scalar.
fn assign_reduced(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    let declared = g.program.vars[number].clone();
    if declared.initial.shape().rank() > 0 {
        return None;
    }
    let x = g.find(|seen| seen.dtype == declared.initial.dtype() && seen.is_exact)?;
    let axes: Vec<i64> = (0..g.type_of(x).rank()? as i64).collect();
    let name = g.rng.pick(&["Sum", "Max"]);
    let reduced = g.op(name, vec![value(x), ints(&axes)], Attrs::new())?;
    let (name, attrs) =
        (g.rng.pick(&["AssignVariableOp", "AssignAddVariableOp"]), dtype_of(g, number));
    run(g, name, vec![StatementOperand::Variable(number), value(reduced)], attrs)
}

fn index(index: usize) -> Option<StatementOperand> {
    Some(StatementOperand::Const(HostTensor::vector(&[index as i32]).ok()?))
}

fn update_rows(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    let declared = g.program.vars[number].clone();
    let shape = declared.initial.shape().clone();
    let at = g.rng.below(*shape.first()?);
    let mut dims = shape.dims().to_vec();
    dims[0] = 1;
    let rows = Shape::new(dims.clone()).ok()?;
    let row = g.find(|seen| {
        seen.dtype == declared.initial.dtype()
            && (seen.is_exact || declared.is_inexact)
            && seen.shapes.iter().all(|shape| *shape == rows)
    });
    let row = match row {
        Some(row) => value(row),
        None => g.numbers(declared.initial.dtype(), &dims)?,
    };
    let names = ["ResourceScatterUpdate", "ResourceScatterAdd", "ResourceScatterMax"];
    let (name, attrs) = (g.rng.pick(&names), dtype_of(g, number));
    run(g, name, vec![StatementOperand::Variable(number), index(at)?, row], attrs)
}

fn gather_rows(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    let n = *g.program.vars[number].initial.shape().first()?;
    let at = [g.rng.below(n) as i64, g.rng.below(n) as i64];
    let attrs = dtype_of(g, number);
    g.op("ResourceGather", vec![StatementOperand::Variable(number), ints(&at)], attrs).map(drop)
}

fn optimizer_step(g: &mut Gen) -> Option<()> {
    let number = variable(g)?;
    if g.program.vars[number].initial.dtype() != DType::F32 {
        return None;
    }
    let x = fitting(g, number)?;
    let rate = StatementOperand::Const(HostTensor::scalar(g.rng.pick(&[1.0f32, 0.5])));
    let like = g.program.vars[number].clone();
    let other = (0..g.program.vars.len()).find(|&other| {
        let declared = &g.program.vars[other];
        other != number
            && declared.initial.shape() == like.initial.shape()
            && declared.initial.dtype() == DType::F32
    });
    let var = StatementOperand::Variable(number);
    match other.filter(|_| g.rng.chance(0.6)) {
        Some(other) => {
            let args = vec![var, StatementOperand::Variable(other), rate.clone(), value(x), rate];
            let attrs = Attrs::new().with("use_nesterov", g.rng.chance(0.3));
            run(g, "ResourceApplyMomentum", args, attrs)
        }
        None => run(g, "ResourceApplyGradientDescent", vec![var, rate, value(x)], Attrs::new()),
    }
}
