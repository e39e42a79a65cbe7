//! Clocks: those of the standard library, and in a browser those of the page.
//!
//! The standard library has no clock on `wasm32-unknown-unknown`: to ask for the time there panics.
//! Deadlines, profiles and logs of these crates take the time from here.

#[cfg(not(target_arch = "wasm32"))]
pub use std::time::{Instant, SystemTime, UNIX_EPOCH};
#[cfg(target_arch = "wasm32")]
pub use web_time::{Instant, SystemTime, UNIX_EPOCH};
