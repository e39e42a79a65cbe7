//! Free functions: the function as it is written, and a structure of the same name as its handle.
//!
//! Structures with braces live among the types, functions among the values, so that both may have
//! the name; this also works inside the bodies of functions. A generic function is one for each
//! choice of its parameters, for which the structure has the same.

use crate::{
    crate_path,
    generics::{lifetimes, without_lifetimes},
    item::{self, Definition, Failing, FunctionAttrs, FunctionBody},
    parameter::nest_bounds,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{WherePredicate, parse_quote};

/// The code for a free function.
pub(crate) fn code(definition: &Definition) -> TokenStream {
    let macros = crate_path::macros();
    let Definition { item, parameters, output, options } = definition;
    let (vis, sig) = (&item.vis, &item.sig);
    let FunctionBody { lints: of_body, code: body } = item.body(options.autograph);
    let FunctionAttrs { conditions, lints, .. } = item.attrs();
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let arguments = parameters.iter().map(|parameter| parameter.argument());
    let lent: Vec<_> = parameters.iter().map(|parameter| parameter.lent()).collect();
    let owned: Vec<_> = parameters.iter().map(|parameter| &parameter.owned).collect();
    let mut bounds = nest_bounds(owned.iter().copied().chain([output]));
    // There is a function for each choice of types, which live as long as it.
    let choice = without_lifetimes(&sig.generics);
    let types: Vec<&Ident> = choice.type_params().map(|parameter| &parameter.ident).collect();
    bounds.extend(types.iter().map(|ty| -> WherePredicate { parse_quote!(#ty: 'static) }));
    let bounded = item::bounded(&bounds);
    let (mut inner, said_once) = (sig.clone(), item::said_once());
    inner.ident = Ident::new("__traced", Span::call_site());
    inner.generics = lifetimes(&sig.generics);
    let mut handle = sig.ident.clone();
    handle.set_span(Span::call_site());
    let name = item::name_of(&sig.ident);
    let options = options.code(&sig.ident, parameters);
    let function = quote!(#macros::Function<(#(#owned,)*), #output>);
    let Failing { call_fallible, host_error } = item::failing(sig, &macros);
    let mut assumed = choice.clone();
    if !bounds.is_empty() {
        assumed.make_where_clause().predicates.extend(bounds.iter().cloned());
    }
    let (generic_types, chosen, assumptions) = assumed.split_for_impl();
    let turbofish = chosen.as_turbofish();
    let (slots, fields) = match choice.params.is_empty() {
        true => (quote!(FunctionSlot), quote!({})),
        false => (
            quote!(Slots),
            quote!({ __choice: ::core::marker::PhantomData<fn() -> (#(#types,)*)> }),
        ),
    };
    let of_choice = (!choice.params.is_empty()).then(|| quote!(::<Self, _>));
    let parameters_of = &choice.params;
    let declared = (!choice.params.is_empty()).then(|| quote!(<#parameters_of>));
    let asked = &choice.where_clause;
    let summary = format!(" The traced function [`{name}`](fn@{name}).");
    let calling = item.calling(
        &bounds,
        &quote! {
            #handle #turbofish::function().polymorphic().#call_fallible(
                (#(#arguments,)*),
                &|(#(#names,)*)| #handle #turbofish::__traced(#(#lent),*),
            )
        },
    );
    quote! {
        #calling

        #(#conditions)*
        #[doc = #summary]
        #vis struct #handle #declared #asked #fields

        #(#conditions)*
        #[allow(deprecated, reason = "the function itself may be")]
        #bounded
        impl #generic_types #handle #chosen #assumptions {
            #said_once
            #(#lints)*
            #of_body
            #inner #body

            /// The function and its traces.
            #vis fn function() -> &'static #function {
                static FUNCTION: #macros::#slots = #macros::#slots::new();
                // Who uses one of these uses all.
                let _ = (#handle #turbofish, Self::signatures, Self::tracing_count);
                let _ = |args: (#(#owned,)*)| Self::call(args);
                let _ = |args: (#(#owned,)*)| Self::concrete(args);
                FUNCTION.get_or_init #of_choice (|| #macros::function_with(
                    #options,
                    |#(#names: #owned),*| Self::__traced(#(#lent),*).map_err(#host_error),
                ))
            }

            /// Calls the function with arguments by value or reference.
            ///
            /// # Errors
            ///
            /// Those of the function.
            #[track_caller]
            #vis fn call(args: impl #macros::IntoArgs<(#(#owned,)*)>) -> #macros::Result<#output> {
                Self::function().call(args)
            }

            /// The trace for arguments like these, made if there is none; nothing runs.
            ///
            /// # Errors
            ///
            /// As a call.
            #vis fn concrete(
                args: impl #macros::IntoArgs<(#(#owned,)*)>,
            ) -> #macros::Result<#macros::ConcreteFunction> {
                Self::function().concrete(args)
            }

            /// Descriptions of the inputs and outputs of the traces.
            #vis fn signatures() -> ::std::string::String {
                Self::function().signatures()
            }

            /// Number of times that the code has run to be traced.
            #vis fn tracing_count() -> u64 {
                Self::function().tracing_count()
            }
        }
    }
}
