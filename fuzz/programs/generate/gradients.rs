//! Gradients inside programs.

use super::super::program::{Head, Id, ProgramBlock, StatementOperand};
use super::{Gen, Seen, Template, operands::value};
use ferroflow::ir::DType;

pub(super) const TEMPLATES: &[(f64, Template)] =
    &[(4.0, gradient), (1.0, by_variable), (0.6, custom)];

/// The float results of a block, to be summed.
fn target(g: &mut Gen, params: &[Id]) -> Option<Vec<Id>> {
    let made: Vec<Id> = g.stmts.iter().flat_map(|stmt| stmt.outs.clone()).collect();
    let is_float = |id: &Id| g.type_of(*id).is_float();
    let made: Vec<Id> = made.into_iter().filter(is_float).collect();
    match made.len() {
        0 => {
            let x = *params.first()?;
            Some(vec![g.call("Mul", &[x, x])?])
        }
        n if g.rng.chance(0.3) => Some(vec![made[n - 1], g.rng.pick(&made)]),
        n => Some(vec![made[n - 1]]),
    }
}

fn gradient(g: &mut Gen) -> Option<()> {
    let n = 1 + g.rng.below(2);
    let sources: Vec<Id> = (0..n).map(|_| g.find(Seen::is_float)).collect::<Option<_>>()?;
    let params: Vec<_> = sources.iter().map(|&id| g.items(id)).collect();
    let len = 1 + g.rng.below(5);
    let block: ProgramBlock = g.block(&params, len, target)?;
    let args = sources.iter().map(|&id| value(id)).collect();
    g.emit(Head::Grad, args, vec![block], n, None).map(drop)
}

fn by_variable(g: &mut Gen) -> Option<()> {
    let floats: Vec<usize> = (0..g.program.vars.len())
        .filter(|&number| g.program.vars[number].initial.dtype() == DType::F32)
        .collect();
    if floats.is_empty() {
        return None;
    }
    let number = g.rng.pick(&floats);
    let len = 1 + g.rng.below(3);
    let block = g.block(&[], len, |g, _| {
        let attrs = ferroflow::ir::Attrs::new().with("dtype", DType::F32);
        let read = g.op("ReadVariableOp", vec![StatementOperand::Variable(number)], attrs)?;
        let other = g.fitting(read)?;
        let product = g.call("Mul", &[read, other])?;
        Some(vec![product])
    })?;
    g.emit(Head::Grad, vec![StatementOperand::Variable(number)], vec![block], 1, None).map(drop)
}

fn custom(g: &mut Gen) -> Option<()> {
    let x = g.find(Seen::is_float)?;
    let (params, len) = ([g.items(x)], g.rng.below(3));
    let shapes = g.type_of(x).shapes.clone();
    let dtype = g.type_of(x).dtype;
    let block = g.block(&params, len, |g, params| {
        let result = g.settle(params[0])?;
        let seen = g.type_of(result);
        (seen.shapes == shapes && seen.dtype == dtype).then(|| vec![result])
    })?;
    let factor = g.rng.pick(&[2, 3, -1]);
    g.emit(Head::Custom(factor), vec![value(x)], vec![block], 1, None).map(drop)
}
