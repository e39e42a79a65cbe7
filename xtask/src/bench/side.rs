//! Programs that measure: names in, lines of JSON out.

use crate::command;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A program that measures.
pub(super) struct BenchSide {
    pub(super) name: String,
    /// Facts that it told when it was ready.
    pub(super) facts: Value,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BenchSide {
    /// Starts a program and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or says that it cannot measure, and why.
    pub(super) fn start(name: &str, mut command: Command) -> Result<BenchSide> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let input = child.stdin.take().context("a side has an input")?;
        let output = BufReader::new(child.stdout.take().context("a side has an output")?);
        let mut side = BenchSide { name: name.into(), facts: Value::Null, child, input, output };
        side.facts = side.line()?;
        match side.facts["error"].as_str() {
            Some(error) => bail!("side {name} cannot measure: {error}"),
            None => Ok(side),
        }
    }

    /// Its figures for a workload.
    pub(super) fn ask(&mut self, workload: &str) -> Result<Value> {
        writeln!(self.input, "{workload}")?;
        self.input.flush()?;
        self.line()
    }

    fn line(&mut self) -> Result<Value> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                bail!("side {} ended", self.name);
            }
            if line.starts_with('{') {
                return Ok(serde_json::from_str(&line)?);
            }
        }
    }
}

impl Drop for BenchSide {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The workloads that a program lists.
pub(super) fn names(list: Command) -> Result<Vec<String>> {
    let list = String::from_utf8(command::output(list)?)?;
    Ok(list.lines().map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_side_that_cannot_measure_says_why() {
        let script = r#"echo noise; echo '{"error": "there is no device"}'"#;
        let error = BenchSide::start("ours", shell(script)).err().unwrap();
        assert_eq!(error.to_string(), "side ours cannot measure: there is no device");
        let error = BenchSide::start("ours", shell("true")).err().unwrap();
        assert_eq!(error.to_string(), "side ours ended");
    }

    #[test]
    fn names_go_in_and_lines_come_out() {
        let script =
            r#"echo '{"ready": "yes"}'; while read name; do echo "{\"name\": \"$name\"}"; done"#;
        let mut side = BenchSide::start("ours", shell(script)).unwrap();
        assert_eq!(side.facts["ready"], "yes");
        for name in ["a.b", "c.d"] {
            assert_eq!(side.ask(name).unwrap()["name"], name);
        }
    }
}
