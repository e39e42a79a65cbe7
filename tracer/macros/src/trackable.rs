//! `#[derive(Trackable)]`: the fields of a structure as the objects it leads to.

use crate::{crate_path, generics::bounded, has_functions::is_functions};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, LitStr, Member, ext::IdentExt, spanned::Spanned};

/// The implementation of `Trackable`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let macros = crate_path::macros();
    let ident = &input.ident;
    let Data::Struct(data) = &input.data else {
        let problem =
            "the objects that a value leads to are its fields, which only structures have";
        return Err(syn::Error::new_spanned(ident, problem));
    };
    let ty = object_type(input)?.map(|name| quote!(object.has_type(#name);));
    let fields = data.fields.iter().zip(data.fields.members());
    let fields = fields.map(|(field, member)| described(field, &member, &macros));
    let fields: Vec<TokenStream> = fields.collect::<syn::Result<_>>()?;
    let generics = bounded(&input.generics, &quote!(#macros::Trackable));
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #macros::Trackable for #ident #ty_generics #where_clause {
            fn describe(&self, object: &mut #macros::Description<'_>) {
                let _ = &object;
                #ty
                #(#fields)*
            }
        }
    })
}

/// The name that loaders know the type by.
fn object_type(input: &DeriveInput) -> syn::Result<Option<LitStr>> {
    let mut name = None;
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("trackable")) {
        attr.parse_nested_meta(|meta| {
            if !meta.path.is_ident("type") {
                return Err(meta.error("expected `type = \"..\"`"));
            }
            name = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(name)
}

fn described(field: &Field, member: &Member, macros: &TokenStream) -> syn::Result<TokenStream> {
    let (mut is_skipped, mut name) = (false, None);
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("trackable")) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                is_skipped = true;
            } else if meta.path.is_ident("name") {
                name = Some(meta.value()?.parse::<LitStr>()?);
            } else {
                return Err(meta.error("expected `skip` or `name = \"..\"`"));
            }
            Ok(())
        })?;
    }
    if is_skipped {
        return Ok(TokenStream::new());
    }
    if is_functions(&field.ty) && name.is_none() {
        return Ok(quote!(#macros::Trackable::describe(&self.#member, object);));
    }
    let name = name.unwrap_or_else(|| match member {
        Member::Named(ident) => LitStr::new(&ident.unraw().to_string(), ident.span()),
        Member::Unnamed(index) => LitStr::new(&index.index.to_string(), index.span()),
    });
    // The type is what may not be fit to be saved.
    let child = quote::quote_spanned!(field.ty.span()=> &self.#member);
    Ok(quote!(object.child(#name, #child);))
}
