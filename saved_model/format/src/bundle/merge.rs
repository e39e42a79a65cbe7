//! Making one checkpoint of several.

use super::{
    data::shard_path,
    ordered_code::decode_slice_key,
    publish::{self, PublishStep, is_same_file, is_shard_of, n_shards_in_place, remove_strays},
    reader::read_header,
    table::SortedTable,
    writer::{IndexEntries, index_path, write_index},
};
use crate::{
    error::{Error, Result},
    file::decode_message,
    output_file::{Durability, OutputFile, copy_file, folder_of, hold, temporary_name},
    proto::BundleEntryProto,
};
use ferroflow_ir::Limits;
use std::{
    collections::btree_map::Entry as Slot,
    fs::{self, File},
    path::{Path, PathBuf},
};

/// Moves the tensors of several checkpoints into one, which takes over their data files as they
/// are. With `allow_missing` checkpoints that do not exist are left out. Whatever moment it is
/// stopped at, the checkpoints are there or the new one is, and so is the one that it replaces.
///
/// # Errors
///
/// When a checkpoint cannot be read, two have a tensor of the same name (parts of one tensor may be
/// in several), or files cannot be moved or written.
pub fn merge(
    prefixes: &[PathBuf],
    destination: &Path,
    allow_missing: bool,
    limits: &Limits,
) -> Result<()> {
    let mut merged = Merged::default();
    for prefix in prefixes {
        if !index_path(prefix).exists() {
            if allow_missing {
                continue;
            }
            return Err(Error::NoCheckpoint { prefix: prefix.clone() });
        }
        merged.add(prefix, limits)?;
    }
    merged.publish(destination, usize::MAX)?;
    let indexes = prefixes.iter().map(|prefix| index_path(prefix));
    let own = index_path(destination);
    for index in indexes.filter(|index| !is_same_file(index, &own) && index.exists()) {
        fs::remove_file(&index).map_err(|source| Error::Io { path: index, source })?;
    }
    for shard in merged.shards.iter().filter(|shard| !is_shard_of(destination, shard)) {
        fs::remove_file(shard).map_err(|source| Error::Io { path: shard.clone(), source })?;
    }
    Ok(())
}

/// The entries of all checkpoints so far, and the data files they are in.
#[derive(Default)]
struct Merged {
    entries: IndexEntries,
    shards: Vec<PathBuf>,
}

impl Merged {
    fn add(&mut self, prefix: &Path, limits: &Limits) -> Result<()> {
        let index = SortedTable::open(&index_path(prefix), limits)?;
        let first = self.shards.len();
        let mut n_shards = 0;
        index.scan(|key, value| {
            if key.is_empty() {
                n_shards = read_header(index.path(), value)?;
                let own = (0..n_shards).map(|shard| shard_path(prefix, shard, n_shards));
                self.shards.extend(own);
                return Ok(());
            }
            let mut entry: BundleEntryProto = decode_message(index.path(), value)?;
            let shard = u32::try_from(entry.shard_id).ok().filter(|&shard| shard < n_shards);
            let Some(shard) = shard else {
                let (what, high) = ("shard".into(), i64::from(n_shards));
                let index = entry.shard_id.into();
                return Err(ferroflow_ir::Error::Index { what, index, low: 0, high }.into());
            };
            entry.shard_id = (first as i64 + i64::from(shard)) as i32;
            self.insert(key, entry)
        })
    }

    /// Links the data files to the names of a new checkpoint, besides their own, and puts its index
    /// in place; whether it came to that after so many steps.
    ///
    /// **Invariant:** until then no file is changed or removed that an index in place names: neither those
    /// of the checkpoints nor those of one that the new one replaces. Where that one has as many
    /// data files, the new one has one more, which is empty.
    fn publish(&self, destination: &Path, n_steps: usize) -> Result<bool> {
        let folder = folder_of(destination);
        fs::create_dir_all(folder).map_err(|source| Error::Io { path: folder.into(), source })?;
        let _held = hold(folder);
        let before = n_shards_in_place(destination);
        let mut n_shards = self.shards.len() as u32;
        let empty = (before == Some(n_shards)).then(|| {
            n_shards += 1;
            shard_path(destination, n_shards - 1, n_shards)
        });
        let index = OutputFile::create(index_path(destination))?;
        let index = write_index(index, n_shards as usize, &self.entries, Durability::Disk)?;
        for (shard, source) in self.shards.iter().enumerate() {
            if shard == n_steps {
                return Ok(false);
            }
            link_or_copy(source, &shard_path(destination, shard as u32, n_shards))?;
        }
        if let Some(empty) = empty {
            OutputFile::create(empty)?.commit()?;
        }
        publish::run(&[PublishStep::Sync(folder.into())], Durability::Disk)?;
        if n_steps <= self.shards.len() {
            return Ok(false);
        }
        index.publish()?;
        publish::run(&[PublishStep::Sync(folder.into())], Durability::Disk)?;
        remove_strays(destination, n_shards);
        Ok(true)
    }

    fn insert(&mut self, key: &[u8], entry: BundleEntryProto) -> Result<()> {
        match self.entries.entry(key.to_vec()) {
            Slot::Vacant(slot) => {
                slot.insert(entry);
                Ok(())
            }
            Slot::Occupied(mut slot) => {
                let old = slot.get_mut();
                let parts = !old.slices.is_empty() && !entry.slices.is_empty();
                if !parts || old.dtype != entry.dtype || old.shape != entry.shape {
                    return Err(twice(key));
                }
                old.slices.extend(entry.slices);
                Ok(())
            }
        }
    }
}

/// Links a file to another name; where the system cannot do that, to a copy of it.
fn link_or_copy(source: &Path, target: &Path) -> Result<()> {
    let link = temporary_name(target);
    // Others sweep files with such names that nobody has locked.
    let _locked = File::open(source).inspect(|file| drop(file.try_lock()));
    if fs::hard_link(source, &link).is_err() {
        return copy_file(source, target);
    }
    let renamed = fs::rename(&link, target);
    // Between two names of the same file the system does nothing.
    let _ = fs::remove_file(&link);
    renamed.map_err(|error| Error::Io { path: target.into(), source: error })
}

fn twice(key: &[u8]) -> Error {
    let name = match decode_slice_key(key) {
        Some((name, slice)) => format!("{name} {slice}"),
        None => String::from_utf8_lossy(key).into_owned(),
    };
    ferroflow_ir::Error::argument("checkpoints", "a tensor", "in only one of them", name).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{Reader, Writer};
    use ferroflow_ir::{Code, HostTensor, Shape};

    fn write(prefix: &Path, key: &str, spec: &str, value: f32) {
        let mut writer = Writer::create(prefix).unwrap();
        let part = HostTensor::from_slice(Shape::new([1, 2]).unwrap(), &[value; 2]).unwrap();
        match spec {
            "" => writer.add(key, &part).unwrap(),
            spec => writer.add_slice(key, &spec.parse().unwrap(), &part).unwrap(),
        }
        writer.finish().unwrap();
    }

    #[test]
    fn parts_in_several_checkpoints_are_joined() {
        let folder = tempfile::tempdir().unwrap();
        let part = |n: usize| folder.path().join(format!("parts/part-{n}"));
        write(&part(0), "w", "2 2 0,1:-", 1.0);
        write(&part(1), "w", "2 2 1,1:-", 2.0);
        write(&part(2), "v", "", 3.0);
        let target = folder.path().join("model");
        let limits = Limits::default();
        let prefixes = [part(0), part(1), part(2), part(3)];
        assert_eq!(merge(&prefixes, &target, false, &limits).unwrap_err().code(), Code::NotFound);
        merge(&prefixes, &target, true, &limits).unwrap();
        let reader = Reader::open(&target, &limits).unwrap();
        assert_eq!(reader.read("w").unwrap().as_slice::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0]);
        assert_eq!(reader.read("v").unwrap().as_slice::<f32>().unwrap(), [3.0, 3.0]);
        assert_eq!(fs::read_dir(folder.path().join("parts")).unwrap().count(), 0);
    }

    #[test]
    fn a_checkpoint_is_merged_into_itself_however_its_path_is_written() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("sub/../a"));
        write(&path, "a", "", 1.0);
        let limits = Limits::default();
        for (from, to) in [(&other, &path), (&path, &other), (&path, &path)] {
            merge(std::slice::from_ref(from), to, false, &limits).unwrap();
            let reader = Reader::open(&path, &limits).unwrap();
            assert_eq!(reader.read("a").unwrap().as_slice::<f32>().unwrap(), [1.0, 1.0]);
        }
    }

    #[test]
    fn a_stopped_merge_leaves_all_checkpoints_or_the_new_one() {
        for n_steps in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            let limits = Limits::default();
            let value = |name: &str, key: &str| {
                let reader = Reader::open(path(name), &limits).unwrap();
                reader.read(key).unwrap().as_slice::<f32>().unwrap()[0]
            };
            // The checkpoint in place has as many data files as the new one.
            ["c", "d"].iter().for_each(|name| write(&path(name), name, "", 9.0));
            merge(&[path("c"), path("d")], &path("m"), false, &limits).unwrap();
            write(&path("a"), "a", "", 1.0);
            write(&path("b"), "b", "", 2.0);
            let mut merged = Merged::default();
            ["a", "b"].iter().for_each(|name| merged.add(&path(name), &limits).unwrap());
            let is_there = merged.publish(&path("m"), n_steps).unwrap();
            assert_eq!(is_there, n_steps == 3);
            assert_eq!((value("a", "a"), value("b", "b")), (1.0, 2.0));
            if is_there {
                assert_eq!((value("m", "a"), value("m", "b")), (1.0, 2.0));
            } else {
                assert_eq!((value("m", "c"), value("m", "d")), (9.0, 9.0));
            }
            // Whatever was left, the next merge puts it right, and a save after it.
            merge(&[path("a"), path("b")], &path("m"), false, &limits).unwrap();
            assert_eq!((value("m", "a"), value("m", "b")), (1.0, 2.0));
            write(&path("m"), "w", "", 3.0);
            assert_eq!(value("m", "w"), 3.0);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn one_name_means_one_tensor() {
        let folder = tempfile::tempdir().unwrap();
        let prefixes = [folder.path().join("a"), folder.path().join("b")];
        prefixes.iter().for_each(|prefix| write(prefix, "w", "", 1.0));
        let merged = merge(&prefixes, &folder.path().join("m"), false, &Limits::default());
        assert_eq!(merged.unwrap_err().code(), Code::InvalidArgument);
        assert!(index_path(&prefixes[0]).exists());
    }
}
