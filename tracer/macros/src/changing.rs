//! Methods that change their object: the method as it is written, its body, and the function of all
//! objects, of which the object is the first argument.

use crate::{
    crate_path,
    item::{self, Definition, Failing, FunctionAttrs, FunctionBody},
    parameter::{FunctionParameter, nest_bounds},
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{WherePredicate, parse_quote, spanned::Spanned};

/// The code for a method that takes `&mut self`.
pub(crate) fn code(definition: &Definition) -> TokenStream {
    let macros = crate_path::macros();
    let Definition { item, parameters, output, options } = definition;
    let (vis, sig) = (&item.vis, &item.sig);
    let FunctionBody { lints: of_body, code: body } = item.body(options.autograph);
    let FunctionAttrs { conditions, lints, others } = item.attrs();
    let name = item::name_of(&sig.ident);
    let derived = |name: String| Ident::new(&name, Span::call_site());
    let traced = derived(format!("__traced_{name}"));
    let function = derived(format!("{name}_function"));
    let mut method = sig.ident.clone();
    method.set_span(Span::call_site());
    let (mut inner, said_once) = (sig.clone(), item::said_once());
    inner.ident = traced.clone();
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let arguments = parameters.iter().map(FunctionParameter::argument);
    let lent: Vec<_> = parameters.iter().map(FunctionParameter::lent).collect();
    let owned: Vec<_> = parameters.iter().map(|parameter| &parameter.owned).collect();
    let mut bounds = nest_bounds(owned.iter().copied().chain([output]));
    bounds.push(of_object(sig));
    let (outer, bounded) = (item::outer(sig, &bounds), item::bounded(&bounds));
    let assumed = item::assumed(sig, &bounds);
    let Failing { call_fallible, host_error } = item::failing(sig, &macros);
    let options = options.code_of_changing(&sig.ident, parameters);
    let object = Ident::new("__object", Span::mixed_site());
    let run = quote! {
        #macros::changing::with_state(
            #name,
            #object,
            |#object: &mut Self| #object.#traced(#(#lent),*),
        )
    };
    let summary = format!(" The traced function of [`{name}`](Self::{name}), for all objects.");
    quote! {
        #(#conditions)*
        #(#others)*
        #(#lints)*
        #bounded
        #[track_caller]
        #vis #outer {
            let called = Self::#function().polymorphic().#call_fallible(
                (::core::clone::Clone::clone(&*self), #(#arguments,)*),
                &|(#object, #(#names,)*): (Self, #(#owned,)*)| #run,
            );
            #macros::changing::apply(self, called)
        }

        #(#conditions)*
        #said_once
        #(#lints)*
        #[doc(hidden)]
        #of_body
        #inner #body

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
                |#object: Self, #(#names: #owned),*| #run.map_err(#host_error),
            ))
        }
    }
}

/// The object is an argument by value, and one type has one function.
fn of_object(sig: &syn::Signature) -> WherePredicate {
    let span = sig.receiver().map_or_else(Span::call_site, Spanned::span);
    let macros = crate_path::macros_at(span);
    let object = Ident::new("Self", Span::call_site().located_at(span));
    let predicate = quote_spanned!(span=> #object: #macros::Nest + ::core::clone::Clone + 'static);
    parse_quote!(#predicate)
}
