//! `match` on integers, which may be tensors: a chain of choices.

use super::{
    syntax::{bare, may_be_tensor},
    written::{expression, flow, variable},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Arm, Block, Expr, ExprBlock, ExprIf, ExprMatch, Lit, Pat, RangeLimits, parse_quote,
    spanned::Spanned,
};

/// Whether a `match` is on integers by its arms: they name numbers, but for the last one, which takes
/// all others.
pub(super) fn is_rewritten(code: &ExprMatch) -> bool {
    let Some((last, arms)) = code.arms.split_last() else { return false };
    let takes_all = match &last.pat {
        Pat::Wild(_) => true,
        Pat::Ident(name) => {
            // A constant is a number as well.
            let is_variable = name.ident.to_string().starts_with(|c: char| !c.is_uppercase());
            is_variable && name.by_ref.is_none() && name.subpat.is_none()
        }
        _ => false,
    };
    let are_numbers = arms.iter().all(|arm| arm.guard.is_none() && numbers(&arm.pat).is_some());
    takes_all
        && last.guard.is_none()
        && !arms.is_empty()
        && are_numbers
        && code.arms.iter().all(|arm| arm.attrs.is_empty())
        && may_be_tensor(&code.expr)
}

/// The first and last numbers of what a pattern names.
fn numbers(pattern: &Pat) -> Option<Vec<(TokenStream, TokenStream)>> {
    match pattern {
        Pat::Lit(literal) => {
            let number = number(&Expr::Lit(literal.clone()))?;
            Some(vec![(number.clone(), number)])
        }
        Pat::Range(range) => match (&range.start, &range.limits, &range.end) {
            (Some(start), RangeLimits::Closed(_), Some(end)) => {
                Some(vec![(number(start)?, number(end)?)])
            }
            _ => None,
        },
        Pat::Or(or) => {
            let all: Option<Vec<_>> = or.cases.iter().map(numbers).collect();
            Some(all?.concat())
        }
        Pat::Paren(paren) => numbers(&paren.pat),
        _ => None,
    }
}

fn number(expr: &Expr) -> Option<TokenStream> {
    let literal = match bare(expr) {
        Expr::Unary(negated) => bare(&negated.expr),
        other => other,
    };
    match literal {
        Expr::Lit(literal) if matches!(literal.lit, Lit::Int(_)) => Some(quote!(#expr)),
        _ => None,
    }
}

/// The number that a `match` looks at, a variable for it, and the choices that the arms are.
pub(super) fn choices(code: &ExprMatch, id: u32) -> Option<(TokenStream, Ident, Expr)> {
    let subject = variable("subject", id);
    let (last, arms) = code.arms.split_last()?;
    let others = match &last.pat {
        Pat::Ident(_) => {
            let (pattern, body, flow) = (&last.pat, &last.body, flow(last.pat.span()));
            Expr::Block(parse_quote!({ let #pattern = #flow::subject(&#subject); #body }))
        }
        _ => Expr::Block(block(last)),
    };
    let chain = arms.iter().rev().try_fold(others, |others, arm| {
        let span = Span::call_site().located_at(arm.pat.span());
        let flow = flow(arm.pat.span());
        let numbers = numbers(&arm.pat)?;
        let (first, last): (Vec<_>, Vec<_>) = numbers.into_iter().unzip();
        let is = quote_spanned!(span=> #flow::is_one_of(&#subject, &[#((#first, #last)),*]));
        Some(Expr::If(ExprIf {
            attrs: Vec::new(),
            if_token: syn::Token![if](span),
            cond: Box::new(expression(is)),
            then_branch: block(arm).block,
            else_branch: Some((Default::default(), Box::new(others))),
        }))
    })?;
    let (over, span) = (&code.expr, Span::call_site().located_at(code.expr.span()));
    let flow = flow(code.expr.span());
    Some((quote_spanned!(span=> #flow::subject(&#over)), subject, chain))
}

fn block(arm: &Arm) -> ExprBlock {
    let block = match &*arm.body {
        Expr::Block(body) if body.label.is_none() => body.block.clone(),
        body => {
            let stmts = vec![syn::Stmt::Expr(body.clone(), None)];
            Block { brace_token: Default::default(), stmts }
        }
    };
    ExprBlock { attrs: Vec::new(), label: None, block }
}
