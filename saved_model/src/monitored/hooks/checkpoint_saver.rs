//! Hook that saves checkpoints.

use crate::{
    error::Result,
    file::write_message,
    monitored::{
        event_file::EventFile,
        global_step::GlobalStep,
        hook::{SessionRunContext, SessionRunHook},
        saver::{CheckpointPath, Saver},
        scaffold::Scaffold,
        time::TimeSource,
        timer::{HookInterval, SecondOrStepTimer},
    },
    proto::{MetaGraphDef, session_log::SessionStatus},
    session::Session,
};
use ferroflow_runtime::EagerTensor;
use std::{fmt, path::PathBuf, sync::Arc};

/// Saves a checkpoint when a session is made, every so many steps or seconds, and at the end, if
/// there were steps since the last.
///
/// Checkpoints are `model.ckpt-STEP` in a folder; its file `checkpoint` lists those that are kept.
/// Beside them are the graph, `graph.pbtxt`, and with each checkpoint `model.ckpt-STEP.meta`; an
/// event file tells of both.
pub struct CheckpointSaverHook {
    folder: PathBuf,
    basename: String,
    saver: Arc<Saver>,
    global_step: GlobalStep,
    events: Arc<EventFile>,
    time: Arc<dyn TimeSource>,
    timer: SecondOrStepTimer,
    save_graph_def: bool,
    meta_graph: Option<MetaGraphDef>,
    listeners: Vec<Box<dyn CheckpointSaverListener>>,
}

impl fmt::Debug for CheckpointSaverHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointSaverHook")
            .field("folder", &self.folder)
            .field("basename", &self.basename)
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}

/// Code that runs around each checkpoint. Every method does nothing, unless it is implemented.
pub trait CheckpointSaverListener {
    /// Called once, before there is a session.
    ///
    /// # Errors
    ///
    /// Those of the listener.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called before a checkpoint is written.
    ///
    /// # Errors
    ///
    /// Those of the listener.
    fn before_save(&mut self, _session: &Session, _global_step: i64) -> Result<()> {
        Ok(())
    }

    /// Called after a checkpoint is written; returns whether the session should stop.
    ///
    /// # Errors
    ///
    /// Those of the listener.
    fn after_save(&mut self, _session: &Session, _global_step: i64) -> Result<bool> {
        Ok(false)
    }

    /// Called after the last checkpoint.
    ///
    /// # Errors
    ///
    /// Those of the listener.
    fn end(&mut self, _session: &Session, _global_step: i64) -> Result<()> {
        Ok(())
    }
}

impl CheckpointSaverHook {
    /// A hook that saves to a folder, with the saver of the scaffold.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn new(
        scaffold: &Scaffold,
        folder: impl Into<PathBuf>,
        interval: HookInterval,
    ) -> Result<CheckpointSaverHook> {
        let folder = folder.into();
        Ok(CheckpointSaverHook {
            global_step: scaffold.global_step_for("CheckpointSaverHook")?,
            events: scaffold.event_file(&folder),
            folder,
            basename: "model.ckpt".into(),
            saver: scaffold.saver.clone(),
            time: scaffold.time.clone(),
            timer: SecondOrStepTimer::new(interval),
            save_graph_def: true,
            meta_graph: None,
            listeners: Vec::new(),
        })
    }

    /// Names checkpoints like this, with the step behind.
    #[must_use]
    pub fn checkpoint_basename(self, basename: impl Into<String>) -> CheckpointSaverHook {
        CheckpointSaverHook { basename: basename.into(), ..self }
    }

    /// Writes no graph beside the checkpoints.
    #[must_use]
    pub fn without_graph_def(self) -> CheckpointSaverHook {
        CheckpointSaverHook { save_graph_def: false, ..self }
    }

    /// Adds a listener.
    #[must_use]
    pub fn listener(mut self, listener: impl CheckpointSaverListener + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Saves; returns whether a listener asks to stop.
    fn save(&mut self, session: &Session, step: i64) -> Result<bool> {
        self.timer.trigger(step, self.time.now());
        for listener in &mut self.listeners {
            listener.before_save(session, step)?;
        }
        let path = CheckpointPath { folder: &self.folder, name: &self.basename, step };
        self.saver.save(session, path, self.meta_graph.as_ref(), self.time.now())?;
        let path = self.folder.join(&self.basename);
        self.events.add_session_log(step, SessionStatus::Checkpoint, &path)?;
        let mut should_stop = false;
        for listener in &mut self.listeners {
            should_stop |= listener.after_save(session, step)?;
        }
        Ok(should_stop)
    }
}

impl SessionRunHook for CheckpointSaverHook {
    fn begin(&mut self, scaffold: &mut Scaffold) -> Result<()> {
        self.events.begin(&scaffold.meta_graph)?;
        self.listeners.iter_mut().try_for_each(|listener| listener.begin())
    }

    fn after_create_session(&mut self, session: &Session, scaffold: &Scaffold) -> Result<()> {
        let step = self.global_step.read(session)?;
        let meta_graph = scaffold.to_meta_graph();
        self.events.add_graph(&meta_graph)?;
        if self.save_graph_def {
            let graph = meta_graph.graph_def.clone().unwrap_or_default();
            write_message(&self.folder.join("graph.pbtxt"), &graph)?;
            self.meta_graph = Some(meta_graph);
        }
        self.save(session, step).map(drop)
    }

    fn after_run(&mut self, context: &mut SessionRunContext<'_>, _: &[EagerTensor]) -> Result<()> {
        let session = context.session();
        let step = self.global_step.read(session)?;
        if self.timer.is_due(step, self.time.now()) && self.save(session, step)? {
            context.request_stop();
        }
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        let step = self.global_step.read(session)?;
        if self.timer.last_step() != Some(step) {
            self.save(session, step)?;
        }
        for listener in &mut self.listeners {
            listener.end(session, step)?;
        }
        self.events.flush()
    }
}
