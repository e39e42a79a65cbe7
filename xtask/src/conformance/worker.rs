//! A process that runs cases, started again when it is lost.

use anyhow::{Context, Result};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

/// What workers run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<String>,
}

/// A worker, running or to be started.
pub(super) struct Worker {
    program: Program,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// What comes next from a worker.
pub(super) enum Reply {
    /// A line of its own.
    Line(Value),
    /// The process is gone, and how it went.
    Lost(String),
}

impl Worker {
    pub(super) fn new(program: &Program) -> Worker {
        Worker { program: program.clone(), running: None }
    }

    /// Hands a job to the worker.
    pub(super) fn send(&mut self, job: &Value) -> Result<()> {
        if self.running.is_none() {
            self.running = Some(start(&self.program)?);
        }
        if let Some(running) = &mut self.running {
            // A worker that died since its last job is found out when its answer is read.
            let _ = writeln!(running.input, "{job}").and_then(|()| running.input.flush());
        }
        Ok(())
    }

    /// The next line of the worker; kills it if there is none for so long.
    pub(super) fn next(&mut self, patience: Duration) -> Result<Reply> {
        let Some(mut running) = self.running.take() else {
            return Ok(Reply::Lost("no worker".into()));
        };
        match running.lines.recv_timeout(patience) {
            Ok(line) => {
                self.running = Some(running);
                let line = serde_json::from_str(&line).context("a worker answers in JSON")?;
                Ok(Reply::Line(line))
            }
            Err(RecvTimeoutError::Timeout) => {
                running.child.kill()?;
                running.child.wait()?;
                Ok(Reply::Lost(format!("no answer within {} s", patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Ok(Reply::Lost(format!("crash, {}", running.child.wait()?)))
            }
        }
    }

    /// Makes sure that the next job runs in a process of its own.
    pub(super) fn stop(&mut self) -> Result<()> {
        if let Some(Running { mut child, input, .. }) = self.running.take() {
            drop(input);
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // At the end of its input a worker ends; whether it does so well is of no interest here.
        let _ = self.stop();
    }
}

fn start(program: &Program) -> Result<Running> {
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.path.display()))?;
    let input = child.stdin.take().context("a worker has an input")?;
    let output = child.stdout.take().context("a worker has an output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(Running { child, input, lines })
}
