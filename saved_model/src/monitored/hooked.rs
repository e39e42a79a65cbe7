//! Runs with hooks: their fetches and feeds are added to those of the caller.

use super::{
    error::MonitoredError,
    hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
};
use crate::{error::Result, session::Session};
use ferroflow_ir::tensor_name;
use ferroflow_runtime::EagerTensor;
use std::collections::HashMap;

/// The hooks of a session, and whether one of them asked to stop.
pub(super) struct Hooks<'h> {
    pub(super) list: Vec<Box<dyn SessionRunHook + 'h>>,
    pub(super) should_stop: bool,
}

impl Hooks<'_> {
    /// Runs with the hooks around.
    pub(super) fn run(
        &mut self,
        session: &Session,
        args: &SessionRunArgs,
    ) -> Result<Vec<EagerTensor>> {
        if self.should_stop {
            return Err(MonitoredError::RunAfterStop.into());
        }
        let mut context = SessionRunContext::new(session, args);
        let mut merged = MergedRun::default();
        let of_caller = merged.add("the caller", args)?;
        let mut of_hooks = Vec::new();
        for (index, hook) in self.list.iter_mut().enumerate() {
            let added = hook.before_run(&mut context)?;
            of_hooks.push(merged.add(&format!("hook {index}"), &added)?);
        }
        let results = merged.run(session)?;
        let select = |indices: &[usize]| -> Vec<EagerTensor> {
            indices.iter().map(|&index| results[index].clone()).collect()
        };
        for (hook, indices) in self.list.iter_mut().zip(&of_hooks) {
            hook.after_run(&mut context, &select(indices))?;
        }
        self.should_stop |= context.stop_requested();
        Ok(select(&of_caller))
    }
}

/// The arguments of a run, of several who ask: each tensor is fetched once.
#[derive(Default)]
struct MergedRun {
    fetches: Vec<String>,
    fetched: HashMap<String, usize>,
    targets: Vec<String>,
    feeds: Vec<(String, EagerTensor)>,
    fed_by: HashMap<(String, u32), String>,
}

impl MergedRun {
    /// Adds arguments; returns which of the results are theirs.
    fn add(&mut self, asker: &str, args: &SessionRunArgs) -> Result<Vec<usize>> {
        for (name, value) in &args.feeds {
            let (node, index) = tensor_name::parse(name);
            let known = self.fed_by.insert((node.into(), index), asker.into());
            if let Some(first) = known.filter(|first| first != asker) {
                let (tensor, second) = (name.clone(), asker.into());
                return Err(MonitoredError::FedTwice { tensor, first, second }.into());
            }
            self.feeds.push((name.clone(), value.clone()));
        }
        let new_targets = args.targets.iter().filter(|target| !self.targets.contains(target));
        let new_targets: Vec<String> = new_targets.cloned().collect();
        self.targets.extend(new_targets);
        Ok(args.fetches.iter().map(|name| self.fetch(name)).collect())
    }

    fn fetch(&mut self, name: &str) -> usize {
        *self.fetched.entry(name.into()).or_insert_with(|| {
            self.fetches.push(name.into());
            self.fetches.len() - 1
        })
    }

    fn run(&self, session: &Session) -> Result<Vec<EagerTensor>> {
        let fetches: Vec<&str> = self.fetches.iter().map(String::as_str).collect();
        let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        let feeds = self.feeds.iter().map(|(name, value)| (name.as_str(), value.clone()));
        session.run(&feeds.collect::<Vec<_>>(), &fetches, &targets)
    }
}
