//! Monitored sessions: the training loop of TensorFlow 1, with initialisation, recovery and hooks.
//!
//! ```
//! use ferroflow_ir::{Attrs, DType, HostTensor, PartialShape, build::GraphBuilder};
//! use ferroflow_runtime::Context;
//! use ferroflow_saved_model::{
//!     convert::graph_message,
//!     monitored::{
//!         CheckpointSaverHook, ChiefSessionCreator, HookInterval, MonitoredSession, Scaffold,
//!         StopAtStepHook,
//!     },
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! // A graph of TensorFlow 1, which would be read: `Scaffold::read("model.ckpt-0.meta")`.
//! let mut graph = GraphBuilder::new();
//! let attrs = Attrs::new()
//!     .with("dtype", DType::I64)
//!     .with("shape", PartialShape::scalar())
//!     .with("shared_name", "global_step");
//! let step = graph.call_with("VarHandleOp", "global_step", attrs, &[])?[0];
//! let zero = graph.constant("zero", HostTensor::scalar(0i64))?;
//! graph.call("AssignVariableOp", "init", &[step, zero])?;
//! let one = graph.constant("one", HostTensor::scalar(1i64))?;
//! graph.call("AssignAddVariableOp", "train", &[step, one])?;
//! let graph = graph_message(graph.graph(), &Default::default())?;
//!
//! let mut scaffold = Scaffold::of_graph_def(graph);
//! scaffold.init_op = vec!["init".into()];
//! let stop = StopAtStepHook::last_step(&scaffold, 10)?;
//! let save = CheckpointSaverHook::new(&scaffold, folder, HookInterval::Steps(4))?;
//! let chief = ChiefSessionCreator::new(&Context::new(), scaffold).checkpoint_dir(folder);
//! let session = MonitoredSession::new(chief, vec![Box::new(save), Box::new(stop)])?;
//! session.run_until_stop(|session| session.run(&[], &[], &["train"]).map(drop))?;
//!
//! let newest = ferroflow_saved_model::latest_checkpoint(folder)?;
//! assert_eq!(newest, Some(folder.join("model.ckpt-10")));
//! # Ok(())
//! # }
//! ```
//!
//! # The life of a session
//!
//! 1. A [`Scaffold`] is a graph with the names of its pieces: initialisers, checks of readiness,
//!    saver, summaries, global step. They come from the collections of a MetaGraph
//!    (`collections.rs`).
//! 2. [`MonitoredSession::new`] calls `begin` of each hook, has a [`SessionCreator`] make a
//!    session, and calls `after_create_session`. A [`ChiefSessionCreator`] restores the newest
//!    checkpoint or runs the initialisers, then those of local variables, then checks that all have
//!    values; a [`WorkerSessionCreator`] waits until a chief that shares its resources has done so.
//!    Queue runners begin before the hooks see the session (`queue_runners.rs`).
//! 3. [`MonitoredSession::run`] asks each hook (`before_run`) for fetches and feeds, makes one run
//!    of all (`hooked.rs`), and hands each hook its values (`after_run`).
//! 4. A run that is aborted, or for which something is unavailable, drops the session; a new one is
//!    made as in 2, without `begin`, and the run is tried again.
//! 5. [`MonitoredSession::run_until_stop`] and [`MonitoredSession::close`] call `end` of each hook.
//!
//! Hooks read the global step from the variable before or after a run, not within it. Those that go
//! by seconds ask the [`TimeSource`] of the scaffold.
//!
//! # Differences from TensorFlow
//!
//! - A session is made again 20 times in a row at most ([`MonitoredSession::recovering`]);
//!   TensorFlow sets no bound.
//! - The file `checkpoint` names checkpoints relative to its folder, as TensorFlow's savers do with
//!   `save_relative_paths`.
//! - Hooks of a scaffold that write to one folder share an event file; TensorFlow's share it with
//!   all of the process.
//! - A graph without collections has a saver of all variables, by name, and no ops for it. Ops of
//!   the second format of checkpoints do not run: the saver reads their keys, and writes and reads
//!   the files itself. Those of the first format run where the context grants access to files.
//! - A worker shares the resources of a chief in its process, and makes one session to wait with.
//! - Closing takes the session, so that none runs after it was closed, or is closed twice.
//! - Options and metadata of runs are absent, and with them `ProfilerHook`.

mod collections;
mod creator;
mod error;
mod event_file;
mod global_step;
mod hook;
mod hooked;
mod hooks;
mod kept;
mod queue_runners;
mod readiness;
mod saver;
mod saver_ops;
mod scaffold;
mod session;
mod time;
mod timer;
mod training;

pub use creator::{ChiefSessionCreator, SessionCreator, WorkerSessionCreator};
pub use error::MonitoredError;
pub use event_file::EventFile;
pub use global_step::GlobalStep;
pub use hook::{SessionRunArgs, SessionRunContext, SessionRunHook, hook_error};
pub use hooks::{
    CheckpointSaverHook, CheckpointSaverListener, FeedFnHook, FinalOpsHook, GlobalStepWaiterHook,
    LoggingTensorHook, NanTensorHook, StepCounterHook, StopAtStepHook, SummarySaverHook,
};
pub use readiness::Readiness;
pub use saver::{CheckpointPath, Saver};
pub use scaffold::{InitFn, Scaffold};
pub use session::{MonitoredSession, StepContext};
pub use time::{ManualTimeSource, SystemTimeSource, TimeSource};
pub use timer::{HookInterval, SecondOrStepTimer, SinceTrigger};
pub use training::{MonitoredTrainingOptions, monitored_training_session};
