//! The package: WebAssembly, the code around it, and the demo.

use super::{WebFlags, toolchain::WebToolchain};
use crate::command;
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The version of `wasm-bindgen`, of the crate and of the program alike.
const BINDGEN: &str = "0.2.130";

/// The version of Binaryen, of npm.
const BINARYEN: &str = "132.0.0";

/// Features that WebAssembly of today has, and the module with it.
const FEATURES: &[&str] = &[
    "bulk-memory",
    "exception-handling",
    "multivalue",
    "mutable-globals",
    "nontrapping-float-to-int",
    "reference-types",
    "sign-ext",
    "simd",
];

/// Passes that make a module smaller in little time.
const PASSES: &[&str] = &[
    "duplicate-function-elimination",
    "remove-unused-brs",
    "optimize-instructions",
    "coalesce-locals",
    "simplify-locals",
    "vacuum",
    "reorder-locals",
    "merge-blocks",
    "remove-unused-names",
];

/// The most bytes that the module is to take on its way to a page.
const MOST_BYTES: usize = 4 << 20;

const TARGET: &str = "wasm32-unknown-unknown";

/// A module of the package: pages load the one that their browser can run.
struct Variant {
    /// File name of the module, without its ending.
    name: &'static str,
    /// Features of the crate.
    features: &'static str,
    /// Options of the compiler.
    options: &'static str,
}

/// The module for every browser and for Node.
const CPU: Variant = Variant { name: "ferroflow_web", features: "", options: "" };

/// The module for browsers that have WebGPU and suspend calls. wasm-bindgen restores stacks by exceptions of
/// WebAssembly 3.0, and engines refuse modules that have the older ones beside them.
const WEBGPU: Variant = Variant {
    name: "ferroflow_webgpu",
    features: "webgpu",
    options: " -Cllvm-args=-wasm-use-legacy-eh=false",
};

/// Builds the package; returns its folder.
pub(super) fn build(
    root: &Path,
    folder: &Path,
    toolchain: &WebToolchain,
    flags: &WebFlags,
) -> Result<PathBuf> {
    let bindgen = bindgen(folder)?;
    let package = folder.join("package");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    // Node has no WebGPU.
    let variants = if flags.check_node { &[CPU][..] } else { &[CPU, WEBGPU] };
    for variant in variants {
        let module = module(root, folder, toolchain, flags, variant)?;
        let mut bind = Command::new(&bindgen);
        bind.args(["--target", "web", "--no-typescript", "--remove-name-section"]);
        bind.args(["--remove-producers-section", "--out-name", variant.name, "--out-dir"]);
        bind.arg(&package).arg(&module);
        command::run(bind)?;
        let module = package.join(format!("{}_bg.wasm", variant.name));
        if !flags.dev {
            shrink(folder, &module)?;
        }
        let bytes = packed_size(&module)?;
        println!("web: {}, {bytes} bytes gzipped, of {MOST_BYTES} at most", module.display());
        if bytes > MOST_BYTES && !flags.dev {
            println!("web: larger than it is to be, by {} bytes", bytes - MOST_BYTES);
        }
    }
    let web = root.join("web");
    copy(&web.join("js"), &package)?;
    for part in ["bench", "check", "demo"] {
        copy(&web.join(part), &package.join(part))?;
    }
    fs::copy(web.join("package.json"), package.join("package.json"))?;
    println!("web: {}", package.display());
    Ok(package)
}

/// The program that writes the code around the module, installed if it is not yet.
fn bindgen(folder: &Path) -> Result<PathBuf> {
    let root = folder.join("tools");
    let program = root.join("bin/wasm-bindgen");
    let version = program.exists().then(|| {
        let mut version = Command::new(&program);
        version.arg("--version");
        command::output(version)
    });
    if version.transpose()?.is_some_and(|text| text.ends_with(format!("{BINDGEN}\n").as_bytes())) {
        return Ok(program);
    }
    println!("== wasm-bindgen");
    // Without its lock file, which may name versions that a mirror of the registry does not have yet.
    let mut install = command::cargo(folder.parent().unwrap_or(folder), &["install"]);
    install.args(["wasm-bindgen-cli", "--version", BINDGEN, "--root"]).arg(&root);
    install.arg("--target-dir").arg(folder.join("tools-build"));
    command::run(install)?;
    Ok(program)
}

/// Writes a module smaller, by Binaryen's passes over all of it.
fn shrink(folder: &Path, module: &Path) -> Result<()> {
    println!("== wasm-opt");
    let tools = folder.join("npm");
    fs::create_dir_all(&tools)?;
    let program = tools.join("node_modules/binaryen/bin/wasm-opt");
    if !program.exists() {
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        install.arg(&tools).arg(format!("binaryen@{BINARYEN}"));
        command::run(install)?;
    }
    let large = module.with_extension("large.wasm");
    fs::rename(module, &large)?;
    let mut optimize = Command::new("node");
    optimize.arg(&program).arg(&large).arg("-o").arg(module);
    optimize.args(FEATURES.iter().map(|feature| format!("--enable-{feature}")));
    optimize.args(PASSES.iter().map(|pass| format!("--{pass}")));
    command::run(optimize)?;
    Ok(fs::remove_file(&large)?)
}

/// A module as the compiler writes it.
///
/// It unwinds, as the budgets of calls need, so the standard library is built for that too.
fn module(
    root: &Path,
    folder: &Path,
    toolchain: &WebToolchain,
    flags: &WebFlags,
    variant: &Variant,
) -> Result<PathBuf> {
    println!("== {}", variant.name);
    let profile = if flags.dev { "dev-release" } else { "release" };
    let vectors = if flags.portable { "" } else { " -Ctarget-feature=+simd128" };
    let stack = "-Clink-arg=-zstack-size=4194304";
    let options = format!("-Cpanic=unwind{vectors}{} {stack}", variant.options);
    let mut build = command::cargo(&root.join("web"), &["build", "--locked", "--profile", profile]);
    build.args(["--features", variant.features]);
    build.args(["--target", TARGET, "-Zbuild-std=std,panic_unwind", "--target-dir"]).arg(folder);
    build.env("RUSTC", &toolchain.rustc).env("RUSTC_BOOTSTRAP", "1");
    build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &toolchain.linker);
    // What the environment asks of this machine's programs is not for the page's.
    build.env("RUSTFLAGS", options).env_remove("CARGO_ENCODED_RUSTFLAGS");
    command::run(build)?;
    Ok(folder.join(TARGET).join(profile).join("ferroflow_web.wasm"))
}

/// The bytes of a file as servers send it.
fn packed_size(path: &Path) -> Result<usize> {
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-c"]).arg(path);
    Ok(command::output(gzip)?.len())
}

/// Copies a folder, folders in it included.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
