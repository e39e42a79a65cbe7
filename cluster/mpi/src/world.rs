//! The thread that calls MPI, and how ranks meet before each collective.
//!
//! One thread of the process calls MPI, and owns its communicators; others send it what is to be done. Before a
//! collective, all members wait for each other without blocking: a member that waits too long, or learns that a rank
//! has left, gives up. When all have come, they compare digests of what they are about to do, and then the collective itself
//! blocks.
//!
//! **Invariant:** after a member has given up, nothing is called on any communicator any more, because
//! collectives of the others would meet the wrong ones of this rank.

use crate::error::{Error, Result};
use ferroflow_runtime::{
    Error as RuntimeError, Result as RuntimeResult,
    collective::{CollectiveCall, CollectiveError, GroupKey},
};
use mpi::{
    Rank, Threading,
    collective::SystemOperation,
    environment::Universe,
    topology::{Color, SimpleCommunicator},
    traits::{Communicator, CommunicatorCollectives, Destination, Source},
};
use siphasher::sip::SipHasher13;
use std::{
    collections::HashMap,
    fmt,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// The time between two checks whether a waiting call is to end.
const NAP: Duration = Duration::from_millis(5);

/// The tag of the message of a rank that leaves.
const LEFT: i32 = 1;

/// The time in which a meeting ends that a rank has come to before it left.
const GRACE: Duration = Duration::from_millis(500);

/// Bytes of what a member says it is about to do.
const DESCRIPTION: usize = 256;

/// This process in a communicator, by its number among those of the thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    pub(crate) communicator: usize,
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

/// Work of the thread.
type Job = Box<dyn FnOnce(&mut Ranks) + Send>;

/// The way to the thread that calls MPI.
pub(crate) struct World {
    jobs: Option<Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

/// The call that a member is about to make with the others.
#[derive(Debug, Clone)]
pub(crate) struct Meeting {
    /// Text that must be the same for all members.
    pub(crate) what: String,
    /// Whether the call sends, where one of the members does and the others take.
    pub(crate) sends: bool,
}

impl World {
    /// Starts MPI and the thread that calls it.
    pub(crate) fn start() -> Result<(World, Member)> {
        let (started, start) = channel();
        let (jobs, queue) = channel::<Job>();
        let thread = thread::Builder::new().name("ferroflow-mpi".into()).spawn(move || {
            let Some(mut ranks) = Ranks::initialize() else { return };
            if started.send(ranks.member(0)).is_ok() {
                ranks.work(&queue);
            }
            ranks.end();
        })?;
        match start.recv() {
            Ok(member) => Ok((World { jobs: Some(jobs), thread: Some(thread) }, member)),
            Err(_) => Err(Error::Initialized),
        }
    }

    /// Meets the other members of a communicator, and runs `body` on it when all have come: with the rank of the member that
    /// sends, if one does.
    pub(crate) fn together<R: Send + 'static>(
        &self,
        call: &CollectiveCall<'_>,
        group: GroupKey,
        member: Member,
        meeting: Meeting,
        body: impl FnOnce(&mut Ranks, &SimpleCommunicator, Option<usize>) -> RuntimeResult<R>
        + Send
        + 'static,
    ) -> RuntimeResult<R> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let (answers, answer) = channel();
        let (name, abandons) = (call.name(group), abandoned.clone());
        let job: Job = Box::new(move |ranks: &mut Ranks| {
            let outcome = ranks.meet(member, &meeting, &abandons).map_err(|fault| match fault {
                Fault::Out(reason) => CollectiveError::Aborted { reason },
                Fault::Left(rank) => CollectiveError::Unavailable {
                    call: name,
                    member: format!("rank {rank}"),
                    reason: "it has left".into(),
                },
                Fault::Differs { rank, found, expected } => CollectiveError::Mismatch {
                    call: name,
                    member: format!("rank {rank}"),
                    expected,
                    found,
                },
            });
            let outcome = outcome.map_err(RuntimeError::from).and_then(|sender| {
                // Shared, so that `body` may make other communicators.
                let communicator = ranks.communicators[&member.communicator].clone();
                body(ranks, &communicator, sender)
            });
            // Whoever has given up does not wait for it.
            drop(answers.send(outcome));
        });
        let ended = || CollectiveError::Aborted { reason: Error::Ended.to_string() };
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).map_err(|_| ended())?;
        loop {
            match answer.recv_timeout(NAP) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(ended().into()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(error) = still(call, group) {
                abandoned.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
}

/// Fails when a call is to end.
fn still(call: &CollectiveCall<'_>, group: GroupKey) -> RuntimeResult<()> {
    (call.check)()?;
    if call.left() != Some(Duration::ZERO) {
        return Ok(());
    }
    let waited_ms = call.begun.elapsed().as_millis() as u64;
    let (call, missing) = (call.name(group), vec!["other ranks".into()]);
    Err(CollectiveError::Deadline { call, waited_ms, missing }.into())
}

impl World {
    /// Frees a communicator after its last call.
    pub(crate) fn release(&self, member: Member) {
        let job: Job = Box::new(move |ranks: &mut Ranks| {
            ranks.communicators.remove(&member.communicator);
        });
        if let Some(jobs) = &self.jobs {
            // A thread that has ended holds no communicators.
            drop(jobs.send(job));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the call that it happened in.
            drop(thread.join());
        }
    }
}

/// Why members do not compute together.
#[derive(Debug)]
enum Fault {
    /// This rank is out of step with the others.
    Out(String),
    Left(usize),
    Differs {
        rank: usize,
        expected: String,
        found: String,
    },
}

/// MPI, on the side of the thread that calls it.
pub(crate) struct Ranks {
    /// Where ranks say that they leave.
    control: SimpleCommunicator,
    /// Number 0 is that of all ranks.
    communicators: HashMap<usize, Rc<SimpleCommunicator>>,
    /// The number of the next one.
    next: usize,
    /// Why nothing can be called any more.
    out: Option<String>,
    /// Ends MPI, after its communicators.
    universe: Universe,
}

impl Ranks {
    fn initialize() -> Option<Ranks> {
        let (universe, _) = mpi::initialize_with_threading(Threading::Serialized)?;
        let (control, all) = (universe.world().duplicate(), universe.world().duplicate());
        let communicators = HashMap::from([(0, Rc::new(all))]);
        Some(Ranks { control, communicators, next: 1, out: None, universe })
    }

    fn work(&mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            job(self);
        }
    }

    fn member(&self, number: usize) -> Member {
        let own = &self.communicators[&number];
        Member { communicator: number, rank: own.rank() as usize, size: own.size() as usize }
    }

    /// The ranks of a communicator that ask for the same key.
    pub(crate) fn split(&mut self, from: &SimpleCommunicator, key: GroupKey) -> Option<Member> {
        // Colours are not negative.
        let split = from.split_by_color(Color::with_value(key & i32::MAX))?;
        let number = self.next;
        self.next += 1;
        self.communicators.insert(number, Rc::new(split));
        Some(self.member(number))
    }

    /// Meets the other members of a communicator: the rank of the one that sends, if one does.
    fn meet(
        &mut self,
        member: Member,
        meeting: &Meeting,
        abandoned: &AtomicBool,
    ) -> Result<Option<usize>, Fault> {
        if let Some(reason) = &self.out {
            return Err(Fault::Out(reason.clone()));
        }
        let communicator = self.communicators[&member.communicator].clone();
        self.assemble(&communicator, abandoned)?;
        let digest = SipHasher13::new().hash(meeting.what.as_bytes());
        let sender =
            if meeting.sends { [member.rank as u64, !(member.rank as u64)] } else { [0; 2] };
        // Largest and least of each, which are the same if all members agree.
        let own = [digest, !digest, u64::from(meeting.sends), sender[0], sender[1]];
        let mut all = [0; 5];
        communicator.all_reduce_into(&own[..], &mut all[..], SystemOperation::max());
        if all[0] != digest || all[1] != !digest {
            return Err(self.differing(&communicator, &meeting.what));
        }
        if all[2] == 0 {
            return Ok(None);
        }
        if all[3] != !all[4] {
            let (expected, found) = ("one member that sends".into(), "several".into());
            self.out = Some("several members send".into());
            return Err(Fault::Differs { rank: all[3] as usize, expected, found });
        }
        Ok(Some(all[3] as usize))
    }

    /// Waits until all members have come, one has left, or the call is abandoned.
    fn assemble(
        &mut self,
        communicator: &SimpleCommunicator,
        abandoned: &AtomicBool,
    ) -> Result<(), Fault> {
        let mut request = communicator.immediate_barrier();
        let mut seen = None;
        loop {
            match request.test() {
                Ok(_) => return Ok(()),
                Err(pending) => request = pending,
            }
            seen = seen.or_else(|| self.left().map(|rank| (rank, Instant::now())));
            let left = seen.filter(|(_, since)| since.elapsed() > GRACE).map(|(rank, _)| rank);
            let reason = match left {
                Some(rank) => format!("rank {rank} has left"),
                None if abandoned.load(Ordering::Relaxed) => "a call has been given up".into(),
                None => {
                    thread::yield_now();
                    continue;
                }
            };
            // It cannot be cancelled, and may not be dropped.
            std::mem::forget(request);
            self.out = Some(reason.clone());
            return Err(left.map_or(Fault::Out(reason), Fault::Left));
        }
    }

    /// The first member that is about to do something else than the first.
    fn differing(&mut self, communicator: &SimpleCommunicator, what: &str) -> Fault {
        let mut own = [0u8; DESCRIPTION];
        let len = what.len().min(DESCRIPTION);
        own[..len].copy_from_slice(&what.as_bytes()[..len]);
        let mut all = vec![0u8; DESCRIPTION * communicator.size() as usize];
        communicator.all_gather_into(&own[..], &mut all[..]);
        self.out = Some("ranks have called different collectives".into());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_string();
        let (first, rest) = all.split_at(DESCRIPTION);
        let differs = rest.chunks(DESCRIPTION).position(|other| other != first);
        let rank = differs.map_or(0, |index| index + 1);
        let found = text(&all[rank * DESCRIPTION..][..DESCRIPTION]);
        Fault::Differs { rank, expected: text(first), found }
    }

    /// A rank that has left.
    fn left(&self) -> Option<usize> {
        let status = self.control.any_process().immediate_probe_with_tag(LEFT)?;
        Some(status.source_rank() as usize)
    }

    /// Tells the others that this rank leaves, and waits for all of them to do so.
    fn end(self) {
        let (own, size) = (self.control.rank(), self.control.size());
        let others = || (0..size).filter(|&rank| rank != own);
        others()
            .for_each(|rank: Rank| self.control.process_at_rank(rank).send_with_tag(&0u8, LEFT));
        if self.out.is_some() {
            // Requests that nobody answers any more: MPI could not end. The launcher ends the job.
            std::mem::forget(self.universe);
            return;
        }
        for rank in others() {
            let _: (u8, _) = self.control.process_at_rank(rank).receive_with_tag(LEFT);
        }
    }
}
