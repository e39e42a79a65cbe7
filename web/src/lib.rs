//! SavedModels in a browser.
//!
//! This crate is what JavaScript calls: a [`WebModel`] made of files in memory, [`WebTensor`]s whose elements
//! go in and out as typed arrays, and errors that are exceptions. The ES module in `js/` is what people
//! call; it downloads the files, runs all this in a worker, and gives objects for numbers.
//!
//! # Invariants
//!
//! - **One thread.** A page's module has one; ops compute on it alone, and what would wait for another
//!   thread is an error.
//! - **Every call is bounded.** Loading and running take a deadline and a budget of memory. A panic of a
//!   kernel unwinds and is an error; what cannot unwind, such as a stack that is full, ends the worker.
//!
//! # What is absent on purpose
//!
//! There is no network here and no storage: bytes come from JavaScript.

#![forbid(unsafe_code)]

mod error;
mod limits;
mod model;
mod parts;
mod tensor;

pub use error::WebError;
pub use limits::WebLimits;
pub use model::{WebModel, WebRun, load_model, run_model};
pub use parts::{asset_files, data_files};
pub use tensor::WebTensor;
