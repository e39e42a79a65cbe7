//! Several processes: a scheduler and executors of Ballista, and runs whose parts they work on.
//!
//! Plans travel with the table of the input and with the function, which is described by the folder
//! of its model. All processes must reach models and input by the same paths; the process of the run
//! writes the output.

mod codec;
mod models;
mod processes;
mod session;

pub use processes::{ExecutorOptions, SchedulerOptions, serve_executor, serve_scheduler};
pub(crate) use session::{is_transient, remote};
