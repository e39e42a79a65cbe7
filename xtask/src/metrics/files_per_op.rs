//! Positions per op: the files that a person writes for an op, its record included.

use super::tree::SourceFile;
use ferroflow_ir::{Lowering, OpRegistry};
use std::collections::{BTreeMap, HashMap, HashSet};
use syn::{
    LitStr,
    visit::{self, Visit},
};

/// Where the code of ops is.
const CODE: &[&str] = &["ir/src/", "kernels/src/", "runtime/src/", "tracer/src/"];

pub(super) fn print(files: &[SourceFile]) {
    let ops = OpRegistry::default().implemented();
    let names: HashSet<&str> = ops.iter().map(|op| op.name).collect();
    let mut indices = HashMap::<String, usize>::new();
    for file in files.iter().filter(|file| CODE.iter().any(|code| file.name.starts_with(code))) {
        let mut texts = Texts::default();
        texts.visit_file(&file.syntax);
        for text in texts.0.iter().filter(|text| names.contains(text.as_str())) {
            *indices.entry(text.clone()).or_default() += 1;
        }
    }
    let mut by_lowering = BTreeMap::<&str, Vec<usize>>::new();
    for op in &ops {
        let n = indices.get(op.name).copied().unwrap_or(0).max(1);
        by_lowering.entry(word(op.lowering)).or_default().push(n);
    }
    let primitives = ["elementwise", "fused", "kernel", "reduction", "runtime", "view"];
    for (lowering, counts) in &by_lowering {
        let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        let most = counts.iter().max().copied().unwrap_or(0);
        println!("places per op: {lowering}: {} ops, mean {mean:.1}, most {most}", counts.len());
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
        Lowering::Runtime => "runtime",
        Lowering::Interface => "interface only",
    }
}

/// The texts in a file.
#[derive(Default)]
struct Texts(HashSet<String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.0.insert(text.value());
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        for token in mac.tokens.clone() {
            collect(token, &mut self.0);
        }
        visit::visit_macro(self, mac);
    }
}

fn collect(token: proc_macro2::TokenTree, texts: &mut HashSet<String>) {
    match token {
        proc_macro2::TokenTree::Group(group) => {
            group.stream().into_iter().for_each(|token| collect(token, texts));
        }
        proc_macro2::TokenTree::Literal(literal) => {
            let text = literal.to_string();
            texts.insert(text.trim_matches('"').to_string());
        }
        _ => {}
    }
}
