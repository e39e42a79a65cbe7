//! Op names in strings: where code speaks of ops.

use crate::metrics::tree::SourceFile;
use ferroflow_ir::OpRegistry;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeSet, HashSet};
use syn::{
    Expr, ExprCall, ExprLit, ExprMethodCall, Lit, LitStr, Macro,
    visit::{self, Visit},
};

/// Code that speaks of ops by the names in `ir/src/ops/names.rs`.
const BY_CONSTANT: &[&str] = &["ir/src/", "runtime/src/", "tracer/src/", "cluster/src/", "src/"];

/// Records and the formulas in them, tables of kernels and bodies, methods of tensors, the conversion of 1.x.
const BY_STRING: &[&str] = &[
    "ir/src/ops/",
    "ir/src/gradient/",
    "ir/src/xla/",
    "ir/src/emit.rs",
    "ir/src/pass/functionalize/",
    "runtime/src/ops/",
    "tracer/src/ops/",
];

/// Words that are names of ops, and of types in Python or of reductions as well.
const OTHER_WORDS: &[&str] = &["Add", "Any", "Div", "Max", "Min", "Mul", "TensorArray", "Variable"];

/// The strings of a file, by how they are used.
#[derive(Default)]
pub(crate) struct Mentions {
    /// Those in records, tables, lists, arms and comparisons.
    pub(crate) said: BTreeSet<String>,
    /// Those that are arguments of calls.
    pub(crate) used: BTreeSet<String>,
}

impl Mentions {
    pub(crate) fn of(file: &syn::File) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_file(file);
        mentions
    }

    fn visit_arguments<'ast>(&mut self, arguments: impl IntoIterator<Item = &'ast Expr>) {
        for argument in arguments {
            match argument {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                    self.used.insert(text.value());
                }
                argument => self.visit_expr(argument),
            }
        }
    }

    fn visit_tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.visit_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    self.said.insert(literal.to_string().trim_matches('"').to_string());
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Mentions {
    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.said.insert(text.value());
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        self.visit_expr(&call.func);
        self.visit_arguments(&call.args);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.visit_expr(&call.receiver);
        self.visit_arguments(&call.args);
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.visit_tokens(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// The names of ops in strings where constants are to be used.
pub(crate) fn findings(files: &[SourceFile]) -> Vec<String> {
    let names: HashSet<&str> =
        OpRegistry::default().implemented().iter().map(|op| op.name).collect();
    let is_in = |folders: &[&str], name: &str| folders.iter().any(|at| name.starts_with(at));
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_in(BY_CONSTANT, &file.name)) {
        if is_in(BY_STRING, &file.name) {
            continue;
        }
        let Mentions { said, used } = Mentions::of(&file.syntax);
        for name in said.union(&used).filter(|name| names.contains(name.as_str())) {
            if !OTHER_WORDS.contains(&name.as_str()) {
                findings.push(format!(
                    "{}: the op `{name}` by a string, not by its constant",
                    file.name
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_use_and_everything_else_says() {
        let source = r#"
            /// "Neg"
            fn f() {
                call("Cast", &["Pack"]);
                x.is("Pad");
                matches!(op, "Sub" | "Mul");
                match op { "Where" => TABLE, _ => op == "Conv2D" }
            }
            const TABLE: &[(&str, u8)] = &[("Softmax", 1)];
        "#;
        let mentions = Mentions::of(&syn::parse_file(source).unwrap());
        assert!(mentions.used.iter().eq(["Cast", "Pad"]));
        assert!(mentions.said.iter().eq(["Conv2D", "Mul", "Pack", "Softmax", "Sub", "Where"]));
    }
}
