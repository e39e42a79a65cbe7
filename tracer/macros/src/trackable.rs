//! `#[derive(Trackable)]`: the fields of a structure as the objects it leads to.

use crate::{crate_path, generics::bounded, has_functions::is_functions};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Data, DeriveInput, Field, Ident, LitStr, Member, Token, ext::IdentExt, spanned::Spanned,
};

/// The implementation of `Trackable`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let macros = crate_path::macros();
    let ident = &input.ident;
    let Data::Struct(data) = &input.data else {
        let problem =
            "the objects that a value leads to are its fields, which only structures have";
        return Err(syn::Error::new_spanned(ident, problem));
    };
    let Said { name, methods } = Said::of(input)?;
    let ty = name.map(|name| quote!(object.has_type(#name);));
    let methods = methods.iter().map(|method| traced(method, &macros));
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
                #(#methods)*
                #(#fields)*
            }
        }
    })
}

/// What the attributes of the structure say.
#[derive(Default)]
struct Said {
    /// The name that loaders know the type by.
    name: Option<LitStr>,
    /// The methods that are saved even if they were never called.
    methods: Vec<Ident>,
}

impl Said {
    fn of(input: &DeriveInput) -> syn::Result<Said> {
        let mut said = Said::default();
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("trackable")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("type") {
                    said.name = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("methods") {
                    let list;
                    syn::parenthesized!(list in meta.input);
                    let names = list.parse_terminated(Ident::parse_any, Token![,])?;
                    said.methods.extend(names);
                } else {
                    return Err(meta.error("expected `type = \"..\"` or `methods(..)`"));
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}

/// Traces a method for its input signature.
fn traced(method: &Ident, macros: &TokenStream) -> TokenStream {
    let name = method.unraw();
    let [function, concrete] =
        ["function", "concrete"].map(|of| format_ident!("{name}_{of}", span = method.span()));
    quote! {
        object.traced(|| {
            #macros::trace_method(&self.#function(), |types| self.#concrete(types))
        });
    }
}

fn described(field: &Field, member: &Member, macros: &TokenStream) -> syn::Result<TokenStream> {
    let (mut is_skipped, mut name, mut others) = (false, None, Vec::new());
    for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("trackable")) {
        attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                is_skipped = true;
            } else if meta.path.is_ident("name") {
                name = Some(meta.value()?.parse::<LitStr>()?);
            } else if meta.path.is_ident("also") {
                others.push(meta.value()?.parse::<LitStr>()?);
            } else {
                return Err(meta.error("expected `skip`, `name = \"..\"` or `also = \"..\"`"));
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
    let names = std::iter::once(&name).chain(&others);
    Ok(quote!(#(object.child(#names, #child);)*))
}
