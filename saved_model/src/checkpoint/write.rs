//! Writing the values of objects.

use super::keys::{Keyed, keyed};
use crate::{
    bundle::{Writer, merge},
    error::{Error, Result},
    output_file::Durability,
    restore::OBJECT_GRAPH_KEY,
};
use ferroflow_ir::{HostTensor, Limits};
use ferroflow_runtime::trackable::{ObjectGraph, ObjectKind};
use prost::Message;
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// Options of writing a checkpoint.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Over how many data files the values are spread.
    pub shards: NonZeroUsize,
    /// Durability of the values when they are written. Whatever this says, checkpoints that a state
    /// file lists, and models, are on the disk.
    pub durability: Durability,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { shards: NonZeroUsize::MIN, durability: Durability::Process }
    }
}

impl WriteOptions {
    /// The same, waiting for the disk.
    pub(crate) fn to_disk(&self) -> WriteOptions {
        WriteOptions { durability: Durability::Disk, ..self.clone() }
    }
}

/// The values of objects at one time. Taking one copies nothing: a variable that changes later gets
/// memory of its own.
#[derive(Debug)]
pub struct Snapshot {
    tensors: Vec<(String, HostTensor)>,
}

impl Snapshot {
    /// The values that the objects of a graph have now.
    ///
    /// # Errors
    ///
    /// When a variable has no value.
    pub fn of(graph: &ObjectGraph) -> Result<Snapshot> {
        Snapshot::of_keyed(&keyed(graph))
    }

    pub(crate) fn of_keyed(keyed: &Keyed) -> Result<Snapshot> {
        let mut tensors = Vec::with_capacity(keyed.values.len() + 1);
        for keep in &keyed.values {
            let found = keep.value.tensors(&keep.key);
            tensors.extend(found.map_err(|error| error.at_tensor(&keep.key))?);
        }
        let graph = HostTensor::scalar_string(keyed.message.encode_to_vec());
        tensors.push((OBJECT_GRAPH_KEY.into(), graph));
        Ok(Snapshot { tensors })
    }

    /// The values of variables under their own names, as TensorFlow 1 saves them.
    ///
    /// # Errors
    ///
    /// When a variable has no value, or an object has state of another kind, which has no name.
    pub(crate) fn by_name(graph: &ObjectGraph) -> Result<Snapshot> {
        let mut tensors = Vec::new();
        for node in &graph.nodes {
            if let Some(saveable) = node.saveables.first() {
                let (kind, expected) = ("checkpoint by name", "variables only");
                let found = format!("state called `{}`", saveable.name());
                return Err(ferroflow_ir::Error::argument(kind, "objects", expected, found).into());
            }
            if let ObjectKind::Variable(variable) = &node.kind {
                let value = variable.read().map_err(Error::from);
                let value = value.map_err(|error| error.at_tensor(variable.name()))?;
                tensors.push((variable.name().to_string(), value));
            }
        }
        Ok(Snapshot { tensors })
    }

    /// The bytes of all values, but for texts.
    pub fn n_bytes(&self) -> usize {
        let plain = self.tensors.iter().filter(|(_, tensor)| tensor.is_plain());
        plain.map(|(_, tensor)| tensor.bytes().len()).sum()
    }

    /// Writes the values. Nothing appears under the name before all of it is written; a checkpoint of
    /// the same name is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the files cannot be written.
    pub fn write(&self, prefix: &Path, options: &WriteOptions) -> Result<()> {
        let n_shards = options.shards.get().min(self.tensors.len()).max(1);
        if n_shards == 1 {
            return write_part(prefix, &self.tensors, options.durability);
        }
        let temporary = temporary_folder(prefix);
        let parts: Vec<&[(String, HostTensor)]> = balanced(&self.tensors, n_shards);
        let prefixes: Vec<PathBuf> =
            (0..parts.len()).map(|part| temporary.join(format!("part-{part}"))).collect();
        let written = std::thread::scope(|scope| {
            let threads: Vec<_> = prefixes
                .iter()
                .zip(&parts)
                .map(|(prefix, part)| {
                    scope.spawn(move || write_part(prefix, part, options.durability))
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked));
            joined.collect::<Result<Vec<()>>>()
        });
        let merged = written.and_then(|_| Ok(merge(&prefixes, prefix, false, &Limits::default())?));
        let removed = std::fs::remove_dir_all(&temporary);
        merged?;
        removed.map_err(|source| Error::Io { path: temporary, source })
    }
}

/// A panic goes on in the thread that waited.
fn panicked<T>(payload: Box<dyn std::any::Any + Send>) -> T {
    std::panic::resume_unwind(payload)
}

fn write_part(
    prefix: &Path,
    tensors: &[(String, HostTensor)],
    durability: Durability,
) -> Result<()> {
    let mut writer = Writer::create(prefix)?;
    for (key, tensor) in tensors {
        writer.add(key, tensor)?;
    }
    Ok(writer.finish_with(durability)?)
}

/// A folder beside the checkpoint that no other writer uses.
fn temporary_folder(prefix: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut folder = prefix.as_os_str().to_owned();
    folder.push(format!("_temp_{}_{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    folder.into()
}

/// The values in runs of about as many bytes.
fn balanced(tensors: &[(String, HostTensor)], n: usize) -> Vec<&[(String, HostTensor)]> {
    let size = |tensor: &HostTensor| if tensor.is_plain() { tensor.bytes().len() } else { 64 };
    let total: usize = tensors.iter().map(|(_, tensor)| size(tensor)).sum();
    let (mut parts, mut start, mut taken) = (Vec::with_capacity(n), 0, 0);
    for (index, (_, tensor)) in tensors.iter().enumerate() {
        taken += size(tensor);
        let (left, parts_left) = (tensors.len() - index - 1, n - parts.len() - 1);
        let is_full = taken * n >= total * (parts.len() + 1) || left == parts_left;
        if parts_left > 0 && is_full && left >= parts_left {
            parts.push(&tensors[start..=index]);
            start = index + 1;
        }
    }
    parts.push(&tensors[start..]);
    parts
}
