//! Faults: a task of a cluster is killed, or stopped, in the middle of a step. The others must end in time,
//! with an error that names it.

use super::{addresses, last_line, signal};
use anyhow::{Context, Result, ensure};
use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Tasks of a cluster.
const TASKS: usize = 3;

/// Longest time until all have printed a step.
const START: Duration = Duration::from_secs(60);

/// Longest time from a death, and from silence, until the others have ended: connections break at once,
/// and heartbeats are missed after ten seconds.
const LIMITS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(16));

/// The share of silence among faults: one in so many.
const SILENT: usize = 20;

pub(super) fn run(program: &Path, number: usize) -> Result<()> {
    let (mut failed, mut longest) = (0, [Duration::ZERO; 2]);
    for fault in 0..number {
        let is_silent = fault % SILENT == SILENT - 1;
        match inject(program, fault % TASKS, is_silent, delay(fault)) {
            Ok(took) => {
                let longest = &mut longest[usize::from(is_silent)];
                *longest = took.max(*longest);
            }
            Err(error) => {
                failed += 1;
                println!("FAIL         fault {fault}: {error:#}");
            }
        }
    }
    let [death, silence] = longest.map(|longest| longest.as_secs_f32());
    println!(
        "faults: {} ended in time, {failed} failed, of {number}; at most {death:.1} s after a death, {silence:.1} s after silence",
        number - failed
    );
    ensure!(failed == 0, "{failed} faults failed");
    Ok(())
}

/// The time from the first step to the fault: another phase of a step each time.
fn delay(fault: usize) -> Duration {
    Duration::from_micros((fault as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 46)
}

/// Runs a cluster, and has task `victim` end or fall silent; the time until the others have ended.
fn inject(program: &Path, victim: usize, is_silent: bool, delay: Duration) -> Result<Duration> {
    let tasks = addresses(TASKS)?;
    let start = |index| {
        let task = serde_json::json!({ "type": "worker", "index": index });
        let cluster = serde_json::json!({ "cluster": { "worker": tasks }, "task": task });
        let mut command = Command::new(program);
        command.arg("1000000").env("TF_CONFIG", cluster.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().with_context(|| format!("cannot start {command:?}"))
    };
    let mut children: Vec<Child> = (0..TASKS).map(start).collect::<Result<_>>()?;
    let outcome = observe(&mut children, victim, is_silent, delay);
    for child in &mut children {
        // Those that have ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    outcome
}

fn observe(
    children: &mut [Child],
    victim: usize,
    is_silent: bool,
    delay: Duration,
) -> Result<Duration> {
    for child in children.iter_mut() {
        first_step(child)?;
    }
    thread::sleep(delay);
    let begun = Instant::now();
    if is_silent {
        signal(&children[victim], "STOP")?;
    } else {
        children[victim].kill()?;
    }
    let limit = if is_silent { LIMITS.1 } else { LIMITS.0 };
    let mut errors = Vec::new();
    for (index, child) in children.iter_mut().enumerate().filter(|(index, _)| *index != victim) {
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None if begun.elapsed() > limit => {
                    anyhow::bail!("task {index} still runs {limit:?} after task {victim} has gone")
                }
                None => thread::sleep(Duration::from_millis(5)),
            }
        };
        ensure!(!status.success(), "task {index} ends well without task {victim}");
        let mut text = Vec::new();
        child.stderr.take().context("a task has errors")?.read_to_end(&mut text)?;
        errors.push(last_line(&text));
    }
    let took = begun.elapsed();
    let name = format!("/job:worker/task:{victim}");
    ensure!(errors.iter().all(|error| error.starts_with("Error: ")), "panics: {errors:?}");
    ensure!(errors.iter().any(|error| error.contains(&name)), "no error names {name}: {errors:?}");
    Ok(took)
}

/// Waits until a task has printed a step, and has its further output read.
fn first_step(child: &mut Child) -> Result<()> {
    let begun = Instant::now();
    let mut lines = BufReader::new(child.stdout.take().context("a task has an output")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    ensure!(line.starts_with("step 0") && begun.elapsed() < START, "no first step: `{line}`");
    // A task whose output is not read would wait for that.
    thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    Ok(())
}
