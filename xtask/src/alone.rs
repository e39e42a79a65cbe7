//! `alone`: programs that use one crate each, in a workspace of their own.
//!
//! What a crate needs besides itself shows only there: in this workspace the features of all crates are
//! on, and a crate finds what others bring.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::{env, fs, path::Path};

/// The folder of the programs.
const FOLDER: &str = "examples/alone";

/// The programs, those first that need least.
const PROGRAMS: &[&str] =
    &["ir", "format", "kernels", "runtime", "saved_model", "tracer", "nn", "cluster", "ferroflow"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let mut folders = 0;
    for entry in fs::read_dir(&folder)? {
        folders += usize::from(entry?.path().join("Cargo.toml").exists());
    }
    ensure!(folders == PROGRAMS.len(), "{FOLDER} has {folders} programs, listed otherwise here");
    // The versions are those of the workspace of the crates.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    PROGRAMS.iter().try_for_each(|name| run_one(root, name).with_context(|| format!("`{name}`")))
}

fn run_one(root: &Path, name: &str) -> Result<()> {
    println!("{name}");
    let package = format!("{}-alone", name.replace('_', "-"));
    let folder = root.join(FOLDER);
    let mut cargo =
        command::cargo(&folder, &["run", "--quiet", "--package", &package, "--target-dir"]);
    cargo.arg(root.join("target"));
    // Parts that are the same as here are built once, as the profile is the same: that of the workspace,
    // with what the environment says otherwise.
    let profile = [
        ("CARGO_PROFILE_DEV_DEBUG", "false"),
        ("CARGO_PROFILE_DEV_STRIP", "debuginfo"),
        ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "false"),
    ];
    cargo.envs(profile.into_iter().filter(|(name, _)| env::var_os(name).is_none()));
    command::run(cargo)
}
