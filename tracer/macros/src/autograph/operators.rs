//! Operators after operators: `x * 2.0 + 1.0` needs no `?` behind `x * 2.0`.
//!
//! What an operator of tensors gives is a `Result`, which Rust lets no number follow. Where the
//! operand of an operator, or the object of a method, is itself one of an operator, its type decides:
//! the tensor is taken out of such a result, anything else stays what it is.
//!
//! Comparisons of Rust are asked by the types of their operands whether there are any.

use super::{
    syntax::{bare, is_comparison},
    written::flow,
};
use proc_macro2::Span;
use syn::{
    BinOp, Block, Expr, ExprArray, ExprBinary, ExprRepeat, ExprUnary, Item, Pat, ReturnType, Type,
    UnOp, parse_quote, parse_quote_spanned,
    spanned::Spanned,
    visit_mut::{self, VisitMut},
};

/// Rewrites the operators in a body that take what others give. Returns whether there are any.
pub(super) fn join(body: &mut Block) -> bool {
    let mut joiner = Joiner { has_joined: false };
    joiner.visit_block_mut(body);
    if joiner.has_joined {
        let flow = flow(Span::call_site());
        let import = parse_quote! {
            #[allow(unused_imports, reason = "which of them is asked for is not known")]
            use #flow::{AnyCompared as _, AnyOperand as _};
        };
        body.stmts.insert(0, import);
    }
    joiner.has_joined
}

struct Joiner {
    has_joined: bool,
}

impl Joiner {
    fn operand(&mut self, operand: &mut Expr) {
        if !is_operator(bare(operand)) {
            return;
        }
        self.has_joined = true;
        let (span, inner) = (Span::call_site().located_at(operand.span()), bare(operand));
        let flow = flow(operand.span());
        *operand = parse_quote_spanned!(span=> #flow::NestedOperand(#inner).value()?);
    }
}

impl Joiner {
    /// Has the compiler say how tensors are compared, where a variable may be one. The other side is
    /// a value: a comparison takes variables by reference, which stand where they are written.
    fn compared(&mut self, binary: &mut ExprBinary) {
        let is_place =
            |side: &Expr| matches!(bare(side), Expr::Path(_) | Expr::Field(_) | Expr::Index(_));
        let (variable, value) = match (is_place(&binary.left), is_place(&binary.right)) {
            (true, false) => (&binary.left, &mut binary.right),
            (false, true) => (&binary.right, &mut binary.left),
            _ => return,
        };
        if !matches!(bare(variable), Expr::Path(_) | Expr::Field(_)) {
            return;
        }
        self.has_joined = true;
        let (flow, span) = (flow(variable.span()), Span::call_site().located_at(variable.span()));
        **value = parse_quote_spanned! {span=>
            ({
                if false {
                    #flow::comparable(#flow::Compared(&#variable).kind());
                }
                #value
            })
        };
    }
}

impl VisitMut for Joiner {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            // Functions of their own, which may be such that cannot fail.
            Expr::Closure(closure) if !is_fallible(&closure.output) => return,
            Expr::Async(_) | Expr::Const(_) | Expr::TryBlock(_) => return,
            // Its length is a constant.
            Expr::Repeat(ExprRepeat { expr, .. }) => return self.visit_expr_mut(expr),
            Expr::Array(ExprArray { elems, .. }) => {
                return elems.iter_mut().for_each(|element| self.visit_expr_mut(element));
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
        match expr {
            Expr::Binary(binary) if is_arithmetic(&binary.op) => {
                self.operand(&mut binary.left);
                self.operand(&mut binary.right);
            }
            Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr: operand, .. }) => self.operand(operand),
            Expr::MethodCall(call) => self.operand(&mut call.receiver),
            Expr::Binary(binary) if is_comparison(&binary.op) => self.compared(binary),
            _ => {}
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_pat_mut(&mut self, _: &mut Pat) {}

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}
}

/// Whether a closure says that it returns a `Result`.
fn is_fallible(output: &ReturnType) -> bool {
    match output {
        ReturnType::Type(_, ty) => match &**ty {
            Type::Path(path) => {
                path.path.segments.last().is_some_and(|last| last.ident == "Result")
            }
            _ => false,
        },
        ReturnType::Default => false,
    }
}

/// Whether an expression is one of an operator of tensors, as far as syntax tells.
fn is_operator(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(binary) => is_arithmetic(&binary.op) && !is_number(expr),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. }) => !is_number(expr),
        _ => false,
    }
}

/// Whether an expression is made of numbers as they are written.
fn is_number(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Lit(_) => true,
        Expr::Binary(binary) => is_number(&binary.left) && is_number(&binary.right),
        Expr::Unary(unary) => is_number(&unary.expr),
        _ => false,
    }
}

fn is_arithmetic(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::Add(_)
            | BinOp::Sub(_)
            | BinOp::Mul(_)
            | BinOp::Div(_)
            | BinOp::Rem(_)
            | BinOp::BitAnd(_)
            | BinOp::BitOr(_)
    )
}
