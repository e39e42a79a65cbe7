//! Giving objects the values of a checkpoint.

use super::{
    Checkpoint,
    keys::{Stored, attributes},
    prefix_of,
};
use crate::{
    bundle::Reader,
    error::{Error, Result},
    proto::TrackableObjectGraph,
    restore::{OBJECT_GRAPH_KEY, VARIABLE_VALUE, object_graph},
};
use ferroflow_ir::{HostTensor, Limits, PartialShape};
use ferroflow_runtime::{
    Variable,
    trackable::{Kind, ObjectGraph, ObjectNode},
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    path::Path,
    rc::Rc,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A checkpoint whose values objects take over, now or when they appear.
#[derive(Debug)]
pub(crate) struct Restoring {
    reader: Reader,
    /// `None` for a checkpoint that knows variables by their names only.
    stored: Option<TrackableObjectGraph>,
    progress: RefCell<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Stored objects for which there are objects.
    matched: BTreeSet<usize>,
    /// Keys whose values were taken over.
    taken: BTreeSet<String>,
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
        Ok(Restoring { reader, stored, progress: RefCell::default() })
    }

    /// Gives the objects of a graph the values that no object has taken over yet.
    pub(crate) fn run(&self, graph: &ObjectGraph) -> Result<()> {
        let (jobs, matched) = match &self.stored {
            Some(stored) => self.by_structure(graph, stored),
            None => (self.by_name(graph), BTreeSet::new()),
        };
        let mut progress = self.progress.borrow_mut();
        let new: Vec<Job> =
            jobs.into_iter().filter(|job| !progress.taken.contains(&job.key)).collect();
        new.iter().try_for_each(|job| self.check(job))?;
        self.take_over(&new)?;
        progress.matched.extend(matched);
        progress.taken.extend(new.into_iter().map(|job| job.key));
        Ok(())
    }

    /// What belongs to which object, by the names of the edges that lead there.
    fn by_structure(
        &self,
        graph: &ObjectGraph,
        stored: &TrackableObjectGraph,
    ) -> (Vec<Job>, BTreeSet<usize>) {
        let twins = twins(graph, stored);
        let mut jobs = BTreeMap::new();
        for (&id, &twin) in &twins {
            for (name, value) in attributes(&graph.nodes[id]) {
                let attributes = &stored.nodes[twin].attributes;
                if let Some(found) = attributes.iter().find(|found| found.name == name) {
                    let key = found.checkpoint_key.clone();
                    jobs.entry(key.clone()).or_insert(Job { key, value });
                }
            }
        }
        (jobs.into_values().collect(), twins.into_values().collect())
    }

    /// Checkpoints of TensorFlow 1 know variables by their names.
    fn by_name(&self, graph: &ObjectGraph) -> Vec<Job> {
        let named =
            variables(graph).filter(|variable| self.reader.entry(variable.name()).is_some());
        let job = |variable: &Variable| Job {
            key: variable.name().into(),
            value: Stored::Variable(variable.clone()),
        };
        named.map(job).collect()
    }

    fn check(&self, job: &Job) -> Result<()> {
        let Stored::Variable(variable) = &job.value else { return Ok(()) };
        let absent =
            || Error::NoTensor { prefix: self.reader.prefix().into(), key: job.key.clone() };
        let entry = self.reader.entry(&job.key).ok_or_else(absent)?;
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
            let values: Result<Vec<HostTensor>> =
                suffixes.map(|suffix| reader.read(&format!("{}{suffix}", job.key))).collect();
            Ok(saveable.restore(values?)?)
        }
    }
}

fn variables(graph: &ObjectGraph) -> impl Iterator<Item = &Variable> {
    graph.nodes.iter().filter_map(|node| match &node.kind {
        Kind::Variable(variable) => Some(variable),
        _ => None,
    })
}

/// For the objects of a graph the stored ones that the same edges lead to.
fn twins(graph: &ObjectGraph, stored: &TrackableObjectGraph) -> BTreeMap<usize, usize> {
    let mut twins = BTreeMap::new();
    let mut queue = VecDeque::from([(0, 0)]);
    loop {
        while let Some((id, twin)) = queue.pop_front() {
            let Some(node) = stored.nodes.get(twin) else { continue };
            // An object that is stored more than once is restored from the first.
            if twins.contains_key(&id) {
                continue;
            }
            twins.insert(id, twin);
            for (name, child) in &graph.nodes[id].children {
                let stored = node.children.iter().find(|stored| stored.local_name == *name);
                let twin = stored.and_then(|stored| usize::try_from(stored.node_id).ok());
                queue.extend(twin.map(|twin| (*child, twin)));
            }
        }
        queue.extend(slot_twins(graph, stored, &twins));
        if queue.is_empty() {
            return twins;
        }
    }
}

/// Variables that are kept for others are known by those.
fn slot_twins(
    graph: &ObjectGraph,
    stored: &TrackableObjectGraph,
    twins: &BTreeMap<usize, usize>,
) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (&owner, &twin) in twins {
        for slot in &graph.nodes[owner].slots {
            let known = twins.get(&slot.original).filter(|_| !twins.contains_key(&slot.slot));
            let Some(&original) = known else { continue };
            let stored = stored.nodes[twin].slot_variables.iter().find(|stored| {
                stored.slot_name == slot.name
                    && stored.original_variable_node_id as usize == original
            });
            let twin = stored.and_then(|s| usize::try_from(s.slot_variable_node_id).ok());
            found.extend(twin.map(|twin| (slot.slot, twin)));
        }
    }
    found
}

/// What became of a restoration.
#[derive(Debug)]
pub struct RestoreStatus<'c, 'a> {
    checkpoint: &'c Checkpoint<'a>,
    restoring: Rc<Restoring>,
}

impl<'c, 'a> RestoreStatus<'c, 'a> {
    pub(crate) fn new(
        checkpoint: &'c Checkpoint<'a>,
        restoring: Rc<Restoring>,
    ) -> RestoreStatus<'c, 'a> {
        RestoreStatus { checkpoint, restoring }
    }

    /// Checks that every value of the checkpoint found an object, and every object a value.
    ///
    /// # Errors
    ///
    /// [`Error::NotConsumed`] with the values that found none, [`Error::NotRestored`] with the
    /// variables without a value.
    pub fn assert_consumed(self) -> Result<RestoreStatus<'c, 'a>> {
        let status = self.assert_existing_objects_matched()?;
        let unused = status.unused();
        match unused.is_empty() {
            true => Ok(status),
            false => {
                let prefix = status.restoring.reader.prefix().into();
                Err(Error::NotConsumed { prefix, keys: unused })
            }
        }
    }

    /// Checks that every variable found a value; the checkpoint may have more.
    ///
    /// # Errors
    ///
    /// [`Error::NotRestored`] with the variables that found none.
    pub fn assert_existing_objects_matched(self) -> Result<RestoreStatus<'c, 'a>> {
        self.checkpoint.resume()?;
        let graph = self.checkpoint.graph()?;
        let names = self.restoring.missing(&graph);
        if names.is_empty() {
            return Ok(self);
        }
        Err(Error::NotRestored { prefix: self.restoring.reader.prefix().into(), names })
    }

    /// Says that values without objects, and objects without values, are as they should be.
    pub fn expect_partial(self) {}

    /// The keys of the values that no object has taken over.
    pub fn unused(&self) -> Vec<String> {
        let progress = self.restoring.progress.borrow();
        let is_unused = |key: &&str| !progress.taken.contains(*key);
        match &self.restoring.stored {
            Some(stored) => {
                let attributes = stored.nodes.iter().flat_map(|node| &node.attributes);
                let keys = attributes.map(|attribute| attribute.checkpoint_key.as_str());
                keys.filter(is_unused).map(str::to_string).collect()
            }
            None => {
                let keys = self.restoring.reader.entries().map(|(key, _)| key);
                keys.filter(is_unused).map(str::to_string).collect()
            }
        }
    }
}

impl Restoring {
    /// The names of the variables of a graph that the checkpoint has no values for.
    fn missing(&self, graph: &ObjectGraph) -> Vec<String> {
        let counter = graph.nodes[0].child(super::SAVE_COUNTER);
        let has_counter = |stored: &TrackableObjectGraph| {
            let children = stored.nodes.first().map_or(&[][..], |root| &root.children);
            children.iter().any(|child| child.local_name == super::SAVE_COUNTER)
        };
        // Only `save` counts; what `write` or a SavedModel left has no counter to restore.
        let without_counter = !self.stored.as_ref().is_some_and(has_counter);
        let known: HashMap<usize, usize> = match &self.stored {
            Some(stored) => twins(graph, stored).into_iter().collect(),
            None => HashMap::new(),
        };
        let is_missing = |id: usize, node: &ObjectNode, variable: &Variable| {
            if Some(id) == counter && without_counter {
                return false;
            }
            match (&self.stored, known.get(&id)) {
                (Some(stored), Some(&twin)) => {
                    let attributes = &stored.nodes[twin].attributes;
                    !attributes.iter().any(|attribute| attribute.name == VARIABLE_VALUE)
                }
                (Some(_), None) => matches!(node.kind, Kind::Variable(_)),
                (None, _) => self.reader.entry(variable.name()).is_none(),
            }
        };
        let nodes = graph.nodes.iter().enumerate();
        let missing = nodes.filter_map(|(id, node)| match &node.kind {
            Kind::Variable(variable) if is_missing(id, node, variable) => {
                Some(variable.name().to_string())
            }
            _ => None,
        });
        missing.collect()
    }
}
