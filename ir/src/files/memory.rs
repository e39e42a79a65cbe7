//! Folders in memory.

use bytes::Bytes;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
    sync::{
        PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

/// The first part of every path in memory.
const ROOT: &str = "memory:";

type Files = BTreeMap<PathBuf, Bytes>;

/// The files of all folders.
static FOLDERS: RwLock<BTreeMap<u64, Files>> = RwLock::new(BTreeMap::new());

fn all_folders() -> RwLockReadGuard<'static, BTreeMap<u64, Files>> {
    FOLDERS.read().unwrap_or_else(PoisonError::into_inner)
}

fn folders_mut() -> RwLockWriteGuard<'static, BTreeMap<u64, Files>> {
    FOLDERS.write().unwrap_or_else(PoisonError::into_inner)
}

/// A folder of files in memory, until this is dropped. Files that are open then stay readable.
///
/// ```
/// use ferroflow_ir::files::{self, MemoryFolder};
/// # fn main() -> std::io::Result<()> {
/// let folder = MemoryFolder::new([("assets/words.txt", &b"zero\none\n"[..])])?;
/// let words = files::read(&folder.path().join("assets/words.txt"))?;
/// assert_eq!(&words[..], b"zero\none\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryFolder {
    number: u64,
}

impl MemoryFolder {
    /// A folder of these files: names with slashes between their parts, and bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a name that leads out of the folder or is no name, and
    /// [`ErrorKind::AlreadyExists`] for one that two files have, or a file and a folder.
    pub fn new<N, B>(files: impl IntoIterator<Item = (N, B)>) -> io::Result<MemoryFolder>
    where
        N: AsRef<str>,
        B: Into<Bytes>,
    {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut own = Files::new();
        for (name, bytes) in files {
            let path = inner_path(name.as_ref())?;
            if own.insert(path, bytes.into()).is_some() {
                return Err(ErrorKind::AlreadyExists.into());
            }
        }
        let is_file = |folder: &Path| own.contains_key(folder);
        if own.keys().any(|path| path.ancestors().skip(1).any(is_file)) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        folders_mut().insert(number, own);
        Ok(MemoryFolder { number })
    }

    /// The path of the folder, for whatever takes paths.
    pub fn path(&self) -> PathBuf {
        Path::new(ROOT).join(self.number.to_string())
    }

    /// Removes the files whose names `is_over` holds of, to have their memory back: after loading,
    /// the checkpoint of a model is in its variables.
    pub fn remove(&self, is_over: impl Fn(&Path) -> bool) {
        if let Some(files) = folders_mut().get_mut(&self.number) {
            files.retain(|path, _| !is_over(path));
        }
    }
}

impl Drop for MemoryFolder {
    fn drop(&mut self) {
        folders_mut().remove(&self.number);
    }
}

fn inner_path(name: &str) -> io::Result<PathBuf> {
    let path = Path::new(name);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    match is_inside && !name.is_empty() {
        true => Ok(path.components().collect()),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

/// The entry of a folder in memory at a path.
#[derive(Debug)]
pub(super) enum MemoryEntry {
    File(Bytes),
    /// The names in it.
    Folder(Vec<OsString>),
}

impl MemoryEntry {
    /// The bytes of a file.
    pub(super) fn file(self) -> io::Result<Bytes> {
        match self {
            MemoryEntry::File(bytes) => Ok(bytes),
            MemoryEntry::Folder(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self, MemoryEntry::File(_))
    }
}

/// The entry at a path that leads into memory; `None` for a path of the file system.
pub(super) fn entry(path: &Path) -> Option<io::Result<MemoryEntry>> {
    let rest = path.strip_prefix(ROOT).ok()?;
    Some(find(rest).ok_or_else(|| ErrorKind::NotFound.into()))
}

fn find(path: &Path) -> Option<MemoryEntry> {
    let mut parts = path.components();
    let number = parts.next()?.as_os_str().to_str()?.parse().ok()?;
    let inner: PathBuf = parts.as_path().components().collect();
    let folders = all_folders();
    let files = folders.get(&number)?;
    if let Some(bytes) = files.get(&inner) {
        return Some(MemoryEntry::File(bytes.clone()));
    }
    let below = files.keys().filter_map(|path| path.strip_prefix(&inner).ok());
    let mut names: Vec<OsString> = below
        .filter_map(|rest| rest.components().next())
        .map(|name| name.as_os_str().into())
        .collect();
    names.dedup();
    let is_there = !names.is_empty() || inner.as_os_str().is_empty();
    is_there.then_some(MemoryEntry::Folder(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    fn folder() -> MemoryFolder {
        let files = [("saved_model.pb", "model"), ("variables/a", "1"), ("variables/b", "22")];
        MemoryFolder::new(files).unwrap()
    }

    fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn files_are_read_like_those_of_the_system() {
        let folder = folder();
        let path = folder.path().join("variables/./b");
        assert_eq!(
            (files::size(&path).unwrap(), &files::read(&path).unwrap()[..]),
            (2, &b"22"[..])
        );
        let file = files::open(&path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 1).unwrap();
        assert_eq!((byte, file.size().unwrap(), file.is_at(&path)), (*b"2", 2, true));
        assert_eq!(kind(file.read_exact_at(&mut byte, 2)), Some(ErrorKind::UnexpectedEof));
        assert_eq!(kind(file.read_exact_at(&mut byte, u64::MAX)), Some(ErrorKind::UnexpectedEof));
        drop(folder);
        assert!(!files::exists(&path));
        file.read_exact_at(&mut byte, 0).unwrap();
    }

    #[test]
    fn folders_have_names_in_them() {
        let folder = folder();
        let (root, inner) = (folder.path(), folder.path().join("variables"));
        assert_eq!(files::names_in(&root).unwrap(), ["saved_model.pb", "variables"]);
        assert_eq!(files::names_in(&inner).unwrap(), ["a", "b"]);
        assert!(files::is_folder(&root) && files::is_folder(&inner) && !files::is_file(&inner));
        assert_eq!(kind(files::open(&inner)), Some(ErrorKind::IsADirectory));
        assert_eq!(kind(files::names_in(&inner.join("a"))), Some(ErrorKind::NotADirectory));
        assert_eq!(kind(files::names_in(&root.join("none"))), Some(ErrorKind::NotFound));
        folder.remove(|path| path.starts_with("variables"));
        assert!(!files::exists(&inner) && files::exists(&root.join("saved_model.pb")));
    }

    #[test]
    fn no_path_leads_out_of_a_folder() {
        let (one, other) = (folder(), folder());
        let out = one.path().join("..").join(other.number.to_string()).join("variables/a");
        assert!(!files::exists(&out) && files::canonical(&out).is_err());
        assert!(files::is_in_memory(&out) && !files::is_in_memory(Path::new("/memory:/0")));
        for name in ["../a", "/a", "", "a/../../b"] {
            let made = MemoryFolder::new([(name, "")]);
            assert_eq!(kind(made), Some(ErrorKind::InvalidInput), "{name}");
        }
        let twice = MemoryFolder::new([("a", ""), ("./a/b", "")]);
        assert_eq!(kind(twice), Some(ErrorKind::InvalidInput));
        let both = MemoryFolder::new([("a", ""), ("a/b", "")]);
        assert_eq!(kind(both), Some(ErrorKind::AlreadyExists));
    }
}
