//! The replica that a thread runs: its rank, and the engine by which it meets the others.
//!
//! A thread-local of this crate, as collective ops ask for it in eager calls, compiled programs and
//! loaded functions alike. Everything a call does runs on the thread of the call, so that is enough.

use super::Engine;
use crate::sync::thread_local;
use ferroflow_ir::Mesh;
use std::{
    cell::RefCell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    thread,
};

thread_local! {
    /// The innermost is last; `None` is code outside replicas, inside one.
    static STACK: RefCell<Vec<Option<Replica>>> = const { RefCell::new(Vec::new()) };
}

/// A copy of a program that runs beside others.
#[derive(Clone)]
pub struct Replica {
    /// The number of its component of mirrored variables in this process.
    pub component: usize,
    /// The number of replicas in this process.
    pub n_components: usize,
    /// The device it runs on.
    pub device: Arc<str>,
    /// By what it meets the others.
    pub engine: Arc<dyn Engine>,
    /// The key of its next collective; replicas count alike, as they run the same program.
    pub next_key: Arc<AtomicI32>,
    /// The mesh whose device of number `component` it runs on, if it runs the program of one.
    pub mesh: Option<Mesh>,
    /// Whether it steps variables, with values that are the same in all replicas.
    pub is_updating: bool,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<replica {} of {} on {}>", self.engine.rank(), self.engine.size(), self.device)
    }
}

impl Replica {
    /// The replica of this thread.
    pub fn current() -> Option<Replica> {
        STACK.with(|stack| stack.borrow().last().cloned().flatten())
    }

    /// The result of `look` for the replica of this thread.
    pub fn with_current<R>(look: impl FnOnce(&Replica) -> R) -> Option<R> {
        STACK.with(|stack| stack.borrow().last().and_then(Option::as_ref).map(look))
    }

    /// The key of a collective of the group of all replicas.
    pub fn take_key(&self) -> i32 {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs `body` as the part of this thread's replica that steps variables.
    pub fn updating<R>(body: impl FnOnce() -> R) -> R {
        let Some(replica) = Replica::current() else { return body() };
        STACK.with(|stack| stack.borrow_mut().push(Some(Replica { is_updating: true, ..replica })));
        let _guard = Pushed;
        body()
    }

    /// Runs `body` as if this thread ran no replica.
    pub fn outside<R>(body: impl FnOnce() -> R) -> R {
        STACK.with(|stack| stack.borrow_mut().push(None));
        let _guard = Pushed;
        body()
    }

    /// Makes this thread run the replica until the guard is dropped; the others then learn that it
    /// will not come any more.
    pub fn enter(self) -> ReplicaGuard {
        STACK.with(|stack| stack.borrow_mut().push(Some(self.clone())));
        ReplicaGuard { replica: self, _pushed: Pushed }
    }
}

/// An entry of the stack, which is popped when this is dropped.
#[derive(Debug)]
struct Pushed;

impl Drop for Pushed {
    fn drop(&mut self) {
        STACK.with(|stack| stack.borrow_mut().pop());
    }
}

/// Ends a replica when it is dropped.
#[derive(Debug)]
pub struct ReplicaGuard {
    replica: Replica,
    _pushed: Pushed,
}

impl Drop for ReplicaGuard {
    fn drop(&mut self) {
        self.replica.engine.leave(if thread::panicking() { "it panicked" } else { "it has ended" });
    }
}
