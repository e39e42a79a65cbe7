//! Several checkpoints of one object: the newest are kept, older ones go.

use super::{Checkpoint, CheckpointState, RestoreStatus, WriteOptions};
use crate::{
    bundle,
    error::{Error, Result},
};
use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Which checkpoints a manager keeps.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// How many; all, if `None`.
    pub max_to_keep: Option<NonZeroUsize>,
    /// Besides these, one is kept for good whenever so much time has passed since the last such.
    pub keep_every: Option<Duration>,
    /// What the names of the checkpoints begin with.
    pub name: String,
    /// How they are written.
    pub write: WriteOptions,
}

impl Default for ManagerOptions {
    fn default() -> ManagerOptions {
        ManagerOptions {
            max_to_keep: NonZeroUsize::new(5),
            keep_every: None,
            name: "ckpt".into(),
            write: WriteOptions::default(),
        }
    }
}

/// Saves a checkpoint again and again, and removes what is too old.
///
/// What happens is written in such an order that, wherever it is cut short, the file `checkpoint`
/// lists whole checkpoints only.
///
/// ```
/// use ferroflow_ir::HostTensor;
/// use ferroflow_runtime::Variable;
/// use ferroflow_saved_model::{Checkpoint, CheckpointManager, ManagerOptions};
/// # fn main() -> ferroflow_saved_model::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let step = Variable::new("step", HostTensor::scalar(0i64));
/// let options = ManagerOptions { max_to_keep: 3.try_into().ok(), ..Default::default() };
/// let checkpoint = Checkpoint::new().with("step", &step);
/// let mut manager = CheckpointManager::new(checkpoint, folder.path(), options)?;
/// for number in 1..=4i64 {
///     step.assign(HostTensor::scalar(number))?;
///     manager.save()?;
/// }
/// let names = manager.checkpoints().into_iter().filter_map(|path| path.file_name()?.to_str());
/// assert_eq!(names.collect::<Vec<_>>(), ["ckpt-2", "ckpt-3", "ckpt-4"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CheckpointManager<'a> {
    checkpoint: Checkpoint<'a>,
    folder: PathBuf,
    options: ManagerOptions,
    kept: Vec<Kept>,
    /// When the newest that is kept for good was written, in seconds since 1970.
    last_preserved: f64,
}

#[derive(Debug, Clone)]
struct Kept {
    prefix: PathBuf,
    /// In seconds since 1970.
    time: f64,
}

impl<'a> CheckpointManager<'a> {
    /// A manager of the checkpoints in a folder, of which it takes over those that the folder's file
    /// `checkpoint` lists.
    ///
    /// # Errors
    ///
    /// When that file cannot be read.
    pub fn new(
        checkpoint: Checkpoint<'a>,
        folder: impl Into<PathBuf>,
        options: ManagerOptions,
    ) -> Result<CheckpointManager<'a>> {
        let folder = folder.into();
        let state = match CheckpointState::read(&folder) {
            Ok(state) => Some(state),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let now = seconds(SystemTime::now());
        let last_preserved = match &state {
            Some(state) if state.last_preserved_timestamp > 0.0 => state.last_preserved_timestamp,
            _ => now,
        };
        let mut kept = Vec::new();
        if let Some(state) = state {
            let times = state.all_model_checkpoint_timestamps;
            for (index, prefix) in state.all_model_checkpoint_paths.into_iter().enumerate() {
                kept.push(Kept { prefix, time: times.get(index).copied().unwrap_or(now) });
            }
        }
        Ok(CheckpointManager { checkpoint, folder, options, kept, last_preserved })
    }

    /// What is saved.
    pub fn checkpoint(&self) -> &Checkpoint<'a> {
        &self.checkpoint
    }

    /// The checkpoints that are kept, oldest first; without those kept for good.
    pub fn checkpoints(&self) -> Vec<&Path> {
        self.kept.iter().map(|kept| &*kept.prefix).collect()
    }

    /// The newest checkpoint.
    pub fn latest(&self) -> Option<&Path> {
        self.kept.last().map(|kept| &*kept.prefix)
    }

    /// Saves one more, numbered after the last, and removes what is no longer kept.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::write`]; when files that are too old cannot be removed.
    pub fn save(&mut self) -> Result<PathBuf> {
        let name = self.folder.join(&self.options.name);
        let (prefix, snapshot) = self.checkpoint.counted(&name)?;
        self.finish(prefix, &snapshot)
    }

    /// Saves one more with this number, such as that of a step.
    ///
    /// # Errors
    ///
    /// As [`save`](CheckpointManager::save).
    pub fn save_as(&mut self, number: u64) -> Result<PathBuf> {
        let (_, snapshot) = self.checkpoint.counted(&self.folder)?;
        let prefix = self.folder.join(format!("{}-{number}", self.options.name));
        self.finish(prefix, &snapshot)
    }

    fn finish(&mut self, prefix: PathBuf, snapshot: &super::Snapshot) -> Result<PathBuf> {
        CheckpointState::newest(&prefix).check_names(&self.folder)?;
        snapshot.write(&prefix, &self.options.write.to_disk())?;
        let time = seconds(SystemTime::now());
        self.kept.retain(|kept| kept.prefix != prefix);
        self.kept.push(Kept { prefix: prefix.clone(), time });
        let too_old = self.take_too_old();
        self.write_state(&prefix)?;
        too_old.iter().try_for_each(|prefix| remove(prefix))?;
        Ok(prefix)
    }

    /// Takes what is to be removed off the list.
    fn take_too_old(&mut self) -> Vec<PathBuf> {
        let mut too_old = Vec::new();
        let most = self.options.max_to_keep.map_or(usize::MAX, NonZeroUsize::get);
        while self.kept.len() > most {
            let oldest = self.kept.remove(0);
            let is_due = self
                .options
                .keep_every
                .is_some_and(|every| oldest.time - self.last_preserved >= every.as_secs_f64());
            match is_due {
                true => self.last_preserved = oldest.time,
                false => too_old.push(oldest.prefix),
            }
        }
        too_old
    }

    fn write_state(&self, newest: &Path) -> Result<()> {
        let state = CheckpointState {
            model_checkpoint_path: newest.into(),
            all_model_checkpoint_paths: self.kept.iter().map(|kept| kept.prefix.clone()).collect(),
            all_model_checkpoint_timestamps: self.kept.iter().map(|kept| kept.time).collect(),
            last_preserved_timestamp: self.last_preserved,
        };
        state.write(&self.folder)
    }

    /// Restores the newest checkpoint; `None` if there is none, in which case `initialize` runs.
    ///
    /// # Errors
    ///
    /// As [`Checkpoint::restore`], and those of `initialize`.
    pub fn restore_or_initialize(
        &self,
        initialize: impl FnOnce() -> Result<()>,
    ) -> Result<Option<RestoreStatus<'_, 'a>>> {
        match self.latest() {
            Some(latest) => self.checkpoint.restore(latest).map(Some),
            None => initialize().map(|()| None),
        }
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Removes the files of a checkpoint, its index first: without that there is none.
fn remove(prefix: &Path) -> Result<()> {
    for path in bundle::files_of(prefix)? {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}
