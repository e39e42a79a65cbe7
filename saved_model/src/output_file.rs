//! Writing files: under a temporary name until they are complete.
//!
//! Files with names that others rely on wait for the disk; the bulk of a checkpoint does so where it
//! is asked for.

use crate::{
    error::{Error, Result},
    room::Room,
};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// What may happen to a computer without the loss of a file that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the program. The system writes the file to the disk when it sees fit.
    #[default]
    Process,
    /// The end of power too: whoever writes waits for the disk.
    Disk,
}

/// A file being written. Nobody sees it under its own name before [`commit`](OutputFile::commit);
/// dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it was committed.
    file: Option<BufWriter<File>>,
    room: Room,
}

impl OutputFile {
    /// Begins a file, and makes the folders it is in.
    pub(crate) fn create(path: impl Into<PathBuf>) -> Result<OutputFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = path.into();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".tempstate{}-{number}", process::id()));
        let temporary = PathBuf::from(temporary);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let open = || {
            folder.map_or(Ok(()), fs::create_dir_all)?;
            File::create(&temporary)
        };
        match open() {
            Ok(file) => {
                let file = Some(BufWriter::new(file));
                Ok(OutputFile { path, temporary, file, room: Room::default() })
            }
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    /// The name the file will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, once all of it is on the disk.
    pub(crate) fn commit(self) -> Result<()> {
        self.commit_with(Durability::Disk)
    }

    /// Gives the file its name, once it is as safe as is asked for.
    pub(crate) fn commit_with(self, durability: Durability) -> Result<()> {
        self.completed(durability)?.publish()
    }

    /// The file, complete and as safe as is asked for, but for its name.
    pub(crate) fn completed(mut self, durability: Durability) -> Result<CompleteFile> {
        let complete = |file: BufWriter<File>| -> io::Result<()> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            self.room.give_back(&file)?;
            match durability {
                Durability::Disk => file.sync_all(),
                Durability::Process => Ok(()),
            }
        };
        let outcome = self.file.take().map_or(Ok(()), complete);
        // Dropped after a failure, it takes away what was written.
        let file = CompleteFile { path: self.path.clone(), temporary: self.temporary.clone() };
        outcome.map_err(|source| Error::Io { path: self.path.clone(), source })?;
        Ok(file)
    }
}

/// A file that has everything but its name; dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct CompleteFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl CompleteFile {
    /// Gives the file its name.
    pub(crate) fn publish(self) -> Result<()> {
        let renamed = fs::rename(&self.temporary, &self.path);
        renamed.map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

impl Drop for CompleteFile {
    fn drop(&mut self) {
        // After it got its name there is none of the other. Otherwise it is only left behind.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Keeps other writers out of a folder until it is dropped: files that belong together appear
/// together. `None` where the system has no such locks.
pub(crate) fn hold(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        self.room.take(file.get_ref(), bytes.len());
        let written = file.write(bytes)?;
        self.room.wrote(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // A file that cannot be removed is only left behind.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Copies a file; the copy appears under its name when all of it is on the disk. A file is never
/// copied to itself.
///
/// # Errors
///
/// [`Error::Io`] with the file that cannot be read or written.
pub(crate) fn copy_file(source: &Path, target: &Path) -> Result<()> {
    let same = fs::canonicalize(target).ok().zip(fs::canonicalize(source).ok());
    if same.is_some_and(|(target, source)| target == source) {
        return Ok(());
    }
    let unreadable = |error| Error::Io { path: source.into(), source: error };
    let mut reader = File::open(source).map_err(unreadable)?;
    let mut file = OutputFile::create(target)?;
    let copied = io::copy(&mut reader, &mut file);
    copied.map_err(|error| Error::Io { path: target.into(), source: error })?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_when_they_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/file");
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"text").unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
        drop(OutputFile::create(&path).unwrap());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
