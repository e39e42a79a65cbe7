//! Reductions in the background: a program goes on while its gradients travel.
//!
//! An engine between processes has [`CommunicationThreads`], which run what they are sent in this order, so
//! that all members meet in the same one. What has been started is a resource of the program; if the program
//! ends without the result, the reduction ends too.

use super::run::panicked;
use crate::{
    budget::wait,
    error::{Error, Result},
    resource::Resource,
    sync::{Condvar, Mutex},
};
use ferroflow_ir::{
    Code, HostTensor,
    budget::{self, Cancellation, Interruption, SharedBounds},
};
use std::{
    fmt,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{SendError, Sender, channel},
    },
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

/// Threads for collectives of one replica, which start with the first of them and end when this is dropped.
///
/// They take the jobs in turns, and each runs its own one after the other: what runs beside what is the same in
/// all members.
pub struct CommunicationThreads {
    queues: Mutex<JobQueues>,
}

struct JobQueues {
    threads: Vec<Option<Sender<Job>>>,
    /// The thread whose turn it is.
    next: usize,
}

impl fmt::Debug for CommunicationThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<communication threads>")
    }
}

impl CommunicationThreads {
    /// As many threads as reductions may run at a time.
    pub fn new(threads: NonZeroUsize) -> CommunicationThreads {
        let threads = (0..threads.get()).map(|_| None).collect();
        CommunicationThreads { queues: Mutex::new(JobQueues { threads, next: 0 }) }
    }

    fn send(&self, job: Job) -> Result<()> {
        let mut queues = self.queues.lock();
        let turn = queues.next;
        queues.next = (turn + 1) % queues.threads.len();
        let job = match &queues.threads[turn] {
            None => job,
            Some(sender) => match sender.send(job) {
                Ok(()) => return Ok(()),
                Err(SendError(job)) => job,
            },
        };
        let (sender, received) = channel::<Job>();
        let run = move || received.into_iter().for_each(|job| job());
        let spawned = thread::Builder::new().name("collectives".into()).spawn(run);
        let failed = |error: std::io::Error| {
            let message = format!("no thread for collectives can be started: {error}");
            Error::Status { code: Code::ResourceExhausted, message }
        };
        spawned.map_err(failed)?;
        // The thread has just begun to receive.
        let _ = sender.send(job);
        queues.threads[turn] = Some(sender);
        Ok(())
    }
}

/// The result of a job.
#[derive(Debug, Default)]
struct Outcome {
    result: Mutex<Option<Result<HostTensor>>>,
    there: Condvar,
}

/// A reduction that was started.
#[derive(Debug)]
pub(crate) struct PendingReduction {
    outcome: Arc<Outcome>,
    cancellation: Cancellation,
}

impl PendingReduction {
    /// The kind of the resource, for messages.
    pub(crate) const KIND: &'static str = "a reduction that was started";

    /// A complete one.
    pub(crate) fn complete(result: HostTensor) -> PendingReduction {
        let outcome = Outcome { result: Mutex::new(Some(Ok(result))), there: Condvar::new() };
        PendingReduction { outcome: Arc::new(outcome), cancellation: Cancellation::new() }
    }

    /// Has another thread run it within the bounds of this one. What it is passed fails when the program does not
    /// want the result any more.
    ///
    /// # Errors
    ///
    /// [`Error::Status`] when the thread cannot be started.
    pub(crate) fn start(
        threads: &CommunicationThreads,
        reduce: impl FnOnce(&dyn Fn() -> Result<()>) -> Result<HostTensor> + Send + 'static,
    ) -> Result<PendingReduction> {
        let (outcome, cancellation) = (Arc::<Outcome>::default(), Cancellation::new());
        let (bounds, place, cancelled) =
            (SharedBounds::of_thread(), outcome.clone(), cancellation.clone());
        threads.send(Box::new(move || {
            let check = || match cancelled.is_cancelled() {
                true => Err(Interruption::Cancelled.into()),
                false => Ok(budget::check()?),
            };
            let result = catch_unwind(AssertUnwindSafe(|| {
                let _bounds = bounds.enter();
                check().and_then(|()| reduce(&check))
            }));
            let result = result.unwrap_or_else(|panic| Err(panicked(&*panic)));
            *place.result.lock() = Some(result);
            place.there.notify_all();
        }))?;
        Ok(PendingReduction { outcome, cancellation })
    }

    /// Waits for the result.
    ///
    /// # Errors
    ///
    /// Those of the reduction, which a second wait does not see again; [`Error::Interrupted`] when the call is
    /// to end.
    pub(crate) fn wait(&self) -> Result<HostTensor> {
        let mut result = self.outcome.result.lock();
        loop {
            match &*result {
                Some(Ok(tensor)) => return Ok(tensor.clone()),
                Some(Err(_)) => {
                    let again = || {
                        let message = "the reduction has failed before".into();
                        Err(Error::Status { code: Code::Aborted, message })
                    };
                    return result.replace(again()).unwrap_or_else(again);
                }
                None => wait(&self.outcome.there, &mut result)?,
            }
        }
    }
}

impl Drop for PendingReduction {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

impl Resource for PendingReduction {
    fn kind(&self) -> &'static str {
        PendingReduction::KIND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn one_thread() -> CommunicationThreads {
        CommunicationThreads::new(NonZeroUsize::MIN)
    }

    #[test]
    fn reductions_run_in_the_order_of_their_starts() {
        let thread = one_thread();
        let (sender, order) = mpsc::channel();
        let start = |number: i32| {
            let sender = sender.clone();
            PendingReduction::start(&thread, move |_| {
                sender.send(number).unwrap();
                Ok(HostTensor::scalar(number))
            })
        };
        let pending: Vec<PendingReduction> = (0..5).map(|number| start(number).unwrap()).collect();
        for (number, pending) in pending.iter().enumerate().rev() {
            assert_eq!(pending.wait().unwrap().as_scalar::<i32>().unwrap(), number as i32);
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_reduction_that_is_not_waited_for_ends() {
        let thread = one_thread();
        let (sender, steps) = mpsc::channel();
        let pending = PendingReduction::start(&thread, move |check| {
            sender.send("begun").unwrap();
            while check().is_ok() {
                thread::yield_now();
            }
            sender.send("ended").unwrap();
            Ok(HostTensor::scalar(0))
        });
        assert_eq!(steps.recv().unwrap(), "begun");
        drop(pending.unwrap());
        assert_eq!(steps.recv().unwrap(), "ended");
    }

    #[test]
    fn errors_and_panics_come_to_who_waits() {
        let thread = one_thread();
        let panics = PendingReduction::start(&thread, |_| panic!("of the engine")).unwrap();
        let fails =
            PendingReduction::start(&thread, |_| Err(Interruption::Deadline.into())).unwrap();
        let message = |pending: &PendingReduction| pending.wait().unwrap_err().to_string();
        for (pending, expected) in
            [(&panics, "of the engine"), (&fails, "deadline"), (&fails, "before")]
        {
            let message = message(pending);
            assert!(message.contains(expected), "{message}");
        }
    }
}
