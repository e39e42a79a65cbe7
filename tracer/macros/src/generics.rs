//! Generic types that macros implement traits for.

use proc_macro2::TokenStream;
use syn::{Generics, WhereClause, parse_quote};

/// The bounds of the type, and that its parameters are `bound`.
pub(crate) fn bounded(generics: &Generics, bound: &TokenStream) -> Generics {
    let mut generics = generics.clone();
    let parameters: Vec<_> = generics.type_params().map(|ty| ty.ident.clone()).collect();
    let clause: &mut WhereClause = generics.make_where_clause();
    clause
        .predicates
        .extend(parameters.iter().map(|ty| -> syn::WherePredicate { parse_quote!(#ty: #bound) }));
    generics
}
