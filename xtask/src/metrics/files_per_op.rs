//! Positions per op: the files that say something of an op, its record included.
//!
//! A row of a table, an arm of a `match`, a list and a comparison say something of the op that they name;
//! a call that uses the op does not, and is no place that a new op needs.

use super::tree::SourceFile;
use crate::op_names::Mentions;
use ferroflow_ir::{Lowering, OpRegistry};
use std::collections::{BTreeMap, HashMap};

/// Where the code of ops is.
const CODE: &[&str] = &["ir/src/", "kernels/src/", "runtime/src/", "tracer/src/"];

/// Code for those who use ops: constants, formulas, methods of tensors.
const FOR_USERS: &[&str] = &["ir/src/ops/names.rs", "ir/src/emit.rs", "tracer/src/ops/"];

/// The files that say something of an op with this lowering: its record; a kernel or body; a shader, and the
/// form in XLA or the tape's shortcut of a scalar function.
fn bar(lowering: Lowering) -> usize {
    match lowering {
        Lowering::Composite(_) => 1,
        Lowering::HostKernel(_) | Lowering::Runtime => 2,
        _ => 4,
    }
}

pub(super) fn print(files: &[SourceFile], all: bool) {
    let ops = OpRegistry::default().implemented();
    let mut counts = HashMap::<String, Vec<&str>>::new();
    let is_in = |folders: &[&str], name: &str| folders.iter().any(|at| name.starts_with(at));
    let says = |file: &&SourceFile| is_in(CODE, &file.name) && !is_in(FOR_USERS, &file.name);
    for file in files.iter().filter(says) {
        for name in Mentions::of(&file.syntax).said {
            counts.entry(name).or_default().push(&file.name);
        }
    }
    let mut above = 0;
    let mut by_lowering = BTreeMap::<&str, Vec<(usize, &str)>>::new();
    for op in &ops {
        let files = counts.get(op.name).map_or(&[][..], Vec::as_slice);
        let n = files.len().max(1);
        by_lowering.entry(word(op.lowering)).or_default().push((n, op.name));
        if n > bar(op.lowering) {
            above += 1;
            if all {
                println!("    {}: {}", op.name, files.join(", "));
            }
        }
    }
    let primitives =
        ["elementwise", "fused", "host kernel", "kernel", "reduction", "runtime", "view"];
    for (lowering, counts) in &by_lowering {
        let mean = counts.iter().map(|(n, _)| n).sum::<usize>() as f64 / counts.len() as f64;
        let (most, name) = counts.iter().copied().max().unwrap_or_default();
        println!(
            "places per op: {lowering}: {} ops, mean {mean:.1}, most {most} ({name})",
            counts.len()
        );
    }
    let n: usize = by_lowering
        .iter()
        .filter(|(lowering, _)| primitives.contains(lowering))
        .map(|(_, counts)| counts.len())
        .sum();
    println!(
        "ops: {} in all, {n} of them primitives; {above} with more places than their kind needs",
        ops.len()
    );
}

fn word(lowering: Lowering) -> &'static str {
    match lowering {
        Lowering::Elementwise(_) => "elementwise",
        Lowering::Fused => "fused",
        Lowering::Reduce(_) => "reduction",
        Lowering::Alias(_) | Lowering::View(_) => "view",
        Lowering::Composite(_) => "composite",
        Lowering::Kernel => "kernel",
        Lowering::HostKernel(_) => "host kernel",
        Lowering::Runtime => "runtime",
        Lowering::Interface => "interface only",
    }
}
