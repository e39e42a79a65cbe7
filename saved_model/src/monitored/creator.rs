//! Creators of sessions: the chief initialises or restores a model, workers wait until it is ready.

use super::{error::MonitoredError, scaffold::Scaffold};
use crate::{error::Result, proto::GraphDef, session::Session};
use ferroflow_runtime::{Context, EagerTensor, ResourceManager};
use std::{path::PathBuf, sync::Arc, time::Duration};

/// Maker of the sessions of a training: at first, and after each failure.
pub trait SessionCreator {
    /// The pieces of the graph.
    fn scaffold(&mut self) -> &mut Scaffold;

    /// Makes a session that is ready.
    ///
    /// # Errors
    ///
    /// When the graph is malformed, or the model does not become ready.
    fn create_session(&mut self) -> Result<Session>;
}

/// Creator of the session of a chief: it restores the newest checkpoint of a folder, or else runs
/// the initialisers.
#[derive(Debug)]
pub struct ChiefSessionCreator {
    context: Context,
    scaffold: Scaffold,
    resources: Option<Arc<ResourceManager>>,
    checkpoint: Option<CheckpointSource>,
}

#[derive(Debug)]
enum CheckpointSource {
    /// The newest of a folder, if it has any.
    Folder(PathBuf),
    /// This one.
    Prefix(PathBuf),
}

impl ChiefSessionCreator {
    /// A creator of sessions with state of their own, which the initialisers make.
    pub fn new(context: &Context, scaffold: Scaffold) -> ChiefSessionCreator {
        let (context, resources, checkpoint) = (context.clone(), None, None);
        ChiefSessionCreator { context, scaffold, resources, checkpoint }
    }

    /// Restores the newest checkpoint of a folder, if it has any.
    #[must_use]
    pub fn checkpoint_dir(self, folder: impl Into<PathBuf>) -> ChiefSessionCreator {
        ChiefSessionCreator { checkpoint: Some(CheckpointSource::Folder(folder.into())), ..self }
    }

    /// Restores this checkpoint.
    #[must_use]
    pub fn checkpoint_filename_with_path(self, prefix: impl Into<PathBuf>) -> ChiefSessionCreator {
        ChiefSessionCreator { checkpoint: Some(CheckpointSource::Prefix(prefix.into())), ..self }
    }

    /// Keeps variables and other resources where the sessions of workers find them.
    #[must_use]
    pub fn sharing(self, resources: &Arc<ResourceManager>) -> ChiefSessionCreator {
        ChiefSessionCreator { resources: Some(resources.clone()), ..self }
    }

    /// Restores variables; `false` if there is no checkpoint.
    fn restore(&self, session: &Session) -> Result<bool> {
        let Scaffold { saver, time, .. } = &self.scaffold;
        match &self.checkpoint {
            None => Ok(false),
            Some(CheckpointSource::Folder(folder)) => {
                saver.restore_latest(session, folder, time.now())
            }
            Some(CheckpointSource::Prefix(prefix)) => saver.restore(session, prefix).map(|()| true),
        }
    }

    fn initialize(&self, session: &Session) -> Result<()> {
        let Scaffold { init_op, init_feeds, init_fn, .. } = &self.scaffold;
        run_ops(session, init_feeds, init_op)?;
        init_fn.as_ref().map_or(Ok(()), |init_fn| init_fn(session))
    }
}

impl SessionCreator for ChiefSessionCreator {
    fn scaffold(&mut self) -> &mut Scaffold {
        &mut self.scaffold
    }

    fn create_session(&mut self) -> Result<Session> {
        let resources = self.resources.clone().unwrap_or_default();
        let graph = graph_of(&self.scaffold);
        let session = Session::of_graph_sharing(&self.context, graph, resources)?;
        let is_restored = self.restore(&session)?;
        if !is_restored {
            self.initialize(&session)?;
        }
        match missing(&self.scaffold, &session)? {
            None => Ok(session),
            Some(missing) => {
                let after = match is_restored {
                    true => "after its checkpoint was restored".to_string(),
                    false => format!("after its initialisers {:?} ran", self.scaffold.init_op),
                };
                Err(MonitoredError::NotReady { after, missing }.into())
            }
        }
    }
}

/// Creator of the sessions of a worker, which work on the variables of a chief and wait until these
/// have values.
#[derive(Debug)]
pub struct WorkerSessionCreator {
    context: Context,
    scaffold: Scaffold,
    resources: Arc<ResourceManager>,
    /// Longest time to wait.
    pub max_wait: Duration,
    /// Time from one check to the next.
    pub recovery_wait: Duration,
}

impl WorkerSessionCreator {
    /// A creator of sessions on these resources, that checks every 30 seconds, for half an hour.
    pub fn new(
        context: &Context,
        scaffold: Scaffold,
        resources: &Arc<ResourceManager>,
    ) -> WorkerSessionCreator {
        WorkerSessionCreator {
            context: context.clone(),
            scaffold,
            resources: resources.clone(),
            max_wait: Duration::from_secs(30 * 60),
            recovery_wait: Duration::from_secs(30),
        }
    }
}

impl SessionCreator for WorkerSessionCreator {
    fn scaffold(&mut self) -> &mut Scaffold {
        &mut self.scaffold
    }

    fn create_session(&mut self) -> Result<Session> {
        let (graph, resources) = (graph_of(&self.scaffold), self.resources.clone());
        let session = Session::of_graph_sharing(&self.context, graph, resources)?;
        let time = self.scaffold.time.clone();
        let deadline = time.now().saturating_add(self.max_wait);
        while let Some(missing) = missing(&self.scaffold, &session)? {
            if time.now().saturating_add(self.recovery_wait) > deadline {
                return Err(MonitoredError::NeverReady { waited: self.max_wait, missing }.into());
            }
            tracing::info!("waiting for the model to be ready: {missing}");
            time.sleep(self.recovery_wait)?;
        }
        Ok(session)
    }
}

fn graph_of(scaffold: &Scaffold) -> GraphDef {
    scaffold.meta_graph.graph_def.clone().unwrap_or_default()
}

/// Initialises local state if global state is there; returns what is missing.
fn missing(scaffold: &Scaffold, session: &Session) -> Result<Option<String>> {
    if !scaffold.local_init_op.is_empty() {
        if let Some(missing) = scaffold.ready_for_local_init_op.missing(session)? {
            return Ok(Some(missing));
        }
        run_ops(session, &scaffold.local_init_feeds, &scaffold.local_init_op)?;
    }
    scaffold.ready_op.missing(session)
}

fn run_ops(session: &Session, feeds: &[(String, EagerTensor)], ops: &[String]) -> Result<()> {
    if ops.is_empty() {
        return Ok(());
    }
    let feeds: Vec<(&str, EagerTensor)> =
        feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let ops: Vec<&str> = ops.iter().map(String::as_str).collect();
    session.run(&feeds, &[], &ops).map(drop)
}
