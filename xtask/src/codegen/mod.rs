//! `codegen`: writes the generated files, or checks that they are what they would be.

mod ops;
mod protos;

use crate::command;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

#[derive(Args, Default)]
pub(crate) struct Flags {
    /// Generators to run; all when none is named.
    generators: Vec<Generator>,
    /// Fail when a file differs instead of writing it.
    #[arg(long)]
    check: bool,
}

impl Flags {
    /// Check the files of all generators.
    pub(crate) fn check_all() -> Flags {
        Flags { check: true, ..Flags::default() }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Generator {
    /// `tracer/src/ops/generated` from the op records.
    Ops,
    /// `tracer/tests/generated` from seeds.
    Functions,
    /// `saved_model/format/src/proto` from `saved_model/format/protos`.
    Protos,
}

/// A file to be written: path from the root, and content.
struct Generated {
    path: PathBuf,
    content: Content,
}

enum Content {
    /// Rust, which is formatted before it is written.
    Source(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let all = Generator::value_variants();
    let chosen = if flags.generators.is_empty() { all } else { &flags.generators };
    for generator in chosen {
        let files = match generator {
            Generator::Ops => ops::generate()?,
            Generator::Functions => vec![functions()],
            Generator::Protos => protos::generate(root)?,
        };
        for file in &files {
            update(root, file, flags.check)?;
        }
        remove_others(root, &files, flags.check)?;
    }
    Ok(())
}

/// The random functions that the tests of the tracer run.
fn functions() -> Generated {
    Generated {
        path: PathBuf::from("tracer/tests/generated/functions.rs"),
        content: Content::Source(crate::functions::source(0..48)),
    }
}

fn update(root: &Path, file: &Generated, check: bool) -> Result<()> {
    let path = root.join(&file.path);
    let content = match &file.content {
        Content::Source(source) => command::rustfmt(root, source)?.into_bytes(),
        Content::Bytes(bytes) => bytes.clone(),
    };
    if fs::read(&path).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if check {
        bail!("{} is out of date: run `cargo xtask codegen`", file.path.display());
    }
    println!("writing {}", file.path.display());
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes what was generated earlier: Rust files beside the generated ones.
fn remove_others(root: &Path, files: &[Generated], check: bool) -> Result<()> {
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.path.parent()).collect();
    for folder in folders {
        for entry in fs::read_dir(root.join(folder))? {
            let path = folder.join(entry?.file_name());
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            if !is_rust || path.ends_with("mod.rs") || files.iter().any(|file| file.path == path) {
                continue;
            }
            if check {
                bail!("{} is no longer generated: run `cargo xtask codegen`", path.display());
            }
            println!("removing {}", path.display());
            fs::remove_file(root.join(path))?;
        }
    }
    Ok(())
}
