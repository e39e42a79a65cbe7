//! `msrv`: the crates that are published, checked by the oldest compiler that they promise.

use crate::command;
use anyhow::{Context, Result};
use std::{path::Path, process::Command};

/// Crates of the workspace that are not published.
const UNPUBLISHED: [&str; 2] = ["xtask", "ferroflow-simulator"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let version = promised(root)?;
    if !is_installed(&version) {
        println!("skipped: `rustup toolchain install {version} --profile minimal` has it checked");
        return Ok(());
    }
    let mut check = Command::new("rustup");
    check.args(["run", &version, "cargo", "check", "--workspace", "--all-features", "--locked"]);
    check.args(UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]));
    // What other compilers built is of no use, and is not to be built anew for them.
    check.arg("--target-dir").arg(root.join("target/msrv")).current_dir(root);
    command::run(check)
}

/// The compiler's version that the workspace names.
fn promised(root: &Path) -> Result<String> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    Ok(version.context("Cargo.toml has a `rust-version`")?.trim_matches('"').to_string())
}

fn is_installed(version: &str) -> bool {
    let mut rustup = Command::new("rustup");
    rustup.args(["toolchain", "list"]);
    let list = command::output(rustup).unwrap_or_default();
    let list = String::from_utf8_lossy(&list);
    list.lines().any(|line| {
        line.starts_with(&format!("{version}-")) || {
            line.strip_prefix(version).is_some_and(|rest| rest.starts_with('.'))
        }
    })
}
