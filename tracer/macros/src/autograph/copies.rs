//! Variables that end a branch or are returned: copies for graphs, where code after that is traced as
//! well; moved in Rust.

use super::{
    rewrite::{EnclosingConstruct, Rewriter},
    written::{expression, flow},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    BinOp, Block, Expr, ExprArray, ExprCall, ExprGroup, ExprParen, ExprTry, ExprTuple, ExprUnary,
    Stmt, UnOp, spanned::Spanned,
};

/// Makes the variables in a value that is returned copies.
pub(super) fn of_returned(rewriter: &Rewriter, value: &mut Expr) {
    copy(rewriter, value, &|_| true);
}

/// Makes the variable that ends a block a copy where the block is a branch of a graph: both branches
/// are run.
pub(super) fn of_tail(rewriter: &Rewriter, block: &mut Block) {
    if let Some(Stmt::Expr(tail, None)) = block.stmts.last_mut() {
        copy(rewriter, tail, &|around| matches!(around, EnclosingConstruct::If { .. }));
    }
}

/// Makes variables in an expression copies where one of the constructs around that are `replayed` is
/// one of the graph.
fn copy(rewriter: &Rewriter, expr: &mut Expr, replayed: &dyn Fn(&EnclosingConstruct) -> bool) {
    match expr {
        Expr::Path(path) => {
            let is_variable = path.qself.is_none()
                && path.path.get_ident().is_some_and(|name| {
                    let name = name.to_string();
                    name != "self" && name.starts_with(|first: char| !first.is_uppercase())
                });
            if is_variable {
                *expr = expression(copied(rewriter, expr, replayed));
            }
        }
        Expr::Paren(ExprParen { expr, .. })
        | Expr::Group(ExprGroup { expr, .. })
        | Expr::Try(ExprTry { expr, .. })
        | Expr::Unary(ExprUnary { op: UnOp::Neg(_) | UnOp::Not(_), expr, .. }) => {
            copy(rewriter, expr, replayed);
        }
        Expr::Binary(binary) if takes_operands(&binary.op) => {
            copy(rewriter, &mut binary.left, replayed);
            copy(rewriter, &mut binary.right, replayed);
        }
        Expr::Tuple(ExprTuple { elems, .. })
        | Expr::Array(ExprArray { elems, .. })
        | Expr::Call(ExprCall { args: elems, .. }) => {
            elems.iter_mut().for_each(|item| copy(rewriter, item, replayed));
        }
        Expr::MethodCall(call) => {
            // The object itself is taken by reference, as far as can be seen.
            if !matches!(&*call.receiver, Expr::Path(_)) {
                copy(rewriter, &mut call.receiver, replayed);
            }
            call.args.iter_mut().for_each(|item| copy(rewriter, item, replayed));
        }
        Expr::Struct(made) => {
            for field in &mut made.fields {
                field.colon_token.get_or_insert_default();
                copy(rewriter, &mut field.expr, replayed);
            }
        }
        _ => {}
    }
}

/// Whether an operator takes its operands as they are, and not by reference.
fn takes_operands(op: &BinOp) -> bool {
    matches!(op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) | BinOp::Rem(_))
}

fn copied(
    rewriter: &Rewriter,
    variable: &Expr,
    replayed: &dyn Fn(&EnclosingConstruct) -> bool,
) -> TokenStream {
    let span = variable.span();
    let (flow, at) = (flow(span), Span::call_site().located_at(span));
    // A variable of its own, of which no other type is expected than it has.
    let copy = Ident::new("__copy", Span::mixed_site());
    let replayed = rewriter.around.iter().filter(|around| replayed(around));
    replayed.filter_map(EnclosingConstruct::control).fold(quote!(#variable), |moved, control| {
        quote_spanned! {at=>
            if #flow::staged(&#control) {
                #flow::gate(&#control);
                let #copy = #flow::copy(&#control, &#variable);
                #copy
            } else {
                #flow::host_gate(&#control);
                #moved
            }
        }
    })
}
