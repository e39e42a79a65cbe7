//! Preemption: a task of a cluster is asked to end in the middle of a training. All must end with one
//! checkpoint, and learn from there on what an undisturbed training learns.

use super::{Program, Runner, Side::Ours, check, signal, wait};
use anyhow::{Context, Result, ensure};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::Child,
    sync::mpsc,
    thread,
    time::Duration,
};

/// Steps of the training: more than are done before the signal.
const STEPS: usize = 600;

/// The time from the first step to the signal.
const DELAY: Duration = Duration::from_millis(60);

/// The status of a program that is to be started again: `EX_TEMPFAIL`.
const AGAIN: i32 = 75;

/// Interrupts task `victim` of so many; returns the steps that were done before.
pub(super) fn run(runner: &Runner, program: &Path, tasks: usize, victim: usize) -> Result<usize> {
    let folder = tempfile::tempdir()?;
    let sides = vec![Ours; tasks];
    let train =
        |arguments: Vec<String>| Program { name: "train", ours: program.to_path_buf(), arguments };
    let steps = STEPS.to_string();
    let undisturbed = drain(runner.start_all(&train(vec![steps.clone()]), &sides)?, 0, |_| Ok(()))?;
    let resumable = train(vec![steps, folder.path().display().to_string()]);
    let interrupted = drain(runner.start_all(&resumable, &sides)?, AGAIN, |children| {
        thread::sleep(DELAY);
        signal(&children[victim], "TERM")
    })?;
    let resumed = drain(runner.start_all(&resumable, &sides)?, 0, |_| Ok(()))?;
    check(&interrupted, None)?;
    check(&resumed, None)?;
    let (steps, end) =
        interrupted[0].split_at(interrupted[0].rfind("saved").context("nothing is saved")?);
    let all = format!("{steps}{}", resumed[0]);
    ensure!(
        all == undisturbed[0],
        "`{end}`, and the resumed steps are not those of the undisturbed training"
    );
    Ok(steps.lines().count())
}

/// The outputs of tasks; `meanwhile` is called when the first one has printed its first line.
fn drain(
    mut children: Vec<Child>,
    status: i32,
    meanwhile: impl FnOnce(&[Child]) -> Result<()>,
) -> Result<Vec<String>> {
    let (sender, first) = mpsc::channel();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| {
            let mut lines = BufReader::new(child.stdout.take().context("a task has an output")?);
            let sender = sender.clone();
            Ok(thread::spawn(move || -> std::io::Result<String> {
                let mut text = String::new();
                while lines.read_line(&mut text)? > 0 {
                    // Nobody waits for more than the first line.
                    let _ = sender.send(());
                }
                Ok(text)
            }))
        })
        .collect::<Result<_>>()?;
    drop(sender);
    let ended = first
        .recv()
        .context("no task prints anything")
        .and_then(|()| meanwhile(&children))
        .and_then(|()| wait(&mut children, status));
    for child in &mut children {
        // Those that have ended cannot be killed.
        let _ = child.kill();
        child.wait()?;
    }
    ended?;
    let texts = readers
        .into_iter()
        .map(|reader| reader.join().map_err(|_| anyhow::anyhow!("a reader panicked")));
    texts.map(|text| Ok(text??)).collect()
}
