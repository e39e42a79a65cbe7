//! Passing of each argument: traced functions own their arguments, written ones may borrow them.

use crate::crate_path;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Expr, GenericArgument, Lifetime, Pat, PatType, PathArguments, Type, TypeImplTrait,
    TypePath, TypeReference, WherePredicate, parse_quote, spanned::Spanned, visit::Visit,
};

/// A parameter of a function.
pub(crate) struct FunctionParameter {
    pub(crate) name: Ident,
    /// The type of the argument as the trace has it.
    pub(crate) owned: Type,
    span: Span,
    passing: Passing,
    default: Option<Expr>,
}

/// Tokens before the type that is owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    Value,
    /// `&T`, `&str` or `&[T]`.
    Reference(Referent),
    /// `Option<&T>` and the like.
    Option(Referent),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Referent {
    /// `T`, owned as its clone.
    Sized,
    /// `str` or `[T]`, owned as `String` or `Vec<T>`.
    Unsized,
}

impl FunctionParameter {
    /// The parameter that is written so. Takes its default out of its attributes.
    pub(crate) fn of(written: &mut PatType) -> syn::Result<FunctionParameter> {
        let default = take_default(&mut written.attrs)?;
        let name = name(&written.pat)?;
        let ty = ungrouped(&written.ty);
        let (passing, owned) = passing(ty)?;
        check_owned(&owned, "an argument by value")?;
        Ok(FunctionParameter { name, owned, span: ty.span(), passing, default })
    }

    /// The argument of the trace, made of the one that is passed.
    pub(crate) fn argument(&self) -> TokenStream {
        let name = &self.name;
        match self.passing {
            Passing::Value => quote!(#name),
            Passing::Reference(Referent::Sized) => {
                quote_spanned!(self.span=> ::core::clone::Clone::clone(#name))
            }
            Passing::Reference(Referent::Unsized) => {
                quote_spanned!(self.span=> ::std::borrow::ToOwned::to_owned(#name))
            }
            Passing::Option(Referent::Sized) => quote_spanned! {self.span=>
                ::core::option::Option::map(#name, |lent: &_| ::core::clone::Clone::clone(lent))
            },
            Passing::Option(Referent::Unsized) => quote_spanned! {self.span=>
                ::core::option::Option::map(#name, ::std::borrow::ToOwned::to_owned)
            },
        }
    }

    /// The argument of the body, made of that of the trace.
    pub(crate) fn lent(&self) -> TokenStream {
        let name = &self.name;
        match self.passing {
            Passing::Value => quote!(#name),
            Passing::Reference(_) => quote!(&#name),
            Passing::Option(Referent::Sized) => quote!(::core::option::Option::as_ref(&#name)),
            Passing::Option(Referent::Unsized) => {
                quote!(::core::option::Option::as_deref(&#name))
            }
        }
    }

    /// An expression of type `ParameterSpec`.
    pub(crate) fn spec(&self, macros: &TokenStream) -> TokenStream {
        let (name, owned) = (crate::item::name_of(&self.name), &self.owned);
        let spec = quote!(#macros::ParameterSpec::new(#name));
        match &self.default {
            None => spec,
            Some(default) => {
                let value = quote_spanned! {default.span()=>
                    <_ as #macros::IntoArg<#owned>>::into_arg(#default)
                };
                quote!(#spec.or(#macros::Nest::to_value(&#value)))
            }
        }
    }
}

/// That the types are nests, where that is not known. The code of functions assumes it, so that the
/// compiler speaks of a type that is none where it stands, and only once.
pub(crate) fn nest_bounds<'a>(types: impl IntoIterator<Item = &'a Type>) -> Vec<WherePredicate> {
    types
        .into_iter()
        .filter(|ty| !is_known_nest(ty))
        .map(|ty| {
            let macros = crate_path::macros_at(ty.span());
            let predicate = quote_spanned!(ty.span()=> #ty: #macros::Nest);
            parse_quote!(#predicate)
        })
        .collect()
}

/// Whether the type is a nest by its name: most are, and bounds are for those that are read.
fn is_known_nest(ty: &Type) -> bool {
    const KNOWN: &[&str] = &[
        "Tensor",
        "Variable",
        "NestedValue",
        "bool",
        "i8",
        "i16",
        "i32",
        "i64",
        "isize",
        "u8",
        "u16",
        "u32",
        "u64",
        "usize",
        "f32",
        "f64",
        "String",
    ];
    match ty {
        Type::Tuple(tuple) => tuple.elems.iter().all(is_known_nest),
        Type::Array(array) => is_known_nest(&array.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| match &last.arguments {
            PathArguments::None => KNOWN.iter().any(|known| last.ident == known),
            PathArguments::AngleBracketed(arguments) => {
                let is_container = last.ident == "Vec" || last.ident == "Option";
                is_container
                    && arguments.args.iter().all(
                        |item| matches!(item, GenericArgument::Type(item) if is_known_nest(item)),
                    )
            }
            PathArguments::Parenthesized(_) => false,
        }),
        ty => match ungrouped(ty) {
            inner if std::ptr::eq(inner, ty) => false,
            inner => is_known_nest(inner),
        },
    }
}

/// `#[default(1.0)]`
fn take_default(attrs: &mut Vec<Attribute>) -> syn::Result<Option<Expr>> {
    let mut default = None;
    let mut wrong = None;
    attrs.retain(|attr| {
        if !attr.path().is_ident("default") {
            return true;
        }
        let value = match default {
            None => attr.parse_args::<Expr>(),
            Some(_) => Err(syn::Error::new_spanned(attr, "a parameter has one default")),
        };
        match value {
            Ok(value) => default = Some(value),
            Err(error) => wrong = Some(error),
        }
        false
    });
    wrong.map_or(Ok(default), Err)
}

fn name(pattern: &Pat) -> syn::Result<Ident> {
    match pattern {
        Pat::Ident(pattern) if pattern.by_ref.is_none() && pattern.subpat.is_none() => {
            Ok(pattern.ident.clone())
        }
        other => Err(syn::Error::new_spanned(
            other,
            "a parameter of a traced function has a name, by which graphs and signatures call it; \
             take it apart in the body",
        )),
    }
}

/// Passing of an argument of this type, and the type that is owned.
fn passing(ty: &Type) -> syn::Result<(Passing, Type)> {
    if let Type::Reference(reference) = ty {
        let (referent, owned) = referent(reference)?;
        return Ok((Passing::Reference(referent), owned));
    }
    if let Some((path, item)) = option_item(ty)
        && let Type::Reference(reference) = ungrouped(item)
    {
        let (referent, owned) = referent(reference)?;
        return Ok((Passing::Option(referent), option_of(path, &owned)));
    }
    Ok((Passing::Value, ty.clone()))
}

fn referent(reference: &TypeReference) -> syn::Result<(Referent, Type)> {
    if let Some(mutable) = reference.mutability {
        return Err(syn::Error::new_spanned(
            mutable,
            "a traced function does not change its arguments: return what is new, or keep it in a \
             `Variable`",
        ));
    }
    Ok(match ungrouped(&reference.elem) {
        Type::Slice(slice) => {
            let item = &slice.elem;
            (Referent::Unsized, parse_quote!(::std::vec::Vec<#item>))
        }
        Type::Path(path) if path.path.is_ident("str") => {
            let name = format_ident!("String", span = path.span());
            (Referent::Unsized, parse_quote!(::std::string::#name))
        }
        Type::TraitObject(object) => {
            return Err(syn::Error::new_spanned(
                object,
                "a traced function owns its arguments: take a type that is `Nest + Clone`, such as \
                 `Arc<T>`, in place of `dyn`",
            ));
        }
        other => (Referent::Sized, other.clone()),
    })
}

/// `T` of `Option<T>`.
fn option_item(ty: &Type) -> Option<(&TypePath, &Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(item)) => Some((path, item)),
        _ => None,
    }
}

fn option_of(path: &TypePath, item: &Type) -> Type {
    let mut path = path.clone();
    if let Some(last) = path.path.segments.last_mut() {
        last.arguments = PathArguments::AngleBracketed(parse_quote!(<#item>));
    }
    Type::Path(path)
}

/// The type without the groups that `macro_rules` put around it.
pub(crate) fn ungrouped(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            ty => return ty,
        };
    }
}

/// Values passed to a trace or returned by it own their data.
pub(crate) fn check_owned(ty: &Type, what: &str) -> syn::Result<()> {
    let mut owned = Owned { what, wrong: None };
    owned.visit_type(ty);
    owned.wrong.map_or(Ok(()), Err)
}

struct Owned<'a> {
    what: &'a str,
    wrong: Option<syn::Error>,
}

impl Owned<'_> {
    fn is_wrong(&mut self, at: impl quote::ToTokens, problem: &str) {
        self.wrong.get_or_insert_with(|| syn::Error::new_spanned(at, problem));
    }
}

impl<'ast> Visit<'ast> for Owned<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        self.is_wrong(
            reference,
            &format!("{} owns its data: it cannot hold references", self.what),
        );
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            let problem = format!("{} owns its data: it has no lifetimes", self.what);
            self.is_wrong(lifetime, &problem);
        }
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.is_wrong(
            ty,
            "a traced function is one function, not one for each type: name the type in place of \
             `impl`",
        );
    }
}
