//! Files that programs read: those of the system, and those of folders in memory.
//!
//! A [`MemoryFolder`] gives files that came from elsewhere, such as a download or an archive, paths
//! of their own, `memory:/<number>/<name>`. Whatever reads a file here and in `saved_model` takes
//! such a path like any other. Nothing is ever written there.

mod memory;

pub use memory::MemoryFolder;

use bytes::Bytes;
use memory::MemoryEntry;
use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

/// A file that is open for reading, by any number of threads at a time.
#[derive(Debug)]
pub struct OpenedFile(Opened);

#[derive(Debug)]
enum Opened {
    System(File),
    Memory(Bytes),
}

/// Opens a file.
///
/// # Errors
///
/// Those of the system; [`ErrorKind::IsADirectory`] for a folder.
pub fn open(path: &Path) -> io::Result<OpenedFile> {
    match memory::entry(path) {
        Some(entry) => entry?.file().map(Opened::Memory),
        None => File::open(path).and_then(|file| match file.metadata()?.is_dir() {
            true => Err(ErrorKind::IsADirectory.into()),
            false => Ok(Opened::System(file)),
        }),
    }
    .map(OpenedFile)
}

impl OpenedFile {
    /// The number of bytes it has now.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn size(&self) -> io::Result<u64> {
        match &self.0 {
            Opened::System(file) => Ok(file.metadata()?.len()),
            Opened::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// Those of the system; [`ErrorKind::UnexpectedEof`] when there are fewer.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Opened::System(file) => read_exact_at(file, buffer, offset),
            Opened::Memory(bytes) => {
                let start = usize::try_from(offset).ok();
                let rest = start.and_then(|start| bytes.get(start..));
                let found = rest.and_then(|rest| rest.get(..buffer.len()));
                buffer.copy_from_slice(found.ok_or(ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    /// Whether this is still the file that `path` names.
    pub fn is_at(&self, path: &Path) -> bool {
        match &self.0 {
            Opened::System(file) => is_same_file(file, path),
            // What a folder in memory holds under a name never changes.
            Opened::Memory(_) => true,
        }
    }
}

#[cfg(unix)]
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().map(identity).ok() == fs::metadata(path).map(identity).ok()
}

#[cfg(not(unix))]
fn is_same_file(_: &File, _: &Path) -> bool {
    true
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(any(unix, windows)))]
fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// The number of bytes of a file.
///
/// # Errors
///
/// Those of the system; [`ErrorKind::IsADirectory`] for a folder in memory.
pub fn size(path: &Path) -> io::Result<u64> {
    match memory::entry(path) {
        Some(entry) => Ok(entry?.file()?.len() as u64),
        None => Ok(fs::metadata(path)?.len()),
    }
}

/// The bytes of a file.
///
/// # Errors
///
/// As [`open`].
pub fn read(path: &Path) -> io::Result<Bytes> {
    match memory::entry(path) {
        Some(entry) => entry?.file(),
        None => fs::read(path).map(Bytes::from),
    }
}

/// The bytes of a file, one piece after the other.
///
/// # Errors
///
/// As [`open`].
pub fn reader(path: &Path) -> io::Result<Box<dyn Read>> {
    match memory::entry(path) {
        Some(entry) => Ok(Box::new(io::Cursor::new(entry?.file()?))),
        None => Ok(Box::new(File::open(path)?)),
    }
}

/// Whether there is a file or a folder.
pub fn exists(path: &Path) -> bool {
    memory::entry(path).map_or_else(|| path.exists(), |entry| entry.is_ok())
}

/// Whether there is a file.
pub fn is_file(path: &Path) -> bool {
    let in_memory = memory::entry(path);
    in_memory.map_or_else(|| path.is_file(), |entry| entry.is_ok_and(|entry| entry.is_file()))
}

/// Whether there is a folder.
pub fn is_folder(path: &Path) -> bool {
    let in_memory = memory::entry(path);
    in_memory.map_or_else(|| path.is_dir(), |entry| entry.is_ok_and(|entry| !entry.is_file()))
}

/// The names in a folder, in no particular order.
///
/// # Errors
///
/// Those of the system; [`ErrorKind::NotADirectory`] for a file in memory.
pub fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    match memory::entry(folder) {
        Some(entry) => match entry? {
            MemoryEntry::Folder(names) => Ok(names),
            MemoryEntry::File(_) => Err(ErrorKind::NotADirectory.into()),
        },
        None => folder.read_dir()?.map(|entry| Ok(entry?.file_name())).collect(),
    }
}

/// The path without links. In memory there are none.
///
/// # Errors
///
/// Those of the system; [`ErrorKind::NotFound`] for what is not there.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match memory::entry(path) {
        Some(entry) => entry.map(|_| path.components().collect()),
        None => path.canonicalize(),
    }
}

/// The path from the root of the system. One in memory begins at its own.
///
/// # Errors
///
/// As [`std::path::absolute`].
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    if is_in_memory(path) { Ok(path.into()) } else { std::path::absolute(path) }
}

/// Whether a path is of a folder in memory, one that there is or not.
pub fn is_in_memory(path: &Path) -> bool {
    memory::entry(path).is_some()
}
