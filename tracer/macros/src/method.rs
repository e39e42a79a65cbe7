//! Methods: the method as it is written, its body, and its traces on an object.

use crate::{
    crate_path,
    item::{self, Definition, Failing, FunctionAttrs},
    parameter::nest_bounds,
};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// The code for a method.
pub(crate) fn code(definition: &Definition) -> TokenStream {
    let macros = crate_path::macros();
    let Definition { item, parameters, output, options } = definition;
    let (vis, sig) = (&item.vis, &item.sig);
    let FunctionAttrs { conditions, .. } = item.attrs();
    let name = item::name_of(&sig.ident);
    let mut method = sig.ident.clone();
    method.set_span(Span::call_site());
    let derived = |name: String| Ident::new(&name, Span::call_site());
    let traced = derived(format!("__traced_{name}"));
    let function = derived(format!("{name}_function"));
    let concrete = derived(format!("{name}_concrete"));
    let traced_method = item.traced_method(&traced, &[], options.autograph);
    let options = options.code(&sig.ident, parameters);
    let n_parameters = parameters.len();
    let names: Vec<_> = parameters.iter().map(|parameter| &parameter.name).collect();
    let arguments = parameters.iter().map(|parameter| parameter.argument());
    let lent: Vec<_> = parameters.iter().map(|parameter| parameter.lent()).collect();
    let owned: Vec<_> = parameters.iter().map(|parameter| &parameter.owned).collect();
    let bounds = nest_bounds(owned.iter().copied().chain([output]));
    let (bounded, assumed) = (item::bounded(&bounds), item::assumed(sig, &bounds));
    let Failing { call_fallible, host_error } = item::failing(sig, &macros);
    let functions = quote_spanned!(sig.ident.span()=> #macros::HasFunctions::functions(self));
    let summaries = [
        format!(" The traces of [`{name}`](Self::{name}) on this object."),
        format!(
            " The trace of [`{name}`](Self::{name}) on this object for arguments of these types, \
             made if there is none; nothing runs."
        ),
    ];
    let [of_function, of_concrete] = &summaries;
    let calling = item.calling(
        &bounds,
        &quote! {
            self.#function().#call_fallible(
                (#(#arguments,)*),
                &|(#(#names,)*)| self.#traced(#(#lent),*),
            )
        },
    );
    quote! {
        #calling

        #traced_method

        #(#conditions)*
        #[doc = #of_function]
        #bounded
        #vis fn #function(&self) -> ::std::sync::Arc<#macros::PolymorphicFunction>
        where #(#assumed),*
        {
            static METHOD: #macros::Method = #macros::Method::new(#name);
            // Who uses one of these uses all.
            let _ = |types: ::std::vec::Vec<#macros::TraceType>| self.#concrete(types);
            #functions.of(&METHOD, || #macros::PolymorphicFunction::new(#options, #n_parameters))
        }

        #(#conditions)*
        #[doc = #of_concrete]
        ///
        /// # Errors
        ///
        /// As a call.
        #[allow(deprecated, reason = "the method itself may be")]
        #bounded
        #vis fn #concrete(
            &self,
            types: impl ::core::iter::IntoIterator<
                Item = impl ::core::convert::Into<#macros::TraceType>,
            >,
        ) -> #macros::Result<#macros::ConcreteFunction>
        where #(#assumed),*
        {
            let _ = Self::#method;
            let types = types.into_iter().map(::core::convert::Into::into).collect();
            self.#function().concrete(types, &|(#(#names,)*): (#(#owned,)*)| {
                self.#traced(#(#lent),*).map_err(#host_error)
            })
        }
    }
}
