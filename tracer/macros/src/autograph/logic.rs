//! `&&`, `||`, `!` and `assert!`.

use super::{
    rewrite::{EnclosingConstruct, Rewriter, condition},
    syntax::{diverges, is_logical, is_plain},
    written::{at, checked, flow, frame, variable},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    BinOp, Expr, ExprBinary, Macro, Token, parse::Parser, punctuated::Punctuated, spanned::Spanned,
};

/// Whether an `&&` or `||` may be one of tensors.
pub(super) fn is_rewritten(binary: &ExprBinary) -> bool {
    is_logical(&binary.op) && !is_plain(&Expr::Binary(binary.clone())) && !diverges(&binary.right)
}

/// Code of `&&` or `||`.
pub(super) fn code(rewriter: &mut Rewriter, binary: &mut ExprBinary) -> TokenStream {
    let id = rewriter.next_id();
    let right_span = binary.right.span();
    condition(rewriter, &mut binary.left);
    rewriter.inside(EnclosingConstruct::Operand { id }, |rewriter| {
        condition(rewriter, &mut binary.right)
    });
    let asks = matches!(binary.op, BinOp::And(_));
    let (at_left, frame) = (flow(binary.left.span()), frame());
    let (left, right) = (&binary.left, &binary.right);
    let (control, side) = (variable("left", id), variable("right", id));
    let given = Ident::new("__given", Span::mixed_site());
    let kind = Ident::new("__of", Span::mixed_site());
    let begun = quote_spanned! {Span::call_site().located_at(left.span())=>
        #at_left::left(#left, #asks)
    };
    let asked = checked(&control, &quote!(#control.asks(#frame.flows())));
    let at_right = super::written::flow(right_span);
    let (left_side, right_side) = (at(&control, left.span()), at(&side, right_span));
    let ended = quote_spanned! {Span::call_site().located_at(right_span)=>
        #at_right::right(#left_side, #right_side)
    };
    let result = checked(&kind, &quote!(#given.result));
    quote!({
        let mut #control = #begun;
        let #side = if #asked {
            ::core::option::Option::Some(#right)
        } else {
            ::core::option::Option::None
        };
        let #given = #ended;
        let #kind = #given.control;
        #result
    })
}

/// Code of the opposite of a condition.
pub(super) fn not_code(rewriter: &mut Rewriter, negated: &mut Expr) -> TokenStream {
    condition(rewriter, negated);
    let (flow, span) = (flow(negated.span()), Span::call_site().located_at(negated.span()));
    taken(&quote_spanned!(span=> #flow::Negate::negate(#negated)))
}

/// The result of what is given.
fn taken(given: &TokenStream) -> TokenStream {
    let name = Ident::new("__given", Span::mixed_site());
    let kind = Ident::new("__of", Span::mixed_site());
    let result = checked(&kind, &quote!(#name.result));
    quote!({
        let #name = #given;
        let #kind = #name.control;
        #result
    })
}

/// The arguments of an `assert!` whose condition may be a tensor.
pub(super) fn assertion(call: &Macro) -> Option<(Expr, Vec<Expr>)> {
    if !call.path.is_ident("assert") {
        return None;
    }
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    let mut arguments = parser.parse2(call.tokens.clone()).ok()?.into_iter();
    let condition = arguments.next().filter(|condition| !is_plain(condition))?;
    Some((condition, arguments.collect()))
}

/// Code of `assert!`, if its condition may be a tensor.
pub(super) fn assert_code(rewriter: &mut Rewriter, call: &Macro) -> Option<TokenStream> {
    let (mut holds, message) = assertion(call)?;
    let written = format!("assertion failed: {}", quote!(#holds));
    let (flow, span) = (flow(holds.span()), Span::call_site().located_at(holds.span()));
    condition(rewriter, &mut holds);
    let message = match message.is_empty() {
        true => quote!(::std::string::String::from(#written)),
        false => quote!(::std::format!(#(#message),*)),
    };
    Some(taken(&quote_spanned!(span=> #flow::AssertCondition::check(#holds, || #message))))
}
