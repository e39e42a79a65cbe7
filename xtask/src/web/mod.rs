//! `web`: the browser's package, built and tested.

mod check;
mod package;
mod toolchain;

use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct WebFlags {
    /// Run recorded calls in Node and in headless Chromium, and the demo there.
    #[arg(long)]
    check: bool,
    /// Run them in Node only.
    #[arg(long, conflicts_with = "check")]
    check_node: bool,
    /// Serve the package on loopback, for the demo, until it is interrupted.
    #[arg(long, conflicts_with = "check")]
    serve: bool,
    /// Build in less time what is slower and larger.
    #[arg(long)]
    dev: bool,
    /// Build for browsers without vector instructions.
    #[arg(long)]
    portable: bool,
    /// Folders of cases; `tests/zoo` and `../shared/zoo`, as far as they are there, if left out.
    #[arg(long)]
    zoo: Vec<PathBuf>,
}

/// Where all that is built for the browser goes. Git does not look there.
fn folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.map_or_else(|| root.join("target"), |target| root.join(target)).join("web")
}

pub(crate) fn run(root: &Path, flags: &WebFlags) -> Result<()> {
    let folder = folder(root);
    let toolchain = toolchain::installed(&folder)?;
    let package = package::build(root, &folder, &toolchain, flags)?;
    if flags.check || flags.check_node {
        check::in_node(root, &package, &flags.zoo)?;
    }
    if flags.check {
        check::in_chromium(root, &folder, &package, &flags.zoo)?;
    }
    if flags.serve {
        check::serve(&package)?;
    }
    Ok(())
}
