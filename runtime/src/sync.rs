//! Locks of state that calls share: `parking_lot`'s, or the model checker's in a build with `--cfg shuttle`
//! (see `ferroflow_ir`'s module of this name). Statics outlive the runs of a model and keep `parking_lot`'s.

#[cfg(shuttle)]
pub(crate) use {
    ferroflow_ir::sync::{Condvar, Mutex, MutexGuard, RwLock},
    shuttle::{sync::atomic, thread_local},
};
#[cfg(not(shuttle))]
pub(crate) use {
    parking_lot::{Condvar, Mutex, MutexGuard, RwLock},
    std::{sync::atomic, thread_local},
};
