//! Calls of a case, in order, on one loaded model.

use super::{Case, value};
use crate::{compare::Tolerance, outcome::CaseOutcome};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::DType,
    runtime::EagerTensor,
    saved_model::{self, PythonValue, SavedModel, Session, load_session},
};
use std::{cell::OnceCell, collections::BTreeMap, sync::Arc};

/// Target of a call.
pub(crate) enum CallTarget<'a> {
    Model(&'a ModelUnderTest),
    Graph(&'a Session),
}

/// A model as TensorFlow 2 loads it and, once asked for, the session its graph runs in: two loads
/// with variables of their own, as they had when the answers were recorded.
pub(crate) struct ModelUnderTest {
    pub(crate) model: SavedModel,
    session: OnceCell<Arc<Session>>,
}

impl ModelUnderTest {
    pub(crate) fn of(model: SavedModel) -> ModelUnderTest {
        ModelUnderTest { model, session: OnceCell::new() }
    }

    /// A model whose every call runs in one session.
    pub(crate) fn of_session(session: Session) -> ModelUnderTest {
        let session = Arc::new(session);
        let model = SavedModel::Session(Arc::clone(&session));
        ModelUnderTest { model, session: OnceCell::from(session) }
    }

    fn session(&self, case: &Case) -> saved_model::Result<Arc<Session>> {
        if let Some(session) = self.session.get() {
            return Ok(Arc::clone(session));
        }
        let session = load_session(&crate::device::context(), case.model(), &case.options())?;
        Ok(Arc::clone(self.session.get_or_init(|| Arc::new(session))))
    }
}

/// Makes the calls up to the first whose result is not the recorded one.
pub(crate) fn run_all(case: &Case, target: &CallTarget<'_>) -> Result<CaseOutcome> {
    for (number, call) in case.calls().iter().enumerate() {
        let name = call["path"].as_str().unwrap_or("");
        let name = format!("call {number} {} `{name}`", call["kind"].as_str().unwrap_or(""));
        match run(case, target, call)? {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed(why) => return Ok(CaseOutcome::Failed(format!("{name}: {why}"))),
            CaseOutcome::Unsupported(why) => {
                return Ok(CaseOutcome::Unsupported(format!("{name}: {why}")));
            }
        }
    }
    Ok(CaseOutcome::Passed)
}

fn run(case: &Case, target: &CallTarget<'_>, call: &serde_json::Value) -> Result<CaseOutcome> {
    if let (Some("gradient"), CallTarget::Model(loaded)) = (call["kind"].as_str(), target) {
        return super::gradient::run(case, loaded, call);
    }
    let found = result(case, target, call)?;
    let expected = &call["expect"];
    let must_fail = expected.get("error").filter(|error| !error.is_null());
    Ok(match (found, must_fail) {
        (Err(error), Some(_)) if error.code() != ferroflow::ir::Code::Unimplemented => {
            CaseOutcome::Passed
        }
        (Err(error), _) => CaseOutcome::of_error(error.code(), error.to_string()),
        (Ok(_), Some(error)) if crate::device::goes_on_in_spite_of(error) => CaseOutcome::Passed,
        (Ok(_), Some(error)) => CaseOutcome::Failed(format!("a result instead of {error}")),
        (Ok(_), None) if expected.is_null() => CaseOutcome::Passed,
        (Ok(found), None) => check(case, call, &found),
    })
}

/// Compares a result with the recorded one.
pub(super) fn check(case: &Case, call: &serde_json::Value, found: &PythonValue) -> CaseOutcome {
    let number = |key: &str| call[key].as_f64().unwrap_or(1e-5);
    let tolerance = Tolerance { rtol: number("rtol"), atol: number("atol") };
    match value::check(found, &call["expect"], &case.folder, tolerance) {
        Ok(()) => CaseOutcome::Passed,
        Err(error) => CaseOutcome::Failed(format!("{error:#}")),
    }
}

/// Result of a call.
pub(crate) fn result(
    case: &Case,
    target: &CallTarget<'_>,
    call: &serde_json::Value,
) -> Result<saved_model::Result<PythonValue>> {
    let path = call["path"].as_str().unwrap_or("");
    let kwargs = values(case, &call["kwargs"])?;
    let loaded = match target {
        CallTarget::Model(loaded) => loaded,
        CallTarget::Graph(session) => return graph_run(session, case, call),
    };
    let model = &loaded.model;
    let root = || model.root().context("a model with objects");
    let object =
        |path: &str| -> Result<_> { Ok(root()?.get(if path == "__call__" { "" } else { path })) };
    Ok(match call["kind"].as_str() {
        Some("signature") => {
            let specs = model.signature_inputs(path).unwrap_or_default();
            let mut inputs = BTreeMap::new();
            for (name, value) in kwargs {
                let spec = specs.iter().find(|(input, _)| *input == name);
                let dtype = spec.map_or(DType::F32, |(_, spec)| spec.dtype);
                let tensor = value.to_tensor(dtype).context("an input of a signature")?;
                inputs.insert(name, tensor);
            }
            model.call_signature(path, &inputs).map(dict)
        }
        Some("function") => {
            let args: Vec<PythonValue> = list(case, &call["args"])?;
            object(path)?.and_then(|object| object.function()?.call(&args, &kwargs))
        }
        Some("variable") => {
            object(path)?.and_then(|object| Ok(PythonValue::from(object.tensor()?)))
        }
        Some("assign") => {
            let args = list(case, &call["args"])?;
            let value = args.first().and_then(PythonValue::tensor).context("a value to assign")?;
            let value = value.host()?.clone();
            object(path)?.and_then(|object| {
                let variable = object.variable().ok_or(saved_model::Error::NotATensor {
                    found: "an object that is no variable",
                })?;
                variable.assign(value)?;
                Ok(PythonValue::None)
            })
        }
        Some("graph_run") => match loaded.session(case) {
            Ok(session) => graph_run(&session, case, call)?,
            Err(error) => Err(error),
        },
        other => bail!("unknown kind of call {other:?}"),
    })
}

fn graph_run(
    session: &Session,
    case: &Case,
    call: &serde_json::Value,
) -> Result<saved_model::Result<PythonValue>> {
    let feeds = values(case, &call["feeds"])?;
    let mut fed = Vec::with_capacity(feeds.len());
    for (name, value) in &feeds {
        fed.push((name.as_str(), value.tensor().context("feeds are tensors")?.clone()));
    }
    let names = |key: &str| -> Vec<&str> {
        let list = call[key].as_array().map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(serde_json::Value::as_str).collect()
    };
    let fetches = names("fetches");
    let results = session.run(&fed, &fetches, &names("targets"));
    let by_name = |results: Vec<EagerTensor>| {
        dict(fetches.iter().map(|name| name.to_string()).zip(results).collect())
    };
    Ok(results.map(by_name))
}

fn dict(tensors: BTreeMap<String, EagerTensor>) -> PythonValue {
    PythonValue::Dict(tensors.into_iter().map(|(name, tensor)| (name, tensor.into())).collect())
}

fn values(case: &Case, fields: &serde_json::Value) -> Result<BTreeMap<String, PythonValue>> {
    let Some(fields) = fields.as_object() else { return Ok(BTreeMap::new()) };
    let each = fields.iter().map(|(name, value)| {
        let value = value::argument(value, &case.folder).with_context(|| format!("`{name}`"))?;
        Ok((name.clone(), value))
    });
    each.collect()
}

pub(super) fn list(case: &Case, values: &serde_json::Value) -> Result<Vec<PythonValue>> {
    let values = values.as_array().map_or(&[][..], Vec::as_slice);
    values.iter().map(|value| value::argument(value, &case.folder)).collect()
}
