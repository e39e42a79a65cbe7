//! Values and resources of a loaded model: made, filled and restored.

use super::{Live, Model};
use crate::{
    bundle::Reader,
    error::{Error, Result},
    restore::{VARIABLE_VALUE, checkpoint_keys, object_graph},
};
use ferroflow_runtime::{CallableFunction, EagerTensor, ResourceVariable};
use std::{collections::HashMap, sync::OnceLock};

impl Model {
    /// Runs the functions that make resources. One that cannot run here leaves its error where
    /// the resource would be.
    pub(super) fn create_resources(&self) {
        for (id, live) in self.0.live.iter().enumerate() {
            let Live::Resource(handle) = live else { continue };
            let made = self.resource_function(id, "_create_resource").and_then(|create| {
                let results = create.map_or_else(|| Ok(Vec::new()), |create| Ok(create.call(&[])?));
                results.map(|results| results.into_iter().next())
            });
            let made = match made {
                Ok(Some(handle)) => Ok(handle),
                Ok(None) => Err(no_creator(id)),
                Err(error) => Err(error.into_runtime()),
            };
            handle.get_or_init(|| made);
        }
    }

    pub(super) fn resource_function(
        &self,
        id: usize,
        name: &str,
    ) -> Result<Option<CallableFunction>> {
        let child = self.at(id).child(name);
        child.map(|child| child.only_function()).transpose()
    }

    /// Runs the functions that fill resources.
    pub(super) fn initialize(&self) -> Result<()> {
        for (id, live) in self.0.live.iter().enumerate() {
            let Live::Resource(handle) = live else { continue };
            if !matches!(handle.get(), Some(Ok(_))) {
                continue;
            }
            let initialize = self.resource_function(id, "_initialize");
            let initialized = initialize.and_then(|f| Ok(f.map(|f| f.call(&[])).transpose()?));
            tolerate_unimplemented(initialized)?;
        }
        Ok(())
    }

    /// Reads the values of variables and tables from the checkpoint, on several threads.
    pub(super) fn restore(&self) -> Result<()> {
        let state = &*self.0;
        let variables: Vec<(usize, &ResourceVariable)> = state
            .live
            .iter()
            .enumerate()
            .filter_map(|(id, live)| match live {
                Live::Variable(variable) => Some((id, variable)),
                Live::Resource(_) | Live::Plain => None,
            })
            .collect();
        let mut objects = state.objects.iter().zip(&state.kept);
        let has_tables = objects.any(|(object, kept)| *kept && !object.saveable_objects.is_empty());
        if variables.is_empty() && !has_tables {
            return Ok(());
        }
        let reader = Reader::open(state.parts.variables(), state.parts.context.limits())?;
        let stored = object_graph(&reader)?;
        let keys = checkpoint_keys(&state.objects, &stored);
        let mut jobs = Vec::with_capacity(variables.len());
        let mut missing = Vec::new();
        for (id, variable) in variables {
            match keys.get(&id).and_then(|keys| keys.get(VARIABLE_VALUE)) {
                Some(&key) => jobs.push((variable, key)),
                None => missing.push(variable.name().to_string()),
            }
        }
        if !missing.is_empty() {
            return Err(Error::NotRestored { prefix: reader.prefix().into(), names: missing });
        }
        let failure = OnceLock::new();
        state.parts.context.threads().for_each(jobs.into_iter(), |(variable, key)| {
            let restored =
                reader.read(key).map_err(Error::from).and_then(|value| Ok(variable.assign(value)?));
            if let Err(error) = restored {
                failure.get_or_init(|| error);
            }
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        self.restore_tables(&reader, &keys)
    }

    /// Objects that are no variables are restored by functions of their own.
    fn restore_tables(
        &self,
        reader: &Reader,
        keys: &HashMap<usize, HashMap<&str, &str>>,
    ) -> Result<()> {
        for (id, object) in self.0.objects.iter().enumerate().filter(|(id, _)| self.0.kept[*id]) {
            for (name, saveable) in &object.saveable_objects {
                let Some(&key) = keys.get(&id).and_then(|keys| keys.get(name.as_str())) else {
                    continue;
                };
                let parts = reader.entries().map(|(entry, _)| entry);
                let own = parts.filter(|entry| {
                    entry
                        .strip_prefix(key)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                });
                let values: Vec<EagerTensor> =
                    own.map(|entry| Ok(reader.read(entry)?.into())).collect::<Result<_>>()?;
                let restore = self.object(saveable.restore_function)?;
                let restored = restore.only_function().and_then(|f| Ok(f.call(&values)?));
                tolerate_unimplemented(restored)?;
            }
        }
        Ok(())
    }
}

/// Resources that cannot be filled here stay empty; whoever uses it finds that out.
fn tolerate_unimplemented<T>(result: Result<T>) -> Result<()> {
    match result {
        Err(error) if error.code() != ferroflow_ir::Code::Unimplemented => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn no_creator(id: usize) -> ferroflow_runtime::Error {
    let message = format!("resource object {id} has no function that creates it");
    ferroflow_runtime::Error::Status { code: ferroflow_ir::Code::NotFound, message }
}
