//! Several checkpoints of one object: the newest are kept, older ones go.

use super::{Checkpoint, CheckpointState, RestoreStatus, WriteOptions};
use crate::{
    bundle,
    error::{Error, Result},
};
use ferroflow_format::Error as FormatError;
use ferroflow_ir::{
    DType,
    clock::{SystemTime, UNIX_EPOCH},
};
use ferroflow_runtime::ResourceVariable;
use std::{
    cell::Cell,
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

/// Retention of the checkpoints of a manager.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// Number of checkpoints; all, if `None`.
    pub max_to_keep: Option<NonZeroUsize>,
    /// Besides these, one is kept for good whenever so much time has passed since the last such.
    pub keep_every: Option<Duration>,
    /// Prefix of the names of the checkpoints.
    pub name: String,
    /// Distance of the steps at which [`save_if_due`](CheckpointManager::save_if_due) saves.
    pub interval: Option<SaveInterval>,
    /// Options of writing.
    pub write: WriteOptions,
}

/// An interval of steps between checkpoints.
#[derive(Debug, Clone)]
pub struct SaveInterval {
    /// The variable that counts steps: an integer.
    pub step_counter: ResourceVariable,
    /// The fewest steps from one checkpoint to the next.
    pub steps: i64,
    /// The step of the last checkpoint, where that is not told by a restoration.
    pub last_step: Option<i64>,
}

impl SaveInterval {
    /// An interval of so many steps.
    pub fn new(step_counter: &ResourceVariable, steps: i64) -> SaveInterval {
        SaveInterval { step_counter: step_counter.clone(), steps, last_step: None }
    }

    fn step(&self) -> Result<i64> {
        let value = self.step_counter.read()?;
        Ok(match value.dtype() {
            DType::I32 => value.as_scalar::<i32>()?.into(),
            _ => value.as_scalar::<i64>()?,
        })
    }
}

impl Default for ManagerOptions {
    fn default() -> ManagerOptions {
        ManagerOptions {
            max_to_keep: NonZeroUsize::new(5),
            keep_every: None,
            name: "ckpt".into(),
            interval: None,
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
/// use ferroflow_runtime::ResourceVariable;
/// use ferroflow_saved_model::{Checkpoint, CheckpointManager, ManagerOptions};
/// # fn main() -> ferroflow_saved_model::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let step = ResourceVariable::new("step", HostTensor::scalar(0i64));
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
    /// The newest checkpoint of the folder, by any writer.
    latest: Option<PathBuf>,
    /// When the newest that is kept for good was written, in seconds since 1970.
    last_preserved: f64,
    /// The step of the last checkpoint.
    last_step: Cell<Option<i64>>,
}

#[derive(Debug, Clone)]
struct Kept {
    prefix: PathBuf,
    /// In seconds since 1970.
    time: f64,
}

impl<'a> CheckpointManager<'a> {
    /// A manager of the checkpoints in a folder. It takes over those that another manager left
    /// there: those that the folder's file `checkpoint` lists with a time after that of the last
    /// checkpoint that is kept for good. What [`Checkpoint::save`] left has no time, is restored
    /// from if it is the newest, and is never removed.
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
        let now = seconds(SystemTime::now());
        let (mut kept, mut latest, mut last_preserved) = (Vec::<Kept>::new(), None, now - 1.0);
        match CheckpointState::read(&folder) {
            Ok(state) => {
                last_preserved = state.last_preserved_timestamp.min(now);
                latest = Some(state.model_checkpoint_path);
                let times = state.all_model_checkpoint_timestamps;
                for (prefix, time) in state.all_model_checkpoint_paths.into_iter().zip(times) {
                    let time = time.min(now);
                    if time > last_preserved {
                        kept.retain(|other| other.prefix != prefix);
                        kept.push(Kept { prefix, time });
                    }
                }
            }
            Err(FormatError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let last_step = Cell::new(options.interval.as_ref().and_then(|i| i.last_step));
        let latest = latest.filter(|path| !path.as_os_str().is_empty());
        Ok(CheckpointManager {
            checkpoint,
            folder,
            options,
            kept,
            latest,
            last_preserved,
            last_step,
        })
    }

    /// Checkpoint that is saved.
    pub fn checkpoint(&self) -> &Checkpoint<'a> {
        &self.checkpoint
    }

    /// The checkpoints that are kept, oldest first; without those kept for good.
    pub fn checkpoints(&self) -> Vec<&Path> {
        self.kept.iter().map(|kept| &*kept.prefix).collect()
    }

    /// The newest checkpoint of the folder.
    pub fn latest(&self) -> Option<&Path> {
        self.latest.as_deref()
    }

    /// Saves one more if so many steps have passed since the last as the options ask for; `None` if
    /// they have not. Without an interval every call saves.
    ///
    /// # Errors
    ///
    /// As [`save`](CheckpointManager::save); when the counter of steps is no integer.
    pub fn save_if_due(&mut self) -> Result<Option<PathBuf>> {
        if let (Some(interval), Some(last)) = (&self.options.interval, self.last_step.get()) {
            let step = interval.step()?;
            if step == last || step < last.saturating_add(interval.steps) {
                return Ok(None);
            }
        }
        self.save().map(Some)
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
        self.latest = Some(prefix.clone());
        self.note_step()?;
        let too_old = self.take_too_old();
        self.write_state(&prefix)?;
        too_old.iter().try_for_each(|prefix| remove(prefix))?;
        Ok(prefix)
    }

    /// Notes the step of what was saved or restored.
    fn note_step(&self) -> Result<()> {
        if let Some(interval) = &self.options.interval {
            self.last_step.set(Some(interval.step()?));
        }
        Ok(())
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
        Ok(state.write(&self.folder)?)
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
            Some(latest) => {
                let status = self.checkpoint.restore(latest)?;
                self.note_step()?;
                Ok(Some(status))
            }
            None => initialize().map(|()| None),
        }
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
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
