//! Cycles of imports between the files of a crate.
//!
//! A file needs another if it names an item of it, wherever that is exported again. That a module
//! names the modules in it does not count.

use super::tree::{SourceFile, module_folder};
use petgraph::{
    algo::tarjan_scc,
    graph::{DiGraph, EdgeIndex, NodeIndex},
};
use std::collections::{BTreeMap, HashMap};
use syn::{
    Path, UseTree, Visibility,
    visit::{self, Visit},
};

/// The roots of the crates.
const CRATES: &[(&str, &str)] = &[
    ("ir", "ir/src/lib.rs"),
    ("arrow", "ir/arrow/src/lib.rs"),
    ("kernels", "kernels/src/lib.rs"),
    ("runtime", "runtime/src/lib.rs"),
    ("saved_model", "saved_model/src/lib.rs"),
    ("format", "saved_model/format/src/lib.rs"),
    ("tracer", "tracer/src/lib.rs"),
    ("macros", "tracer/macros/src/lib.rs"),
    ("nn", "tracer/nn/src/lib.rs"),
    ("ferroflow", "src/lib.rs"),
    ("conformance", "conformance/main.rs"),
    ("bench", "bench/main.rs"),
    ("fuzz", "fuzz/main.rs"),
    ("xtask", "xtask/src/main.rs"),
];

/// The largest cycle of a crate.
pub(super) struct ImportCycle {
    pub(super) files: Vec<String>,
    /// The imports between its files: the file, the one it needs, and an item that it names there.
    pub(super) imports: Vec<(String, String, String)>,
}

/// The largest cycle of each crate that has one.
pub(super) fn largest(files: &[SourceFile]) -> Vec<(&'static str, ImportCycle)> {
    let mut found = Vec::new();
    for (name, root) in CRATES {
        let folder = module_folder(root);
        let of_crate: Vec<&SourceFile> =
            files.iter().filter(|file| file.name.starts_with(&folder)).collect();
        let cycle = largest_of(&of_crate, &folder);
        if cycle.files.len() > 1 {
            found.push((*name, cycle));
        }
    }
    found
}

fn largest_of(files: &[&SourceFile], folder: &str) -> ImportCycle {
    let mut tree = Tree::default();
    for (index, file) in files.iter().enumerate() {
        let path = module_path(&file.name, folder);
        let mut names = Aliases::default();
        names.visit_file(&file.syntax);
        tree.aliases.insert(path.clone(), names.0);
        tree.files.insert(path, index);
    }
    let mut graph = DiGraph::<usize, String>::new();
    let nodes: Vec<_> = (0..files.len()).map(|index| graph.add_node(index)).collect();
    for (index, file) in files.iter().enumerate() {
        let module = module_path(&file.name, folder);
        let mut imports = Imports { module, tree: &tree, found: BTreeMap::new() };
        imports.visit_file(&file.syntax);
        for (&other, item) in &imports.found {
            // A module is made of the modules in it.
            if !module_path(&files[other].name, folder).starts_with(&imports.module) {
                graph.update_edge(nodes[index], nodes[other], item.clone());
            }
        }
    }
    let cycles = tarjan_scc(&graph);
    let largest = cycles.into_iter().max_by_key(Vec::len).unwrap_or_default();
    let short = |node: NodeIndex| files[graph[node]].name.trim_start_matches(folder).to_string();
    let mut names: Vec<String> = largest.iter().map(|&node| short(node)).collect();
    names.sort();
    let inside = |&edge: &EdgeIndex| {
        graph
            .edge_endpoints(edge)
            .is_some_and(|(a, b)| largest.contains(&a) && largest.contains(&b))
    };
    let import = |edge: EdgeIndex| {
        let (a, b) = graph.edge_endpoints(edge)?;
        Some((short(a), short(b), graph[edge].clone()))
    };
    let mut imports: Vec<_> = graph.edge_indices().filter(inside).filter_map(import).collect();
    imports.sort();
    ImportCycle { files: names, imports }
}

/// The module that a file is, from the root of the crate.
fn module_path(name: &str, folder: &str) -> Vec<String> {
    let path = name.trim_start_matches(folder).trim_end_matches(".rs");
    let mut parts: Vec<String> = path.split('/').map(str::to_string).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

type ModulePath = Vec<String>;

/// The modules of a crate.
#[derive(Default)]
struct Tree {
    /// The file of each.
    files: HashMap<ModulePath, usize>,
    /// The names that each imports, with the paths they stand for.
    aliases: HashMap<ModulePath, HashMap<String, Vec<String>>>,
}

/// So many imports may stand behind each other.
const MAX_ALIASES: usize = 8;

impl Tree {
    /// The file where a path in a module leads: where the item is, not where it is exported again.
    fn file_of(&self, module: &ModulePath, path: &[String], depth: usize) -> Option<usize> {
        let (first, mut rest) = path.split_first()?;
        let mut at = module.clone();
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()?),
            _ => {
                at.push(first.clone());
                if !self.files.contains_key(&at) {
                    at.pop();
                    return self.through_alias(&at, path, depth).filter(|_| depth > 0);
                }
            }
        }
        while let Some((next, others)) = rest.split_first() {
            if next == "super" {
                at.pop()?;
            } else {
                at.push(next.clone());
                if !self.files.contains_key(&at) {
                    at.pop();
                    let found = self.through_alias(&at, rest, depth);
                    return found.or_else(|| self.files.get(&at).copied());
                }
            }
            rest = others;
        }
        self.files.get(&at).copied()
    }

    /// The file of a path whose first name a module imports.
    fn through_alias(&self, module: &ModulePath, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let target = self.aliases.get(module)?.get(first)?;
        if depth == MAX_ALIASES {
            return None;
        }
        let path: Vec<String> = target.iter().chain(rest).cloned().collect();
        self.file_of(module, &path, depth + 1)
    }
}

/// Calls `note` with all paths of an import, and the name that each has.
fn paths_of(tree: &UseTree, prefix: &[String], note: &mut dyn FnMut(&str, &[String])) {
    let with = |name: &syn::Ident| {
        let mut path = prefix.to_vec();
        path.push(name.to_string());
        path
    };
    match tree {
        UseTree::Path(path) => paths_of(&path.tree, &with(&path.ident), note),
        UseTree::Name(name) if name.ident == "self" => {
            note(prefix.last().map_or("", String::as_str), prefix);
        }
        UseTree::Name(name) => note(&name.ident.to_string(), &with(&name.ident)),
        UseTree::Rename(name) => note(&name.rename.to_string(), &with(&name.ident)),
        UseTree::Glob(_) => note("*", prefix),
        UseTree::Group(group) => group.items.iter().for_each(|tree| paths_of(tree, prefix, note)),
    }
}

/// The names that a file imports.
#[derive(Default)]
struct Aliases(HashMap<String, Vec<String>>);

impl<'ast> Visit<'ast> for Aliases {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        paths_of(&item.tree, &[], &mut |name, path| {
            self.0.insert(name.to_string(), path.to_vec());
        });
    }
}

/// The files that a file needs, where what it names is, with the path of one such item.
struct Imports<'a> {
    module: ModulePath,
    tree: &'a Tree,
    found: BTreeMap<usize, String>,
}

impl Imports<'_> {
    fn note(&mut self, path: &[String]) {
        if let Some(file) = self.tree.file_of(&self.module, path, 0) {
            self.found.entry(file).or_insert_with(|| path.join("::"));
        }
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    /// Items that are only exported again are not needed.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            paths_of(&item.tree, &[], &mut |_, path| self.note(path));
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.note(&segments);
        }
        visit::visit_path(self, path);
    }
}
