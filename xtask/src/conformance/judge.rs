//! Judgement of others about what is written here: what workers save of the cases of a zoo is handed to a
//! program in Python.

use super::{Outcome, Status, entries};
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

/// Longest time in which a model is loaded and saved again.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);

/// A model that is judged.
pub(super) struct JudgedModel {
    pub(super) case: PathBuf,
    pub(super) model: PathBuf,
}

/// The folder of what is built.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The Python that an environment variable names, or one that is made.
pub(super) fn python(variable: &str, make: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    env::var_os(variable).map_or_else(make, |python| Ok(python.into()))
}

/// A folder below the target folder that is there and empty.
pub(super) fn empty_folder(root: &Path, name: &str) -> Result<PathBuf> {
    let folder = target(root).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The description of a case.
pub(super) fn description(case: &Path) -> Value {
    let text = fs::read_to_string(case.join("case.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A Python below the target folder that has these packages: each group is installed by itself, with the
/// options that come first.
pub(super) fn venv(root: &Path, name: &str, groups: &[&[&str]]) -> Result<PathBuf> {
    let venv = target(root).join(name);
    let python = venv.join("bin").join("python");
    let marker = venv.join("installed");
    let versions: Vec<String> = groups.iter().map(|group| group.join(" ")).collect();
    let versions = versions.join(" ");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == versions) {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(&venv);
    command::run(make)?;
    for packages in groups {
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet"]).args(*packages);
        command::run(install)?;
    }
    fs::write(marker, versions)?;
    Ok(python)
}

/// The results in the order of the cases, of which those that did not pass are printed.
pub(super) fn sorted(mut outcomes: Vec<Outcome>) -> Vec<Outcome> {
    outcomes.sort_by(|a, b| a.text("case").cmp(b.text("case")));
    for outcome in outcomes.iter().filter(|outcome| outcome.status() != Status::Passed) {
        println!("FAIL         {}: {}", outcome.text("case"), outcome.text("why"));
    }
    outcomes
}

/// Has workers load and save the models and checkpoints of a zoo. A model that cannot be run here may be saved all
/// the same, and is judged then.
pub(super) fn save_zoo(
    program: &WorkerProgram,
    zoo: &Path,
    to: &Path,
    wanted: &dyn Fn(&str) -> bool,
    is_judged: &dyn Fn(&Path) -> bool,
) -> Result<(Vec<JudgedModel>, Vec<Outcome>)> {
    let mut folders = entries(zoo, "", wanted)?;
    folders.retain(|folder| is_judged(folder));
    let found = Mutex::new((Vec::new(), Vec::new()));
    on_workers(program, folders, |worker, case| {
        let model = to.join(case.file_name().unwrap_or_default());
        let outcome = save_case(worker, &case, &model)?;
        let mut found = found.lock().expect("no thread panics with the lists");
        match outcome.status() {
            Status::Passed | Status::Unsupported if model.exists() => {
                found.0.push(JudgedModel { case, model });
            }
            // A model that must not be loaded was not.
            Status::Passed => {}
            Status::Failed | Status::Unsupported => found.1.push(outcome),
        }
        Ok(())
    })?;
    Ok(found.into_inner().expect("no thread panicked"))
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

/// Has a script judge the models. A model that brings the process down costs that model only.
pub(super) fn judge(
    python: &Path,
    script: &Path,
    folder: &Path,
    jobs: &[JudgedModel],
) -> Result<Vec<Outcome>> {
    let (list, mut outcomes) = (folder.join("jobs"), Vec::new());
    while outcomes.len() < jobs.len() {
        let mut file = File::create(&list)?;
        for JudgedModel { case, model } in &jobs[outcomes.len()..] {
            writeln!(file, "{}", json!({ "case": case, "model": model }))?;
        }
        let mut child = Command::new(python)
            .arg(script)
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
            let why = format!("the judge goes down: {status}");
            outcomes.push(Outcome::failed(json!({ "case": name }), &why));
        }
    }
    Ok(outcomes)
}
