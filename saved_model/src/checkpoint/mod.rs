//! Checkpoints of objects: the values of the variables that objects lead to, by structure.
//!
//! ```
//! use ferroflow_ir::HostTensor;
//! use ferroflow_runtime::ResourceVariable;
//! use ferroflow_saved_model::Checkpoint;
//! # fn main() -> ferroflow_saved_model::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! let w = ResourceVariable::new("w", HostTensor::scalar(3.0f32));
//! let checkpoint = Checkpoint::new().with("w", &w);
//! let saved = checkpoint.save(folder.path().join("model"))?;
//! w.assign(HostTensor::scalar(0.0f32))?;
//! checkpoint.restore(&saved)?.assert_consumed()?;
//! assert_eq!(w.read()?.as_scalar::<f32>()?, 3.0);
//! assert!(saved.ends_with("model-1"));
//! # Ok(())
//! # }
//! ```

mod binding;
mod keys;
mod manager;
mod restoring;
mod status;
mod write;

pub use crate::output_file::Durability;
pub use ferroflow_format::checkpoint_state::{self as state, CheckpointState, latest_checkpoint};
pub use manager::{CheckpointManager, ManagerOptions, SaveInterval};
pub use status::RestoreStatus;
pub use write::{Snapshot, WriteOptions};

pub(crate) use keys::{Keyed, Stored, keyed};

use crate::error::Result;
use ferroflow_format::{Error as FormatError, bundle::folder_of};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    ResourceVariable, files,
    trackable::{Description, ObjectGraph, Trackable},
};
use restoring::Restoring;
use std::{
    cell::RefCell,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
};

/// The name of the variable that counts what was saved.
const SAVE_COUNTER: &str = "save_counter";

/// An object made of others, whose values are saved and restored together.
///
/// Values belong to paths of names that lead to them. What restores them has the same names; the
/// names of variables, and which Rust types hold them, are of no concern.
#[derive(Default)]
pub struct Checkpoint<'a> {
    objects: RefCell<Vec<(String, Box<dyn Trackable + 'a>)>>,
    root: Option<Box<dyn Trackable + 'a>>,
    save_counter: RefCell<Option<ResourceVariable>>,
    /// Last restoration: it may have values for objects that are attached later.
    restoring: RefCell<Option<Arc<Restoring>>>,
}

impl fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.objects.borrow();
        f.debug_set().entries(objects.iter().map(|(name, _)| name)).finish()
    }
}

impl<'a> Checkpoint<'a> {
    /// A checkpoint of nothing yet.
    pub fn new() -> Checkpoint<'a> {
        Checkpoint::default()
    }

    /// A checkpoint of one object: what it leads to goes by the names that it has there.
    pub fn of(root: impl Trackable + 'a) -> Checkpoint<'a> {
        Checkpoint { root: Some(Box::new(root)), ..Checkpoint::default() }
    }

    /// The checkpoint with one more object.
    #[must_use]
    pub fn with(self, name: &str, object: impl Trackable + 'a) -> Checkpoint<'a> {
        self.objects.borrow_mut().push((name.into(), Box::new(object)));
        self
    }

    /// Adds an object. If a checkpoint was restored that has values for it, it takes them over.
    ///
    /// # Errors
    ///
    /// When such a value does not fit.
    pub fn attach(&self, name: &str, object: impl Trackable + 'a) -> Result<()> {
        self.objects.borrow_mut().push((name.into(), Box::new(object)));
        self.resume()
    }

    /// Assigns to objects that have appeared since the last restoration the values it has for them:
    /// such as variables that are made when a model is first called.
    ///
    /// # Errors
    ///
    /// When a value does not fit.
    pub fn resume(&self) -> Result<()> {
        let restoring = self.restoring.borrow().clone();
        restoring.map_or(Ok(()), |restoring| restoring.run(&self.graph()?))
    }

    /// The variable that counts how often [`save`](Checkpoint::save) was called.
    pub fn save_counter(&self) -> ResourceVariable {
        let zero = || ResourceVariable::new(SAVE_COUNTER, HostTensor::scalar(0i64));
        self.save_counter.borrow_mut().get_or_insert_with(zero).clone()
    }

    fn graph(&self) -> Result<ObjectGraph> {
        Ok(ObjectGraph::of(self)?)
    }

    /// The values as they are now, to be written later or by another thread.
    ///
    /// # Errors
    ///
    /// When a variable has no value.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::of(&self.graph()?)
    }

    /// Writes the values to the checkpoint of this name, returning its name. Nothing is counted, no
    /// other file is touched, and nothing waits for the disk.
    ///
    /// # Errors
    ///
    /// When a variable has no value, or the files cannot be written.
    pub fn write(&self, prefix: impl Into<PathBuf>) -> Result<PathBuf> {
        self.write_with(prefix, &WriteOptions::default())
    }

    /// As [`write`](Checkpoint::write), in this way.
    ///
    /// # Errors
    ///
    /// As [`write`](Checkpoint::write).
    pub fn write_with(
        &self,
        prefix: impl Into<PathBuf>,
        options: &WriteOptions,
    ) -> Result<PathBuf> {
        let prefix = prefix.into();
        self.snapshot()?.write(&prefix, options)?;
        Ok(prefix)
    }

    /// Writes the values of the variables under their own names, as savers of TensorFlow 1 do. Such
    /// a checkpoint is [`read`](Checkpoint::read) by name as well, wherever objects have their
    /// variables.
    ///
    /// # Errors
    ///
    /// When two variables have the same name, one has no value, an object has state that is no
    /// variable, or the files cannot be written.
    pub fn write_named(&self, prefix: impl Into<PathBuf>) -> Result<PathBuf> {
        let prefix = prefix.into();
        Snapshot::by_name(&self.graph()?)?.write(&prefix, &WriteOptions::default())?;
        Ok(prefix)
    }

    /// Saves the values as one of several checkpoints: counts, writes `<prefix>-<count>`, and notes
    /// it as the newest in the file `checkpoint` of the folder.
    ///
    /// # Errors
    ///
    /// As [`write`](Checkpoint::write).
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        self.save_with(prefix, &WriteOptions::default())
    }

    /// As [`save`](Checkpoint::save), in this way.
    ///
    /// # Errors
    ///
    /// As [`save`](Checkpoint::save).
    pub fn save_with(&self, prefix: impl AsRef<Path>, options: &WriteOptions) -> Result<PathBuf> {
        let (prefix, snapshot) = self.counted(prefix.as_ref())?;
        CheckpointState::newest(&prefix).check_names(folder_of(&prefix))?;
        snapshot.write(&prefix, &options.to_disk())?;
        CheckpointState::newest(&prefix).write(folder_of(&prefix))?;
        Ok(prefix)
    }

    /// As [`save`](Checkpoint::save), on another thread: the values are those of now, whatever
    /// becomes of the variables.
    ///
    /// # Errors
    ///
    /// When a variable has no value. Whether the files could be written, the thread tells.
    pub fn save_in_background(
        &self,
        prefix: impl AsRef<Path>,
    ) -> Result<JoinHandle<Result<PathBuf>>> {
        let (prefix, snapshot) = self.counted(prefix.as_ref())?;
        Ok(std::thread::spawn(move || {
            snapshot.write(&prefix, &WriteOptions::default().to_disk())?;
            CheckpointState::newest(&prefix).write(folder_of(&prefix))?;
            Ok(prefix)
        }))
    }

    /// Counts one more checkpoint: its name and its values.
    fn counted(&self, prefix: &Path) -> Result<(PathBuf, Snapshot)> {
        let counter = self.save_counter();
        let count = counter.read()?.as_scalar::<i64>()? + 1;
        counter.assign(HostTensor::scalar(count))?;
        let mut numbered = prefix.as_os_str().to_owned();
        numbered.push(format!("-{count}"));
        Ok((numbered.into(), self.snapshot()?))
    }

    /// Takes over the values of a checkpoint that [`write`](Checkpoint::write) made, or of a
    /// SavedModel.
    ///
    /// Objects that it has no values for stay as they are, values without an object wait for
    /// [`attach`](Checkpoint::attach), and for slot variables that optimizers make when they first
    /// step; the status tells of both.
    ///
    /// # Errors
    ///
    /// When there is no such checkpoint, it is damaged, or a value does not fit; in that last case
    /// nothing has changed.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<RestoreStatus<'_, 'a>> {
        let restoring = Arc::new(Restoring::open(path.as_ref())?);
        restoring.run(&self.graph()?)?;
        *self.restoring.borrow_mut() = Some(restoring.clone());
        Ok(RestoreStatus::new(self, restoring))
    }

    /// Takes over the values of a checkpoint that [`save`](Checkpoint::save) made, and goes on
    /// counting from there.
    ///
    /// # Errors
    ///
    /// As [`read`](Checkpoint::read).
    pub fn restore(&self, path: impl AsRef<Path>) -> Result<RestoreStatus<'_, 'a>> {
        self.save_counter();
        self.read(path)
    }
}

impl Trackable for Checkpoint<'_> {
    fn describe(&self, object: &mut Description<'_>) {
        if let Some(root) = &self.root {
            root.describe(object);
        }
        for (name, child) in self.objects.borrow().iter() {
            object.child(name, child);
        }
        if let Some(counter) = &*self.save_counter.borrow() {
            object.child(SAVE_COUNTER, counter);
        }
    }
}

/// The checkpoint that a path names: that of a SavedModel, for its folder.
pub(crate) fn prefix_of(path: &Path) -> Result<PathBuf> {
    if !files::is_folder(path) {
        return Ok(path.into());
    }
    let variables = path.join("variables").join("variables");
    let is_model =
        ["saved_model.pb", "saved_model.pbtxt"].iter().any(|f| files::exists(&path.join(f)));
    match is_model {
        true => Ok(variables),
        false => Err(FormatError::NoCheckpoint { prefix: path.into() }.into()),
    }
}
