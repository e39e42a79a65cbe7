//! Items that are kept, or made before they are asked for.

use super::{DataPipeline, PipelineItems, after};
use crate::data::{Error, Result, prefetch};
use std::sync::{
    Arc, Mutex, PoisonError,
    mpsc::{Receiver, SyncSender, sync_channel},
};
use std::thread::{self, JoinHandle};

impl<T: Send + 'static> DataPipeline<T> {
    /// The items, up to `n` of which are made ahead on a thread of their own.
    pub fn prefetch(&self, n: usize) -> DataPipeline<T> {
        self.then_each(self.len(), 1, move |items| prefetch(items, n))
    }

    /// The items of the first epoch that was gone through to its end, kept in memory: later epochs
    /// have them again, in the same order. What is to differ from epoch to epoch comes after it.
    pub fn cache(&self) -> DataPipeline<T>
    where
        T: Clone + Sync,
    {
        let kept: Arc<Mutex<Option<Arc<[T]>>>> = Arc::default();
        let source = self.clone();
        let begin = move |epoch, n_done| -> PipelineItems<T> {
            let found = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match found {
                Some(items) => DataPipeline::of(items).epoch_from(epoch, n_done),
                None => {
                    let items = source.epoch(epoch);
                    let all = Caching { items, seen: Vec::new(), kept: kept.clone() };
                    after(Box::new(all), n_done)
                }
            }
        };
        DataPipeline::from_position(self.len(), begin)
    }

    /// Results of `f` for each item, as [`try_map`](DataPipeline::try_map), on so many threads. The
    /// order is that of the items. A panic of `f` is one of whoever asks for the next item.
    pub fn map_in_parallel<U, E>(
        &self,
        threads: usize,
        f: impl Fn(T) -> Result<U, E> + Send + Sync + 'static,
    ) -> DataPipeline<U>
    where
        U: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let f = Arc::new(move |item: Result<T>| {
            f(item?).map_err(|error| Error::Function(error.into()))
        });
        self.then_each(self.len(), 1, move |items| Parallel::start(items, threads.max(1), &f))
    }
}

struct Caching<T> {
    items: PipelineItems<T>,
    seen: Vec<T>,
    kept: Arc<Mutex<Option<Arc<[T]>>>>,
}

impl<T: Clone> Iterator for Caching<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let item = self.items.next();
        match &item {
            Some(Ok(item)) => self.seen.push(item.clone()),
            Some(Err(_)) => {}
            None => {
                let all = std::mem::take(&mut self.seen).into();
                self.kept.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(all);
            }
        }
        item
    }
}

/// Threads that take items in turn, and return what becomes of them in turn.
struct Parallel<U> {
    results: Vec<Receiver<Result<U>>>,
    threads: Vec<JoinHandle<()>>,
    /// The thread whose result is next.
    next: usize,
}

/// Items that wait for a thread, and results of one that wait to be taken.
const WAITING: usize = 2;

impl<U: Send + 'static> Parallel<U> {
    fn start<T: Send + 'static, F>(
        items: PipelineItems<T>,
        threads: usize,
        f: &Arc<F>,
    ) -> Parallel<U>
    where
        F: Fn(Result<T>) -> Result<U> + Send + Sync + 'static,
    {
        let (mut inputs, mut results, mut handles) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..threads {
            let (input, taken) = sync_channel::<Result<T>>(WAITING);
            let (sender, result) = sync_channel(WAITING);
            let f = f.clone();
            handles.push(thread::spawn(move || {
                let mut taken = taken.into_iter();
                while let Some(item) = taken.next()
                    && sender.send(f(item)).is_ok()
                {}
            }));
            inputs.push(input);
            results.push(result);
        }
        handles.push(thread::spawn(move || distribute(items, &inputs)));
        Parallel { results, threads: handles, next: 0 }
    }
}

/// Hands items to threads in turn, until there are none or a thread has ended.
fn distribute<T>(items: PipelineItems<T>, inputs: &[SyncSender<Result<T>>]) {
    for (item, input) in items.zip(inputs.iter().cycle()) {
        if input.send(item).is_err() {
            return;
        }
    }
}

impl<U> Parallel<U> {
    /// Waits for the threads; the first panic of one goes on, if that is wanted.
    fn join(&mut self, with_panics: bool) {
        self.results.clear();
        let panics: Vec<_> =
            self.threads.drain(..).filter_map(|thread| thread.join().err()).collect();
        if let Some(panic) = panics.into_iter().next().filter(|_| with_panics) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<U> Iterator for Parallel<U> {
    type Item = Result<U>;

    fn next(&mut self) -> Option<Result<U>> {
        let result = self.results.get(self.next)?.recv().ok();
        match &result {
            Some(_) => self.next = (self.next + 1) % self.results.len(),
            None => self.join(true),
        }
        result
    }
}

impl<U> Drop for Parallel<U> {
    fn drop(&mut self) {
        self.join(false);
    }
}
