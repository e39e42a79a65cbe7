//! Malformed files: an error, in bounded memory, with nothing touched outside the model's folder.

use super::{Case, call, guard::Guard};
use crate::outcome::CaseOutcome;
use anyhow::{Result, bail};
use ferroflow::{
    ir::Limits,
    runtime::Context,
    saved_model::{self, bundle::Reader, load},
};

/// The most memory a case may take, in bytes.
const MEMORY: u64 = 1 << 30;

pub(crate) fn run(case: &Case) -> Result<CaseOutcome> {
    let guard = Guard::new(&case.folder)?;
    let ended = match case.json["target"].as_str() {
        Some("saved_model") => run_model(case)?,
        Some("checkpoint") => read_all(case),
        other => bail!("unknown target {other:?}"),
    };
    let report = guard.finish()?;
    if report.memory > MEMORY {
        return Ok(CaseOutcome::Failed(format!("{} MB of memory were taken", report.memory >> 20)));
    }
    if let Some(name) = report.touched.first() {
        return Ok(CaseOutcome::Failed(format!("`{name}` outside the model's folder was touched")));
    }
    let must_fail = case.json["expect"]["error"].as_bool() == Some(true);
    Ok(match ended {
        // An op that is not there is an error too, but not the one that is asked for.
        Err(error) if must_fail && error.code() == ferroflow::ir::Code::Unimplemented => {
            let about = case.json["about"].as_str().unwrap_or("");
            match about.contains("op that no registry has") {
                true => CaseOutcome::Passed,
                false => CaseOutcome::Unsupported(error.to_string()),
            }
        }
        Ok(()) if must_fail => CaseOutcome::Failed("a result instead of an error".into()),
        _ => CaseOutcome::Passed,
    })
}

fn run_model(case: &Case) -> Result<saved_model::Result<()>> {
    let context = Context::new();
    let model = match load(&context, case.model(), &case.options()) {
        Ok(model) => call::ModelUnderTest::of(model),
        Err(error) => return Ok(Err(error)),
    };
    for call in case.calls() {
        if let Err(error) = call::result(case, &call::CallTarget::Model(&model), call)? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

fn read_all(case: &Case) -> saved_model::Result<()> {
    let prefix = case.folder.join(case.json["prefix"].as_str().unwrap_or(""));
    let reader = Reader::open(prefix, &Limits::default())?;
    let names: Vec<String> = reader.entries().map(|(name, _)| name.to_string()).collect();
    for name in names {
        reader.read(&name)?;
    }
    Ok(())
}
