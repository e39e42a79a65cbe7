//! Writing files: under a temporary name until they are complete.

use crate::error::{Error, Result};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// A file being written. Nobody sees it under its own name before [`commit`](OutputFile::commit);
/// dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it was committed.
    file: Option<BufWriter<File>>,
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
            Ok(file) => Ok(OutputFile { path, temporary, file: Some(BufWriter::new(file)) }),
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    /// The name the file will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, once all of it is on the disk.
    pub(crate) fn commit(mut self) -> Result<()> {
        let finish = |file: BufWriter<File>| -> io::Result<()> {
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&self.temporary, &self.path)
        };
        let outcome = self.file.take().map_or(Ok(()), finish);
        outcome.map_err(|source| {
            // The first failure is the one to report.
            let _ = fs::remove_file(&self.temporary);
            Error::Io { path: self.path.clone(), source }
        })
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
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
