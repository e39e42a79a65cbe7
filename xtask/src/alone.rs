//! `alone`: programs that use one crate each, in a workspace of their own.
//!
//! What a crate needs besides itself shows only there: in this workspace the features of all crates are
//! on, and a crate finds what others bring.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::{env, fs, path::Path, process::Command};

/// The folder of the programs.
const FOLDER: &str = "examples/alone";

/// The programs, those first that need least.
const PROGRAMS: &[&str] = &[
    "ir",
    "arrow",
    "format",
    "kernels",
    "runtime",
    "saved_model",
    "tracer",
    "nn",
    "cluster",
    "ferroflow",
];

/// The crate beside which each program is checked, so that its crates have the same derives as those of the others.
const BESIDE: &str = "derives";

pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join(FOLDER);
    let mut folders = 0;
    for entry in fs::read_dir(&folder)? {
        folders += usize::from(entry?.path().join("Cargo.toml").exists());
    }
    ensure!(folders == PROGRAMS.len() + 1, "{FOLDER} has {folders} crates, listed otherwise here");
    // The versions are those of the workspace of the crates.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    // Each is checked with the features that it asks for alone, which needs no code of the crates; then all are
    // built at once, so that no crate is compiled twice, and run.
    for name in PROGRAMS {
        println!("checking {name}");
        let packages = ["--package", &program(name), "--package", BESIDE];
        let check = cargo(root, &[&["check", "--quiet"][..], &packages].concat());
        command::run(check).with_context(|| format!("`{name}`"))?;
    }
    let programs: Vec<_> = PROGRAMS.iter().map(|name| program(name)).collect();
    for path in command::all_built(cargo(root, &["build", "--quiet", "--workspace"]), &programs)? {
        println!("running {}", path.display());
        command::run(Command::new(&path)).with_context(|| format!("{}", path.display()))?;
    }
    Ok(())
}

fn program(name: &str) -> String {
    format!("{}-alone", name.replace('_', "-"))
}

fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut cargo = command::cargo(&root.join(FOLDER), args);
    cargo.arg("--target-dir").arg(root.join("target"));
    // Parts that are the same as here are built once, as the profile is the same: that of the workspace,
    // with what the environment says otherwise.
    let profile = [
        ("CARGO_PROFILE_DEV_DEBUG", "false"),
        ("CARGO_PROFILE_DEV_LTO", "off"),
        ("CARGO_PROFILE_DEV_STRIP", "debuginfo"),
        ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "false"),
    ];
    cargo.envs(profile.into_iter().filter(|(name, _)| env::var_os(name).is_none()));
    cargo
}
