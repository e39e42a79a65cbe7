//! Summaries, and the event files they go to.
//!
//! ```
//! use ferroflow::{Tensor, function, summary, tracer::Result};
//!
//! # fn main() -> Result<()> {
//! # let folder = std::env::temp_dir().join(format!("summaries-{}", std::process::id()));
//! let writer = summary::create_file_writer(&folder)?;
//! let step = function(|x: Tensor, step: Tensor| -> Result<Tensor> {
//!     let loss = x.square()?;
//!     summary::scalar("loss", &loss, &step)?;
//!     Ok(loss)
//! });
//! writer.with(|| (0..10i64).try_for_each(|n| step.call((n as f32, n)).map(drop)))?;
//! writer.close()?;
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! What a summary is, and where it goes when functions are traced, is told in
//! [`ferroflow_tracer::summary`].

pub use ferroflow_tracer::summary::{
    graph, histogram, image, record_if, scalar, text, with_writer, write,
};

use ferroflow_runtime::{Resource, ResourceHandle};
use ferroflow_saved_model::{self as saved_model, events};
use ferroflow_tracer::{Result, Tensor, context};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Events kept back until they are written together.
const MAX_QUEUE: usize = 10;

/// Longest time that they are kept back, while others come.
const FLUSH_AFTER: Duration = Duration::from_secs(120);

/// An event file. Dropping the last clone writes what is left.
#[derive(Debug, Clone)]
pub struct SummaryWriter {
    path: PathBuf,
    writer: Arc<events::SummaryWriterResource>,
    handle: Tensor,
}

/// Begins an event file in a folder, which is made if it is missing. The ops that write summaries
/// become known to the context at hand.
///
/// # Errors
///
/// When the file cannot be made.
pub fn create_file_writer(folder: impl AsRef<Path>) -> Result<SummaryWriter> {
    let context = context::context();
    saved_model::add_ops(&context);
    let file = events::EventsWriter::create(folder.as_ref(), ".v2", MAX_QUEUE, FLUSH_AFTER);
    let file = file.map_err(|error| crate::session::of_files(error.into()))?;
    let path = file.path().to_path_buf();
    let writer = Arc::new(events::SummaryWriterResource::new(file));
    let resource: Arc<dyn Resource> = writer.clone();
    let name = path.to_string_lossy().into_owned();
    let handle = ResourceHandle::owning(name, resource).to_tensor().into();
    Ok(SummaryWriter { path, writer, handle })
}

impl SummaryWriter {
    /// Runs `body`, whose summaries go to this file.
    pub fn with<R>(&self, body: impl FnOnce() -> R) -> R {
        with_writer(&self.handle, body)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is waiting.
    ///
    /// # Errors
    ///
    /// When the writer was closed, or the system cannot write.
    pub fn flush(&self) -> Result<()> {
        Ok(self.writer.with(events::EventsWriter::flush)?)
    }

    /// Writes what is waiting and closes the file.
    ///
    /// # Errors
    ///
    /// When the system cannot write.
    pub fn close(&self) -> Result<()> {
        Ok(self.writer.close()?)
    }
}
