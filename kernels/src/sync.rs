//! Synchronisation of threads that share work: the standard library's and rayon's, or the model checker's
//! in a build with `--cfg shuttle` (see `ferroflow_ir`'s module of this name).
//!
//! A model has a clock that runs by chance, so that each measure of time has each outcome, and a pool of
//! threads with the methods of rayon's that [`Threads`](crate::threads::Threads) uses.

#[cfg(shuttle)]
mod model;

#[cfg(not(shuttle))]
pub(crate) use {
    ferroflow_ir::clock::Instant,
    rayon::{ThreadPool, ThreadPoolBuilder, Yield, current_thread_index, yield_now},
    std::{
        hint,
        sync::{Mutex, atomic},
        thread, thread_local,
    },
};
#[cfg(shuttle)]
pub(crate) use {
    model::{
        Instant, ThreadPool, ThreadPoolBuilder, Yield, current_thread_index, thread, yield_now,
    },
    shuttle::{
        hint,
        sync::{Mutex, atomic},
        thread_local,
    },
};
