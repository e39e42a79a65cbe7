//! `alone`: programs that use one crate each, in workspaces of their own.
//!
//! What a crate needs besides itself shows only there: in this workspace the features of all crates are
//! on, and a crate finds what others bring.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

/// The folder of the programs.
const FOLDER: &str = "examples/alone";

/// The programs, those first that need least.
const PROGRAMS: &[&str] =
    &["ir", "format", "kernels", "runtime", "saved_model", "tracer", "nn", "cluster", "ferroflow"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let folders = fs::read_dir(root.join(FOLDER))?.count();
    ensure!(folders == PROGRAMS.len(), "{FOLDER} has {folders} programs, listed otherwise here");
    PROGRAMS.iter().try_for_each(|name| run_one(root, name).with_context(|| format!("`{name}`")))
}

fn run_one(root: &Path, name: &str) -> Result<()> {
    println!("{name}");
    let folder = root.join(FOLDER).join(name);
    // The versions are those of this workspace.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut cargo = command::cargo(&folder, &["run", "--quiet", "--target-dir"]);
    // Parts that are the same as here are built once: the profile is the same.
    cargo.arg(root.join("target")).env("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo.env("CARGO_PROFILE_DEV_STRIP", "debuginfo");
    cargo.env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0");
    cargo.env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "false");
    command::run(cargo)
}
