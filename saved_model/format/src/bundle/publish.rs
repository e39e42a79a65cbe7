//! Publication of a checkpoint: the order in which its files get their names.
//!
//! A checkpoint is what its index says, and an index gets its name by one rename. **Invariant:** no
//! file that the index in place names is replaced or removed; so whatever moment a writer is
//! stopped at, a reader finds the old checkpoint or the new one, TensorFlow's readers too.
//!
//! The names of data files tell how many there are, so that a checkpoint of one file and one of two
//! share no name. Over a checkpoint of one file a new one is published as two, the second of which
//! is empty, and is then given the usual name: the same data under both names, and an index for
//! each.

use super::{
    data::shard_path,
    files::{files_of, is_shard},
    reader::read_header,
    table::SortedTable,
    writer::index_path,
};
use crate::{
    error::{Error, Result},
    output_file::{Durability, folder_of},
};
use ferroflow_ir::Limits;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// A change to a folder that is made as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PublishStep {
    /// A file gets another name; what had it is gone.
    Rename(PathBuf, PathBuf),
    /// A file gets another name besides its own.
    Link(PathBuf, PathBuf),
    /// A file goes, if it is there.
    Remove(PathBuf),
    /// Earlier writes reach the disk before later ones.
    Sync(PathBuf),
}

/// The files of a new checkpoint of one data file, under temporary names.
pub(super) struct NewCheckpoint<'a> {
    pub(super) data: &'a Path,
    /// The index that names one data file.
    pub(super) index: &'a Path,
    /// Steps that replace a checkpoint of one data file.
    pub(super) replacing: Option<Replacing<'a>>,
}

/// The files of a new checkpoint in the form of two data files, under temporary names.
pub(super) struct Replacing<'a> {
    pub(super) empty: &'a Path,
    /// The index that names two data files.
    pub(super) index: &'a Path,
    /// A name that nothing has yet.
    pub(super) link: &'a Path,
}

/// The number of data files of the checkpoint in place; `None` where there is none that can be
/// read.
pub(super) fn n_shards_in_place(prefix: &Path) -> Option<u32> {
    let index = index_path(prefix);
    let mut n_shards = None;
    let table = SortedTable::open(&index, &Limits::default()).ok()?;
    let scanned = table.scan(|key, value| {
        if key.is_empty() {
            n_shards = Some(read_header(table.path(), value)?);
        }
        Ok(())
    });
    scanned.ok().and(n_shards)
}

/// The steps that put a checkpoint of one data file instead of one of `before` data files.
pub(super) fn steps(
    prefix: &Path,
    folder: &Path,
    new: &NewCheckpoint<'_>,
    before: Option<u32>,
) -> Vec<PublishStep> {
    let (usual, index) = (shard_path(prefix, 0, 1), index_path(prefix));
    let rename = |from: &Path, to: &Path| PublishStep::Rename(from.into(), to.into());
    let sync = || PublishStep::Sync(folder.into());
    let Some(replacing) = &new.replacing else {
        let mut steps = vec![rename(new.data, &usual), sync(), rename(new.index, &index), sync()];
        let old = before.filter(|&n| n > 1).unwrap_or(0);
        steps.extend((0..old).map(|shard| PublishStep::Remove(shard_path(prefix, shard, old))));
        return steps;
    };
    let [first, second] = [0, 1].map(|shard| shard_path(prefix, shard, 2));
    vec![
        rename(new.data, &first),
        rename(replacing.empty, &second),
        sync(),
        rename(replacing.index, &index),
        sync(),
        PublishStep::Link(first.clone(), replacing.link.into()),
        rename(replacing.link, &usual),
        sync(),
        rename(new.index, &index),
        sync(),
        PublishStep::Remove(first),
        PublishStep::Remove(second),
    ]
}

/// Whether a path is that of a data file of a checkpoint.
pub(super) fn is_shard_of(prefix: &Path, path: &Path) -> bool {
    let of = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let beginning = of(prefix).map(|name| format!("{name}.data-"));
    let in_folder = is_same_folder(folder_of(prefix), folder_of(path));
    let end = of(path).zip(beginning);
    in_folder && end.is_some_and(|(name, start)| name.strip_prefix(&start).is_some_and(is_shard))
}

/// Whether two paths lead to one folder, however they are written.
fn is_same_folder(a: &Path, b: &Path) -> bool {
    a == b || a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b)
}

/// Whether two paths lead to one file of a folder, which need not exist.
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    a.file_name() == b.file_name() && is_same_folder(folder_of(a), folder_of(b))
}

/// Removes the data files of a checkpoint that its index, which names `n_shards` files, does not
/// name: those that writers left who were killed.
pub(super) fn remove_strays(prefix: &Path, n_shards: u32) {
    let named: Vec<PathBuf> =
        (0..n_shards).map(|shard| shard_path(prefix, shard, n_shards)).collect();
    let files = files_of(prefix).unwrap_or_default();
    // All are in one folder, whose name need not be written the same way.
    let is_named = |file: &Path| named.iter().any(|named| named.file_name() == file.file_name());
    for file in files.iter().filter(|file| is_shard_of(prefix, file) && !is_named(file)) {
        // What cannot be removed is only left behind: no index names it.
        let _ = fs::remove_file(file);
    }
}

/// Does the steps one after another.
///
/// # Errors
///
/// [`Error::Io`] of the step that fails; none is done after it.
pub(super) fn run(steps: &[PublishStep], durability: Durability) -> Result<()> {
    for step in steps {
        let (path, done) = match step {
            PublishStep::Rename(from, to) => (to, fs::rename(from, to)),
            // Where a file can have one name only, the checkpoint stays in the form it has by now.
            PublishStep::Link(from, to) if fs::hard_link(from, to).is_err() => return Ok(()),
            PublishStep::Link(..) => continue,
            PublishStep::Remove(path) => {
                // What cannot be removed is only left behind: no index names it.
                let _ = fs::remove_file(path);
                continue;
            }
            PublishStep::Sync(_) if durability == Durability::Process => continue,
            PublishStep::Sync(folder) => (folder, sync(folder)),
        };
        done.map_err(|source| Error::Io { path: path.clone(), source })?;
    }
    Ok(())
}

/// Waits until the names in a folder are on the disk, where the system can do that for folders.
fn sync(folder: &Path) -> std::io::Result<()> {
    match File::open(folder) {
        Ok(folder) if cfg!(unix) => folder.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{Reader, Writer};
    use ferroflow_ir::HostTensor;

    fn write(prefix: &Path, value: f32) {
        let mut writer = Writer::create(prefix).unwrap();
        writer.add("w", &HostTensor::vector(&[value; 3]).unwrap()).unwrap();
        writer.finish().unwrap();
    }

    fn read(prefix: &Path) -> f32 {
        let reader = Reader::open(prefix, &Limits::default()).unwrap();
        reader.read("w").unwrap().as_slice::<f32>().unwrap()[0]
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    /// Stops a writer after so many steps over a checkpoint that `before` has put in place; whether
    /// the new one is there then.
    fn stopped(n_steps: usize, before: &dyn Fn(&Path)) -> Option<bool> {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("m");
        before(&prefix);
        let mut writer = Writer::create(&prefix).unwrap();
        writer.add("w", &HostTensor::vector(&[2.0f32; 3]).unwrap()).unwrap();
        let is_over = writer.finish_up_to(Durability::Disk, n_steps).unwrap();
        let found = read(&prefix);
        assert!(found == 1.0 || found == 2.0, "{found}");
        // Whatever was left, the next save puts it right.
        write(&prefix, 3.0);
        assert_eq!(read(&prefix), 3.0);
        assert_eq!(names(folder.path()), ["m.data-00000-of-00001", "m.index"]);
        (!is_over).then_some(found == 2.0)
    }

    #[test]
    fn a_stopped_writer_leaves_the_old_checkpoint_or_the_new_one() {
        let of_one_file = |prefix: &Path| write(prefix, 1.0);
        let of_two_files = |prefix: &Path| {
            write(prefix, 1.0);
            // After five steps the new checkpoint has two data files.
            let mut writer = Writer::create(prefix).unwrap();
            writer.add("w", &HostTensor::vector(&[1.0f32; 3]).unwrap()).unwrap();
            writer.finish_up_to(Durability::Process, 5).unwrap();
            assert_eq!(n_shards_in_place(prefix), Some(2));
        };
        for before in [&of_one_file as &dyn Fn(&Path), &of_two_files] {
            let found: Vec<bool> = (0..).map_while(|n| stopped(n, before)).collect();
            assert!(found.len() > 4 && found.is_sorted() && !found[0], "{found:?}");
            assert!(found[found.len() - 1], "{found:?}");
        }
    }

    #[test]
    fn no_step_touches_a_file_that_the_index_in_place_names() {
        let (prefix, folder) = (Path::new("f/m"), Path::new("f"));
        let [data, index, empty, second, link] =
            ["data", "index", "empty", "second", "link"].map(Path::new);
        let replacing = Some(Replacing { empty, index: second, link });
        let new = NewCheckpoint { data, index, replacing };
        let mut named = vec![shard_path(prefix, 0, 1)];
        for step in steps(prefix, folder, &new, Some(1)) {
            if let PublishStep::Rename(_, to) | PublishStep::Remove(to) = &step {
                assert!(!named.contains(to), "{step:?} while the index names {named:?}");
            }
            match &step {
                PublishStep::Rename(from, _) if from == second => {
                    named = vec![shard_path(prefix, 0, 2), shard_path(prefix, 1, 2)];
                }
                PublishStep::Rename(from, _) if from == index => {
                    named = vec![shard_path(prefix, 0, 1)]
                }
                _ => {}
            }
        }
        assert_eq!(named, [shard_path(prefix, 0, 1)]);
    }
}
