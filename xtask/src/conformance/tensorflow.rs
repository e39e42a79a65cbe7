//! Judgement of TensorFlow about models that are saved here: each model of a zoo, loaded and saved
//! again, and those that the worker writes itself.

use super::{Counts, Outcome, Status, entries};
use crate::{
    command,
    worker::{Reply, Worker, WorkerProgram, on_workers},
};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
    time::Duration,
};

/// The versions that judge: of TensorFlow, and of the ops that tensorflow_text adds to it. That asks for
/// a TensorFlow of another name, and does without.
const TENSORFLOW: &str = "tensorflow-cpu==2.21.0";
const TENSORFLOW_TEXT: &str = "tensorflow-text==2.21.1";

/// Names a Python that has TensorFlow already.
const PYTHON: &str = "FERROFLOW_TENSORFLOW_PYTHON";

/// Longest time in which a model is loaded and saved again.
const PATIENCE: Duration = Duration::from_secs(600);

/// A model that TensorFlow is to judge.
struct Job {
    case: PathBuf,
    model: PathBuf,
}

pub(super) fn run(
    root: &Path,
    program: &WorkerProgram,
    zoo: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let python = python(root)?;
    let folder = target(root).join("tensorflow-models");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let (mut jobs, mut outcomes) = save_zoo(&python, program, zoo, &folder.join("zoo"), wanted)?;
    let written = write_models(program, &folder)?;
    for outcome in written {
        let name = outcome.text("case").to_string();
        if !wanted(&name) {
            continue;
        }
        match outcome.status() {
            Status::Passed => jobs.push(Job {
                case: folder.join("cases").join(&name),
                model: folder.join("models").join(&name),
            }),
            Status::Failed | Status::Unsupported => outcomes.push(outcome),
        }
    }
    outcomes.extend(judge(root, &python, &folder, &jobs)?);
    outcomes.sort_by(|a, b| a.text("case").cmp(b.text("case")));
    for outcome in outcomes.iter().filter(|outcome| outcome.status() != Status::Passed) {
        println!("FAIL         {}: {}", outcome.text("case"), outcome.text("why"));
    }
    Ok(outcomes)
}

/// `tensorflow: P passed, F failed, of N`.
pub(super) fn line(counts: Counts) -> String {
    let Counts { passed, failed, unsupported } = counts;
    let failed = failed + unsupported;
    format!("tensorflow: {passed} passed, {failed} failed, of {}", passed + failed)
}

pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// A Python that has TensorFlow: the one that is named, or one made here.
pub(crate) fn python(root: &Path) -> Result<PathBuf> {
    if let Some(python) = env::var_os(PYTHON) {
        return Ok(python.into());
    }
    let venv = target(root).join("tensorflow-venv");
    let python = venv.join("bin").join("python");
    let marker = venv.join("installed");
    let versions = format!("{TENSORFLOW} {TENSORFLOW_TEXT}");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == versions) {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&venv);
    command::run(make)?;
    for packages in [&[TENSORFLOW][..], &["--no-deps", TENSORFLOW_TEXT]] {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet"]).args(packages);
        command::run(install)?;
    }
    fs::write(marker, versions)?;
    Ok(python)
}

/// Has workers load and save the models and checkpoints of a zoo. A model that cannot be run here may be saved all
/// the same, and is judged then.
fn save_zoo(
    python: &Path,
    program: &WorkerProgram,
    zoo: &Path,
    to: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(Vec<Job>, Vec<Outcome>)> {
    let mut folders = entries(zoo, "", wanted)?;
    folders.retain(|folder| is_judged(python, folder));
    let found = Mutex::new((Vec::new(), Vec::new()));
    on_workers(program, folders, |worker, case| {
        let model = to.join(case.file_name().unwrap_or_default());
        let outcome = save_case(worker, &case, &model)?;
        let mut found = found.lock().expect("no thread panics with the lists");
        match outcome.status() {
            Status::Passed | Status::Unsupported if model.exists() => {
                found.0.push(Job { case, model });
            }
            // A model that must not be loaded was not.
            Status::Passed => {}
            Status::Failed | Status::Unsupported => found.1.push(outcome),
        }
        Ok(())
    })?;
    Ok(found.into_inner().expect("no thread panicked"))
}

/// Whether a case is about a model or a checkpoint, and Python has the library whose ops it needs.
fn is_judged(python: &Path, folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("case.json")).unwrap_or_default();
    let case: Value = serde_json::from_str(&text).unwrap_or_default();
    if !matches!(case["kind"].as_str(), Some("saved_model" | "checkpoint" | "v1_checkpoint")) {
        return false;
    }
    let Some(library) = case["library"].as_str() else { return true };
    let program =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    let found = Command::new(python).args(["-c", program, library]).status();
    let has_library = found.is_ok_and(|status| status.success());
    if !has_library {
        println!("not judged   {}: Python has no {library}", folder.display());
    }
    has_library
}

fn save_case(worker: &mut Worker, case: &Path, model: &Path) -> Result<Outcome> {
    let name = case.file_name().map(|name| name.to_string_lossy().into_owned());
    worker.send(&json!({ "kind": "save", "path": case, "to": model }))?;
    let outcome = match worker.next(PATIENCE)? {
        Reply::Lost(why) => return Ok(Outcome::failed(json!({ "case": name }), &why)),
        Reply::Line(json) => Outcome { json },
    };
    match worker.next(PATIENCE)? {
        Reply::Lost(why) => Ok(Outcome::failed(json!({ "case": name }), &why)),
        Reply::Line(_) => Ok(outcome),
    }
}

/// Has a worker write its own models.
fn write_models(program: &WorkerProgram, folder: &Path) -> Result<Vec<Outcome>> {
    let (cases, models) = (folder.join("cases"), folder.join("models"));
    let mut worker = Worker::new(program);
    worker.send(&json!({ "kind": "models", "path": cases, "to": models }))?;
    let mut outcomes = Vec::new();
    loop {
        match worker.next(PATIENCE)? {
            Reply::Lost(why) => {
                outcomes.push(Outcome::failed(json!({ "case": "models written in Rust" }), &why));
                return Ok(outcomes);
            }
            Reply::Line(line) if line.get("done").is_some() => return Ok(outcomes),
            Reply::Line(json) => outcomes.push(Outcome { json }),
        }
    }
}

/// Has TensorFlow load the models. A model that brings the process down costs that model only.
fn judge(root: &Path, python: &Path, folder: &Path, jobs: &[Job]) -> Result<Vec<Outcome>> {
    let script = root.join("conformance").join("tensorflow").join("judge.py");
    let (list, mut outcomes) = (folder.join("jobs"), Vec::new());
    while outcomes.len() < jobs.len() {
        let mut file = File::create(&list)?;
        for Job { case, model } in &jobs[outcomes.len()..] {
            writeln!(file, "{}", json!({ "case": case, "model": model }))?;
        }
        let mut child = Command::new(python)
            .arg(&script)
            .arg(&list)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let output = child.stdout.take().context("the judge has an output")?;
        for line in BufReader::new(output).lines() {
            let json = serde_json::from_str(&line?).context("the judge answers in JSON")?;
            outcomes.push(Outcome { json });
        }
        let status = child.wait()?;
        if let Some(job) = jobs.get(outcomes.len()) {
            ensure!(!outcomes.is_empty() || !status.success(), "the judge says nothing");
            let name = job.case.file_name().map(|name| name.to_string_lossy().into_owned());
            let why = format!("TensorFlow goes down: {status}");
            outcomes.push(Outcome::failed(json!({ "case": name }), &why));
        }
    }
    Ok(outcomes)
}
