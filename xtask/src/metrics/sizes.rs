//! Lengths of functions and files.

use super::tree::SourceFile;
use syn::{
    Block, ImplItemFn, ItemFn, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

pub(super) fn print(files: &[SourceFile]) {
    let mut functions = Functions::default();
    for file in files {
        functions.file = &file.name;
        functions.visit_file(&file.syntax);
    }
    let mut lines: Vec<usize> = functions.found.iter().map(|(lines, _)| *lines).collect();
    print_percentiles("function lines", &mut lines);
    functions.found.sort();
    let longest = functions.found.iter().rev().take(3);
    let longest: Vec<String> = longest.map(|(n, name)| format!("{name} {n}")).collect();
    println!("longest functions: {}", longest.join(", "));
    let mut lines: Vec<usize> = files.iter().map(|file| file.text.lines().count()).collect();
    print_percentiles("file lines", &mut lines);
}

fn print_percentiles(what: &str, values: &mut [usize]) {
    values.sort_unstable();
    let at = |percent: usize| values.get((values.len() * percent / 100).min(values.len() - 1));
    let [median, p90, most] = [50, 90, 100].map(|percent| at(percent).copied().unwrap_or(0));
    println!("{what}: {} in all, median {median}, p90 {p90}, most {most}", values.len());
}

#[derive(Default)]
struct Functions<'a> {
    file: &'a str,
    found: Vec<(usize, String)>,
}

impl Functions<'_> {
    fn note(&mut self, signature: &Signature, block: &Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        self.found.push((lines, format!("{}:{}", self.file, signature.ident)));
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.note(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
