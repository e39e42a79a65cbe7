//! The programs of `examples` as ranks that `mpirun` starts.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Longest time of a job.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs so many ranks of an example.
fn ranks(n: usize, example: &str, arguments: &[&str]) -> (Output, Duration) {
    // `target/debug/deps/ranks-…`
    let mut program: PathBuf = std::env::current_exe().unwrap();
    program.pop();
    program.pop();
    program.extend(["examples", example]);
    let begun = Instant::now();
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", &n.to_string()]);
    mpirun.args(["--timeout", &PATIENCE.as_secs().to_string()]);
    mpirun.arg(program).args(arguments).stdin(Stdio::null());
    (mpirun.output().unwrap(), begun.elapsed())
}

#[test]
fn ranks_compute_together() {
    for n in 1..=4 {
        let (output, _) = ranks(n, "collectives", &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{n} ranks: {output:?}");
        assert_eq!(text.trim(), format!("{n} ranks agree"));
    }
}

#[test]
fn ranks_learn_of_one_that_leaves() {
    let (output, took) = ranks(3, "collectives", &["leave"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for rank in 0..2 {
        let line =
            format!("rank {rank}: reduce (group 1, instance 2): rank 2 is gone: it has left");
        assert!(text.contains(&line), "{output:?}");
    }
    assert!(took < PATIENCE / 2, "it took {took:?}");
}

#[test]
fn ranks_of_different_programs_are_told() {
    let (output, _) = ranks(3, "collectives", &["differ"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let found =
        "rank 2 came with a reduction (Reduction { merge: Add, mean: false }) of float64[99]";
    for rank in 0..3 {
        let line = format!("rank {rank}: reduce (group 1, instance 2): {found}");
        assert!(text.contains(&line), "{output:?}");
    }
}

#[test]
fn ranks_do_not_wait_beyond_their_deadline() {
    let (output, took) = ranks(2, "collectives", &["late"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("rank 0: reduce (group 1, instance 2): waited 1"), "{output:?}");
    // The launcher ends the other one, as a rank has gone without the end of MPI.
    assert!(!text.contains("no error"), "{output:?}");
    assert!(took < PATIENCE / 2, "it took {took:?}");
}

#[test]
fn ranks_learn_what_one_learns_with_the_whole_batch() {
    let steps = |n: usize| {
        let (output, _) = ranks(n, "training", &[]);
        assert!(output.status.success(), "{n} ranks: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        assert_eq!(lines.len(), 20 * n);
        // Each line is there once for every rank: weights are the same bit by bit.
        let steps: Vec<String> = lines.chunks(n).map(|ranks| ranks[0].clone()).collect();
        assert!(
            lines.chunks(n).all(|ranks| ranks.iter().all(|line| *line == ranks[0])),
            "{lines:?}"
        );
        let loss = |line: &String| -> f64 {
            let loss = line.split("loss ").nth(1).unwrap().split(',').next().unwrap();
            loss.parse().unwrap()
        };
        steps.iter().map(loss).collect::<Vec<f64>>()
    };
    let alone = steps(1);
    assert!(alone.iter().all(|loss| loss.is_finite()));
    for n in [2, 3] {
        for (loss, expected) in steps(n).iter().zip(&alone) {
            assert!((loss - expected).abs() <= 1.1e-5, "{n} ranks: {loss} instead of {expected}");
        }
    }
}
