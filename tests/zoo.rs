//! The models of `tests/zoo`, through the conformance worker: every answer is TensorFlow's.

use serde_json::{Value, json};
use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

#[test]
fn answers_are_those_of_tensorflow() -> Result<(), Box<dyn Error>> {
    let cases = cases()?;
    assert!(cases.len() > 40, "{} cases", cases.len());
    let (malformed, models): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| {
        case.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"bad_"))
    });
    let mut results = run(&models)?;
    // What a malformed case costs is measured in a process of its own.
    for case in malformed {
        results.extend(run(&[case])?);
    }
    let wrong: Vec<&Value> = results.iter().filter(|result| result["status"] != "pass").collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

fn cases() -> std::io::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/zoo");
    let paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.join("case.json").exists());
    paths.sort();
    Ok(paths)
}

/// One worker for these cases: a result of each.
fn run(cases: &[PathBuf]) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut jobs = worker.stdin.take().ok_or("the worker's input")?;
    for case in cases {
        writeln!(jobs, "{}", json!({ "kind": "zoo", "path": case }))?;
    }
    drop(jobs);
    let mut results = Vec::new();
    for line in BufReader::new(worker.stdout.take().ok_or("the worker's output")?).lines() {
        let line: Value = serde_json::from_str(&line?)?;
        if line.get("status").is_some() {
            results.push(line);
        }
    }
    assert!(worker.wait()?.success(), "the worker died after {:?}", results.last());
    assert_eq!(results.len(), cases.len());
    Ok(results)
}
