//! A clock and a pool of threads for models.

use shuttle::{
    rand::{Rng, thread_rng},
    sync::{Condvar, Mutex},
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    convert::Infallible,
    ops::Sub,
    sync::{Arc, PoisonError},
    time::Duration,
};

/// Threads of the model checker.
pub(crate) mod thread {
    pub(crate) use shuttle::thread::*;
    use std::{io, num::NonZeroUsize};

    /// The number of processors of the model.
    pub(crate) fn available_parallelism() -> io::Result<NonZeroUsize> {
        const { Ok(NonZeroUsize::new(3).expect("not zero")) }
    }
}

/// Steps of the clock: some shorter and some longer than each duration that the pool measures.
const STEPS: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(5),
    Duration::from_micros(150),
    Duration::from_millis(20),
];

std::thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A moment. Between two of them the clock takes a step of random length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Instant {
        let step = STEPS[thread_rng().gen_range(0..STEPS.len())];
        NOW.set(NOW.get() + step);
        Instant(NOW.get())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Instant::now() - self
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Instant) -> Duration {
        self.0 - earlier.0
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, time: Duration) -> Instant {
        Instant(self.0 - time)
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The queues of a pool.
#[derive(Default)]
struct JobQueues {
    shared: VecDeque<Job>,
    /// The jobs of one thread each.
    own: Vec<VecDeque<Job>>,
    is_closed: bool,
}

impl JobQueues {
    fn next(&mut self, index: usize) -> Option<Job> {
        self.own[index].pop_front().or_else(|| self.shared.pop_front())
    }
}

#[derive(Default)]
struct PoolState {
    queues: Mutex<JobQueues>,
    changed: Condvar,
}

impl PoolState {
    fn change<R>(&self, change: impl FnOnce(&mut JobQueues) -> R) -> R {
        let result = change(&mut self.queues.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
        result
    }

    fn work(&self, index: usize) {
        loop {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            let job = loop {
                if let Some(job) = queues.next(index) {
                    break job;
                }
                if queues.is_closed {
                    return;
                }
                queues = self.changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queues);
            job();
        }
    }
}

shuttle::thread_local! {
    /// The pool that this thread is of, and its index there.
    static POOL: RefCell<Option<(Arc<PoolState>, usize)>> = const { RefCell::new(None) };
}

/// A pool of threads. They end after the last job once this is dropped.
pub(crate) struct ThreadPool {
    state: Arc<PoolState>,
    n_threads: usize,
}

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<pool of {} threads>", self.n_threads)
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.state.change(|queues| queues.is_closed = true);
    }
}

impl ThreadPool {
    pub(crate) fn current_num_threads(&self) -> usize {
        self.n_threads
    }

    pub(crate) fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        self.state.change(|queues| queues.shared.push_back(Box::new(job)));
    }

    /// Has each thread run a job; it is told nothing.
    pub(crate) fn spawn_broadcast(&self, job: impl Fn(()) + Send + Sync + 'static) {
        let job = Arc::new(job);
        self.state.change(|queues| {
            for own in &mut queues.own {
                let job = Arc::clone(&job);
                own.push_back(Box::new(move || job(())));
            }
        });
    }
}

/// The index of this thread in its pool.
pub(crate) fn current_thread_index() -> Option<usize> {
    POOL.with(|pool| Some(pool.borrow().as_ref()?.1))
}

/// The outcome of looking for a job.
pub(crate) enum Yield {
    Executed,
    Idle,
}

/// Runs a job of the pool of this thread, or lets other threads run.
pub(crate) fn yield_now() -> Option<Yield> {
    let (state, index) = POOL.with(|pool| pool.borrow().clone())?;
    let job = state.queues.lock().unwrap_or_else(PoisonError::into_inner).next(index);
    match job {
        Some(job) => {
            job();
            Some(Yield::Executed)
        }
        None => {
            shuttle::thread::yield_now();
            Some(Yield::Idle)
        }
    }
}

/// The maker of a pool.
pub(crate) struct ThreadPoolBuilder(usize);

impl ThreadPoolBuilder {
    pub(crate) fn new() -> ThreadPoolBuilder {
        ThreadPoolBuilder(1)
    }

    pub(crate) fn num_threads(self, n: usize) -> ThreadPoolBuilder {
        ThreadPoolBuilder(n)
    }

    pub(crate) fn thread_name(self, _name: impl Fn(usize) -> String) -> ThreadPoolBuilder {
        self
    }

    pub(crate) fn build(self) -> Result<ThreadPool, Infallible> {
        let state = Arc::new(PoolState::default());
        state.change(|queues| queues.own.resize_with(self.0, VecDeque::new));
        for index in 0..self.0 {
            let state = Arc::clone(&state);
            shuttle::thread::spawn(move || {
                POOL.with(|pool| pool.replace(Some((Arc::clone(&state), index))));
                state.work(index);
            });
        }
        Ok(ThreadPool { state, n_threads: self.0 })
    }
}
