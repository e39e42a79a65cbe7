//! Budgets: bounds on the time, the memory, the loop rounds and the printed text of the calls in
//! progress on a thread.
//!
//! A thread that runs a bounded call has its [`CallBudget`]; threads that help with an op enter it
//! too. Time and cancellation are checked between the actions of a program, at every round of a
//! loop, by ops that wait for other threads, and between the blocks of long kernels ([`tick`]).
//! Memory is charged where blocks of host memory are made, and the charge lives as long as the
//! block.
//!
//! **Invariant:** a value that several threads see is never left half-changed: changes in place run
//! [`masked`], so that no block ends them.

mod account;

use account::ChargePart;
pub use account::{Charge, MemoryAccount};

use crate::{
    clock::Instant,
    error::{Error, Result},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        thread_local,
    },
};
use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
    panic,
    sync::Arc,
};

/// Bounds of one call.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// When the call ends with an error if it has no results by then.
    pub deadline: Option<Instant>,
    /// Ends the call from another thread.
    pub cancellation: Option<Cancellation>,
    /// The number of rounds that all its loops may go, taken together.
    pub loop_rounds: Option<u64>,
    /// The most bytes of host memory that the call may hold at a time: the arena of its program,
    /// workspaces, tensors, and what it puts into tables, queues and lists.
    pub memory: Option<usize>,
    /// The most bytes of text it may print.
    pub printed_bytes: Option<u64>,
}

/// A switch that ends calls. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// A switch that was not used yet.
    pub fn new() -> Cancellation {
        Cancellation::default()
    }

    /// Ends all calls that were passed this switch, now and later.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was used.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A reason why a call ends before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interruption {
    /// The time is over.
    Deadline,
    /// Another thread has cancelled it.
    Cancelled,
    /// Its loops have gone as many rounds as they may.
    LoopRounds,
}

/// The bounds of a call in progress, and what it has used of them.
#[derive(Debug)]
pub struct CallBudget {
    options: CallOptions,
    /// The budget of the call around this one, which goes on to hold.
    outer: Option<Arc<CallBudget>>,
    account: Option<Arc<MemoryAccount>>,
    rounds: AtomicU64,
    printed: AtomicU64,
}

impl CallBudget {
    /// The budget of a call that begins on this thread, within that of the call around it and
    /// within a memory that several calls share.
    pub fn new(options: CallOptions, shared: Option<&Arc<MemoryAccount>>) -> Arc<CallBudget> {
        let outer = current();
        let mut parents: Vec<Arc<MemoryAccount>> =
            outer.iter().filter_map(|outer| outer.account.clone()).collect();
        if let Some(shared) = shared
            && !parents.iter().any(|parent| parent.includes(shared))
        {
            parents.push(shared.clone());
        }
        let account = match (options.memory, &parents[..]) {
            (None, []) => None,
            (None, [only]) => Some(only.clone()),
            (limit, _) => {
                let limit = limit.unwrap_or(usize::MAX);
                Some(Arc::new(MemoryAccount::of_call(limit, parents)))
            }
        };
        let (rounds, printed) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(CallBudget { options, outer, account, rounds, printed })
    }

    /// Makes this the budget of the thread, until what is returned is dropped.
    pub fn enter(self: Arc<CallBudget>) -> Entered {
        Entered::change(BoundState::Bounded, Some(self))
    }

    fn chain(&self) -> impl Iterator<Item = &CallBudget> {
        std::iter::successors(Some(self), |budget| budget.outer.as_deref())
    }

    fn interruption(&self) -> Option<Interruption> {
        self.chain().find_map(|budget| {
            let options = &budget.options;
            if options.cancellation.as_ref().is_some_and(Cancellation::is_cancelled) {
                return Some(Interruption::Cancelled);
            }
            let is_late = options.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            is_late.then_some(Interruption::Deadline)
        })
    }

    fn take_round(&self) -> Result<(), Interruption> {
        let is_over = |budget: &CallBudget| {
            let before = budget.rounds.fetch_add(1, Ordering::Relaxed);
            budget.options.loop_rounds.is_some_and(|most| before >= most)
        };
        match self.chain().any(is_over) {
            true => Err(Interruption::LoopRounds),
            false => self.interruption().map_or(Ok(()), Err),
        }
    }

    fn print(&self, bytes: u64) -> Result<()> {
        for budget in self.chain() {
            let needed = budget.printed.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
            if let Some(limit) = budget.options.printed_bytes.filter(|&limit| needed > limit) {
                let (what, needed) = ("the text that the call prints".into(), needed.to_string());
                return Err(Error::Limit { what, needed: format!("{needed} bytes"), limit });
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundState {
    /// No call is bounded.
    Unbounded,
    /// A call is bounded.
    Bounded,
    /// A bounded call makes a change that nothing may end half-way.
    Masked,
}

thread_local! {
    /// Apart from the budget, as every allocation looks at it.
    static STATE: Cell<BoundState> = const { Cell::new(BoundState::Unbounded) };
    static CURRENT: RefCell<Option<Arc<CallBudget>>> = const { RefCell::new(None) };
}

/// The time that a thread has a budget; it ends when this is dropped.
#[derive(Debug)]
pub struct Entered {
    state: BoundState,
    budget: Option<Arc<CallBudget>>,
    /// It is about this thread.
    thread: PhantomData<*const ()>,
}

impl Entered {
    fn change(state: BoundState, budget: Option<Arc<CallBudget>>) -> Entered {
        let budget = CURRENT.with(|current| current.replace(budget));
        Entered { state: STATE.with(|cell| cell.replace(state)), budget, thread: PhantomData }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        STATE.with(|cell| cell.set(self.state));
        let before = self.budget.take();
        // A thread that is ending has no budget any more.
        let _ = CURRENT.try_with(|current| current.replace(before));
    }
}

/// Whether a call in progress on this thread is bounded.
#[inline]
pub fn is_bounded() -> bool {
    STATE.with(Cell::get) != BoundState::Unbounded
}

/// The budget of the thread.
#[inline]
pub fn current() -> Option<Arc<CallBudget>> {
    if is_bounded() { CURRENT.with(|current| current.borrow().clone()) } else { None }
}

fn look<R>(look: impl FnOnce(&CallBudget) -> R) -> Option<R> {
    CURRENT.with(|current| current.borrow().as_deref().map(look))
}

/// The bounds of a thread, to be entered by others that help it.
#[derive(Debug, Clone)]
pub struct SharedBounds(Option<(BoundState, Arc<CallBudget>)>);

impl SharedBounds {
    /// The bounds of this thread.
    #[inline]
    pub fn of_thread() -> SharedBounds {
        SharedBounds(current().map(|budget| (STATE.with(Cell::get), budget)))
    }

    /// Whether there are none.
    #[inline]
    pub fn is_unbounded(&self) -> bool {
        self.0.is_none()
    }

    /// Makes them the bounds of this thread, until what is returned is dropped.
    pub fn enter(&self) -> Option<Entered> {
        self.0.as_ref().map(|(state, budget)| Entered::change(*state, Some(budget.clone())))
    }
}

/// Runs a change that no block may end half-way: [`tick`] does nothing in it.
#[inline]
pub fn masked<R>(change: impl FnOnce() -> R) -> R {
    let _entered = match STATE.with(Cell::get) {
        BoundState::Unbounded | BoundState::Masked => None,
        BoundState::Bounded => Some(Entered::change(BoundState::Masked, current())),
    };
    change()
}

/// Checks time and cancellation.
///
/// # Errors
///
/// The reason why the call ends.
#[inline]
pub fn check() -> Result<(), Interruption> {
    match is_bounded() {
        true => look(CallBudget::interruption).flatten().map_or(Ok(()), Err),
        false => Ok(()),
    }
}

/// Notes a round of a loop.
///
/// # Errors
///
/// The reason why the call ends.
#[inline]
pub fn take_round() -> Result<(), Interruption> {
    match is_bounded() {
        true => look(CallBudget::take_round).unwrap_or(Ok(())),
        false => Ok(()),
    }
}

/// Notes so many bytes of text that are to be printed.
///
/// # Errors
///
/// [`Error::Limit`] when the call may not print them.
pub fn print(bytes: usize) -> Result<()> {
    match is_bounded() {
        true => look(|budget| budget.print(bytes as u64)).unwrap_or(Ok(())),
        false => Ok(()),
    }
}

/// Ends the call in progress by unwinding, if it is over. Long kernels call this between blocks of
/// work that take some milliseconds at most; the payload is an [`Interruption`], which the boundary
/// of the call turns into an error. Where panics abort, kernels that have begun run to their end.
#[inline]
pub fn tick() {
    if STATE.with(Cell::get) == BoundState::Bounded && cfg!(panic = "unwind") {
        unwind();
    }
}

/// Sorts items in ascending order; equal ones may be swapped. It ends as by [`tick`].
pub fn sort_unstable<T: Ord>(items: &mut [T]) {
    if !is_bounded() {
        return items.sort_unstable();
    }
    items.sort_unstable_by(ticking());
}

/// Puts the item of a position of the sorted order there, and smaller ones before it. It ends as by
/// [`tick`].
pub fn select_nth_unstable<T: Ord>(items: &mut [T], position: usize) {
    match is_bounded() {
        false => {
            items.select_nth_unstable(position);
        }
        true => {
            items.select_nth_unstable_by(position, ticking());
        }
    }
}

/// A comparison that ticks now and then.
fn ticking<T: Ord>() -> impl FnMut(&T, &T) -> std::cmp::Ordering {
    let mut n_compared = 0u32;
    move |a, b| {
        n_compared = n_compared.wrapping_add(1);
        if n_compared.is_multiple_of(1 << 12) {
            tick();
        }
        a.cmp(b)
    }
}

/// Ends the call in progress by unwinding with an error, from code that has no way to return one: the boundary of the
/// call returns it. Where panics abort, the process ends.
#[cold]
pub fn end_with(error: Error) -> ! {
    panic::resume_unwind(Box::new(error))
}

#[cold]
fn unwind() {
    if let Err(interruption) = check() {
        panic::resume_unwind(Box::new(interruption));
    }
}

/// Charges so many bytes to the budget of the thread, until what is returned is dropped.
///
/// # Errors
///
/// [`Error::Limit`] when they exceed a budget.
#[inline]
pub fn charge(bytes: usize) -> Result<Option<Charge>> {
    if is_bounded() { charge_part(bytes, ChargePart::All) } else { Ok(None) }
}

#[cold]
fn charge_part(bytes: usize, part: ChargePart) -> Result<Option<Charge>> {
    account().map(|account| account.charge(bytes, part)).transpose()
}

/// Charges bytes that are there already: what comes next fails if they exceed the budget.
#[inline]
pub fn charge_made(bytes: usize) -> Option<Charge> {
    if is_bounded() { account().map(|account| account.charge_made(bytes)) } else { None }
}

/// Charges bytes that other calls will use after this one, as those of arenas: to what calls share.
///
/// # Errors
///
/// [`Error::Limit`] when they exceed a budget that calls share.
#[inline]
pub fn charge_shared(bytes: usize) -> Result<Option<Charge>> {
    if is_bounded() { charge_part(bytes, ChargePart::Shared) } else { Ok(None) }
}

/// Charges bytes to the calls in progress that use them, where they were charged as shared.
///
/// # Errors
///
/// [`Error::Limit`] when they exceed the budget of a call.
#[inline]
pub fn charge_calls(bytes: usize) -> Result<Option<Charge>> {
    if is_bounded() { charge_part(bytes, ChargePart::Calls) } else { Ok(None) }
}

/// Checks that so many bytes are left.
///
/// # Errors
///
/// [`Error::Limit`] when they exceed a budget.
#[inline]
pub fn check_memory(bytes: usize) -> Result<()> {
    charge(bytes).map(drop)
}

fn account() -> Option<Arc<MemoryAccount>> {
    look(|budget| budget.account.clone()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, HostTensor, Shape};

    fn bounded(options: CallOptions) -> Entered {
        CallBudget::new(options, None).enter()
    }

    fn cancelled() -> CallOptions {
        let cancellation = Cancellation::new();
        cancellation.cancel();
        CallOptions { cancellation: Some(cancellation), ..CallOptions::default() }
    }

    #[test]
    fn a_tick_unwinds_with_the_reason_unless_it_is_masked() {
        tick();
        let entered = bounded(cancelled());
        let payload = panic::catch_unwind(tick).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&Interruption::Cancelled));
        masked(tick);
        assert_eq!(masked(check), Err(Interruption::Cancelled));
        drop(entered);
        tick();
    }

    #[test]
    fn inner_budgets_are_within_outer_ones() {
        let _outer = bounded(CallOptions { loop_rounds: Some(2), ..CallOptions::default() });
        let inner = bounded(CallOptions { loop_rounds: Some(9), ..CallOptions::default() });
        assert_eq!([(); 3].map(|()| take_round().is_ok()), [true, true, false]);
        drop(inner);
        assert_eq!(take_round(), Err(Interruption::LoopRounds));
        let _memory = bounded(CallOptions { memory: Some(1000), ..CallOptions::default() });
        let _more = bounded(CallOptions { memory: Some(1 << 30), ..CallOptions::default() });
        assert!(check_memory(1000).is_ok() && check_memory(1001).is_err());
    }

    #[test]
    fn tensors_are_charged_as_long_as_they_live() {
        let shared = Arc::new(MemoryAccount::new("the memory of the context", 1 << 20));
        let options = CallOptions { memory: Some(10_000), ..CallOptions::default() };
        let make = |n: usize| HostTensor::zeros(DType::U8, Shape::new([n]).unwrap());
        let _entered = CallBudget::new(options, Some(&shared)).enter();
        let first = make(8000).unwrap();
        assert!((8000..=9000).contains(&shared.used()), "{}", shared.used());
        let error = make(8000).unwrap_err().to_string();
        assert!(error.starts_with("the memory of the call needs"), "{error}");
        drop(first);
        assert_eq!(shared.used(), 0);
        let second = make(8000).unwrap();
        // The copy is as large as what is there, and what comes next pays for it.
        let mut copy = second.clone();
        copy.bytes_mut()[0] = 1;
        assert!(make(100).is_err());
        let strings = vec![bytes::Bytes::from_static(&[1; 100]); 4];
        let shape = Shape::new([4]).unwrap();
        assert!(HostTensor::from_strings(shape.clone(), strings.clone()).is_err());
        drop((second, copy));
        assert!(HostTensor::from_strings(shape, strings).is_ok());
        assert_eq!(shared.used(), 0);
    }
}
