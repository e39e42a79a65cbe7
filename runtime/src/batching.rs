//! Batches of what several runs want computed.
//!
//! Source: `batch_kernels.cc` and `batch_resource_base.cc` of TensorFlow.

use crate::{
    budget::{KeptTensors, wait, wait_until},
    error::{Error, Result},
    resource::Resource,
    sync::{Condvar, Mutex, MutexGuard},
};
use ferroflow_ir::{Code, HostTensor, clock::Instant};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// The part of a batch that one run puts in.
#[derive(Debug)]
pub(crate) struct BatchTask {
    pub(crate) id: i64,
    pub(crate) n_rows: usize,
    pub(crate) tensors: Vec<HostTensor>,
}

/// A batch that is being gathered, or was.
#[derive(Debug)]
struct OpenBatch {
    tasks: Vec<KeptTensors<BatchTask>>,
    n_rows: usize,
    deadline: Instant,
}

/// The batches of a queue: the one that runs still join, and those that are complete.
#[derive(Debug, Default)]
pub(crate) struct BatchQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    open: Option<OpenBatch>,
    /// By the number of the run that gets the batch.
    complete: HashMap<i64, Vec<BatchTask>>,
    /// The runs whose batch is complete and goes to another run.
    served: HashSet<i64>,
}

impl QueueState {
    fn complete(&mut self) {
        let Some(batch) = self.open.take() else { return };
        let tasks: Vec<BatchTask> = batch.tasks.into_iter().map(|task| task.value).collect();
        let Some((last, others)) = tasks.split_last() else { return };
        self.served.extend(others.iter().map(|task| task.id));
        self.complete.insert(last.id, tasks);
    }
}

impl QueueState {
    /// Forgets a run that does not wait any more.
    fn forget(&mut self, id: i64) {
        self.complete.remove(&id);
        self.served.remove(&id);
        if let Some(batch) = &mut self.open {
            batch.tasks.retain(|task| task.value.id != id);
            let sizes = batch.tasks.iter().map(|task| task.value.n_rows);
            batch.n_rows = sizes.fold(0, usize::saturating_add);
        }
        // The next run begins a batch with a time of its own.
        self.open.take_if(|batch| batch.tasks.is_empty());
    }
}

impl BatchQueue {
    /// Joins a batch and waits until it is complete: it has `most` rows, its time is over, or the
    /// next run does not fit in. The tasks of the batch for the last run, nothing for others.
    ///
    /// # Errors
    ///
    /// When the budget of the call is over before.
    pub(crate) fn join(
        &self,
        task: BatchTask,
        most: usize,
        time: Duration,
    ) -> Result<Option<Vec<BatchTask>>> {
        let (id, n_rows, n_tensors) = (task.id, task.n_rows, task.tensors.len());
        let task = KeptTensors::new(task, n_tensors)?;
        let mut state = self.state.lock();
        if state.open.as_ref().is_some_and(|batch| batch.n_rows.saturating_add(n_rows) > most) {
            state.complete();
            self.changed.notify_all();
        }
        let deadline = Instant::now() + time;
        let batch =
            state.open.get_or_insert_with(|| OpenBatch { tasks: Vec::new(), n_rows: 0, deadline });
        batch.tasks.push(task);
        batch.n_rows = batch.n_rows.saturating_add(n_rows);
        if batch.n_rows >= most {
            state.complete();
            self.changed.notify_all();
        }
        loop {
            if let Some(tasks) = state.complete.remove(&id) {
                return Ok(Some(tasks));
            }
            if state.served.remove(&id) {
                return Ok(None);
            }
            let deadline = state.open.as_ref().map_or(deadline, |batch| batch.deadline);
            match wait_until(&self.changed, &mut state, deadline) {
                Ok(true) => {}
                Ok(false) => {
                    state.complete();
                    self.changed.notify_all();
                }
                Err(error) => {
                    state.forget(id);
                    return Err(error);
                }
            }
        }
    }
}

/// Rows of batches that wait for their runs.
#[derive(Debug, Default)]
pub(crate) struct UnbatchState {
    state: Mutex<UnbatchQueue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct UnbatchQueue {
    arrived: HashMap<i64, (Instant, KeptTensors<HostTensor>)>,
    waiting: HashSet<i64>,
}

fn twice(what: &str) -> Error {
    let message = format!("{what} with the same number");
    Error::Status { code: Code::AlreadyExists, message }
}

impl UnbatchState {
    /// Hands in the rows of other runs and waits for those of its own.
    ///
    /// # Errors
    ///
    /// A status `DeadlineExceeded` when they do not come in time, `AlreadyExists` when two runs have
    /// one number.
    pub(crate) fn exchange(
        &self,
        id: i64,
        rows: Vec<(i64, HostTensor)>,
        time: Duration,
    ) -> Result<HostTensor> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let deadline = now + time;
        state.arrived.retain(|_, (deadline, _)| *deadline >= now);
        if let Some((_, tensor)) = state.arrived.remove(&id) {
            return Ok(tensor.value);
        }
        if !state.waiting.insert(id) {
            return Err(twice("two runs"));
        }
        let found = state.hand_in(rows, deadline).and_then(|()| {
            self.changed.notify_all();
            self.wait_for(&mut state, id, deadline)
        });
        state.waiting.remove(&id);
        found
    }

    fn wait_for(
        &self,
        state: &mut MutexGuard<'_, UnbatchQueue>,
        id: i64,
        deadline: Instant,
    ) -> Result<HostTensor> {
        loop {
            if let Some((_, tensor)) = state.arrived.remove(&id) {
                return Ok(tensor.value);
            }
            if !wait_until(&self.changed, state, deadline)? {
                let message = "the rows of the batch did not come in time".into();
                return Err(Error::Status { code: Code::DeadlineExceeded, message });
            }
        }
    }
}

impl UnbatchQueue {
    fn hand_in(&mut self, rows: Vec<(i64, HostTensor)>, deadline: Instant) -> Result<()> {
        for (id, tensor) in rows {
            let kept = KeptTensors::new(tensor, 1)?;
            if self.arrived.insert(id, (deadline, kept)).is_some() {
                return Err(twice("rows for two runs"));
            }
        }
        Ok(())
    }
}

/// Gradients of runs that wait for those of the other runs of their batch.
#[derive(Debug, Default)]
pub(crate) struct UnbatchGradState {
    available: Mutex<HashMap<i64, KeptTensors<HostTensor>>>,
    changed: Condvar,
}

impl UnbatchGradState {
    /// Hands in the gradient of a run.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidArgument`] when there is one of this number.
    pub(crate) fn put(&self, id: i64, gradient: HostTensor) -> Result<()> {
        let kept = KeptTensors::new(gradient, 1)?;
        let mut available = self.available.lock();
        if available.contains_key(&id) {
            let message = format!("two runs have the number {id}");
            return Err(Error::Status { code: Code::InvalidArgument, message });
        }
        available.insert(id, kept);
        self.changed.notify_all();
        Ok(())
    }

    /// The gradients of these runs, once all are there.
    ///
    /// # Errors
    ///
    /// When the budget of the call is over before.
    pub(crate) fn take(&self, ids: &[i64]) -> Result<Vec<HostTensor>> {
        let mut available = self.available.lock();
        while ids.iter().any(|id| !available.contains_key(id)) {
            wait(&self.changed, &mut available)?;
        }
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            let gradient = available.remove(id).ok_or_else(|| {
                let message = format!("the batch has run {id} twice");
                Error::Status { code: Code::InvalidArgument, message }
            })?;
            found.push(gradient.value);
        }
        Ok(found)
    }
}

macro_rules! resource {
    ($type:ty, $kind:literal) => {
        impl Resource for $type {
            fn kind(&self) -> &'static str {
                $kind
            }
        }
    };
}

resource!(BatchQueue, "a queue of batches");
resource!(UnbatchState, "rows of batches");
resource!(UnbatchGradState, "gradients of batches");

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn task(id: i64, n_rows: usize) -> BatchTask {
        BatchTask { id, n_rows, tensors: vec![HostTensor::scalar(id)] }
    }

    #[test]
    fn the_last_run_gets_the_batch() {
        let queue = BatchQueue::default();
        let long = Duration::from_secs(600);
        let found = thread::scope(|scope| {
            let runs = [1, 2, 3].map(|id| {
                let queue = &queue;
                scope.spawn(move || queue.join(task(id, 1), 3, long).unwrap())
            });
            runs.map(|run| run.join().unwrap())
        });
        let batches: Vec<usize> = found.iter().flatten().map(Vec::len).collect();
        assert_eq!(batches, [3]);
    }

    #[test]
    fn a_batch_is_complete_when_its_time_is_over_or_the_next_run_does_not_fit() {
        let queue = BatchQueue::default();
        let found = queue.join(task(1, 2), 4, Duration::from_millis(1)).unwrap();
        assert_eq!(found.map(|tasks| tasks.len()), Some(1));
        let found = queue.join(task(2, 4), 4, Duration::from_secs(600)).unwrap();
        assert_eq!(found.map(|tasks| tasks[0].id), Some(2));
    }

    #[test]
    fn rows_go_to_their_runs() {
        let state = UnbatchState::default();
        let rows = |id: i64| (id, HostTensor::scalar(id));
        let long = Duration::from_secs(600);
        assert_eq!(state.exchange(1, vec![rows(1), rows(2)], long).unwrap(), rows(1).1);
        assert_eq!(state.exchange(2, Vec::new(), long).unwrap(), rows(2).1);
        let error = state.exchange(2, Vec::new(), Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
    }

    #[test]
    fn a_run_that_fails_does_not_keep_its_number() {
        let state = UnbatchState::default();
        let short = Duration::from_millis(1);
        let rows = [5, 5].map(|id: i64| (id, HostTensor::scalar(id)));
        let error = state.exchange(1, rows.to_vec(), short).unwrap_err();
        assert_eq!(error.code(), Code::AlreadyExists);
        let error = state.exchange(1, Vec::new(), short).unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
    }
}
