//! `#[derive(Nest)]`: structures and enums of tensors, field by field.

use crate::{crate_path, generics, item::name_of};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Fields, Member, Type, spanned::Spanned};

/// The implementation of `Nest`.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let shapes = shapes(input)?;
    let macros = crate_path::macros();
    let name = name_of(&input.ident);
    let bounded = generics::bounded(&input.generics, &quote!(#macros::Nest));
    let (ident, (impl_generics, ty_generics, where_clause)) =
        (&input.ident, bounded.split_for_impl());
    let to_value = shapes.iter().map(|shape| shape.to_value(&macros));
    let has_type = shapes.iter().map(|shape| shape.has_type(&macros));
    let leaves = shapes.iter().map(|shape| shape.leaves(&macros));
    let from_value = shapes.iter().map(|shape| shape.built(&macros, "from_value", &quote!()));
    let from_leaves =
        shapes.iter().map(|shape| shape.built(&macros, "from_leaves", &quote!(tensors)));
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #macros::Nest for #ident #ty_generics #where_clause {
            fn to_value(&self) -> #macros::NestedValue {
                match self { #(#to_value)* }
            }

            fn from_value(value: #macros::NestedValue) -> #macros::Result<Self> {
                let mut fields = #macros::structs::StructFields::of(value, #name)?;
                #(#from_value)*
                ::core::result::Result::Err(fields.are_not(#name))
            }

            fn has_type(&self, ty: &#macros::TraceType, aliases: &mut #macros::Aliases) -> bool {
                match self { #(#has_type)* }
            }

            fn leaves(&self, aliases: &mut #macros::Aliases, leaves: &mut #macros::TensorLeaves) {
                match self { #(#leaves)* }
            }

            fn from_leaves(
                ty: &#macros::TraceType,
                tensors: &mut dyn ::core::iter::Iterator<Item = #macros::Tensor>,
            ) -> #macros::Result<Self> {
                let mut fields = #macros::structs::FieldTypes::of(ty, #name)?;
                #(#from_leaves)*
                ::core::result::Result::Err(fields.are_not(#name))
            }
        }

        #[automatically_derived]
        impl #impl_generics #macros::flow::Carry for #ident #ty_generics #where_clause {}
    })
}

/// A structure, or a variant of an enum.
struct Shape<'a> {
    /// By which its values go.
    name: String,
    /// Constructor and pattern of the type.
    path: TokenStream,
    members: Vec<Member>,
    types: Vec<&'a Type>,
}

fn shapes(input: &DeriveInput) -> syn::Result<Vec<Shape<'_>>> {
    let name = name_of(&input.ident);
    match &input.data {
        Data::Struct(data) => Ok(vec![Shape::new(name, quote!(Self), &data.fields)]),
        Data::Enum(data) if data.variants.is_empty() => Err(syn::Error::new_spanned(
            &input.ident,
            "an enum without variants has no values, so none can be passed",
        )),
        Data::Enum(data) => {
            let shape = |variant: &'_ syn::Variant| {
                let ident = &variant.ident;
                (format!("{name}::{}", name_of(ident)), quote!(Self::#ident))
            };
            let shapes = data.variants.iter().map(|variant| {
                let (name, path) = shape(variant);
                Shape::new(name, path, &variant.fields)
            });
            Ok(shapes.collect())
        }
        Data::Union(data) => Err(syn::Error::new_spanned(
            data.union_token,
            "a union does not say which of its fields it holds: use an enum",
        )),
    }
}

impl<'a> Shape<'a> {
    fn new(name: String, path: TokenStream, fields: &'a Fields) -> Shape<'a> {
        let types = fields.iter().map(|field| &field.ty).collect();
        Shape { name, path, members: fields.members().collect(), types }
    }

    fn keys(&self) -> Vec<String> {
        let key = |member: &Member| match member {
            Member::Named(name) => name_of(name),
            Member::Unnamed(index) => index.index.to_string(),
        };
        self.members.iter().map(key).collect()
    }

    /// Names of the fields while a value is taken apart.
    fn bindings(&self) -> Vec<Ident> {
        (0..self.members.len())
            .map(|index| format_ident!("field_{index}", span = Span::call_site()))
            .collect()
    }

    fn pattern(&self) -> TokenStream {
        let (Shape { path, members, .. }, bindings) = (self, self.bindings());
        quote!(#path { #(#members: #bindings),* })
    }

    fn to_value(&self, macros: &TokenStream) -> TokenStream {
        let (pattern, name, keys) = (self.pattern(), &self.name, self.keys());
        let values = self.of_each(macros, "to_value", &quote!());
        quote!(#pattern => #macros::structs::value(#name, [#((#keys, #values)),*]),)
    }

    fn has_type(&self, macros: &TokenStream) -> TokenStream {
        let (pattern, name, n_fields) = (self.pattern(), &self.name, self.members.len());
        let checks = self.of_each(macros, "has_type", &quote!(&types.next()?.1, aliases));
        quote! {
            #pattern => (|| -> ::core::option::Option<bool> {
                let mut types = #macros::structs::types(ty, #name, #n_fields)?.iter();
                ::core::option::Option::Some(#(#checks &&)* types.next().is_none())
            })().unwrap_or(false),
        }
    }

    fn leaves(&self, macros: &TokenStream) -> TokenStream {
        let pattern = self.pattern();
        let appended = self.of_each(macros, "leaves", &quote!(aliases, leaves));
        quote!(#pattern => { #(#appended;)* })
    }

    /// Calls a method of `Nest` on each field.
    fn of_each(&self, macros: &TokenStream, method: &str, rest: &TokenStream) -> Vec<TokenStream> {
        let pairs = self.types.iter().zip(self.bindings());
        let calls = pairs.map(|(ty, binding)| {
            let call = nest_method(ty, macros, method);
            quote!(#call(#binding, #rest))
        });
        calls.collect()
    }

    /// Returns the value, if `fields` are those of it; each is made by a method of `Nest`.
    fn built(&self, macros: &TokenStream, method: &str, rest: &TokenStream) -> TokenStream {
        let (Shape { name, path, members, types, .. }, keys) = (self, self.keys());
        let calls = types.iter().map(|ty| {
            let call = nest_method(ty, macros, method);
            quote!(#call(fields.take(), #rest)?)
        });
        quote! {
            if fields.are(#name, &[#(#keys),*]) {
                return ::core::result::Result::Ok(#path { #(#members: #calls),* });
            }
        }
    }
}

/// All that is asked of the type of a field is told in the same words, so that the compiler says
/// only once that it is no nest.
fn nest_method(ty: &Type, macros: &TokenStream, method: &str) -> TokenStream {
    let method = Ident::new(method, Span::call_site());
    quote_spanned!(ty.span()=> <#ty as #macros::Nest>::#method)
}
