//! `input_signature = [spec(f32, [None, 5]), host]`: what a function asks of its arguments.

use crate::{crate_path, dtype};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{
    LitInt, Token, bracketed, parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    token,
};

/// A spec of an input signature: an expression of type `ArgSpec`, and where it stands.
pub(crate) struct Spec {
    pub(crate) span: Span,
    pub(crate) code: TokenStream,
}

const FORMS: &str = "a spec is `spec(dtype, [dims])`, `any([dims])`, `host`, `list(spec)` or \
                     `list(spec, length)`";

impl Parse for Spec {
    fn parse(input: ParseStream<'_>) -> syn::Result<Spec> {
        let macros = crate_path::macros();
        let kind: Ident = input.parse().map_err(|error| syn::Error::new(error.span(), FORMS))?;
        let span = kind.span();
        let code = match kind.to_string().as_str() {
            "host" => quote!(#macros::ArgSpec::HostValue),
            "spec" => {
                let content = content(input)?;
                let dtype = dtype::variant(&content.parse()?)?;
                content.parse::<Token![,]>()?;
                let shape = shape(&content, &macros)?;
                quote!(#macros::ArgSpec::Type(
                    #macros::TraceType::tensor(#macros::DType::#dtype, #shape)
                ))
            }
            "any" => {
                let content = content(input)?;
                let shape = shape(&content, &macros)?;
                quote!(#macros::ArgSpec::AnyDType(#shape))
            }
            "list" => {
                let content = content(input)?;
                let item = content.parse::<Spec>()?.code;
                let length = match content.parse::<Option<Token![,]>>()? {
                    Some(_) if !content.is_empty() => {
                        let length: LitInt = content.parse()?;
                        let length = length.base10_parse::<usize>()?;
                        quote!(::core::option::Option::Some(#length))
                    }
                    _ => quote!(::core::option::Option::None),
                };
                end(&content)?;
                quote!(#macros::ArgSpec::ListOf(::std::boxed::Box::new(#item), #length))
            }
            other => return Err(syn::Error::new(span, format!("unknown spec `{other}`: {FORMS}"))),
        };
        Ok(Spec { span, code })
    }
}

/// The specs in brackets.
pub(crate) fn specs(input: ParseStream<'_>) -> syn::Result<Vec<Spec>> {
    let content;
    bracketed!(content in input);
    Ok(Punctuated::<Spec, Token![,]>::parse_terminated(&content)?.into_iter().collect())
}

fn content<'a>(input: ParseStream<'a>) -> syn::Result<syn::parse::ParseBuffer<'a>> {
    if !input.peek(token::Paren) {
        return Err(input.error(FORMS));
    }
    let content;
    parenthesized!(content in input);
    Ok(content)
}

fn end(input: ParseStream<'_>) -> syn::Result<()> {
    input.parse::<Option<Token![,]>>()?;
    if input.is_empty() { Ok(()) } else { Err(input.error(FORMS)) }
}

/// `[2, None]`: the last of what is in parentheses.
fn shape(input: ParseStream<'_>, macros: &TokenStream) -> syn::Result<TokenStream> {
    let content;
    bracketed!(content in input);
    let dims = Punctuated::<Dim, Token![,]>::parse_terminated(&content)?;
    end(input)?;
    let dims = dims.iter().map(|Dim(dim)| match dim {
        Some(dim) => quote!(::core::option::Option::Some(#dim)),
        None => quote!(::core::option::Option::None),
    });
    Ok(quote!(#macros::PartialShape::ranked([#(#dims),*])))
}

/// A size, if it is known.
struct Dim(Option<usize>);

impl Parse for Dim {
    fn parse(input: ParseStream<'_>) -> syn::Result<Dim> {
        if input.parse::<Option<Token![_]>>()?.is_some() {
            return Ok(Dim(None));
        }
        let wrong = |at: Span| syn::Error::new(at, DIMS);
        if input.peek(LitInt) {
            let size: LitInt = input.parse()?;
            return Ok(Dim(Some(size.base10_parse().map_err(|_| wrong(size.span()))?)));
        }
        match input.parse::<Ident>() {
            Ok(name) if name == "None" => Ok(Dim(None)),
            Ok(name) => Err(wrong(name.span())),
            Err(error) => Err(wrong(error.span())),
        }
    }
}

const DIMS: &str = "a dimension is a number, or `None` where it may be any";
