//! Calls of outlined functions, which are compiled for the shapes that they meet.
//!
//! Shapes that are met for the first time run as they come, op by op: those of most data never come
//! again. Once shapes are met again, an executable of their own is worth its compilation.

use super::{RuntimeCall, RuntimeOpBody};
use crate::{
    eager_tensor::{EagerTensor, Results},
    error::Result,
    resource::value_type,
    scope::Scope,
    specializations::{Specialization, Specializations},
    sync::Mutex,
};
use ferroflow_ir::{FunctionDef, ValueType, hash::FastHasher, pass::outline::OutlinedFunction};
use std::{collections::HashMap, hash::Hasher, sync::Arc};

/// Number of meetings after which shapes have an executable. Tests meet most shapes once.
const MEETINGS: usize = if cfg!(debug_assertions) { 1 } else { 2 };

/// The most shapes that are counted at a time.
const MAX_COUNTED: usize = 1024;

/// The executables of an outlined function.
struct OutlinedExecutables {
    /// The one for all shapes.
    general: Mutex<Option<Arc<Specialization>>>,
    specializations: Specializations,
    /// Number of meetings of shapes that have no executable, by their hash.
    meetings: Mutex<HashMap<u64, usize>>,
}

impl OutlinedExecutables {
    fn of(function: &OutlinedFunction, scope: Scope<'_>) -> Arc<OutlinedExecutables> {
        let new = || {
            Arc::new(OutlinedExecutables {
                general: Mutex::default(),
                specializations: Specializations::new(scope.context.specializations()),
                meetings: Mutex::default(),
            }) as _
        };
        let compiled = function.compiled.get_or_init(new).clone();
        compiled.downcast().expect("nothing else is kept with outlined functions")
    }

    /// Whether shapes are met often enough for an executable of their own.
    fn meet(&self, args: &[EagerTensor]) -> bool {
        let mut meetings = self.meetings.lock();
        if meetings.len() >= MAX_COUNTED {
            meetings.clear();
        }
        let hash = hash(args);
        let n = meetings.entry(hash).or_default();
        *n += 1;
        let enough = *n >= MEETINGS;
        if enough {
            meetings.remove(&hash);
        }
        enough
    }

    fn general(&self, scope: Scope<'_>, def: &FunctionDef) -> Result<Arc<Specialization>> {
        let mut general = self.general.lock();
        if let Some(general) = &*general {
            return Ok(general.clone());
        }
        let types = (0..def.args.len()).map(|index| def.arg_type(index).clone());
        let new = Specialization::on_host(scope, def, types.collect())?;
        Ok(general.insert(new).clone())
    }
}

fn hash(args: &[EagerTensor]) -> u64 {
    let mut hasher = FastHasher::default();
    for arg in args {
        hasher.write_u64(arg.shape().rank() as u64);
        arg.shape().iter().for_each(|&dim| hasher.write_u64(dim as u64));
    }
    hasher.finish()
}

fn run(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let function = OutlinedFunction::of(call.attrs)?;
    let executables = OutlinedExecutables::of(function, call.scope);
    let (scope, args) = (call.scope, &call.inputs[..]);
    let found = executables.specializations.on_host(args);
    let results = match found {
        Some(found) => found.run(scope, args)?,
        None if executables.meet(args) => {
            let types: Vec<ValueType> = args.iter().map(value_type).collect();
            let new = Specialization::on_host(scope, &function.def, types)?;
            executables.specializations.insert(new.clone());
            new.run(scope, args)?
        }
        None => executables.general(scope, &function.def)?.run(scope, args)?,
    };
    Ok(results.into_iter().collect())
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[("_Outlined", run)];
