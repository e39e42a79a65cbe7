//! Names of traced methods in the source files of a package.
//!
//! A derived implementation sees the fields of a structure and none of its methods. Their names are
//! looked for in the source: in the file of the structure and those around it. What is found is a
//! proposal; the code that is made of it lets the compiler say whether the type has such a method,
//! so that a name of another type of the same name does no harm.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};
use syn::ext::IdentExt;

/// The attribute that makes a method a traced one.
const ATTRIBUTE: &str = "function";

/// The most files that are looked at.
const MAX_FILES: usize = 10_000;

/// The names of the methods that a type of this name may have, in order.
pub(crate) fn proposed(ident: &Ident) -> BTreeSet<String> {
    let name = ident.unraw().to_string();
    let mut names = BTreeSet::new();
    // Only a compiler knows files.
    let file = proc_macro::is_available().then(|| ident.span().unwrap().local_file()).flatten();
    for path in file.iter().flat_map(|file| files_around(file)) {
        let Ok(text) = fs::read_to_string(path) else { continue };
        if text.contains(ATTRIBUTE) && (text.contains(&name) || text.contains("trait")) {
            names.extend(names_in(&text, &name));
        }
    }
    names
}

/// The source files of the crate that a file belongs to: those below its folder `src`, or below its
/// own folder where there is no such, as tests and examples have it.
fn files_around(file: &Path) -> Vec<PathBuf> {
    let is_source = |folder: &&Path| folder.file_name().is_some_and(|name| name == "src");
    let folder = file.ancestors().skip(1).find(is_source).or(file.parent());
    let mut found = vec![file.to_path_buf()];
    let mut folders: Vec<PathBuf> = folder.map(Path::to_path_buf).into_iter().collect();
    while let Some(folder) = folders.pop() {
        // The folder of a file without one is the current one.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && !entry.file_name().eq("target") => folders.push(path),
                Ok(_) if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                _ => {}
            }
        }
        if found.len() > MAX_FILES {
            return vec![file.to_path_buf()];
        }
    }
    found
}

/// The names of traced methods in blocks for a type of this name, and in traits.
fn names_in(text: &str, name: &str) -> BTreeSet<String> {
    let text = match text.strip_prefix("#!") {
        Some(rest) if !rest.starts_with('[') => rest.split_once('\n').map_or("", |(_, rest)| rest),
        _ => text,
    };
    let mut search = Search { name, attributes: vec![ATTRIBUTE.into()], found: BTreeSet::new() };
    if let Ok(tokens) = text.parse::<TokenStream>() {
        search.add_aliases(&tokens);
        search.walk(tokens);
    }
    search.found
}

struct Search<'a> {
    name: &'a str,
    /// The names that the attribute goes by.
    attributes: Vec<String>,
    found: BTreeSet<String>,
}

impl Search<'_> {
    /// Notes names under which `use` imports the attribute.
    fn add_aliases(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for three in tokens.windows(3) {
            if let [TokenTree::Ident(of), TokenTree::Ident(by), TokenTree::Ident(alias)] = three
                && of == ATTRIBUTE
                && by == "as"
            {
                self.attributes.push(alias.to_string());
            }
        }
        for token in &tokens {
            if let TokenTree::Group(group) = token {
                self.add_aliases(&group.stream());
            }
        }
    }

    /// Looks for blocks of implementations and traits, wherever they stand.
    fn walk(&mut self, tokens: TokenStream) {
        let (mut is_block, mut is_of_type) = (false, false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if ident == "impl" => {
                    (is_block, is_of_type) = (true, false)
                }
                TokenTree::Ident(ident) if ident == "trait" => {
                    (is_block, is_of_type) = (true, true)
                }
                TokenTree::Ident(ident) => is_of_type |= ident.unraw() == self.name,
                // In a macro the type is a parameter.
                TokenTree::Punct(punct) if punct.as_char() == '$' => is_of_type = true,
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_block = false,
                TokenTree::Group(group) => {
                    let is_brace = group.delimiter() == Delimiter::Brace;
                    if is_brace && std::mem::take(&mut is_block) && is_of_type {
                        self.add_methods(group.stream());
                    }
                    self.walk(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    /// Notes the methods with the attribute.
    fn add_methods(&mut self, block: TokenStream) {
        let mut tokens = block.into_iter().peekable();
        let mut is_traced = false;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = tokens.peek() {
                        is_traced |= self.is_attribute(group.stream());
                    }
                }
                TokenTree::Ident(ident) if ident == "fn" => {
                    if let (true, Some(TokenTree::Ident(method))) = (is_traced, tokens.peek()) {
                        self.found.insert(method.unraw().to_string());
                    }
                    is_traced = false;
                }
                _ => {}
            }
        }
    }

    /// Whether the last name of the path of an attribute is that of ours.
    fn is_attribute(&self, attribute: TokenStream) -> bool {
        let path = attribute.into_iter().take_while(|token| match token {
            TokenTree::Ident(_) => true,
            TokenTree::Punct(punct) => punct.as_char() == ':',
            TokenTree::Group(_) | TokenTree::Literal(_) => false,
        });
        let last = path.last().map(|token| token.to_string());
        last.is_some_and(|last| self.attributes.contains(&last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(names_in(text, "Net").into_iter().collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn methods_of_the_type_are_found_wherever_they_stand() {
        check("impl Net { #[function] pub fn infer(&self) {} fn other(&self) {} }", &["infer"]);
        check("#!/bin/x\nimpl Net { #[function] fn infer(&self) {} }", &["infer"]);
        check("#![deny(a)] impl Net { #[doc = \"x\"] #[a::function(b)] #[c] fn f() {} }", &["f"]);
        check(
            "mod m { fn g() { impl<T: A> super::Net<T> where T: B { #[function] fn r#in() {} } } }",
            &["in"],
        );
        check("impl Net { #[function] fn a() {} } impl Net { #[function] fn b() {} }", &["a", "b"]);
        check("impl Other { #[function] fn a() {} } struct Net { a: fn() }", &[]);
        check("trait Layer { #[function] fn apply(&self) {} }", &["apply"]);
        check("macro_rules! m { ($t:ty) => { impl $t { #[function] fn a(&self) {} } } }", &["a"]);
        check("use x::{function as traced}; impl Net { #[traced] fn a(&self) {} }", &["a"]);
        check("fn f() -> impl Net { 1 } #[function] fn free() {}", &[]);
        check("this is no code: \"", &[]);
    }

    #[test]
    fn files_of_a_crate_are_those_below_its_folder() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/autograph/mod.rs");
        let files = files_around(&own);
        assert_eq!(files[0], own);
        assert!(files.iter().any(|file| file.ends_with("src/source_methods.rs")));
        let outside = files_around(Path::new("/nowhere/tests/a.rs"));
        assert_eq!(outside, [PathBuf::from("/nowhere/tests/a.rs")]);
    }
}
