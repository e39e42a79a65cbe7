//! The walk over a body.

use super::{
    arms, choice, jump, logic, repeat,
    syntax::{Jumps, is_logical, is_plain},
    uses::{Places, Uses, declared},
    written::{at, carried, expression, flow, frame, hold, label as made_label, variable},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use std::collections::HashSet;
use syn::{
    Arm, Block, Expr, ExprClosure, ExprMatch, ExprUnary, Item, Lifetime, Local, Pat, ReturnType,
    Stmt, UnOp,
    spanned::Spanned,
    visit::{self, Visit},
    visit_mut::{self, VisitMut},
};

/// Whether there is a construct in a body whose condition may be a tensor.
pub(super) fn is_needed(body: &Block) -> bool {
    struct Search(bool);

    impl Visit<'_> for Search {
        fn visit_item(&mut self, _: &Item) {}

        fn visit_expr(&mut self, expr: &Expr) {
            self.0 |= match expr {
                Expr::If(code) => !is_plain(&code.cond),
                Expr::While(code) => !is_plain(&code.cond),
                Expr::ForLoop(code) => !repeat::is_plain(code),
                Expr::Binary(binary) => logic::is_rewritten(binary),
                Expr::Match(code) => arms::is_rewritten(code),
                Expr::Macro(call) => logic::assertion(&call.mac).is_some(),
                _ => false,
            };
            visit::visit_expr(self, expr);
        }

        fn visit_stmt_macro(&mut self, call: &syn::StmtMacro) {
            self.0 |= logic::assertion(&call.mac).is_some();
        }
    }

    let mut search = Search(false);
    search.visit_block(body);
    search.0
}

/// The body of a function that returns an `output`, rewritten.
pub(super) fn function(mut body: Block, output: &TokenStream) -> TokenStream {
    let mut rewriter = Rewriter::default();
    rewriter.visit_block_mut(&mut body);
    framed(&quote!(#body), output)
}

/// The code of a function with what surrounds its constructs.
fn framed(body: &TokenStream, output: &TokenStream) -> TokenStream {
    let (flow, frame) = (flow(Span::call_site()), frame());
    quote!({
        let #frame = #flow::RegionStack::<#output>::new();
        #frame.close(#body)
    })
}

/// A construct around the place at hand.
pub(super) enum EnclosingConstruct {
    /// An `if` whose condition may be a tensor.
    If {
        id: u32,
        state: Places,
        /// Variables without a value before it.
        unset: Places,
        /// Number of variables it holds.
        n_held: usize,
    },
    /// A loop that may be one of the graph.
    Loop {
        id: u32,
        /// As it is written, or made.
        name: Lifetime,
        state: Places,
        n_held: usize,
        /// Number of kinds of constructs around jumps out of it that are tied to its own, if its
        /// kind is told by those.
        ties: Option<u32>,
    },
    /// A loop or block of Rust.
    Host { name: Lifetime, is_loop: bool },
    /// The right side of `&&` or `||`.
    Operand { id: u32 },
}

impl EnclosingConstruct {
    /// The variable with the construct.
    pub(super) fn control(&self) -> Option<Ident> {
        match self {
            EnclosingConstruct::If { id, .. } => Some(variable("if", *id)),
            EnclosingConstruct::Loop { id, .. } => Some(variable("kind", *id)),
            EnclosingConstruct::Operand { id } => Some(variable("left", *id)),
            EnclosingConstruct::Host { .. } => None,
        }
    }

    /// The label behind the code that is traced.
    pub(super) fn end(&self) -> Option<Lifetime> {
        match self {
            EnclosingConstruct::If { id, .. } => Some(made_label("branch", *id)),
            EnclosingConstruct::Loop { id, .. } => Some(made_label("body", *id)),
            EnclosingConstruct::Operand { .. } | EnclosingConstruct::Host { .. } => None,
        }
    }

    /// Lets go what the construct holds.
    fn released(&self) -> TokenStream {
        let (id, n_held) = match self {
            EnclosingConstruct::If { id, n_held, .. }
            | EnclosingConstruct::Loop { id, n_held, .. } => (*id, *n_held),
            EnclosingConstruct::Host { .. } | EnclosingConstruct::Operand { .. } => {
                return TokenStream::new();
            }
        };
        let held = (0..n_held).map(|index| hold(index, id));
        quote!(#(#held = ::core::option::Option::None;)*)
    }

    fn unset(&self) -> Option<&Places> {
        match self {
            EnclosingConstruct::If { unset, .. } => Some(unset),
            EnclosingConstruct::Loop { .. }
            | EnclosingConstruct::Operand { .. }
            | EnclosingConstruct::Host { .. } => None,
        }
    }

    pub(super) fn state(&self) -> Option<&Places> {
        match self {
            EnclosingConstruct::If { state, .. } | EnclosingConstruct::Loop { state, .. } => {
                Some(state)
            }
            EnclosingConstruct::Operand { .. } | EnclosingConstruct::Host { .. } => None,
        }
    }
}

/// State of the rewriting at the current expression.
#[derive(Default)]
pub(super) struct Rewriter {
    /// Gives each construct a number.
    last_id: u32,
    /// The constructs around, innermost last.
    pub(super) around: Vec<EnclosingConstruct>,
    /// The names declared since the number of constructs was so large.
    scopes: Vec<(usize, HashSet<String>)>,
    /// Variables that have no value yet at the place at hand, as far as is known.
    unset: HashSet<String>,
    /// Whether the code is that of a closure which assigns to what it captures.
    pub(super) assigns_captures: bool,
}

impl Rewriter {
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    pub(super) fn inside<R>(
        &mut self,
        around: EnclosingConstruct,
        visit: impl FnOnce(&mut Self) -> R,
    ) -> R {
        self.around.push(around);
        let result = visit(self);
        self.around.pop();
        result
    }

    fn scoped(&mut self, patterns: &[&Pat], visit: impl FnOnce(&mut Self)) {
        let names = patterns.iter().flat_map(|pattern| declared(pattern)).collect();
        self.declared(names, visit);
    }

    /// Visits code in which these names are declared.
    pub(super) fn declared(&mut self, names: HashSet<String>, visit: impl FnOnce(&mut Self)) {
        self.unset.retain(|name| !names.contains(name));
        self.scopes.push((self.around.len(), names));
        visit(self);
        self.scopes.pop();
    }

    /// Of what a construct assigns to, the variables that have no value before it, and the others.
    pub(super) fn split_unset(&self, assigned: &Places) -> (Places, Places) {
        assigned.clone().into_iter().partition(|(key, _)| self.unset.contains(key))
    }

    /// Visits code that runs once or not, from the same place as the code beside it; returns the
    /// variables that then have no value.
    pub(super) fn beside(&mut self, visit: impl FnOnce(&mut Self)) -> HashSet<String> {
        let before = self.unset.clone();
        visit(self);
        std::mem::replace(&mut self.unset, before)
    }

    /// Notes that code which runs once or not has left only these variables without a value.
    pub(super) fn remain_unset(&mut self, unset: &HashSet<String>) {
        self.unset.retain(|name| unset.contains(name));
    }

    /// Notes that code may have assigned to these variables.
    pub(super) fn note_assigned(&mut self, assigned: &Places) {
        self.unset.retain(|name| !assigned.values().any(|place| place.root == *name));
    }

    /// Whether a name that the construct of this number changes is that of something else here.
    fn is_hidden(&self, construct: usize, root: &str) -> bool {
        let inside = self.scopes.iter().filter(|(depth, _)| *depth > construct);
        inside.into_iter().any(|(_, names)| names.contains(root))
    }

    /// The variables of a construct around, as arguments of functions; and what is wrong with them.
    pub(super) fn saved(&self, construct: usize) -> (TokenStream, TokenStream) {
        let around = &self.around[construct];
        let (Some(control), Some(state)) = (around.control(), around.state()) else {
            return Default::default();
        };
        let hidden = state.values().filter(|place| self.is_hidden(construct, &place.root));
        let hidden = hidden.map(|place| {
            let span = place.expr.span();
            let (flow, control) = (flow(span), at(&control, span));
            quote_spanned!(Span::call_site().located_at(span)=> #flow::hides(&#control);)
        });
        let unset = around.unset().into_iter().flat_map(Places::values);
        let all = state.values().chain(unset);
        let seen = all.filter(|place| !self.is_hidden(construct, &place.root));
        (carried(&control, seen), hidden.collect())
    }

    /// Lets go what the constructs inside this one hold: it is used where they are not staged, so that
    /// they hold nothing, which the compiler does not know.
    pub(super) fn released_inside(&self, construct: usize) -> TokenStream {
        self.around[construct + 1..].iter().map(EnclosingConstruct::released).collect()
    }

    fn closure(&mut self, closure: &mut ExprClosure) {
        let body = Stmt::Expr((*closure.body).clone(), None);
        if !is_needed(&Block { brace_token: Default::default(), stmts: vec![body] }) {
            return;
        }
        let uses = Uses::of([&*closure.body], closure.inputs.iter());
        let around = std::mem::take(&mut self.around);
        let scopes = std::mem::take(&mut self.scopes);
        let unset = std::mem::take(&mut self.unset);
        let assigns = !uses.assigned.is_empty();
        let assigns = std::mem::replace(&mut self.assigns_captures, assigns);
        self.visit_expr_mut(&mut closure.body);
        let output = match &closure.output {
            ReturnType::Default => quote!(_),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let body = &closure.body;
        *closure.body = Expr::Verbatim(framed(&quote!(#body), &output));
        (self.around, self.scopes, self.assigns_captures) = (around, scopes, assigns);
        self.unset = unset;
    }

    /// An expression that becomes another.
    fn replaced(&mut self, expr: &mut Expr) -> Option<TokenStream> {
        match expr {
            Expr::If(code) if !is_plain(&code.cond) => choice::code(self, code),
            Expr::While(code) if !is_plain(&code.cond) => Some(repeat::while_code(self, code)),
            Expr::ForLoop(code) if !repeat::is_plain(code) => Some(repeat::for_code(self, code)),
            Expr::Loop(code) => Some(repeat::loop_code(self, code)),
            Expr::Match(code) if arms::is_rewritten(code) => self.arms(code),
            Expr::Break(_) | Expr::Continue(_) => jump::code(self, expr),
            Expr::Return(code) => Some(jump::return_code(self, code)),
            Expr::Binary(binary) if logic::is_rewritten(binary) => Some(logic::code(self, binary)),
            Expr::Macro(call) => logic::assert_code(self, &call.mac),
            _ => None,
        }
    }

    /// Code of a `match` on integers.
    fn arms(&mut self, code: &mut ExprMatch) -> Option<TokenStream> {
        let id = self.next_id();
        self.visit_expr_mut(&mut code.expr);
        let (over, subject, mut chain) = arms::choices(code, id)?;
        self.visit_expr_mut(&mut chain);
        Some(quote!(match #over { #subject => #chain }))
    }

    /// Visits a loop of Rust. It gets a label: what jumps to it may stand in loops that are made.
    fn host_loop(&mut self, label: &mut Option<syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.unset.clear();
        let id = self.next_id();
        let name = made_label("host", id);
        let made = || syn::Label { name, colon_token: Default::default() };
        let name = label.get_or_insert_with(made).name.clone();
        self.inside(EnclosingConstruct::Host { name, is_loop: true }, visit);
    }
}

impl VisitMut for Rewriter {
    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Closure(closure) => return self.closure(closure),
            Expr::Async(_) | Expr::Const(_) => return,
            _ => {}
        }
        if let Some(code) = self.replaced(expr) {
            *expr = expression(code);
            return;
        }
        match expr {
            Expr::While(code) => {
                self.scoped(&[], |rewriter| {
                    rewriter.visit_expr_mut(&mut code.cond);
                    let body = &mut code.body;
                    rewriter.host_loop(&mut code.label, |r| r.visit_block_mut(body));
                });
            }
            Expr::Loop(code) => {
                let body = &mut code.body;
                self.host_loop(&mut code.label, |r| r.visit_block_mut(body));
            }
            Expr::ForLoop(code) => {
                self.visit_expr_mut(&mut code.expr);
                let (pattern, body) = (&code.pat, &mut code.body);
                self.host_loop(&mut code.label, |rewriter| {
                    rewriter.scoped(&[pattern], |r| r.visit_block_mut(body));
                });
            }
            Expr::Block(code) => match &code.label {
                Some(label) => {
                    let around =
                        EnclosingConstruct::Host { name: label.name.clone(), is_loop: false };
                    self.inside(around, |r| r.visit_block_mut(&mut code.block));
                }
                None => self.visit_block_mut(&mut code.block),
            },
            Expr::If(code) => self.scoped(&[], |rewriter| {
                rewriter.visit_expr_mut(&mut code.cond);
                let then = rewriter.beside(|r| r.visit_block_mut(&mut code.then_branch));
                if let Some((_, otherwise)) = &mut code.else_branch {
                    rewriter.visit_expr_mut(otherwise);
                }
                rewriter.remain_unset(&then);
            }),
            Expr::Match(code) => {
                self.visit_expr_mut(&mut code.expr);
                let arms = code.arms.iter_mut();
                let unset: Vec<_> =
                    arms.map(|arm| self.beside(|rewriter| rewriter.visit_arm_mut(arm))).collect();
                unset.iter().for_each(|unset| self.remain_unset(unset));
            }
            Expr::Assign(assignment) => {
                let assigned = Uses::of([&Expr::Assign(assignment.clone())], []).assigned;
                self.visit_expr_mut(&mut assignment.right);
                self.visit_expr_mut(&mut assignment.left);
                self.note_assigned(&assigned);
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
        if let Expr::Unary(ExprUnary { op: UnOp::Neg(_) | UnOp::Not(_), expr: operand, .. }) = expr
            && matches!(
                **operand,
                Expr::Paren(_) | Expr::Block(_) | Expr::If(_) | Expr::Match(_) | Expr::Try(_)
            )
        {
            **operand = expression(unexpected(operand));
        }
    }

    fn visit_expr_let_mut(&mut self, binding: &mut syn::ExprLet) {
        self.visit_expr_mut(&mut binding.expr);
        if let Some((_, names)) = self.scopes.last_mut() {
            names.extend(declared(&binding.pat));
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        self.scoped(&[], |rewriter| visit_mut::visit_block_mut(rewriter, block));
    }

    fn visit_arm_mut(&mut self, arm: &mut Arm) {
        let pattern = arm.pat.clone();
        self.scoped(&[&pattern], |rewriter| visit_mut::visit_arm_mut(rewriter, arm));
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        if let Some(init) = &mut local.init {
            self.visit_expr_mut(&mut init.expr);
            if let Some((_, otherwise)) = &mut init.diverge {
                self.visit_expr_mut(otherwise);
            }
        }
        let names = declared(&local.pat);
        self.unset.retain(|name| !names.contains(name));
        if local.init.is_none() {
            // Both branches of a graph assign to it.
            Mutable.visit_pat_mut(&mut local.pat);
            self.unset.extend(names.iter().cloned());
        }
        if let Some((_, all)) = self.scopes.last_mut() {
            all.extend(names);
        }
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Macro(call) => {
                if let Some(code) = logic::assert_code(self, &call.mac) {
                    *stmt = Stmt::Expr(Expr::Verbatim(code), Some(Default::default()));
                }
            }
            // A block that is a statement needs no semicolon; in parentheses it would.
            Stmt::Expr(expr, _) => match self.replaced(expr) {
                Some(code) => *expr = Expr::Verbatim(code),
                None => self.visit_expr_mut(expr),
            },
            Stmt::Local(_) | Stmt::Item(_) => visit_mut::visit_stmt_mut(self, stmt),
        }
    }
}

/// Makes the variables of a pattern mutable.
struct Mutable;

impl VisitMut for Mutable {
    fn visit_pat_ident_mut(&mut self, name: &mut syn::PatIdent) {
        name.mutability.get_or_insert_default();
    }
}

/// The operand of `-` or `!`, which the compiler expects to be of the type of the result: it looks for
/// that type in branches, and does not find it where the operator gives another one. It expects nothing
/// of a tuple whose field is taken.
fn unexpected(operand: &Expr) -> TokenStream {
    quote!((#operand,).0)
}

/// The condition of a construct, in which `!` is that of tensors too.
pub(super) fn condition(rewriter: &mut Rewriter, condition: &mut Expr) {
    match condition {
        Expr::Paren(paren) => {
            self::condition(rewriter, &mut paren.expr);
            *condition = (*paren.expr).clone();
        }
        Expr::Group(group) => self::condition(rewriter, &mut group.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) && !is_plain(&unary.expr) => {
            let code = logic::not_code(rewriter, &mut unary.expr);
            *condition = expression(code);
        }
        Expr::Binary(binary) if is_logical(&binary.op) && logic::is_rewritten(binary) => {
            *condition = expression(logic::code(rewriter, binary));
        }
        other => rewriter.visit_expr_mut(other),
    }
}

/// The jumps in branches.
pub(super) fn jumps(branches: &[&Expr]) -> Jumps {
    Jumps::of(branches.iter().copied())
}
