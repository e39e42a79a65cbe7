//! Readers of others, on files that may be damaged.

use super::{Error, Result};
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// An error of whatever reads a file.
pub(super) type ReadFault = Box<dyn std::error::Error + Send + Sync>;

/// Reads a file by code of others, which damaged files may bring to panic.
pub(super) fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, ReadFault>) -> Result<T> {
    let fault = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(fault)) => fault,
        Err(_) => "the file is damaged: its reader fails".into(),
    };
    Err(match fault.downcast::<io::Error>() {
        Ok(source) => Error::Io { path: path.into(), source: *source },
        Err(fault) => Error::Format { path: path.into(), what: fault.to_string() },
    })
}
