//! The programs in TensorFlow's own documents, a module for each document, written in Rust as one writes
//! them first: with the results that the documents promise.

mod analyzing_functions;
mod analyzing_functions_digest;
mod functions_guide;
mod functions_not_sessions;
mod saving_and_loading;

use std::error::Error;

/// Result of a program of a document, with the error of any crate.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;
