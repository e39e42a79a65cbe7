//! Generic types that macros implement traits for.

use proc_macro2::TokenStream;
use syn::{GenericParam, Generics, WhereClause, WherePredicate, parse_quote, visit::Visit};

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

/// The parameters of a function that are types and constants, with what is asked of them.
pub(crate) fn without_lifetimes(generics: &Generics) -> Generics {
    let mut kept = generics.clone();
    let is_kept = |parameter: &GenericParam| !matches!(parameter, GenericParam::Lifetime(_));
    kept.params = generics.params.iter().filter(|parameter| is_kept(parameter)).cloned().collect();
    if let Some(clause) = &mut kept.where_clause {
        let predicates = std::mem::take(&mut clause.predicates);
        clause.predicates = predicates.into_iter().filter(|of| !names_lifetime(of)).collect();
    }
    kept
}

/// The parameters of a function that are lifetimes, with all that is asked of any.
pub(crate) fn lifetimes(generics: &Generics) -> Generics {
    let mut kept = generics.clone();
    let is_kept = |parameter: &GenericParam| matches!(parameter, GenericParam::Lifetime(_));
    kept.params = generics.params.iter().filter(|parameter| is_kept(parameter)).cloned().collect();
    kept
}

fn names_lifetime(predicate: &WherePredicate) -> bool {
    struct Search(bool);

    impl Visit<'_> for Search {
        fn visit_lifetime(&mut self, lifetime: &syn::Lifetime) {
            self.0 |= lifetime.ident != "static";
        }
    }

    let mut search = Search(false);
    search.visit_where_predicate(predicate);
    search.0
}
