//! Portable artifacts of StableHLO, with the results and gradients of JAX.

use super::{Case, call, gradient};
use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result};
use ferroflow::{
    Tensor,
    ir::{FunctionLibrary, ValueType},
    runtime::{CallableFunction, EagerTensor},
    saved_model::{
        PythonValue,
        stablehlo::{export::StableHlo, import_artifact},
    },
    tracer::{ConcreteFunction, GradientTape},
};
use std::{path::Path, sync::Arc};

/// The function of a case.
fn load(case: &Case) -> Result<CallableFunction> {
    let bytes = std::fs::read(case.folder.join("program.mlirbc"))?;
    let library = FunctionLibrary::new();
    let def = import_artifact(&bytes, &["CPU"], &library)?;
    let context = crate::device::context();
    let resources = context.resources().clone();
    Ok(CallableFunction::with_captures(&context, def, Arc::new(library), resources, Vec::new()))
}

fn arguments(case: &Case, call: &serde_json::Value) -> Result<Vec<EagerTensor>> {
    let values = call::list(case, &call["args"])?;
    values.iter().map(|value| Ok(value.tensor().context("a tensor")?.clone())).collect()
}

/// Runs the calls of a case: of kind `run` or `gradient`.
pub(super) fn run(case: &Case) -> Result<CaseOutcome> {
    let function = load(case)?;
    for (number, call) in case.calls().iter().enumerate() {
        let args = arguments(case, call)?;
        let found = match call["kind"].as_str() {
            Some("gradient") => gradients(&function, &args),
            _ => function.call(&args).map_err(Into::into),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => return Ok(CaseOutcome::Failed(format!("call {number}: {error:#}"))),
        };
        let found = PythonValue::List(found.into_iter().map(Into::into).collect());
        match call::check(case, call, &found) {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed(why) => {
                return Ok(CaseOutcome::Failed(format!("call {number}: {why}")));
            }
            other => return Ok(other),
        }
    }
    Ok(CaseOutcome::Passed)
}

/// The gradients of the sum of all floating results by the floating arguments.
fn gradients(function: &CallableFunction, args: &[EagerTensor]) -> Result<Vec<EagerTensor>> {
    let function = ConcreteFunction::from_runtime(function)?;
    let args: Vec<Tensor> = args.iter().cloned().map(Tensor::from).collect();
    let by: Vec<Tensor> = args.iter().filter(|arg| arg.dtype().is_float()).cloned().collect();
    let tape = GradientTape::persistent();
    tape.watch(&by)?;
    let results = function.call_flat(&args)?;
    let floating: Vec<Tensor> =
        results.into_iter().filter(|result| result.dtype().is_float()).collect();
    let sum = gradient::sum(&floating)?;
    let mut found = Vec::new();
    for arg in &by {
        let gradient = match tape.gradient(&sum, arg)? {
            Some(gradient) => gradient,
            // JAX's gradients are zeros where nothing depends on an argument.
            None => ferroflow::ops::zeros_like(arg)?,
        };
        found.push(gradient.eager()?.clone());
    }
    Ok(found)
}

/// Writes the function of a case as StableHLO: `program.mlir` and `program.mlirbc` in a folder.
pub(super) fn write(case: &Case, to: &Path) -> Result<CaseOutcome> {
    let function = load(case)?;
    let call = case.calls().first().context("a call")?;
    let types: Vec<ValueType> =
        arguments(case, call)?.iter().map(|arg| ValueType::new(arg.dtype(), arg.shape())).collect();
    let context = crate::device::context();
    let (def, library) = (function.def(), function.library());
    Ok(match StableHlo::of(def, library, &types, &context, context.limits()) {
        Ok(hlo) => {
            std::fs::create_dir_all(to)?;
            std::fs::write(to.join("program.mlir"), hlo.text())?;
            std::fs::write(to.join("program.mlirbc"), hlo.artifact())?;
            CaseOutcome::Passed
        }
        Err(error) => CaseOutcome::Unsupported(error.to_string()),
    })
}
