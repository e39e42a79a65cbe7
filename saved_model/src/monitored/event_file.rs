//! Event files of a training: hooks that write to one folder share one file.

use crate::{
    error::Result,
    events::EventsWriter,
    proto::{MetaGraphDef, SessionLog, Summary, event::What, session_log::SessionStatus, summary},
};
use prost::Message;
use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Events that a file keeps back until they are written together, as in TensorFlow.
const MAX_QUEUE: usize = 10;

/// Longest time that they are kept back, while others come.
const FLUSH_AFTER: Duration = Duration::from_secs(120);

/// The event files of a training, by folder.
#[derive(Debug, Default)]
pub(super) struct EventFiles(Mutex<BTreeMap<PathBuf, Arc<EventFile>>>);

impl EventFiles {
    pub(super) fn of_folder(&self, folder: &Path) -> Arc<EventFile> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(EventFile { folder: folder.into(), state: Mutex::default() });
        files.entry(folder.into()).or_insert_with(new).clone()
    }
}

/// Event file that is begun when the first event comes.
#[derive(Debug)]
pub struct EventFile {
    folder: PathBuf,
    state: Mutex<EventFileState>,
}

#[derive(Debug, Default)]
struct EventFileState {
    writer: Option<EventsWriter>,
    /// The tags whose metadata are in the file.
    described: HashSet<String>,
}

impl EventFile {
    /// Begins the file with a graph, if it is not begun yet.
    pub(super) fn begin(&self, meta_graph: &MetaGraphDef) -> Result<()> {
        let is_begun = self.with(|state, _| Ok(state.writer.is_some()))?;
        if is_begun { Ok(()) } else { self.add_graph(meta_graph) }
    }

    /// Adds a graph, and the same as a MetaGraph.
    pub(super) fn add_graph(&self, meta_graph: &MetaGraphDef) -> Result<()> {
        let graph = meta_graph.graph_def.as_ref().map(Message::encode_to_vec).unwrap_or_default();
        self.add(0, What::GraphDef(graph.into()))?;
        self.add(0, What::MetaGraphDef(meta_graph.encode_to_vec().into()))
    }

    /// Adds a summary. Metadata come with the first value of a tag only, as in TensorFlow.
    ///
    /// # Errors
    ///
    /// When the system cannot write.
    pub fn add_summary(&self, step: i64, mut summary: Summary) -> Result<()> {
        self.with(|state, _| {
            for value in &mut summary.value {
                let is_new = value.metadata.is_some() && state.described.insert(value.tag.clone());
                value.metadata = value.metadata.take().filter(|_| is_new);
            }
            Ok(())
        })?;
        self.add(step, What::Summary(summary))
    }

    /// Adds a number under a tag.
    ///
    /// # Errors
    ///
    /// When the system cannot write.
    pub fn add_scalar(&self, step: i64, tag: &str, value: f32) -> Result<()> {
        let value = Some(summary::value::Value::SimpleValue(value));
        let value = summary::Value { tag: tag.into(), value, ..summary::Value::default() };
        self.add_summary(step, Summary { value: vec![value] })
    }

    /// Adds that the training began, or that a checkpoint was written below a path.
    pub(super) fn add_session_log(
        &self,
        step: i64,
        status: SessionStatus,
        path: &Path,
    ) -> Result<()> {
        let checkpoint_path = path.to_string_lossy().into_owned();
        let log = SessionLog { status: status.into(), checkpoint_path, ..SessionLog::default() };
        self.add(step, What::SessionLog(log))
    }

    /// Hands all that was added to the system.
    ///
    /// # Errors
    ///
    /// When the system cannot write.
    pub fn flush(&self) -> Result<()> {
        self.with(|state, _| Ok(state.writer.as_mut().map_or(Ok(()), EventsWriter::flush)?))
    }

    fn add(&self, step: i64, what: What) -> Result<()> {
        self.with(|state, folder| {
            if state.writer.is_none() {
                state.writer = Some(EventsWriter::create(folder, "", MAX_QUEUE, FLUSH_AFTER)?);
            }
            Ok(state.writer.as_mut().map_or(Ok(()), |writer| writer.add(step, what))?)
        })
    }

    fn with<R>(&self, act: impl FnOnce(&mut EventFileState, &Path) -> Result<R>) -> Result<R> {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), &self.folder)
    }
}
