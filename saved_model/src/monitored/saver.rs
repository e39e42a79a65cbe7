//! Savers of a training: numbered checkpoints in a folder, of which the newest are kept.

use super::{kept::KeptCheckpoints, saver_ops};
use crate::{
    bundle::{Reader, Writer},
    checkpoint::CheckpointState,
    error::{Error, Result},
    file::write_message,
    proto::{MetaGraphDef, SaverDef},
    session::Session,
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::ResourceVariable;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Saver of a session: writes and restores the variables of a graph, as TensorFlow's
/// `tf.compat.v1.train.Saver` does, by ops of the graph or by their names.
///
/// A checkpoint `NAME-STEP` of a folder is listed in the folder's file `checkpoint` when all of it
/// is on the disk; those that are not kept are removed after that.
#[derive(Debug)]
pub struct Saver {
    source: SavedState,
    kept: Mutex<KeptCheckpoints>,
}

/// State that a saver writes.
#[derive(Debug)]
enum SavedState {
    /// Ops of the graph do it.
    Ops(Box<SaverDef>),
    /// Values of these variables; of all, if `None`.
    Variables(Option<Vec<String>>),
}

/// Number of checkpoints that are kept if nothing else is said.
const MAX_TO_KEEP: usize = 5;

impl Saver {
    /// The saver that a graph has ops for.
    pub fn of_ops(def: SaverDef) -> Saver {
        let max_to_keep = usize::try_from(def.max_to_keep).unwrap_or(0);
        let hours = def.keep_checkpoint_every_n_hours;
        let every =
            Duration::try_from_secs_f32(hours * 3600.0).ok().filter(|every| !every.is_zero());
        Saver::new(SavedState::Ops(Box::new(def)), max_to_keep, every)
    }

    /// The saver of these variables.
    pub fn of_variables<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Saver {
        let names = names.into_iter().map(Into::into).collect();
        Saver::new(SavedState::Variables(Some(names)), MAX_TO_KEEP, None)
    }

    /// The saver of all variables of a graph.
    pub fn of_all_variables() -> Saver {
        Saver::new(SavedState::Variables(None), MAX_TO_KEEP, None)
    }

    fn new(source: SavedState, max_to_keep: usize, every: Option<Duration>) -> Saver {
        Saver { source, kept: Mutex::new(KeptCheckpoints::new(max_to_keep, every)) }
    }

    /// The saver that keeps so many checkpoints, all if it is 0.
    #[must_use]
    pub fn keeping(self, max_to_keep: usize) -> Saver {
        let mut kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept.max_to_keep = max_to_keep;
        Saver { kept: Mutex::new(kept), ..self }
    }

    /// The ops it runs, if it has any.
    pub fn def(&self) -> Option<&SaverDef> {
        match &self.source {
            SavedState::Ops(def) => Some(def),
            SavedState::Variables(_) => None,
        }
    }

    /// The checkpoints that are kept, oldest first.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).prefixes()
    }

    /// Writes the checkpoint `name-step` in a folder, at a time after some moment, and removes what
    /// is no longer kept. With a MetaGraph, that is written beside it as `name-step.meta`.
    ///
    /// # Errors
    ///
    /// When a variable has no value, or the files cannot be written.
    pub fn save(
        &self,
        session: &Session,
        path: CheckpointPath<'_>,
        meta_graph: Option<&MetaGraphDef>,
        now: Duration,
    ) -> Result<PathBuf> {
        let prefix = path.prefix();
        let failed = |source| Error::Io { path: path.folder.into(), source };
        fs::create_dir_all(path.folder).map_err(failed)?;
        self.write(session, &prefix)?;
        if let Some(meta_graph) = meta_graph {
            write_message(&super::kept::meta_path(&prefix), meta_graph)?;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let too_old = kept.add(prefix.clone(), now);
        let state = CheckpointState {
            model_checkpoint_path: prefix.clone(),
            all_model_checkpoint_paths: kept.prefixes(),
            ..CheckpointState::default()
        };
        state.write(path.folder)?;
        too_old.iter().try_for_each(|prefix| super::kept::remove(prefix))?;
        Ok(prefix)
    }

    fn write(&self, session: &Session, prefix: &Path) -> Result<()> {
        match &self.source {
            SavedState::Ops(def) => saver_ops::save(session, def, prefix),
            SavedState::Variables(names) => {
                let mut writer = Writer::create(prefix)?;
                for (name, variable) in chosen(session, names.as_deref())? {
                    writer.add(&name, &variable.read()?)?;
                }
                Ok(writer.finish()?)
            }
        }
    }

    /// Sets variables to the values in a checkpoint.
    ///
    /// # Errors
    ///
    /// When the checkpoint has no value for a variable, or one that does not fit it.
    pub fn restore(&self, session: &Session, prefix: &Path) -> Result<()> {
        match &self.source {
            SavedState::Ops(def) => saver_ops::restore(session, def, prefix),
            SavedState::Variables(names) => {
                let reader = Reader::open(prefix, session.context().limits())?;
                let variables = chosen(session, names.as_deref())?.into_iter();
                let values = variables.map(|(name, variable)| Ok((variable, reader.read(&name)?)));
                let values: Vec<(ResourceVariable, HostTensor)> = values.collect::<Result<_>>()?;
                values.into_iter().try_for_each(|(variable, value)| Ok(variable.assign(value)?))
            }
        }
    }

    /// Restores the newest checkpoint that the folder's file `checkpoint` lists, and keeps those
    /// that it lists besides; `false` if there is no such file.
    ///
    /// # Errors
    ///
    /// As [`restore`](Saver::restore), and when the file `checkpoint` cannot be read.
    pub fn restore_latest(&self, session: &Session, folder: &Path, now: Duration) -> Result<bool> {
        let Some(state) = checkpoint_state(folder)? else { return Ok(false) };
        self.restore(session, &state.model_checkpoint_path)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_over(state.all_model_checkpoint_paths, now)?;
        Ok(true)
    }
}

/// Path of a numbered checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPath<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The name before the number.
    pub name: &'a str,
    /// The number.
    pub step: i64,
}

impl CheckpointPath<'_> {
    /// The path without suffixes.
    pub fn prefix(&self) -> PathBuf {
        self.folder.join(format!("{}-{}", self.name, self.step))
    }
}

/// The content of a folder's file `checkpoint`, if it names a checkpoint.
fn checkpoint_state(folder: &Path) -> Result<Option<CheckpointState>> {
    match CheckpointState::read(folder).map_err(Error::from) {
        Ok(state) if state.model_checkpoint_path.as_os_str().is_empty() => Ok(None),
        Ok(state) => Ok(Some(state)),
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The variables of these names, or all.
fn chosen(
    session: &Session,
    names: Option<&[String]>,
) -> Result<BTreeMap<String, ResourceVariable>> {
    let mut variables = session.variables()?;
    let Some(names) = names else { return Ok(variables) };
    let found = names.iter().map(|name| {
        let absent = || ferroflow_ir::Error::NotFound { kind: "variable", name: name.clone() };
        Ok((name.clone(), variables.remove(name).ok_or_else(absent)?))
    });
    found.collect()
}
