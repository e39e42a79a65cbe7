//! `package`: the crates as they would be published, without data of tests.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

/// The most bytes that a packed crate may have.
const MOST_BYTES: u64 = 1 << 20;

pub(crate) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/package");
    // Packages of other versions would be measured too.
    let _ = fs::remove_dir_all(&folder);
    let mut cargo = command::cargo(root, &["package", "--quiet", "--workspace", "--no-verify"]);
    cargo.args(["--allow-dirty", "--exclude", "xtask", "--exclude", "ferroflow-simulator"]);
    cargo.arg("--target-dir").arg(root.join("target"));
    command::run(cargo)?;
    let mut n_crates = 0;
    for entry in fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        let entry = entry?;
        let (name, bytes) = (entry.file_name(), entry.metadata()?.len());
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".crate")) else {
            continue;
        };
        println!("{name}: {} KiB", bytes.div_ceil(1024));
        ensure!(bytes <= MOST_BYTES, "{name} is larger than {} KiB", MOST_BYTES >> 10);
        n_crates += 1;
    }
    ensure!(n_crates > 0, "cargo packed nothing");
    Ok(())
}
