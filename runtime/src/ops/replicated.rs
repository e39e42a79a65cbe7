//! Calls of a function in each replica of a strategy, from inside a function.

use super::{RuntimeCall, RuntimeOpBody};
use crate::{
    collective::{Replica, Replicas, run_replicas},
    eager_tensor::{EagerTensor, Results},
    error::{Error, Result},
    mirrored::mirror_variables,
    resource::value_type,
    scope::Scope,
    specializations::{CompiledFunctions, Specialization},
};
use ferroflow_ir::{Code, ValueType};
use std::sync::Arc;

/// The levels of depth of one function call.
const CALL_DEPTH: usize = 8;

fn replicated(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let strategy = call.resource::<Replicas>(0, "a strategy")?;
    let functions = call.attrs.funcs("replicas")?;
    let replicas = strategy.for_step();
    let wrong = |message: String| Error::Status { code: Code::FailedPrecondition, message };
    if Replica::current().is_some() {
        return Err(wrong("a replica cannot run replicas of its own".into()));
    }
    if functions.len() != replicas.len() {
        let (expected, found) = (replicas.len(), functions.len());
        return Err(wrong(format!("a strategy of {expected} replicas and {found} functions")));
    }
    let args: Vec<EagerTensor> = call.inputs[1..]
        .iter()
        .map(|input| Ok(input.host()?.clone().into()))
        .collect::<Result<_>>()?;
    let scope = Scope { profile: None, device: None, ..call.scope }.deeper(CALL_DEPTH)?;
    let programs: Vec<Arc<Specialization>> =
        functions.iter().map(|f| program(scope, &f.name, &args)).collect::<Result<_>>()?;
    let n_replicas = replicas.len();
    let step = |number: usize| {
        let _mirrored = mirror_variables(n_replicas);
        programs[number].run(scope, &args)
    };
    let results = run_replicas(replicas, step, |error: &Error| Some(error))?;
    Ok(results.into_iter().flatten().collect())
}

/// The specialization of a function for these arguments.
fn program(scope: Scope<'_>, name: &Arc<str>, args: &[EagerTensor]) -> Result<Arc<Specialization>> {
    let compiled = scope.resources.cache().get::<CompiledFunctions>().of(scope, name);
    if let Some(found) = compiled.on_host(args) {
        return Ok(found);
    }
    let def = scope.library.get(name)?;
    let types: Vec<ValueType> = args.iter().map(value_type).collect();
    let new = Specialization::on_host(scope, &def, types)?;
    compiled.insert(new.clone());
    Ok(new)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[("_ReplicatedCall", replicated)];
