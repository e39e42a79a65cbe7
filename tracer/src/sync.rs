//! Locks of state that threads share: `parking_lot`'s, or the model checker's in a build with `--cfg shuttle`
//! (see `ferroflow_ir`'s module of this name).

#[cfg(shuttle)]
pub(crate) use {
    ferroflow_ir::sync::{Mutex, ReentrantMutex, RwLock},
    shuttle::thread_local,
};
#[cfg(not(shuttle))]
pub(crate) use {
    parking_lot::{Mutex, ReentrantMutex, RwLock},
    std::thread_local,
};
