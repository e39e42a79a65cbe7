//! Pieces of the code that is made.

use super::uses::{AssignedPath, Uses, written};
use crate::crate_path;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprParen, Lifetime, spanned::Spanned};

/// The functions that are called, named at `span`.
pub(super) fn flow(span: Span) -> TokenStream {
    let macros = crate_path::macros_at(Span::call_site().located_at(span));
    quote_spanned!(Span::call_site().located_at(span)=> #macros::flow)
}

/// The variable that holds what surrounds the constructs of a function.
pub(super) fn frame() -> Ident {
    Ident::new("__frame", Span::mixed_site())
}

/// A variable of the code that is made.
pub(super) fn variable(name: &str, id: u32) -> Ident {
    Ident::new(&format!("__{name}_{id}"), Span::mixed_site())
}

/// The same variable, standing at `span` for messages of the compiler.
pub(super) fn at(variable: &Ident, span: Span) -> Ident {
    let mut variable = variable.clone();
    variable.set_span(Span::mixed_site().located_at(span));
    variable
}

/// A label of the code that is made.
pub(super) fn label(name: &str, id: u32) -> Lifetime {
    Lifetime::new(&format!("'__{name}_{id}"), Span::mixed_site())
}

/// Code that was made, as an expression that may stand in any position: without the parentheses a
/// block or `if` at the beginning of a statement or of an arm would be one of its own.
pub(super) fn expression(code: TokenStream) -> Expr {
    let expr = Box::new(Expr::Verbatim(code));
    Expr::Paren(ExprParen { attrs: Vec::new(), paren_token: Default::default(), expr })
}

/// Variables as arguments: a construct changes them.
pub(super) fn carried<'a>(
    control: &Ident,
    state: impl IntoIterator<Item = &'a AssignedPath>,
) -> TokenStream {
    let vars = state.into_iter().map(|place| {
        let (expr, span) = (&place.expr, place.expr.span());
        let (flow, name) = (flow(span), written(expr));
        let control = at(control, span);
        quote_spanned!(Span::call_site().located_at(span)=> #flow::carry(&#control, #name, &mut #expr))
    });
    quote!(&mut [#(#vars),*])
}

/// Code for graphs only.
pub(super) fn gated(control: &Ident, code: &TokenStream) -> TokenStream {
    let flow = flow(Span::call_site());
    quote! {
        if #flow::live(&#control) {
            #flow::gate(&#control);
            #code
        }
    }
}

/// The value of a result; its failure ends the function.
pub(super) fn checked(control: &Ident, result: &TokenStream) -> TokenStream {
    let span = Span::call_site().located_at(control.span());
    let (flow, error) = (flow(span), Ident::new("__error", Span::mixed_site()));
    let value = Ident::new("__value", Span::mixed_site());
    quote_spanned! {span=>
        match #result {
            ::core::result::Result::Ok(#value) => #value,
            ::core::result::Result::Err(#error) => return #flow::fail(&#control, #error),
        }
    }
}

/// The result of the function where a construct failed with this error.
pub(super) fn failed(control: &Ident, error: &Ident) -> TokenStream {
    let span = Span::call_site().located_at(control.span());
    let flow = flow(span);
    quote_spanned!(span=> #flow::fail(&#control, #error))
}

/// The variable by which a construct holds another one.
pub(super) fn hold(index: usize, id: u32) -> Ident {
    variable(&format!("held_{index}"), id)
}

/// Holds what code only calls methods of, so that these cannot change it; and lets it go.
pub(super) fn held(control: &Ident, uses: &Uses, id: u32) -> (TokenStream, TokenStream) {
    let (mut before, mut after) = (TokenStream::new(), TokenStream::new());
    for (index, place) in uses.called.values().enumerate() {
        let (expr, held) = (&place.expr, hold(index, id));
        let hold = gated(control, &quote!(#held = ::core::option::Option::Some(&#expr);));
        before.extend(quote! {
            let mut #held = ::core::option::Option::None;
            #hold
        });
        after.extend(quote!(let _ = &#held;));
    }
    for &span in &uses.grown {
        let flow = flow(span);
        before
            .extend(quote_spanned!(Span::call_site().located_at(span)=> #flow::grows(&#control);));
    }
    (before, after)
}
