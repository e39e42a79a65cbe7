//! Facts about conditions and jumps from syntax alone.

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    BinOp, Expr, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprLit, ExprLoop, ExprReturn,
    ExprWhile, Item, Label, Lifetime, Lit, Macro, UnOp,
    visit::{self, Visit},
};

/// The expression without parentheses, and without the groups that `macro_rules` put around it.
pub(super) fn bare(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Paren(paren) => &paren.expr,
            Expr::Group(group) => &group.expr,
            expr => return expr,
        };
    }
}

/// Whether a value may be a tensor, as far as syntax tells.
pub(super) fn may_be_tensor(value: &Expr) -> bool {
    match bare(value) {
        Expr::MethodCall(call) => call.method != "len",
        Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Call(_) | Expr::Try(_) => true,
        Expr::Reference(reference) => may_be_tensor(&reference.expr),
        _ => false,
    }
}

/// Whether the type of a condition is `bool`, or it binds names: such conditions stay what they
/// are.
pub(super) fn is_plain(condition: &Expr) -> bool {
    if has_let(condition) {
        return true;
    }
    match bare(condition) {
        Expr::Binary(binary) if is_logical(&binary.op) => {
            is_plain(&binary.left) && is_plain(&binary.right)
        }
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => is_plain(&unary.expr),
        Expr::Binary(binary) => is_comparison(&binary.op),
        Expr::Lit(ExprLit { lit: Lit::Bool(_), .. }) => true,
        Expr::Macro(call) => ["matches", "cfg"].iter().any(|name| call.mac.path.is_ident(name)),
        _ => false,
    }
}

fn has_let(condition: &Expr) -> bool {
    match bare(condition) {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// `&&` or `||`.
pub(super) fn is_logical(op: &BinOp) -> bool {
    matches!(op, BinOp::And(_) | BinOp::Or(_))
}

pub(super) fn is_comparison(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_)
    )
}

/// Whether an expression has no value at all.
pub(super) fn diverges(expr: &Expr) -> bool {
    const NEVER: [&str; 4] = ["panic", "unreachable", "todo", "unimplemented"];
    match bare(expr) {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Macro(call) => NEVER.iter().any(|name| call.mac.path.is_ident(name)),
        _ => false,
    }
}

/// Whether `Err(..)` is written.
pub(super) fn is_error(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Call(call) => {
            matches!(&*call.func, Expr::Path(path) if path.path.is_ident("Err"))
        }
        _ => false,
    }
}

/// Where jumps lead that stand in some code.
#[derive(Default)]
pub(super) struct Jumps {
    /// Out of the code, to loops and blocks with these labels, or to the loop around; but for those
    /// of the next fields.
    pub(super) targets: Vec<Option<Lifetime>>,
    /// Out of the function.
    pub(super) returns: bool,
    /// Out of the loop whose body the code is, to its end.
    pub(super) end: bool,
    /// To the next iteration of that loop.
    pub(super) go_on: bool,
    /// Whether a loop ends with a value.
    pub(super) has_value: bool,
    /// Whether one is hidden in a macro.
    pub(super) in_macro: bool,
    /// The loops and blocks in the code around the position that is looked at: their labels, and
    /// whether jumps without a label lead to them.
    inside: Vec<(Option<Lifetime>, bool)>,
}

impl Jumps {
    /// The jumps in a block that is no loop.
    pub(super) fn of<'a>(code: impl IntoIterator<Item = &'a Expr>) -> Jumps {
        let mut jumps = Jumps::default();
        code.into_iter().for_each(|expr| jumps.visit_expr(expr));
        jumps
    }

    /// The jumps in the body of a loop.
    pub(super) fn of_loop(label: Option<&Label>, body: &syn::Block) -> Jumps {
        let mut jumps = Jumps::default();
        jumps.inside.push((label.map(|label| label.name.clone()), true));
        jumps.visit_block(body);
        jumps
    }

    /// Whether there are any out of the code.
    pub(super) fn leave(&self) -> bool {
        self.returns || !self.targets.is_empty()
    }

    fn target(&self, label: Option<&Lifetime>) -> Option<usize> {
        self.inside.iter().rposition(|(own, is_loop)| match label {
            None => *is_loop,
            Some(label) => own.as_ref().is_some_and(|own| own.ident == label.ident),
        })
    }

    fn within(&mut self, label: Option<&Label>, is_loop: bool, visit: impl FnOnce(&mut Jumps)) {
        self.inside.push((label.map(|label| label.name.clone()), is_loop));
        visit(self);
        self.inside.pop();
    }
}

impl<'a> Visit<'a> for Jumps {
    fn visit_item(&mut self, _: &'a Item) {}

    fn visit_expr_closure(&mut self, _: &'a ExprClosure) {}

    fn visit_expr_async(&mut self, _: &'a syn::ExprAsync) {}

    fn visit_expr_return(&mut self, jump: &'a ExprReturn) {
        self.returns = true;
        visit::visit_expr_return(self, jump);
    }

    fn visit_expr_break(&mut self, jump: &'a ExprBreak) {
        match self.target(jump.label.as_ref()) {
            None => self.targets.push(jump.label.clone()),
            Some(0) => {
                self.end = true;
                self.has_value |= jump.expr.is_some();
            }
            Some(_) => {}
        }
        visit::visit_expr_break(self, jump);
    }

    fn visit_expr_continue(&mut self, jump: &'a ExprContinue) {
        match self.target(jump.label.as_ref()) {
            None => self.targets.push(jump.label.clone()),
            Some(0) => self.go_on = true,
            Some(_) => {}
        }
    }

    fn visit_expr_loop(&mut self, code: &'a ExprLoop) {
        self.within(code.label.as_ref(), true, |jumps| jumps.visit_block(&code.body));
    }

    fn visit_expr_while(&mut self, code: &'a ExprWhile) {
        self.within(code.label.as_ref(), true, |jumps| {
            jumps.visit_expr(&code.cond);
            jumps.visit_block(&code.body);
        });
    }

    fn visit_expr_for_loop(&mut self, code: &'a ExprForLoop) {
        self.visit_expr(&code.expr);
        self.within(code.label.as_ref(), true, |jumps| jumps.visit_block(&code.body));
    }

    fn visit_expr_block(&mut self, code: &'a syn::ExprBlock) {
        self.within(code.label.as_ref(), false, |jumps| jumps.visit_block(&code.block));
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.in_macro |= names_jump(call.tokens.clone());
    }
}

fn names_jump(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "break" || name == "continue",
        TokenTree::Group(group) => names_jump(group.stream()),
        _ => false,
    })
}
