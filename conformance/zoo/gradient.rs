//! Gradients of loaded functions, first and second.

use super::{
    Case,
    call::{ModelUnderTest, check, list},
};
use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result};
use ferroflow::{
    Tensor, Variable, loaded_function,
    saved_model::{Object, PythonValue},
    tracer::GradientTape,
};

/// The gradients of the sum of all results of a function by its arguments (none by integers), then by the variables
/// that the call names; if it says `"order": 2`, those of the sum of the gradients by the
/// arguments.
pub(super) fn run(
    case: &Case,
    loaded: &ModelUnderTest,
    call: &serde_json::Value,
) -> Result<CaseOutcome> {
    let root = loaded.model.root().context("a model with objects")?;
    Ok(match gradients(case, &root, call) {
        Ok(found) => check(case, call, &found),
        Err(error) => CaseOutcome::Failed(format!("{error:#}")),
    })
}

fn gradients(case: &Case, root: &Object, call: &serde_json::Value) -> Result<PythonValue> {
    let path = call["path"].as_str().context("the path of a function")?;
    let traces = root.get(path)?.function()?;
    let function = loaded_function(traces.traces().first().context("a trace")?)?;
    let mut args = Vec::new();
    for value in list(case, &call["args"])? {
        args.push(Tensor::from(value.tensor().context("an argument is a tensor")?.clone()));
    }
    let names = call["variables"].as_array().map_or(&[][..], Vec::as_slice);
    let mut variables = Vec::new();
    for name in names.iter().filter_map(serde_json::Value::as_str) {
        let variable = root.get(name)?.variable().context("a variable")?.clone();
        variables.push(Variable::from(variable));
    }
    let tapes = [GradientTape::persistent(), GradientTape::persistent()];
    let watched: Vec<Tensor> = args.iter().filter(|x| is_watched(x)).cloned().collect();
    for tape in &tapes {
        tape.watch(&watched)?;
    }
    let mut target = sum(&function.call_flat(&args)?)?;
    if call["order"].as_i64() == Some(2) {
        let mut first = Vec::new();
        for arg in &watched {
            first.extend(tapes[1].gradient(&target, arg)?);
        }
        target = sum(&first)?;
    }
    let mut found = Vec::new();
    for arg in &args {
        found.push(value(tapes[0].gradient(&target, arg)?)?);
    }
    for variable in &variables {
        found.push(value(tapes[0].gradient(&target, variable)?)?);
    }
    Ok(PythonValue::List(found))
}

fn is_watched(arg: &Tensor) -> bool {
    arg.dtype().is_float() || arg.dtype().is_complex()
}

pub(super) fn sum(tensors: &[Tensor]) -> Result<Tensor> {
    let mut sum = Tensor::from(0.0f32);
    for tensor in tensors {
        sum = (sum + tensor.sum_all()?)?;
    }
    Ok(sum)
}

fn value(gradient: Option<Tensor>) -> Result<PythonValue> {
    Ok(match gradient {
        Some(gradient) => gradient.eager()?.clone().into(),
        None => PythonValue::None,
    })
}
