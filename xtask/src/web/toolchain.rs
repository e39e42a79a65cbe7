//! The compiler for `wasm32-unknown-unknown`: Debian's, which it has to build Chromium.
//!
//! Its packages are unpacked into the target folder, so that no other build takes them. They have
//! the source of the standard library, which is built with the package. Elsewhere than on Debian, a
//! folder with `rustc` and `wasm-ld` is named by `FERROFLOW_WEB_TOOLCHAIN`; the compiler there must
//! have `rust-src`.

use crate::command;
use anyhow::{Context, Result, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Compiler, its libraries, the source of the standard library, and the linker.
const PACKAGES: &[&str] =
    &["rustc-web", "libstd-rust-web-dev", "rust-web-src", "lld-22", "libllvm22"];

/// The programs of the compiler.
pub(super) struct WebToolchain {
    pub(super) rustc: PathBuf,
    pub(super) linker: PathBuf,
}

/// The compiler, installed if it is not yet.
pub(super) fn installed(folder: &Path) -> Result<WebToolchain> {
    let toolchain = env::var_os("FERROFLOW_WEB_TOOLCHAIN").map(PathBuf::from);
    let programs = match toolchain {
        Some(given) => given,
        None => unpacked(&folder.join("toolchain"))?,
    };
    Ok(WebToolchain { rustc: programs.join("rustc"), linker: programs.join("wasm-ld") })
}

fn unpacked(folder: &Path) -> Result<PathBuf> {
    let (packages, files, programs) =
        (folder.join("packages"), folder.join("files"), folder.join("bin"));
    if programs.join("installed").exists() {
        return Ok(programs);
    }
    for fresh in [&packages, &files, &programs] {
        if fresh.exists() {
            fs::remove_dir_all(fresh)?;
        }
        fs::create_dir_all(fresh)?;
    }
    println!("== compiler for wasm32, from Debian");
    download(&packages)?;
    for package in fs::read_dir(&packages)? {
        let mut unpack = Command::new("dpkg");
        unpack.arg("-x").arg(package?.path()).arg(&files);
        command::run(unpack)?;
    }
    fs::remove_dir_all(&packages)?;
    wrap(&files, "usr/bin/rustc", &programs.join("rustc"))?;
    wrap(&files, "usr/lib/llvm-22/bin/wasm-ld", &programs.join("wasm-ld"))?;
    fs::write(programs.join("installed"), "")?;
    Ok(programs)
}

/// Downloads the packages. A machine whose lists of packages are old has them updated first.
fn download(folder: &Path) -> Result<()> {
    let fetch = || {
        let mut libraries = Command::new("apt-cache");
        libraries.args(["depends", "--important", "libstd-rust-web-dev"]);
        let text = String::from_utf8(command::output(libraries)?)?;
        // The libraries' package has the version in its name.
        let library = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let library = library.context("libstd-rust-web-dev depends on the libraries")?;
        let mut download = Command::new("apt-get");
        download.args(["download", "-q"]).args(PACKAGES).arg(library).current_dir(folder);
        command::run(download)
    };
    if fetch().is_ok() {
        return Ok(());
    }
    let mut update = Command::new("apt-get");
    update.args(["update", "-q"]);
    command::run(update)?;
    fetch().context("these packages are Debian's (bookworm-security or later)")
}

/// Writes a program that runs another with the libraries beside it.
fn wrap(files: &Path, program: &str, wrapper: &Path) -> Result<()> {
    let files = files.canonicalize()?;
    let path = files.join(program);
    ensure!(path.exists(), "{} is not in Debian's packages", path.display());
    let libraries = files.join("usr/lib/x86_64-linux-gnu");
    let text = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH='{}'\nexec '{}' \"$@\"\n",
        libraries.display(),
        path.display(),
    );
    fs::write(wrapper, text)?;
    let mut allow = Command::new("chmod");
    allow.arg("+x").arg(wrapper);
    command::run(allow)
}
