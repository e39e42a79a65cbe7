//! `simulated`: runs a command with NVIDIA's software simulated (`kernels/simulator`).

use crate::command;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

#[derive(Args)]
pub(crate) struct Flags {
    /// How many devices there are.
    #[arg(long, default_value_t = 1)]
    devices: usize,
    /// The command, such as `cargo nextest run --all-features`.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// What programs look for.
const LIBRARIES: &[&str] = &["libcuda.so", "libnvrtc.so"];

/// What must be the same library in memory, not a copy: the loader knows files by what they are.
const LINKS: &[(&str, &str)] = &[("libcublasLt.so", "libcuda.so")];

pub(crate) fn run(root: &Path, flags: &Flags) -> Result<()> {
    let library = build(root)?;
    let folder = library.parent().context("a library lies in a folder")?.join("simulated");
    let libraries = folder.join("lib");
    fs::create_dir_all(&libraries)?;
    for name in LIBRARIES {
        // A hard link would follow the next build, in the middle of a run; so would a copy that is
        // written over.
        let (copy, part) = (libraries.join(name), libraries.join(format!("{name}.part")));
        let copied = fs::copy(&library, &part).and_then(|_| fs::rename(&part, &copy));
        copied.with_context(|| copy.display().to_string())?;
    }
    for (name, same) in LINKS {
        let link = libraries.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link).with_context(|| link.display().to_string())?;
        }
        symlink(same, &link).with_context(|| link.display().to_string())?;
    }
    // Code that is kept is that of an earlier simulator.
    let cache = folder.join("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache).with_context(|| cache.display().to_string())?;
    }
    let mut paths = vec![libraries];
    paths.extend(env::var_os("LD_LIBRARY_PATH").iter().flat_map(env::split_paths));
    let mut command = Command::new(&flags.command[0]);
    command.args(&flags.command[1..]).current_dir(root);
    command.env("LD_LIBRARY_PATH", env::join_paths(paths)?);
    command.env("FERROFLOW_SIMULATED_DEVICES", flags.devices.to_string());
    command.env("FERROFLOW_SIMULATOR_DIR", folder.join("programs"));
    command.env("FERROFLOW_CACHE_DIR", cache);
    let required = env::var("REQUIRE_DEVICES").unwrap_or_default();
    command.env("REQUIRE_DEVICES", format!("{required},cuda,cublaslt"));
    command::run(command)
}

/// Builds the simulator; gives the path of its library.
fn build(root: &Path) -> Result<PathBuf> {
    let mut build = command::cargo(root, &["build", "-p", "ferroflow-simulator"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let messages = String::from_utf8(command::output(build)?)?;
    let library = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == "ferroflow_simulator";
        message["filenames"][0].as_str().filter(|_| is_it).map(PathBuf::from)
    };
    messages.lines().find_map(library).context("cargo names the library it built")
}
