//! `metrics`: measures of the source, printed; cycles of imports and names that occur twice may not
//! grow.

mod baseline;
mod cycles;
mod files_per_op;
pub(crate) mod glossary;
mod middle;
mod sizes;
pub(crate) mod tree;

use anyhow::Result;
use clap::Args;
use std::path::Path;

#[derive(Args)]
pub(crate) struct Flags {
    /// Fail if a cycle of imports or the number of duplicate names is above the baseline.
    #[arg(long)]
    check: bool,
    /// Write the baseline anew.
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Print all ops that more files name than their kind needs, all duplicate names, and all imports of the cycles.
    #[arg(long)]
    all: bool,
}

impl Flags {
    /// To print, and to check against the baseline.
    pub(crate) fn check() -> Flags {
        Flags { check: true, update: false, all: false }
    }
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let files = tree::source_files(root)?;
    files_per_op::print(&files, flags.all);
    sizes::print(&files);
    middle::print(&files);
    glossary::print(&files);
    let cycles = cycles::largest(&files);
    for (name, cycle) in &cycles {
        println!("import cycle: {name}: {} files in the largest", cycle.files.len());
        if flags.all {
            for (file, other, item) in &cycle.imports {
                println!("    {file} -> {other}: {item}");
            }
        }
    }
    let names = tree::duplicate_types(&files);
    let most: Vec<String> = names.iter().map(|(name, n)| format!("{name} {n}")).collect();
    let shown = if flags.all { most.len() } else { most.len().min(12) };
    println!("duplicate type names: {}: {}", names.len(), most[..shown].join(", "));
    let measured = baseline::Measures::new(&cycles, names.len());
    if flags.update {
        return measured.write(root);
    }
    if flags.check { measured.check(root) } else { Ok(()) }
}
