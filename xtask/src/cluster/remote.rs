//! Clients and servers of both sides: ops and functions on devices of other processes.

use super::{Runner, addresses, example, last_line, wait};
use crate::command;
use anyhow::{Context, Result};
use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Models of the development zoo that a client of TensorFlow has a server of ours run.
const MODELS: &[&str] = &[
    "k3_mlp",
    "k3_cnn_batchnorm",
    "rfc_containers",
    "v1_linear_ref",
    "v1_flow_assign_in_cond_ref",
];

/// Clients and servers of both sides.
pub(super) fn run(root: &Path, runner: &Runner) -> Result<Vec<(String, Result<()>)>> {
    let client = example(root, "remote")?;
    // With an example, the crates have the features that they have in tests: they are built already.
    let build =
        ["build", "--workspace", "--all-features", "--example", "remote", "--bin", "ferroflow"];
    let program = command::built(command::cargo(root, &build), "ferroflow")?;
    let ours = |address: &str| {
        let mut server = Command::new(&program);
        server.args(["worker", "--allow-files", "--address", address]);
        server
    };
    let us = |address: &str| {
        let mut command = Command::new(&client);
        command.arg(address);
        command
    };
    let mut results = vec![("our client, our server".into(), served(ours, us))];
    let Some(python) = &runner.python else { return Ok(results) };
    let folder = root.join("cluster").join("tests").join("tensorflow");
    let theirs = |address: &str| {
        let mut server = Command::new(python);
        server.arg(folder.join("server.py")).arg(address.rsplit(':').next().unwrap_or_default());
        server
    };
    results.push(("our client, server of TensorFlow".into(), served(theirs, us)));
    let tensorflow = |address: &str| {
        let mut command = Command::new(python);
        command.arg(folder.join("client.py")).arg(address);
        command.args(MODELS.iter().map(|name| root.join("tests").join("zoo").join(name)));
        command
    };
    results.push(("client of TensorFlow, our server".into(), served(ours, tensorflow)));
    Ok(results)
}

/// Starts a server at an address, and runs a client of it, which must succeed.
fn served(server: impl Fn(&str) -> Command, client: impl Fn(&str) -> Command) -> Result<()> {
    let address = addresses(1)?.remove(0);
    let mut server = server(&address);
    // A server of TensorFlow ends with its input.
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().with_context(|| format!("cannot start {server:?}"))?;
    let mut client = client(&address);
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = client.spawn().map_err(anyhow::Error::from).and_then(|child| {
        let mut children = [child];
        let ended = wait(&mut children, 0);
        let [mut child] = children;
        // One that has ended cannot be killed.
        let _ = child.kill();
        Ok((ended, child.wait_with_output()?))
    });
    let _ = server.kill();
    server.wait()?;
    let (ended, output) = ran?;
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL")).collect();
    ended.with_context(|| format!("{}; {}", wrong.join("; "), last_line(&output.stderr)))
}
