//! Functions of the program, and their calls.

use super::super::program::{Head, Id};
use super::{Gen, Seen, Template, operands::value};
use std::sync::Arc;

pub(super) const TEMPLATES: &[(f64, Template)] = &[(1.0, define), (2.0, call)];

fn define(g: &mut Gen) -> Option<()> {
    if g.depth > 0 || g.program.funcs.len() > 2 {
        return None;
    }
    let n = 1 + g.rng.below(2);
    let args: Vec<Id> = (0..n).map(|_| g.find(Seen::is_tensor)).collect::<Option<_>>()?;
    let params: Vec<_> = args.iter().map(|&id| g.items(id)).collect();
    let scope = std::mem::take(&mut g.scope);
    let len = 2 + g.rng.below(4);
    let block =
        g.block(&params, len, |g, params| params.iter().map(|&param| g.settle(param)).collect());
    g.scope = scope;
    g.signatures.push(args.iter().map(|&id| g.type_of(id).clone()).collect());
    g.program.funcs.push(block?);
    let program = Arc::new(g.program.clone());
    for lane in &mut g.lanes {
        lane.world.program = program.clone();
    }
    let number = g.program.funcs.len() - 1;
    let args = args.iter().map(|&id| value(id)).collect();
    g.emit(Head::Call(number), args, Vec::new(), n, None)?;
    call_of(g, number)
}

fn call(g: &mut Gen) -> Option<()> {
    let n = g.program.funcs.len();
    let number = if n > 0 { g.rng.below(n) } else { return None };
    call_of(g, number)
}

fn call_of(g: &mut Gen, number: usize) -> Option<()> {
    let signature = g.signatures[number].clone();
    let mut args = Vec::new();
    for seen in &signature {
        let fits = |other: &Seen| other.dtype == seen.dtype && other.rank() == seen.rank();
        args.push(value(g.find(fits)?));
    }
    g.emit(Head::Call(number), args, Vec::new(), signature.len(), None).map(drop)
}
