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

pub(super) fn print(files: &[SourceFile]) {
    let ops = OpRegistry::default().implemented();
    let mut counts = HashMap::<String, usize>::new();
    for file in files.iter().filter(|file| CODE.iter().any(|code| file.name.starts_with(code))) {
        for name in Mentions::of(&file.syntax).said {
            *counts.entry(name).or_default() += 1;
        }
    }
    let mut by_lowering = BTreeMap::<&str, Vec<(usize, &str)>>::new();
    for op in &ops {
        let n = counts.get(op.name).copied().unwrap_or(0).max(1);
        by_lowering.entry(word(op.lowering)).or_default().push((n, op.name));
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
    println!("ops: {} in all, {n} of them primitives", ops.len());
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
