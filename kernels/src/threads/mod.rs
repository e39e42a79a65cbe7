//! Intra-op parallelism: splitting one op's work over threads.

#[cfg(all(test, shuttle))]
mod interleavings;
mod joint;
mod recess;

use crate::sync::{
    Instant, Mutex, ThreadPool, ThreadPoolBuilder, Yield,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    current_thread_index, hint, thread, thread_local, yield_now,
};
use ferroflow_ir::budget::{self, SharedBounds};
use joint::Joint;
use recess::Recess;
use smallvec::SmallVec;
use std::{
    cell::Cell,
    num::NonZeroUsize,
    ops::Range,
    sync::{Arc, PoisonError},
    time::Duration,
};

thread_local! {
    /// Whether this thread looks out for work.
    static LOOKS_OUT: Cell<bool> = const { Cell::new(false) };
    /// Whether a call in progress on this thread counts already.
    static IS_CALLING: Cell<bool> = const { Cell::new(false) };
}

/// A pool of threads that share the work of one op: the calling thread and some helpers.
///
/// Work is cut at places that depend on its size alone, so results do not depend on the number of
/// threads. Where several callers are at work at a time, they share the threads: as many callers as
/// there are threads work alone.
#[derive(Debug)]
pub struct Threads {
    helpers: Option<Helpers>,
    count: usize,
}

/// The threads beside the calling one.
///
/// To wake a thread takes longer than many an op. After some work helpers stay awake for a moment,
/// and whoever waits for them does so awake, too, unless there are more threads than processors.
#[derive(Debug)]
struct Helpers {
    pool: ThreadPool,
    /// Time that threads spin before they park.
    patience: Duration,
    /// Whether helpers spin, waiting for work.
    awake: Arc<AtomicBool>,
    /// The number of calls in progress, each on a thread of its own.
    calls: Arc<AtomicUsize>,
    /// Times without helpers, after one has lost its processor.
    recess: Recess,
}

/// A call in progress, which counts until this is dropped.
#[derive(Debug)]
pub struct ActiveCall<'a>(Option<&'a AtomicUsize>);

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        if let Some(calls) = self.0 {
            calls.fetch_sub(1, Ordering::Relaxed);
            IS_CALLING.with(|is_calling| is_calling.set(false));
        }
    }
}

/// Time that threads spin before they park, where there are processors for all.
const PATIENCE: Duration = Duration::from_micros(100);

/// Threads whose shares need no memory of their own.
const FEW: usize = 8;

impl Threads {
    /// A pool of `count` threads, the caller among them. Where the system refuses to start
    /// threads, the caller works alone.
    pub fn new(count: NonZeroUsize) -> Threads {
        let count = count.get();
        let helpers = (count > 1).then(|| {
            ThreadPoolBuilder::new()
                .num_threads(count - 1)
                .thread_name(|index| format!("ferroflow-{index}"))
                .build()
        });
        match helpers {
            Some(Ok(pool)) => Threads { helpers: Some(Helpers::new(pool, count)), count },
            _ => Threads { helpers: None, count: 1 },
        }
    }

    /// The caller alone.
    pub fn single() -> Threads {
        Threads { helpers: None, count: 1 }
    }

    /// A thread per processor.
    pub fn available() -> Threads {
        Threads::new(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// The number of threads, the caller included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Notes that a call of several ops is in progress on this thread: callers at the same time
    /// share the threads. A call within a call counts once.
    pub fn active_call(&self) -> ActiveCall<'_> {
        let helpers = self
            .helpers
            .as_ref()
            .filter(|_| !IS_CALLING.with(|is_calling| is_calling.replace(true)));
        ActiveCall(helpers.map(|team| {
            team.calls.fetch_add(1, Ordering::Relaxed);
            &*team.calls
        }))
    }

    /// Calls `work` once for each item. Between two items the call in progress ends by unwinding, if its
    /// budget is over ([`budget::tick`]).
    ///
    /// Each thread has a share of the items, one after the other: the caller the first. Who has done its own
    /// takes the last ones of the others. So a thread reads of one op what it has written of the op before,
    /// where both go through their elements in the same order, and its cache has it.
    pub fn for_each<I>(&self, items: I, work: impl Fn(I::Item) + Sync)
    where
        I: Iterator + Send,
        I::Item: Send,
    {
        if self.helpers.is_none() {
            return items.for_each(ticking(&work));
        }
        let mut items: Vec<I::Item> = items.collect();
        let n = items.len();
        let n_shares = self.participants(n);
        let mut shares: SmallVec<[_; FEW]> = (1..n_shares)
            .rev()
            .map(|share| items.split_off(share * n / n_shares).into_iter())
            .collect();
        shares.push(items.into_iter());
        self.hand_out(shares.into_iter().rev(), &work);
    }

    /// Cuts `0..len` into ranges of at most `most`, as many for each thread, whose lengths differ by one at most:
    /// threads end at a time, also where a range is a large part of the work. Only for work whose results do not
    /// depend on where it is cut.
    pub(crate) fn even_ranges(
        &self,
        len: usize,
        most: usize,
    ) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let n = len.div_ceil(most.max(1)).next_multiple_of(self.count).min(len);
        (0..n).map(move |index| even_start(index, n, len)..even_start(index + 1, n, len))
    }

    /// The threads that take part in work of so many items.
    fn participants(&self, n_items: usize) -> usize {
        match &self.helpers {
            Some(team) if n_items > 1 && !team.recess.is_on() => {
                let callers = team.calls.load(Ordering::Relaxed).max(1);
                (self.count + 1).saturating_sub(callers).clamp(1, n_items)
            }
            _ => 1,
        }
    }

    /// Hands out the items of all shares to as many threads. It is compiled once for each kind of items,
    /// whatever is done to them.
    fn hand_out<S>(&self, shares: impl ExactSizeIterator<Item = S>, work: &(dyn Fn(S::Item) + Sync))
    where
        S: DoubleEndedIterator + Send,
        S::Item: Send,
    {
        if shares.len() == 1 {
            return shares.for_each(|items| items.for_each(ticking(work)));
        }
        let shares: SmallVec<[Mutex<S>; FEW]> = shares.map(Mutex::new).collect();
        let share = |index: usize| shares[index].lock().unwrap_or_else(PoisonError::into_inner);
        self.repeat(shares.len() - 1, &|own| {
            let mut others = (1..shares.len()).map(|other| (own + other) % shares.len());
            let item = share(own).next();
            let item = item.or_else(|| others.find_map(|other| share(other).next_back()));
            item.map(ticking(work)).is_some()
        });
    }

    /// Has threads call `step` with their number until it returns false: the caller is number 0, the
    /// others are up to `helpers`.
    fn repeat(&self, helpers: usize, step: &(dyn Fn(usize) -> bool + Sync)) {
        let Some(team) = &self.helpers else {
            while step(0) {}
            return;
        };
        let (bounds, caller) = (SharedBounds::of_thread(), thread::current().id());
        let run = || {
            let is_helper = thread::current().id() != caller;
            let _entered = (is_helper && !bounds.is_unbounded()).then(|| bounds.enter());
            let index = if is_helper { current_thread_index().unwrap_or(0) + 1 } else { 0 };
            while step(index % (helpers + 1)) {}
        };
        let mut were_spinning = false;
        let help = Joint::run(&run, team.patience, |joint| {
            for _ in 0..helpers {
                let joint = Arc::clone(joint);
                team.pool.spawn(move || joint.join());
            }
            were_spinning = team.spin();
        });
        if were_spinning {
            team.recess.note(help);
        }
    }

    /// Cuts `data` into pieces of `piece` elements and calls `work` with the position of the
    /// first element and the piece.
    pub fn for_each_piece<T: Send>(
        &self,
        data: &mut [T],
        piece: usize,
        work: impl Fn(usize, &mut [T]) + Sync,
    ) {
        self.pieces(data, piece, &work);
    }

    fn pieces<T: Send>(
        &self,
        data: &mut [T],
        piece: usize,
        work: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        let piece = piece.max(1);
        if data.len() <= piece {
            if !data.is_empty() {
                work(0, data);
            }
            return;
        }
        let (len, n) = (data.len(), data.len().div_ceil(piece));
        let share = n.div_ceil(self.participants(n)) * piece;
        let shares = (0..len).step_by(share).zip(data.chunks_mut(share)).map(|(first, data)| {
            (first..first + data.len()).step_by(piece).zip(data.chunks_mut(piece))
        });
        self.hand_out(shares, &|(first, part)| work(first, part));
    }

    /// As [`for_each_piece`](Threads::for_each_piece), for work that may fail: returns the error of
    /// the first piece that did.
    ///
    /// # Errors
    ///
    /// What `work` gives.
    pub fn try_for_each_piece<T: Send, E: Send>(
        &self,
        data: &mut [T],
        piece: usize,
        work: impl Fn(usize, &mut [T]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let first: Mutex<Option<(usize, E)>> = Mutex::new(None);
        self.pieces(data, piece, &|start, part| {
            if let Err(error) = work(start, part) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.as_ref().is_none_or(|(place, _)| start < *place) {
                    *first = Some((start, error));
                }
            }
        });
        match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    /// Cuts `0..len` into ranges of `piece` and calls `work` with each.
    pub fn for_each_range(&self, len: usize, piece: usize, work: impl Fn(Range<usize>) + Sync) {
        self.ranges(len, piece, &work);
    }

    fn ranges(&self, len: usize, piece: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        let piece = piece.max(1);
        let n = len.div_ceil(piece);
        let share = n.div_ceil(self.participants(n)).max(1);
        let shares = (0..n).step_by(share).map(|first| {
            let of = |index: usize| index * piece..len.min((index + 1) * piece);
            (first..n.min(first + share)).map(of)
        });
        self.hand_out(shares, work);
    }
}

/// Start of range `index` of `n` even ones of `0..len`, also where the product of two sizes overflows.
pub(crate) fn even_start(index: usize, n: usize, len: usize) -> usize {
    (index as u128 * len as u128 / n as u128) as usize
}

/// The work, before which the call in progress ends if its budget is over.
fn ticking<T>(work: &(impl Fn(T) + ?Sized)) -> impl Fn(T) {
    |item| {
        budget::tick();
        work(item);
    }
}

impl Helpers {
    fn new(pool: ThreadPool, count: usize) -> Helpers {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let patience = if count <= processors { PATIENCE } else { Duration::ZERO };
        Helpers {
            pool,
            patience,
            awake: Arc::default(),
            calls: Arc::default(),
            recess: Recess::new(),
        }
    }

    /// Has the helpers look out for work until there was none for a while. Returns whether they did
    /// already.
    fn spin(&self) -> bool {
        if self.patience.is_zero() {
            return false;
        }
        if self.awake.swap(true, Ordering::Relaxed) {
            return true;
        }
        let (patience, awake) = (self.patience, Arc::clone(&self.awake));
        let (calls, count) = (Arc::clone(&self.calls), self.pool.current_num_threads() + 1);
        self.pool.spawn_broadcast(move |_| {
            // Who looks out for work may find this very job, and must not begin again inside.
            if LOOKS_OUT.with(|looks_out| looks_out.replace(true)) {
                return;
            }
            let mut last = Instant::now();
            while last.elapsed() < patience && calls.load(Ordering::Relaxed) < count {
                match yield_now() {
                    Some(Yield::Executed) => last = Instant::now(),
                    _ => hint::spin_loop(),
                }
            }
            LOOKS_OUT.with(|looks_out| looks_out.set(false));
            awake.store(false, Ordering::Relaxed);
        });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_visited_once() {
        for count in 1..4 {
            let threads = Threads::new(NonZeroUsize::new(count).unwrap());
            let mut data = vec![0usize; 1003];
            threads.for_each_piece(&mut data, 100, |start, piece| {
                piece.iter_mut().enumerate().for_each(|(index, cell)| *cell += start + index + 1);
            });
            assert!(data.iter().enumerate().all(|(index, &cell)| cell == index + 1));
            let total = Mutex::new(0);
            threads.for_each_range(10, 3, |range| *total.lock().unwrap() += range.sum::<usize>());
            assert_eq!(total.into_inner().unwrap(), 45);
        }
    }

    #[test]
    fn even_ranges_are_as_many_for_each_thread() {
        for (count, len, most) in
            [(1, 28, 9), (2, 28, 9), (2, 8, 3), (3, 8, 2), (2, 1, 4), (4, 0, 1)]
        {
            let threads = Threads::new(NonZeroUsize::new(count).unwrap());
            let ranges: Vec<Range<usize>> = threads.even_ranges(len, most).collect();
            assert!(ranges.iter().flat_map(Clone::clone).eq(0..len), "{ranges:?}");
            assert!(ranges.iter().all(|range| (1..=most).contains(&range.len())), "{ranges:?}");
            let (short, long) =
                (ranges.iter().map(Range::len).min(), ranges.iter().map(Range::len).max());
            assert!(long <= short.map(|short| short + 1), "{ranges:?}");
            assert!(ranges.len().is_multiple_of(count) || ranges.len() == len, "{ranges:?}");
        }
    }

    #[test]
    fn products_of_sizes_do_not_overflow_in_even_ranges() {
        let n = usize::MAX;
        assert_eq!([0, n / 2, n].map(|index| even_start(index, n, n)), [0, n / 2, n]);
    }

    #[test]
    fn threads_begin_with_their_shares() {
        let threads = Threads::new(NonZeroUsize::new(2).unwrap());
        for _ in 0..200 {
            let firsts: Mutex<Vec<(thread::ThreadId, usize)>> = Mutex::new(Vec::new());
            let note = |range: Range<usize>| {
                let (mut firsts, own) = (firsts.lock().unwrap(), thread::current().id());
                if firsts.iter().all(|(id, _)| *id != own) {
                    firsts.push((own, range.start));
                }
            };
            threads.for_each_range(64, 1, note);
            for (id, first) in firsts.into_inner().unwrap() {
                assert_eq!(first, if id == thread::current().id() { 0 } else { 32 });
            }
        }
    }

    #[test]
    fn threads_serve_several_callers_at_a_time() {
        let threads = Threads::new(NonZeroUsize::new(2).unwrap());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let total = AtomicUsize::new(0);
                        threads.for_each_range(64, 4, |range| {
                            total.fetch_add(range.sum::<usize>(), Ordering::Relaxed);
                        });
                        assert_eq!(total.into_inner(), 63 * 64 / 2);
                    }
                });
            }
        });
    }
}
