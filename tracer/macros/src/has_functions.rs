//! `#[derive(HasFunctions)]`: the field in which the traces of methods are kept.

use crate::crate_path;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Member, Type};

/// The implementation of `HasFunctions`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let macros = crate_path::macros();
    let ident = &input.ident;
    let member = field(input)?;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #macros::HasFunctions for #ident #ty_generics #where_clause {
            fn functions(&self) -> &#macros::Functions {
                &self.#member
            }
        }
    })
}

fn field(input: &DeriveInput) -> syn::Result<Member> {
    let wrong = |problem: &str| Err(syn::Error::new_spanned(&input.ident, problem));
    let Data::Struct(data) = &input.data else {
        return wrong("the traces of methods are kept in a field, which only structures have");
    };
    let pairs = data.fields.iter().zip(data.fields.members());
    let mut found = pairs.filter(|(field, _)| is_functions(&field.ty)).map(|(_, member)| member);
    match (found.next(), found.next()) {
        (Some(member), None) => Ok(member),
        (None, _) => wrong(
            "there is no field for the traces of methods: add one of type `Functions`, which is \
             `Default`",
        ),
        (Some(_), Some(_)) => wrong("there are several fields of type `Functions`: keep one"),
    }
}

pub(crate) fn is_functions(ty: &Type) -> bool {
    match crate::parameter::ungrouped(ty) {
        Type::Path(path) => {
            path.path.segments.last().is_some_and(|segment| segment.ident == "Functions")
        }
        _ => false,
    }
}
