//! `#[derive(TraceType)]`: objects told apart by their Rust type, or by their value.

use crate::crate_path;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DeriveInput, parse_quote};

const RULES: &str = "say how objects are told apart: `#[trace(by_type)]`, all share one type, or \
                     `#[trace(by_value)]`, equal ones do";

/// The implementation of `Nest`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let macros = crate_path::macros();
    let rule = rule(input)?;
    let is_by_value = rule == "by_value";
    let by = if is_by_value { quote!(by_kept_value) } else { quote!(by_type) };
    let ident = &input.ident;
    let (impl_generics, ty_generics, _) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let equal = is_by_value.then(|| quote!(::core::cmp::PartialEq+));
        let predicate = quote! {
            #ident #ty_generics: ::core::clone::Clone + #equal Send + Sync + 'static
        };
        generics.make_where_clause().predicates.push(parse_quote!(#predicate));
    }
    let where_clause = &generics.where_clause;
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #macros::Nest for #ident #ty_generics #where_clause {
            fn to_value(&self) -> #macros::NestedValue {
                let object = ::std::sync::Arc::new(<Self as ::core::clone::Clone>::clone(self));
                #macros::NestedValue::Custom(#macros::custom::#by(&object))
            }

            fn from_value(value: #macros::NestedValue) -> #macros::Result<Self> {
                let object = #macros::custom::object::<Self>(&value)?;
                ::core::result::Result::Ok(<Self as ::core::clone::Clone>::clone(&object))
            }

            fn has_type(&self, ty: &#macros::TraceType, _: &mut #macros::Aliases) -> bool {
                #macros::custom::has_type(self, ty)
            }

            fn leaves(&self, _: &mut #macros::Aliases, _: &mut #macros::TensorLeaves) {}
        }
    })
}

fn rule(input: &DeriveInput) -> syn::Result<Ident> {
    let mut attrs = input.attrs.iter().filter(|attr| attr.path().is_ident("trace"));
    let Some(attr) = attrs.next() else {
        return Err(syn::Error::new_spanned(&input.ident, RULES));
    };
    if let Some(second) = attrs.next() {
        return Err(syn::Error::new_spanned(second, "objects are told apart in one way"));
    }
    let rule: Ident = attr.parse_args().map_err(|error| syn::Error::new(error.span(), RULES))?;
    if rule == "by_type" || rule == "by_value" {
        Ok(rule)
    } else {
        Err(syn::Error::new(rule.span(), RULES))
    }
}
