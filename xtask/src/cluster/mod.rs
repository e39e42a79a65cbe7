//! `cluster`: programs of several processes on loopback, TensorFlow's among them.
//!
//! Each case is a cluster of tasks, of ferroflow and of TensorFlow, that run one program. All of them must
//! print the same; what they learn must be what one process learns with the whole batch.
//!
//! - `environments.rs`: what launchers say. `remote.rs`: clients and servers. `faults.rs`: tasks that end in the middle. `preemption.rs`: tasks that
//!   are asked to.

mod environments;
mod faults;
mod preemption;
mod remote;

use crate::{command, conformance::tensorflow};
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

#[derive(Args)]
pub(crate) struct ClusterFlags {
    /// Have workers of TensorFlow take part. TensorFlow is installed below the target folder.
    #[arg(long)]
    with_tensorflow: bool,
    /// Number of steps of training.
    #[arg(long, default_value_t = 100)]
    steps: usize,
    /// Only injects so many faults into clusters of three tasks.
    #[arg(long)]
    faults: Option<usize>,
}

/// The side that a task is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    TensorFlow,
}

use Side::{Ours, TensorFlow};

/// Tasks of a cluster; the first leads.
const CLUSTERS: &[&[Side]] = &[
    &[Ours, Ours],
    &[Ours, Ours, Ours],
    &[TensorFlow, Ours],
    &[Ours, TensorFlow],
    &[TensorFlow, Ours, TensorFlow],
    &[Ours, TensorFlow, Ours],
];

/// Longest time of a cluster.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program that tasks run.
struct Program {
    name: &'static str,
    ours: PathBuf,
    arguments: Vec<String>,
}

struct Runner {
    python: Option<PathBuf>,
    script: PathBuf,
}

pub(crate) fn run(root: &Path, flags: &ClusterFlags) -> Result<()> {
    if let Some(number) = flags.faults {
        return faults::run(&example(root, "multi_worker")?, number);
    }
    let python = flags.with_tensorflow.then(|| tensorflow::python(root)).transpose()?;
    let script = root.join("cluster").join("tests").join("tensorflow").join("worker.py");
    let runner = Runner { python, script };
    let collectives =
        Program { name: "collectives", ours: example(root, "peer")?, arguments: Vec::new() };
    let arguments = vec![flags.steps.to_string()];
    let train = Program { name: "train", ours: example(root, "multi_worker")?, arguments };
    let alone = runner.outputs(&train, &[Ours])?.remove(0);
    let (mut passed, mut failed) = (0, 0);
    for sides in CLUSTERS {
        if sides.contains(&TensorFlow) && runner.python.is_none() {
            continue;
        }
        for program in [&collectives, &train] {
            let expected = (program.name == "train").then_some(alone.as_str());
            match runner.outputs(program, sides).and_then(|outputs| check(&outputs, expected)) {
                Ok(()) => passed += 1,
                Err(error) => {
                    failed += 1;
                    println!("FAIL         {} of {sides:?}: {error:#}", program.name);
                }
            }
        }
    }
    for (tasks, victim) in [(2, 0), (2, 1), (3, 1)] {
        match preemption::run(&runner, &train.ours, tasks, victim) {
            Ok(steps) => {
                println!("preemption   task {victim} of {tasks}: saved after {steps} steps");
                passed += 1;
            }
            Err(error) => {
                failed += 1;
                println!("FAIL         preemption of task {victim} of {tasks}: {error:#}");
            }
        }
    }
    let mut others = remote::run(root, &runner)?;
    if let Some(python) = &runner.python {
        others.extend(environments::run(root, python)?);
    }
    for (name, result) in others {
        match result {
            Ok(()) => passed += 1,
            Err(error) => {
                failed += 1;
                println!("FAIL         {name}: {error:#}");
            }
        }
    }
    println!("cluster: {passed} passed, {failed} failed, of {}", passed + failed);
    ensure!(failed == 0, "{failed} clusters failed");
    Ok(())
}

/// Builds an example, as tests are built.
fn example(root: &Path, name: &str) -> Result<PathBuf> {
    let build = ["build", "--workspace", "--all-features", "--example", name];
    command::built(command::cargo(root, &build), name)
}

impl Runner {
    /// The outputs of the tasks of a cluster.
    fn outputs(&self, program: &Program, sides: &[Side]) -> Result<Vec<String>> {
        let mut children = self.start_all(program, sides)?;
        let outputs: Vec<_> = children.iter_mut().map(|child| child.stdout.take()).collect();
        let inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take()).collect();
        // A task that ended while others ask for its results would fail them: the inputs, for whose end tasks
        // of TensorFlow wait, stay open until all outputs have ended.
        let outputs = thread::spawn(move || {
            let texts = outputs.into_iter().flatten().map(io::read_to_string).collect();
            drop(inputs);
            texts
        });
        let ended = wait(&mut children, 0);
        for child in &mut children {
            // Those that have ended cannot be killed.
            let _ = child.kill();
        }
        let ends: Vec<_> =
            children.into_iter().map(Child::wait_with_output).collect::<Result<_, _>>()?;
        ended.with_context(|| {
            let errors = ends.iter().map(|end| last_line(&end.stderr));
            errors.collect::<Vec<_>>().join("; ")
        })?;
        let texts: io::Result<Vec<String>> =
            outputs.join().map_err(|_| anyhow!("outputs cannot be read"))?;
        Ok(texts?)
    }

    fn start_all(&self, program: &Program, sides: &[Side]) -> Result<Vec<Child>> {
        let tasks = addresses(sides.len())?;
        let start = |(index, side): (usize, &Side)| self.start(program, *side, &tasks, index);
        sides.iter().enumerate().map(start).collect()
    }

    fn start(
        &self,
        program: &Program,
        side: Side,
        tasks: &[String],
        index: usize,
    ) -> Result<Child> {
        let (mut command, input) = match (side, &self.python) {
            (TensorFlow, Some(python)) => {
                let mut command = Command::new(python);
                command.arg(&self.script).arg(program.name);
                (command, Stdio::piped())
            }
            _ => (Command::new(&program.ours), Stdio::null()),
        };
        let task = serde_json::json!({ "type": "worker", "index": index });
        let cluster = serde_json::json!({ "cluster": { "worker": tasks }, "task": task });
        command.args(&program.arguments).env("TF_CONFIG", cluster.to_string());
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().with_context(|| format!("cannot start {command:?}"))
    }
}

/// Addresses that are free.
fn addresses(n: usize) -> Result<Vec<String>> {
    let listeners: Vec<TcpListener> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.to_string())).collect()
}

/// Waits until all processes have ended with this status.
fn wait(children: &mut [Child], expected: i32) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut running = 0;
        for (index, child) in children.iter_mut().enumerate() {
            match child.try_wait()? {
                Some(status) => {
                    let is_expected = status.code() == Some(expected);
                    ensure!(is_expected, "task {index} ended with {status}");
                }
                None => running += 1,
            }
        }
        if running == 0 {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "{running} tasks do not end");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process.
fn signal(child: &Child, name: &str) -> Result<()> {
    let status =
        Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status()?;
    ensure!(status.success(), "cannot send {name} to {}", child.id());
    Ok(())
}

fn last_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).lines().last().unwrap_or("no message").into()
}

/// Checks that all tasks print the same, and the losses that one process prints.
fn check(outputs: &[String], alone: Option<&str>) -> Result<()> {
    let first = outputs.first().context("a cluster has tasks")?;
    ensure!(!first.is_empty(), "task 0 prints nothing");
    for (index, output) in outputs.iter().enumerate() {
        for (ours, others) in output.lines().zip(first.lines()) {
            ensure!(ours == others, "task {index} prints `{ours}`, task 0 `{others}`");
        }
        let (lines, expected) = (output.lines().count(), first.lines().count());
        ensure!(lines == expected, "task {index} prints {lines} lines, task 0 {expected}");
    }
    for (line, expected) in first.lines().zip(alone.unwrap_or_default().lines()) {
        let (found, expected) = (loss(line)?, loss(expected)?);
        ensure!((found - expected).abs() <= 1e-5, "`{line}`, and {expected} in one process");
    }
    Ok(())
}

/// The loss in a line such as `step 3: loss 2.300000, weights 0123abcd`.
fn loss(line: &str) -> Result<f64> {
    let number = line.split_once("loss ").and_then(|(_, rest)| rest.split(',').next());
    Ok(number.with_context(|| format!("`{line}` tells a loss"))?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_differ_are_told() {
        let same = [
            "step 0: loss 2.300000, weights 1".to_string(),
            "step 0: loss 2.300000, weights 1".into(),
        ];
        assert!(check(&same, Some("step 0: loss 2.300009, weights 2")).is_ok());
        assert!(check(&same, Some("step 0: loss 2.300020, weights 2")).is_err());
        let other = [same[0].clone(), "step 0: loss 2.300000, weights 2".into()];
        assert!(check(&other, None).unwrap_err().to_string().contains("task 1 prints"));
        assert!(check(&[same[0].clone(), String::new()], None).is_err());
        assert!(check(&[String::new(), String::new()], None).is_err());
    }
}
