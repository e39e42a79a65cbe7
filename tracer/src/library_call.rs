//! Calls of libraries: nodes and errors name the line of the program that called the library.
//!
//! An op tells where it was called. In a layer that is a line of the layer's code, which says little
//! to the program that called the layer; a guard at the door of a library names the caller instead.

use crate::context::{self, LibraryCall};
use ferroflow_ir::error::SourceLocation;
use std::panic::Location;

/// Guard of a call of a library; made by [`library_call`].
#[derive(Debug)]
#[must_use = "the call is over when its guard is dropped"]
pub struct LibraryCallGuard(());

impl Drop for LibraryCallGuard {
    fn drop(&mut self) {
        context::leave_library_call();
    }
}

/// Begins a call of a library: until the guard is dropped, ops that code in `folder` calls are told
/// as called where the function was that calls this one. Code elsewhere, such as a user's own layer
/// inside a network, keeps its lines.
///
/// `folder` is the beginning of the library's paths as [`file!`] returns them. The calling function
/// is marked with `#[track_caller]`.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, library_call};
///
/// #[track_caller]
/// fn dense(x: &Tensor, w: &Tensor) -> Result<Tensor> {
///     let _call = library_call(file!().trim_end_matches("layers.rs"));
///     x.matmul(w)?.relu()
/// }
///
/// let y = dense(&Tensor::from([[1.0f32, 2.0]]), &Tensor::from([[3.0f32], [4.0]]))?;
/// assert_eq!(y.to_vec::<f32>()?, [11.0]);
/// # Ok::<(), ferroflow_tracer::Error>(())
/// ```
#[track_caller]
pub fn library_call(folder: &'static str) -> LibraryCallGuard {
    let location = caller_of(Location::caller());
    // Through a table of methods the caller is not known: the lines of the library are the best.
    let is_known = !location.file().starts_with(folder);
    context::enter_library_call(is_known.then_some(LibraryCall { folder, location }));
    LibraryCallGuard(())
}

/// The line that is told of a call: that of the library's caller, where the library calls.
pub(crate) fn caller_of(location: SourceLocation) -> SourceLocation {
    context::library_caller(location.file()).unwrap_or(location)
}
