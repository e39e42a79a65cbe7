//! Where the code that is made finds the tracer: by its own name, or in the facade.

use proc_macro_crate::FoundCrate;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

/// The path of what macros name in the code they make.
pub(crate) fn macros() -> TokenStream {
    path(|package| proc_macro_crate::crate_name(package).ok())
}

/// The same path, standing at `span` for messages of the compiler.
pub(crate) fn macros_at(span: Span) -> TokenStream {
    let moved = |mut token: TokenTree| {
        token.set_span(span);
        token
    };
    macros().into_iter().map(moved).collect()
}

/// The path in a crate that knows packages by the names that `find` returns.
fn path(find: impl Fn(&str) -> Option<FoundCrate>) -> TokenStream {
    let tracer = find("ferroflow-tracer").map(|found| name(found, "ferroflow_tracer"));
    if let Some(tracer) = tracer {
        return quote!(::#tracer::macros);
    }
    // Builds without cargo have no manifest to look in, but the facade.
    let facade = find("ferroflow").unwrap_or(FoundCrate::Itself);
    let facade = name(facade, "ferroflow");
    quote!(::#facade::tracer::macros)
}

/// Crates name themselves as others do, so that their tests, examples and library agree.
fn name(found: FoundCrate, own: &str) -> Ident {
    match found {
        FoundCrate::Itself => Ident::new(own, Span::call_site()),
        FoundCrate::Name(name) => Ident::new(&name, Span::call_site()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(packages: &[(&str, Option<&str>)], expected: &str) {
        let found = path(|package| {
            let (_, name) = packages.iter().find(|(name, _)| *name == package)?;
            Some(name.map_or(FoundCrate::Itself, |name| FoundCrate::Name(name.into())))
        });
        assert_eq!(found.to_string().replace(' ', ""), expected);
    }

    #[test]
    fn the_tracer_is_found_by_its_name_or_in_the_facade() {
        check(&[("ferroflow-tracer", None)], "::ferroflow_tracer::macros");
        check(&[("ferroflow-tracer", Some("tr"))], "::tr::macros");
        check(&[("ferroflow", Some("ferroflow"))], "::ferroflow::tracer::macros");
        check(&[("ferroflow", Some("tf"))], "::tf::tracer::macros");
        check(&[("ferroflow", None), ("ferroflow-tracer", Some("tr"))], "::tr::macros");
        check(&[], "::ferroflow::tracer::macros");
    }
}
