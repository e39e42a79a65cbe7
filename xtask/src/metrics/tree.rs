//! The source as syntax trees, without tests and generated code.

use crate::source;
use anyhow::{Context, Result};
use std::{collections::BTreeMap, fs, path::Path};
use syn::{Attribute, Item, Meta, Visibility};

/// Where generated code is.
const GENERATED: &[&str] = &["tracer/src/ops/generated/", "saved_model/format/src/proto/"];

/// A source file.
pub(crate) struct SourceFile {
    /// The path from the root.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The syntax, without items that are compiled for tests only.
    pub(crate) syntax: syn::File,
}

/// All source files but tests, examples and generated code.
pub(crate) fn source_files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    for path in source::rust_files(root)? {
        let name = source::name_of(root, &path)?;
        let is_test = name.split('/').any(|part| matches!(part, "tests" | "examples" | "benches"));
        let is_test = is_test || name.ends_with("tests.rs") || name.ends_with("_test.rs");
        if is_test || GENERATED.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let mut syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {name}"))?;
        syntax.items.retain(|item| !is_for_tests(attributes(item)));
        files.push(SourceFile { name, text, syntax });
    }
    // Files that a module of tests alone declares are tests too.
    let for_tests: Vec<String> = files.iter().flat_map(modules_for_tests).collect();
    files.retain(|file| {
        let stem = file.name.trim_end_matches(".rs").trim_end_matches("/mod");
        !for_tests.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")))
    });
    Ok(files)
}

/// The modules that a file declares for tests only, as paths without extension.
fn modules_for_tests(file: &SourceFile) -> Vec<String> {
    let Ok(syntax) = syn::parse_file(&file.text) else { return Vec::new() };
    let folder = module_folder(&file.name);
    let modules = syntax.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
            Some(format!("{folder}{}", module.ident))
        }
        _ => None,
    });
    modules.collect()
}

/// The folder where the modules that a file declares are, with a slash at its end.
pub(super) fn module_folder(name: &str) -> String {
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    match file {
        "mod.rs" | "lib.rs" | "main.rs" => format!("{folder}/"),
        _ => format!("{folder}/{}/", file.trim_end_matches(".rs")),
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        }
        Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Names of types that are seen outside their module and that several types have, the most frequent
/// first.
pub(super) fn duplicate_types(files: &[SourceFile]) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::<String, usize>::new();
    for item in files.iter().flat_map(|file| &file.syntax.items) {
        let (name, visibility) = match item {
            Item::Struct(item) => (&item.ident, &item.vis),
            Item::Enum(item) => (&item.ident, &item.vis),
            Item::Trait(item) => (&item.ident, &item.vis),
            Item::Type(item) => (&item.ident, &item.vis),
            _ => continue,
        };
        // A result or error for each crate is how Rust crates are written.
        let is_usual = matches!(name.to_string().as_str(), "Result" | "Error" | "Flags");
        if !matches!(visibility, Visibility::Inherited) && !is_usual {
            *counts.entry(name.to_string()).or_default() += 1;
        }
    }
    let mut names: Vec<(String, usize)> = counts.into_iter().filter(|(_, n)| *n > 1).collect();
    names.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), name.clone()));
    names
}
