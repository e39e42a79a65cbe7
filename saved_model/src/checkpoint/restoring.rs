//! Giving objects the values of a checkpoint.

use super::{
    binding::{Bindings, StableName, owners},
    keys::{Stored, attributes},
    prefix_of,
};
use crate::{
    bundle::Reader,
    error::{Error, Result},
    proto::TrackableObjectGraph,
    restore::{OBJECT_GRAPH_KEY, object_graph},
};
use ferroflow_format::Error as FormatError;
use ferroflow_ir::{HostTensor, Limits, PartialShape};
use ferroflow_runtime::{
    self as runtime,
    trackable::{DeferredRestore, ObjectGraph, ObjectKind},
};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// A checkpoint whose values objects take over, now or when they appear.
#[derive(Debug)]
pub(crate) struct Restoring {
    reader: Reader,
    /// `None` for a checkpoint that knows variables by their names only.
    stored: Option<TrackableObjectGraph>,
    progress: Mutex<Progress>,
    /// Whether it is as it should be that some values find no object.
    is_partial: AtomicBool,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    bindings: Bindings,
    /// The attributes of objects that have taken over their values.
    restored: HashMap<StableName, HashSet<String>>,
    /// Keys of values that belong to an object.
    consumed: HashSet<String>,
}

/// A value on its way.
struct Job {
    key: String,
    value: Stored,
}

impl Restoring {
    pub(crate) fn open(path: &Path) -> Result<Restoring> {
        let reader = Reader::open(prefix_of(path)?, &Limits::default())?;
        let stored = match reader.entry(OBJECT_GRAPH_KEY) {
            Some(_) => Some(object_graph(&reader)?),
            None => None,
        };
        let (progress, is_partial) = (Mutex::default(), AtomicBool::new(false));
        Ok(Restoring { reader, stored, progress, is_partial })
    }

    pub(super) fn prefix(&self) -> &Path {
        self.reader.prefix()
    }

    pub(super) fn expect_partial(&self) {
        self.is_partial.store(true, Ordering::Relaxed);
    }

    /// Gives the objects of a graph the values that they have not taken over yet. Values for what
    /// objects make later wait with those.
    pub(crate) fn run(self: &Arc<Self>, graph: &ObjectGraph) -> Result<()> {
        let pairs = self.run_from(graph, 0)?;
        let is_over = self.unused().is_empty();
        for (node, twin) in pairs {
            if let Some(deferral) = &graph.nodes[node].deferral {
                let waiting = || {
                    let restoring = self.clone();
                    Arc::new(Waiting { restoring, twin }) as Arc<dyn DeferredRestore>
                };
                deferral.wait_with((!is_over).then(waiting));
            }
        }
        Ok(())
    }

    /// The same for a graph whose root is bound to a stored object; the pairs of nodes and stored
    /// objects.
    fn run_from(&self, graph: &ObjectGraph, root: usize) -> Result<Vec<(usize, usize)>> {
        let mut progress = self.progress().clone();
        let owners = owners(graph);
        let (jobs, pairs) = match &self.stored {
            Some(stored) => progress.by_structure(graph, &owners, stored, root),
            None => (progress.by_name(graph, &owners, &self.reader), Vec::new()),
        };
        jobs.iter().try_for_each(|job| self.check(job))?;
        self.take_over(&jobs)?;
        *self.progress() = progress;
        Ok(pairs)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, job: &Job) -> Result<()> {
        let entry = |key: String| {
            let absent =
                || FormatError::NoTensor { prefix: self.prefix().into(), key: key.clone() };
            self.reader.entry(&key).ok_or_else(absent)
        };
        let variable = match &job.value {
            Stored::Variable(variable) => variable,
            Stored::Saveable(saveable) => {
                let mut keys = saveable.suffixes().into_iter().map(|s| format!("{}{s}", job.key));
                return Ok(keys.try_for_each(|key| entry(key).map(drop))?);
            }
        };
        let entry = entry(job.key.clone())?;
        let fits = entry.dtype == variable.dtype()
            && PartialShape::from(&entry.shape).is_subtype_of(variable.shape());
        if fits {
            return Ok(());
        }
        let error = ferroflow_runtime::Error::VariableMismatch {
            name: variable.name().into(),
            dtype: variable.dtype(),
            shape: Box::new(variable.shape().clone()),
            found_dtype: entry.dtype,
            found_shape: Box::new(entry.shape.clone()),
        };
        Err(Error::from(error).at_tensor(&job.key))
    }

    /// Reads values on several threads.
    fn take_over(&self, jobs: &[Job]) -> Result<()> {
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let reader = &self.reader;
        let work = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = take_over(reader, job) {
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    failure.get_or_insert(error.at_tensor(&job.key));
                }
            }
        };
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
        std::thread::scope(|scope| {
            (1..n_threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

fn take_over(reader: &Reader, job: &Job) -> Result<()> {
    match &job.value {
        Stored::Variable(variable) => Ok(variable.assign(reader.read(&job.key)?)?),
        Stored::Saveable(saveable) => {
            let suffixes = saveable.suffixes().into_iter();
            let values: Result<Vec<HostTensor>, FormatError> =
                suffixes.map(|suffix| reader.read(&format!("{}{suffix}", job.key))).collect();
            Ok(saveable.restore(values?)?)
        }
    }
}

impl Progress {
    /// The values of objects that stored ones are bound to.
    fn by_structure(
        &mut self,
        graph: &ObjectGraph,
        owners: &[StableName],
        stored: &TrackableObjectGraph,
        root: usize,
    ) -> (Vec<Job>, Vec<(usize, usize)>) {
        let present: HashSet<&StableName> = owners.iter().collect();
        let restored = &self.restored;
        // A part of the objects does not tell which others are gone.
        if root == 0 {
            self.bindings.retain(|owner| present.contains(owner) || restored.contains_key(owner));
        }
        let mut jobs = Vec::new();
        let pairs = self.bindings.extend(graph, owners, stored, root);
        for &(node, twin) in &pairs {
            let (mut names, is_first) =
                (HashSet::new(), !self.restored.contains_key(&owners[node]));
            for (name, value) in attributes(&graph.nodes[node]) {
                let mut found = stored.nodes[twin].attributes.iter();
                let Some(found) = found.find(|found| found.name == name) else { continue };
                let key = found.checkpoint_key.clone();
                self.consumed.insert(key.clone());
                names.insert(name);
                if is_first {
                    jobs.push(Job { key, value });
                }
            }
            if is_first && !names.is_empty() {
                self.restored.insert(owners[node].clone(), names);
            }
        }
        (jobs, pairs)
    }

    /// The values of variables by their names, as checkpoints of TensorFlow 1 have them.
    fn by_name(&mut self, graph: &ObjectGraph, owners: &[StableName], reader: &Reader) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (node, owner) in graph.nodes.iter().zip(owners) {
            let ObjectKind::Variable(variable) = &node.kind else { continue };
            let key = variable.name().to_string();
            if reader.entry(&key).is_none() || self.restored.contains_key(owner) {
                continue;
            }
            let names = attributes(node).into_iter().map(|(name, _)| name).take(1);
            self.restored.insert(owner.clone(), names.collect());
            self.consumed.insert(key.clone());
            jobs.push(Job { key, value: Stored::Variable(variable.clone()) });
        }
        jobs
    }
}

impl Restoring {
    /// The names of the objects of a graph that have state for which the checkpoint has no values.
    pub(super) fn missing(&self, graph: &ObjectGraph) -> Vec<String> {
        let counter = graph.nodes[0].child(super::SAVE_COUNTER);
        let has_counter = |stored: &TrackableObjectGraph| {
            let children = stored.nodes.first().map_or(&[][..], |root| &root.children);
            children.iter().any(|child| child.local_name == super::SAVE_COUNTER)
        };
        // Only `save` counts; what `write` or a SavedModel left has no counter to restore.
        let without_counter = !self.stored.as_ref().is_some_and(has_counter);
        let progress = self.progress();
        let (owners, paths) = (owners(graph), graph.paths());
        let is_restored = |id: usize| {
            let names = progress.restored.get(&owners[id]);
            let has = |name: &String| names.is_some_and(|names| names.contains(name));
            attributes(&graph.nodes[id]).iter().all(|(name, _)| has(name))
        };
        let missing = (0..graph.nodes.len()).filter(|&id| {
            let is_new_counter = Some(id) == counter && without_counter;
            !is_new_counter && !is_restored(id)
        });
        let name = |id: usize| match &graph.nodes[id].kind {
            ObjectKind::Variable(variable) => variable.name().to_string(),
            _ => paths[id].as_ref().map(|path| path.join("/")).unwrap_or_default(),
        };
        missing.map(name).collect()
    }

    /// The keys of the values that belong to no object.
    pub(super) fn unused(&self) -> Vec<String> {
        let progress = self.progress();
        let is_unused = |key: &&str| !progress.consumed.contains(*key);
        match &self.stored {
            Some(stored) => {
                let attributes = stored.nodes.iter().flat_map(|node| &node.attributes);
                let keys = attributes.map(|attribute| attribute.checkpoint_key.as_str());
                keys.filter(is_unused).map(str::to_string).collect()
            }
            None => {
                let keys = self.reader.entries().map(|(key, _)| key);
                keys.filter(is_unused).map(str::to_string).collect()
            }
        }
    }
}

/// Values that wait with an object: those of a stored object and what it leads to.
struct Waiting {
    restoring: Arc<Restoring>,
    twin: usize,
}

impl DeferredRestore for Waiting {
    fn restore(&self, graph: &ObjectGraph) -> runtime::Result<bool> {
        let run = self.restoring.run_from(graph, self.twin);
        run.map_err(|error| runtime::Error::Status {
            code: error.code(),
            message: format!("restoring what an object has made since: {error}"),
        })?;
        Ok(!self.restoring.unused().is_empty())
    }
}

impl Drop for Restoring {
    /// Warns of values that no object has taken over, unless that is as it should be.
    fn drop(&mut self) {
        if self.is_partial.load(Ordering::Relaxed) {
            return;
        }
        let keys = self.unused();
        if !keys.is_empty() {
            tracing::warn!(
                checkpoint = %self.prefix().display(),
                ?keys,
                "no object took over these values; `expect_partial` says that this is as it should be"
            );
        }
    }
}
