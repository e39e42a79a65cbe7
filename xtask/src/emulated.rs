//! `emulated`: tests of the code for AArch64 processors, on an emulator of one.

use crate::command;
use anyhow::{Context, Result};
use clap::Args;
use std::{
    path::Path,
    process::{Command, Stdio},
};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Debian's packages: the emulator, and a linker with the C library.
const PACKAGES: &[&str] = &["qemu-user-static", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// The folder in which a program for AArch64 finds its libraries.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

#[derive(Args)]
pub(crate) struct EmulatedFlags {
    /// Arguments of Cargo; the tests of the kernels if left out.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(root: &Path, flags: &EmulatedFlags) -> Result<()> {
    install()?;
    let tests = ["test", "-p", "ferroflow-kernels", "--lib", "--", "cpu::", "elementwise::"];
    let arguments: Vec<&str> = match flags.cargo.is_empty() {
        true => tests.to_vec(),
        false => flags.cargo.iter().map(String::as_str).collect(),
    };
    let mut cargo = command::cargo(root, &arguments[..1]);
    cargo.args(["--target", TARGET]).args(&arguments[1..]);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64-static");
    cargo.env("QEMU_LD_PREFIX", LIBRARIES);
    command::run(cargo)
}

/// Installs what is not there yet: the standard library, the linker, and the emulator.
fn install() -> Result<()> {
    let mut target = Command::new("rustup");
    target.args(["target", "add", TARGET]);
    command::run(target).context("rustup installs the standard library for AArch64")?;
    let is_there = |program: &str| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    if is_there("qemu-aarch64-static") && is_there("aarch64-linux-gnu-gcc") {
        return Ok(());
    }
    for arguments in [&["update", "-q"][..], &["install", "-y", "-q", "--no-install-recommends"]] {
        let mut install = Command::new("apt-get");
        install.args(arguments);
        if arguments.len() > 2 {
            install.args(PACKAGES);
        }
        command::run(install).with_context(|| format!("{PACKAGES:?} are Debian's names"))?;
    }
    Ok(())
}
