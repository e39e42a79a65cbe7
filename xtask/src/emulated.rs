//! `emulated`: tests of the code for processors that are not of the x86-64 family, on an emulator of one.

use crate::command;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// An architecture that is emulated.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Architecture {
    /// Vectors of NEON.
    Aarch64,
    /// Vectors in arrays.
    Riscv64,
}

impl Architecture {
    /// The name in Debian's packages and programs, Rust's target, and the name of the C library's package.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Architecture::Aarch64 => ("aarch64", "aarch64-unknown-linux-gnu", "arm64"),
            Architecture::Riscv64 => ("riscv64", "riscv64gc-unknown-linux-gnu", "riscv64"),
        }
    }
}

#[derive(Args)]
pub(crate) struct EmulatedFlags {
    /// The architecture.
    #[arg(long, value_enum, default_value = "aarch64")]
    architecture: Architecture,
    /// Arguments of Cargo; the tests of the kernels if left out.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

/// The tests of the kernels for the CPU.
const TESTS: &[&str] = &[
    "test",
    "-p",
    "ferroflow-kernels",
    "--no-default-features",
    "--features",
    "linalg,signal,text",
    "--lib",
    "--",
    "cpu::",
    "elementwise::",
];

pub(crate) fn run(root: &Path, flags: &EmulatedFlags) -> Result<()> {
    let (name, target, library) = flags.architecture.names();
    let (emulator, linker) = (format!("qemu-{name}-static"), format!("{name}-linux-gnu-gcc"));
    install(target, &[&emulator, &linker], &format!("gcc-{name}-linux-gnu"), library)?;
    let arguments: Vec<&str> = match flags.cargo.is_empty() {
        true => TESTS.to_vec(),
        false => flags.cargo.iter().map(String::as_str).collect(),
    };
    let mut cargo = command::cargo(root, &arguments[..1]);
    cargo.args(["--target", target]).args(&arguments[1..]);
    let variable = target.replace('-', "_").to_uppercase();
    cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), &linker);
    cargo.env(format!("CARGO_TARGET_{variable}_RUNNER"), &emulator);
    cargo.env("QEMU_LD_PREFIX", format!("/usr/{name}-linux-gnu"));
    command::run(cargo)
}

/// Installs what is not there yet: the standard library, and by Debian's packages the emulator, and the linker with
/// the C library.
fn install(target: &str, programs: &[&str], compiler: &str, library: &str) -> Result<()> {
    let mut add = Command::new("rustup");
    add.args(["target", "add", target]);
    command::run(add).with_context(|| format!("rustup installs the library for {target}"))?;
    let is_there = |program: &&str| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    if programs.iter().all(is_there) {
        return Ok(());
    }
    let library = format!("libc6-dev-{library}-cross");
    let packages = ["qemu-user-static", compiler, &library];
    for arguments in [
        &["update", "-q"][..],
        &["install", "-y", "-q", "--no-install-recommends", packages[0], packages[1], packages[2]],
    ] {
        let mut install = Command::new("apt-get");
        install.args(arguments);
        command::run(install).with_context(|| format!("{packages:?} are Debian's names"))?;
    }
    Ok(())
}
