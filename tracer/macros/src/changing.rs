//! Methods that change their object: the method as it is written, its body, and the function of all
//! objects, of which the object is the first argument.

use crate::{
    crate_path,
    item::{self, Definition, Failing, FunctionAttrs, FunctionItem},
    parameter::{FunctionParameter, nest_bounds},
};
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::{
    Block, Expr, ExprAsync, ExprClosure, ExprReturn, Item, Stmt, Token, WherePredicate,
    parse_quote, spanned::Spanned, visit_mut::VisitMut,
};

/// The code for a method that takes `&mut self`.
pub(crate) fn code(definition: &Definition) -> TokenStream {
    let macros = crate_path::macros();
    let Definition { item, parameters, output, options } = definition;
    let (vis, sig) = (&item.vis, &item.sig);
    let with_state = returning_state(item, &macros);
    let FunctionAttrs { conditions, .. } = item.attrs();
    let name = item::name_of(&sig.ident);
    let derived = |name: String| Ident::new(&name, Span::call_site());
    let traced = derived(format!("__traced_{name}"));
    let function = derived(format!("{name}_function"));
    let mut method = sig.ident.clone();
    method.set_span(Span::call_site());
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let arguments = parameters.iter().map(FunctionParameter::argument);
    let lent: Vec<_> = parameters.iter().map(FunctionParameter::lent).collect();
    let owned: Vec<_> = parameters.iter().map(|parameter| &parameter.owned).collect();
    let mut bounds = nest_bounds(owned.iter().copied().chain([output]));
    let of_object = of_object(sig);
    bounds.push(of_object.clone());
    let traced_method = with_state.traced_method(&traced, &[of_object], options.autograph);
    let (bounded, assumed) = (item::bounded(&bounds), item::assumed(sig, &bounds));
    let Failing { call_fallible, host_error } = item::failing(sig, &macros);
    let options = options.code_of_changing(&sig.ident, parameters);
    let object = Ident::new("__object", Span::mixed_site());
    let run = quote!({
        let mut #object = #object;
        #object.#traced(#(#lent),*)
    });
    let summary = format!(" The traced function of [`{name}`](Self::{name}), for all objects.");
    let calling = item.calling(
        &bounds,
        &quote! {
            let called = Self::#function().polymorphic().#call_fallible(
                (::core::clone::Clone::clone(&*self), #(#arguments,)*),
                &|(#object, #(#names,)*): (Self, #(#owned,)*)| #run,
            );
            #macros::changing::apply(self, called)
        },
    );
    quote! {
        #calling

        #traced_method

        #(#conditions)*
        #[doc = #summary]
        #[allow(deprecated, reason = "the method itself may be")]
        #bounded
        #vis fn #function() -> &'static #macros::Function<
            (Self, #(#owned,)*),
            (#output, #macros::NestedValue),
        >
        where #(#assumed),*
        {
            static METHOD: #macros::Slots = #macros::Slots::new();
            let _ = Self::#method;
            METHOD.get_or_init::<Self, _>(|| #macros::function_with(
                #options,
                |#object: Self, #(#names: #owned),*| (#run).map_err(#host_error),
            ))
        }
    }
}

/// The method, returning the state of its object beside its result wherever it returns.
fn returning_state(item: &FunctionItem, macros: &TokenStream) -> FunctionItem {
    let mut item = item.clone();
    let body = TokenStream::from(TokenTree::Group(item.body.clone()));
    // The compiler tells of a body that is none, where it stands.
    let (Ok(mut block), Some(receiver)) = (syn::parse2::<Block>(body), item.sig.receiver()) else {
        return item;
    };
    let (name, object) = (item::name_of(&item.sig.ident), receiver.self_token);
    let before = Ident::new("__before", Span::mixed_site());
    let mut returns = Returns { macros, name, before: &before, object: &object };
    returns.visit_block_mut(&mut block);
    if let Some(Stmt::Expr(last, None)) = block.stmts.last_mut() {
        returns.change(last);
    }
    let stmts = &block.stmts;
    let body = quote!({
        let #before = #macros::changing::before(&*#object);
        #(#stmts)*
    });
    if let Some(TokenTree::Group(body)) = body.into_iter().next() {
        item.body = body;
    }
    item::change_result(&mut item.sig, |output| parse_quote!((#output, #macros::NestedValue)));
    item
}

/// Adds the state of the object to what is returned.
struct Returns<'a> {
    macros: &'a TokenStream,
    name: String,
    before: &'a Ident,
    object: &'a Token![self],
}

impl Returns<'_> {
    fn change(&self, result: &mut Expr) {
        let Returns { macros, name, before, object } = self;
        let span = Span::call_site().located_at(result.span());
        let added = quote_spanned!(span=> #macros::changing::with_state);
        *result = parse_quote!(#added(#result, #name, &#before, &*#object));
    }
}

impl VisitMut for Returns<'_> {
    fn visit_expr_return_mut(&mut self, code: &mut ExprReturn) {
        if let Some(result) = &mut code.expr {
            self.visit_expr_mut(result);
            self.change(result);
        }
    }

    fn visit_expr_closure_mut(&mut self, _: &mut ExprClosure) {}

    fn visit_expr_async_mut(&mut self, _: &mut ExprAsync) {}

    fn visit_item_mut(&mut self, _: &mut Item) {}
}

/// The object is an argument by value, and one type has one function.
fn of_object(sig: &syn::Signature) -> WherePredicate {
    let span = sig.receiver().map_or_else(Span::call_site, Spanned::span);
    let macros = crate_path::macros_at(span);
    let object = Ident::new("Self", Span::call_site().located_at(span));
    let predicate = quote_spanned!(span=> #object: #macros::Nest + ::core::clone::Clone + 'static);
    parse_quote!(#predicate)
}
