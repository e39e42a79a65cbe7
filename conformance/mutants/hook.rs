//! Messages of panics, on any thread, also of those that are caught on their way.

use std::{
    panic,
    sync::{Mutex, PoisonError},
};

static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the messages of panics in place of printing them.
pub(super) fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        let location = info.location().map(|at| format!("{}:{}", at.file(), at.line()));
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let message = format!("{}: {text}", location.unwrap_or_default());
        PANIC.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
    }));
}

/// The message of the first panic since this was last asked.
pub(super) fn taken() -> Option<String> {
    PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}
