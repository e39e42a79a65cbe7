//! The replicas of one process, and a step that all of them run.

use super::{CollectiveError, Engine, GroupKey, Replica, threads_in_groups};
use crate::{
    error::{Error, Result},
    resource::Resource,
};
use ferroflow_ir::{Mesh, budget::SharedBounds};
use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    thread,
};

/// The first key of collectives, as in TensorFlow.
pub(crate) const FIRST_KEY: i32 = 100;

/// The replicas of a strategy in this process.
#[derive(Debug)]
pub struct Replicas {
    devices: Vec<Arc<str>>,
    /// The keys of their next collectives.
    keys: Vec<Arc<AtomicI32>>,
    /// The engine that meets replicas of other processes; threads meet in a table for each step.
    engine: Option<Arc<dyn Engine>>,
    /// The mesh of their devices, if they run its programs.
    mesh: Option<Mesh>,
    /// The groups that are known ahead.
    groups: Vec<(GroupKey, Vec<usize>)>,
}

impl Replicas {
    /// A replica on each of these devices; with an engine, the first of them beside those of other
    /// processes.
    pub fn new(devices: Vec<Arc<str>>, engine: Option<Arc<dyn Engine>>) -> Replicas {
        let keys = devices.iter().map(|_| Arc::new(AtomicI32::new(FIRST_KEY))).collect();
        Replicas { devices, keys, engine, mesh: None, groups: Vec::new() }
    }

    /// A replica on each device of a mesh.
    pub fn of_mesh(mesh: &Mesh) -> Replicas {
        let devices = mesh.devices().iter().map(|device| device.as_str().into()).collect();
        let (groups, mesh) = (mesh.groups(), Some(mesh.clone()));
        Replicas { mesh, groups, ..Replicas::new(devices, None) }
    }

    /// The devices.
    pub fn devices(&self) -> &[Arc<str>] {
        &self.devices
    }

    /// The engine that meets replicas of other processes.
    pub fn engine(&self) -> Option<&Arc<dyn Engine>> {
        self.engine.as_ref()
    }

    /// The key of a collective that the first replica of this process takes part in for all of them.
    pub fn take_key(&self) -> i32 {
        self.keys[0].fetch_add(1, Ordering::Relaxed)
    }

    /// The replicas for one step.
    pub fn for_step(&self) -> Vec<Replica> {
        let devices = &self.devices;
        let engines: Vec<Arc<dyn Engine>> = match &self.engine {
            Some(engine) => vec![engine.clone()],
            None => {
                let name = |(rank, device)| format!("replica {rank} ({device})");
                let names: Vec<String> = devices.iter().enumerate().map(name).collect();
                threads_in_groups(&names, &self.groups)
                    .into_iter()
                    .map(|engine| engine as Arc<dyn Engine>)
                    .collect()
            }
        };
        let replica = |(component, engine): (usize, Arc<dyn Engine>)| Replica {
            component,
            n_components: devices.len(),
            device: devices[component].clone(),
            engine,
            next_key: self.keys[component].clone(),
            mesh: self.mesh.clone(),
            is_updating: false,
        };
        engines.into_iter().take(devices.len()).enumerate().map(replica).collect()
    }
}

impl Resource for Replicas {
    fn kind(&self) -> &'static str {
        "a strategy"
    }
}

/// Runs a step in a thread for each replica, within the bounds of this one. A replica that fails leaves the others, which then do not
/// wait for it.
///
/// # Errors
///
/// The error that is behind the others: the first that does not say that another replica is gone.
pub fn run_replicas<R, E>(
    replicas: Vec<Replica>,
    step: impl Fn(usize) -> Result<R, E> + Sync,
    cause: impl Fn(&E) -> Option<&Error>,
) -> Result<Vec<R>, E>
where
    R: Send,
    E: Send + From<Error> + std::fmt::Display,
{
    let bounds = SharedBounds::of_thread();
    let results: Vec<Result<R, E>> = thread::scope(|scope| {
        let (step, bounds) = (&step, &bounds);
        let start = |(number, replica): (usize, Replica)| {
            scope.spawn(move || {
                let engine = replica.engine.clone();
                let (_replica, _bounds) = (replica.enter(), bounds.enter());
                step(number).inspect_err(|error| engine.leave(&error.to_string()))
            })
        };
        let running: Vec<_> = replicas.into_iter().enumerate().map(start).collect();
        let end = |running: thread::ScopedJoinHandle<'_, Result<R, E>>| {
            running.join().unwrap_or_else(|panic| Err(panicked(&*panic).into()))
        };
        running.into_iter().map(end).collect()
    });
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    let is_cause = |error: &E| !cause(error).is_some_and(is_of_others);
    match errors.iter().position(is_cause) {
        Some(cause) => Err(errors.swap_remove(cause)),
        None => errors.pop().map_or(Ok(values), Err),
    }
}

/// Whether an error says that another replica did not come.
fn is_of_others(error: &Error) -> bool {
    match error {
        Error::Collective(error) => matches!(error, CollectiveError::Unavailable { .. }),
        Error::AtNode { source, .. } | Error::AtCall { source, .. } => is_of_others(source),
        _ => false,
    }
}

/// The error of a replica that panicked.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::Panic { message: format!("a replica panicked: {text}") }
}
