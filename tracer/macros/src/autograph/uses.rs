//! Changes of code to variables declared outside it.

use proc_macro2::Span;
use quote::quote;
use std::collections::{BTreeMap, HashSet};
use syn::{
    Arm, BinOp, Block, Expr, ExprClosure, ExprForLoop, ExprIf, ExprLet, ExprMethodCall, ExprUnary,
    Item, Local, Member, Pat, PatIdent, UnOp,
    visit::{self, Visit},
};

/// A variable or a field of one: the name of the variable, and how it is written.
#[derive(Clone)]
pub(super) struct AssignedPath {
    pub(super) root: String,
    pub(super) expr: Expr,
}

/// Places by their text: `x`, `acc.sum`.
pub(super) type Places = BTreeMap<String, AssignedPath>;

/// Uses of code of variables declared outside it.
#[derive(Default)]
pub(super) struct Uses {
    /// Expressions it assigns to.
    pub(super) assigned: Places,
    /// Expressions it calls methods of, and does not assign to.
    pub(super) called: Places,
    /// Calls that change the length of a collection.
    pub(super) grown: Vec<Span>,
    /// The names declared in the code around the place that is looked at.
    scopes: Vec<HashSet<String>>,
}

/// Methods of collections that change their length.
const GROWING: &[&str] = &[
    "push",
    "push_back",
    "push_front",
    "push_str",
    "insert",
    "extend",
    "extend_from_slice",
    "append",
    "pop",
    "pop_back",
    "pop_front",
    "remove",
    "clear",
    "truncate",
    "drain",
    "retain",
];

impl Uses {
    /// The uses of code in which these names are declared.
    pub(super) fn of<'a>(
        code: impl IntoIterator<Item = &'a Expr>,
        declared: impl IntoIterator<Item = &'a Pat>,
    ) -> Uses {
        let mut uses = Uses::default();
        uses.scoped(|uses| {
            declared.into_iter().for_each(|pattern| uses.declare(pattern));
            code.into_iter().for_each(|expr| uses.visit_expr(expr));
        });
        let keys: Vec<String> = uses.assigned.keys().cloned().collect();
        uses.assigned.retain(|key, _| !keys.iter().any(|other| is_part(key, other)));
        let keys: Vec<String> = uses.assigned.keys().cloned().collect();
        uses.called.retain(|key, _| {
            !keys.iter().any(|other| key == other || is_part(key, other) || is_part(other, key))
        });
        uses
    }

    fn is_outside(&self, root: &str) -> bool {
        !self.scopes.iter().any(|scope| scope.contains(root))
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Uses)) {
        self.scopes.push(HashSet::new());
        visit(self);
        self.scopes.pop();
    }

    fn declare(&mut self, pattern: &Pat) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(declared(pattern));
        }
    }

    fn assign(&mut self, target: &Expr) {
        match target {
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|target| self.assign(target)),
            Expr::Array(array) => array.elems.iter().for_each(|target| self.assign(target)),
            target => {
                if let Some((key, place)) = place(target)
                    && self.is_outside(&place.root)
                {
                    self.assigned.insert(key, place);
                }
            }
        }
    }

    fn call(&mut self, call: &ExprMethodCall) {
        if let Some((key, place)) = place(&call.receiver)
            && self.is_outside(&place.root)
        {
            if GROWING.iter().any(|name| call.method == name) {
                self.grown.push(call.method.span());
            }
            self.called.insert(key, place);
        }
    }
}

/// Whether `key` is a field of `other`, or of one of its fields.
fn is_part(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
}

/// The names that a pattern declares.
pub(super) fn declared(pattern: &Pat) -> HashSet<String> {
    struct Names(HashSet<String>);

    impl Visit<'_> for Names {
        fn visit_pat_ident(&mut self, name: &PatIdent) {
            self.0.insert(name.ident.to_string());
            if let Some((_, pattern)) = &name.subpat {
                self.visit_pat(pattern);
            }
        }
    }

    let mut names = Names(HashSet::new());
    names.visit_pat(pattern);
    names.0
}

/// The place that an expression names: of elements the whole collection.
fn place(expr: &Expr) -> Option<(String, AssignedPath)> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => {
            let root = path.path.get_ident()?.to_string();
            Some((root.clone(), AssignedPath { root, expr: expr.clone() }))
        }
        Expr::Field(field) => {
            let (key, AssignedPath { root, .. }) = place(&field.base)?;
            let member = match &field.member {
                Member::Named(name) => name.to_string(),
                Member::Unnamed(index) => index.index.to_string(),
            };
            Some((format!("{key}.{member}"), AssignedPath { root, expr: expr.clone() }))
        }
        Expr::Index(index) => place(&index.expr),
        Expr::Paren(paren) => place(&paren.expr),
        Expr::Group(group) => place(&group.expr),
        Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr: inner, .. }) => {
            let (key, AssignedPath { root, .. }) = place(inner)?;
            Some((key, AssignedPath { root, expr: expr.clone() }))
        }
        _ => None,
    }
}

/// Text of an expression in messages.
pub(super) fn written(expr: &Expr) -> String {
    quote!(#expr).to_string().replace(" . ", ".").replace("* ", "*")
}

impl<'a> Visit<'a> for Uses {
    fn visit_item(&mut self, _: &'a Item) {}

    fn visit_block(&mut self, block: &'a Block) {
        self.scoped(|uses| visit::visit_block(uses, block));
    }

    fn visit_local(&mut self, local: &'a Local) {
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
            if let Some((_, otherwise)) = &init.diverge {
                self.visit_expr(otherwise);
            }
        }
        self.declare(&local.pat);
    }

    fn visit_arm(&mut self, arm: &'a Arm) {
        self.scoped(|uses| {
            uses.declare(&arm.pat);
            visit::visit_arm(uses, arm);
        });
    }

    fn visit_expr_for_loop(&mut self, code: &'a ExprForLoop) {
        self.visit_expr(&code.expr);
        self.scoped(|uses| {
            uses.declare(&code.pat);
            uses.visit_block(&code.body);
        });
    }

    fn visit_expr_closure(&mut self, closure: &'a ExprClosure) {
        self.scoped(|uses| {
            closure.inputs.iter().for_each(|input| uses.declare(input));
            uses.visit_expr(&closure.body);
        });
    }

    fn visit_expr_if(&mut self, code: &'a ExprIf) {
        self.scoped(|uses| {
            uses.visit_expr(&code.cond);
            uses.visit_block(&code.then_branch);
        });
        if let Some((_, otherwise)) = &code.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_while(&mut self, code: &'a syn::ExprWhile) {
        self.scoped(|uses| {
            uses.visit_expr(&code.cond);
            uses.visit_block(&code.body);
        });
    }

    fn visit_expr_let(&mut self, binding: &'a ExprLet) {
        self.visit_expr(&binding.expr);
        self.declare(&binding.pat);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Assign(assignment) => self.assign(&assignment.left),
            Expr::Binary(binary) if is_assignment(&binary.op) => self.assign(&binary.left),
            Expr::Reference(reference) if reference.mutability.is_some() => {
                self.assign(&reference.expr);
            }
            Expr::MethodCall(call) => self.call(call),
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}

fn is_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}
