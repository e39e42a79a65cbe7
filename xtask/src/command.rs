//! Running other programs.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Cargo, to be run in the workspace.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root);
    command
}

/// Build profiles of programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildProfile {
    /// With the tests, from the same parts: built already where those ran.
    Dev,
    /// For speed.
    Release,
}

/// Builds programs of the root package; returns the path of the first.
pub(crate) fn build_workers(
    root: &Path,
    features: &str,
    programs: &[&str],
    profile: BuildProfile,
) -> Result<PathBuf> {
    let mut build = cargo(root, &["build"]);
    match profile {
        BuildProfile::Dev => build.args(["--workspace", "--all-features", "--tests"]),
        BuildProfile::Release => build.args(["--release", "--features", features]),
    };
    build.args(programs.iter().flat_map(|program| ["--bin", program]));
    built(build, programs[0])
}

/// Runs a build; returns the path of the program or library that it made of a target.
pub(crate) fn built(build: Command, target: &str) -> Result<PathBuf> {
    Ok(all_built(build, &[target])?.remove(0))
}

/// Runs a build; returns the paths of the programs or libraries that it made of targets, in their order.
pub(crate) fn all_built(mut build: Command, targets: &[impl AsRef<str>]) -> Result<Vec<PathBuf>> {
    build.args(["--message-format", "json-render-diagnostics"]);
    let messages = String::from_utf8(output(build)?)?;
    let messages: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let path = |target: &str| {
        let file = |message: &Value| {
            let is_it = message["target"]["name"] == target && message["profile"]["test"] == false;
            // A program may have the name of the library beside it.
            let library = message["target"]["kind"][0] == "cdylib";
            let path = if library { &message["filenames"][0] } else { &message["executable"] };
            path.as_str().filter(|_| is_it).map(PathBuf::from)
        };
        let found = messages.iter().find_map(file);
        found.with_context(|| format!("cargo names what it built of {target}"))
    };
    targets.iter().map(|target| path(target.as_ref())).collect()
}

/// Runs a command and shows what it prints; it must succeed.
pub(crate) fn run(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}

/// Standard output of a command; it must succeed.
pub(crate) fn output(mut command: Command) -> Result<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(output.stdout)
}

/// Rust source in the workspace's format.
pub(crate) fn rustfmt(root: &Path, source: &str) -> Result<String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start rustfmt")?;
    let mut stdin = child.stdin.take().context("rustfmt has an input")?;
    let source = source.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(source.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().expect("writing does not panic")?;
    ensure!(output.status.success(), "rustfmt failed");
    Ok(String::from_utf8(output.stdout)?)
}
