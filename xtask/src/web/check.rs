//! The package, tested: in Node, and in headless Chromium.

use crate::command;
use anyhow::{Context, Result};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folders of cases.
fn cases(root: &Path, given: &[PathBuf]) -> Vec<PathBuf> {
    let usual = || ["tests/zoo", "../shared/zoo"].map(|folder| root.join(folder)).to_vec();
    if given.is_empty() { usual() } else { given.to_vec() }
}

/// Runs the cases in Node.
pub(super) fn in_node(root: &Path, package: &Path, zoo: &[PathBuf]) -> Result<()> {
    println!("== in Node");
    let mut node = Command::new("node");
    node.arg(package.join("check/node.mjs")).arg(package).args(cases(root, zoo));
    command::run(node).context("node 20 or later runs the checks")
}

/// Runs the cases, and the demo, in headless Chromium.
pub(super) fn in_chromium(
    root: &Path,
    folder: &Path,
    package: &Path,
    zoo: &[PathBuf],
) -> Result<()> {
    println!("== in Chromium");
    let chromium = chromium()?;
    // The driver is kept when the package is built anew.
    let driver = folder.join("driver");
    fs::create_dir_all(&driver)?;
    fs::copy(package.join("check/package.json"), driver.join("package.json"))?;
    if !driver.join("node_modules/playwright-core").exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
        install.current_dir(&driver);
        command::run(install)?;
    }
    let mut node = Command::new("node");
    node.arg(package.join("check/browser.mjs")).arg(package).arg(&driver).arg(chromium);
    node.arg(folder.join("demo.png")).args(cases(root, zoo));
    command::run(node)
}

/// Chromium: the one that `CHROMIUM` names, or Debian's, installed if it is not yet.
fn chromium() -> Result<PathBuf> {
    if let Some(given) = env::var_os("CHROMIUM") {
        return Ok(given.into());
    }
    let path = PathBuf::from("/usr/bin/chromium");
    if !path.exists() {
        let install = |args: &[&str]| {
            let mut install = Command::new("apt-get");
            install.args(args);
            command::run(install)
        };
        install(&["update", "-q"])?;
        install(&["install", "-y", "-q", "--no-install-recommends", "chromium"])
            .context("`CHROMIUM` names the browser where it is not Debian's")?;
    }
    Ok(path)
}

/// Serves the package until it is interrupted.
pub(super) fn serve(package: &Path) -> Result<()> {
    let mut node = Command::new("node");
    node.arg(package.join("check/serve.mjs")).arg(package);
    command::run(node)
}
