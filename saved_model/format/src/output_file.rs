//! Writing files: under a temporary name until they are complete.
//!
//! Files with names that others rely on wait for the disk; the bulk of a checkpoint does so where
//! it is asked for.

use crate::{
    error::{Error, Result},
    room::Room,
};
use ferroflow_ir::files;
use std::{
    fs::{self, File, TryLockError},
    hash::{BuildHasher, RandomState},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Faults of a computer that a written file survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the program. The system writes the file to the disk when it sees fit.
    #[default]
    Process,
    /// The end of power too: the writer waits for the disk.
    Disk,
}

/// A file being written. No reader sees it under its own name before
/// [`commit`](OutputFile::commit); dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it was committed. It is locked, which tells others that its writer lives.
    file: Option<BufWriter<File>>,
    room: Room,
}

/// Infix between the name of a file and a random number, in the name it has until it is complete.
const TEMPORARY: &str = ".tempstate-";

/// A temporary name for a file: one that no process in any container has drawn before.
pub fn temporary_name(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!("{TEMPORARY}{:016x}", RandomState::new().hash_one(path)));
    temporary.into()
}

/// The end of a name that a file has until it is locked.
const UNLOCKED: &str = "-new";

/// Whether a name is one of [`temporary_name`], or one that a file has before it has that.
fn is_temporary(name: &str) -> bool {
    let name = name.strip_suffix(UNLOCKED).unwrap_or(name);
    name.rsplit_once(TEMPORARY).is_some_and(|(_, number)| {
        number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Number of attempts at a file that others have swept.
const ATTEMPTS: usize = 100;

/// Removes files that writers left unfinished who live no more: no process holds a lock on them.
/// **Invariant:** a file is locked before it has a name of [`temporary_name`], and until it has
/// that name no more. One that is not locked yet may be removed too: its writer finds that it
/// cannot be renamed, and begins anew.
fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_temporary)) {
        let path = entry.path();
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            // What cannot be removed is only left behind.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Opens a file that no other writer has, with the access rights of the one that it is to replace.
fn open_new(temporary: &Path, path: &Path) -> io::Result<File> {
    let mut unlocked = temporary.as_os_str().to_owned();
    unlocked.push(UNLOCKED);
    let unlocked = PathBuf::from(unlocked);
    let like = fs::metadata(path).ok().map(|metadata| metadata.permissions());
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if let Some(like) = &like {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(like.mode() & 0o777);
    }
    let file = options.open(&unlocked)?;
    let ready = || {
        if let Some(like) = like.filter(|like| !like.readonly()) {
            file.set_permissions(like)?;
        }
        // Where there are no locks, nothing is swept either. Who sweeps holds one for a moment.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            file.lock()?;
        }
        fs::rename(&unlocked, temporary)
    };
    if let Err(error) = ready() {
        // What cannot be removed is only left behind.
        let _ = fs::remove_file(&unlocked);
        return Err(error);
    }
    Ok(file)
}

impl OutputFile {
    /// Begins a file, and makes the folders it is in. What writers left in its folder who were
    /// killed goes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the file cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<OutputFile> {
        let path = path.into();
        let temporary = temporary_name(&path);
        let open = || {
            fs::create_dir_all(folder_of(&path))?;
            sweep(folder_of(&path));
            let mut opened = open_new(&temporary, &path);
            for _ in 0..ATTEMPTS {
                match &opened {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        opened = open_new(&temporary, &path);
                    }
                    _ => break,
                }
            }
            opened
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
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name it has until then.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Renames the file to its final name, once all of it is on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn commit(self) -> Result<()> {
        self.commit_with(Durability::Disk)
    }

    /// Renames the file to its final name, once it is as safe as is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        self.completed(durability)?.publish()
    }

    /// The file, complete and as safe as is asked for, but for its name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be written.
    pub fn completed(mut self, durability: Durability) -> Result<CompleteFile> {
        let complete = |file: BufWriter<File>| -> io::Result<File> {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            self.room.release(&file)?;
            match durability {
                Durability::Disk => file.sync_all().map(|()| file),
                Durability::Process => Ok(file),
            }
        };
        let outcome = self.file.take().map(complete).transpose();
        // Dropped after a failure, it takes away what was written.
        let (path, temporary) = (self.path.clone(), self.temporary.clone());
        let mut complete = CompleteFile { path, temporary, _locked: None };
        complete._locked =
            outcome.map_err(|source| Error::Io { path: self.path.clone(), source })?;
        Ok(complete)
    }
}

/// A file that has everything but its name; dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct CompleteFile {
    path: PathBuf,
    temporary: PathBuf,
    /// The file, which is locked until it has its name.
    _locked: Option<File>,
}

impl CompleteFile {
    /// The name it has until it gets its own.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when it cannot be renamed.
    pub fn publish(self) -> Result<()> {
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

/// The folder that a file, or a checkpoint of this prefix, is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Keeps other writers out of a folder until it is dropped: files that belong together appear
/// together. `None` where the system has no such locks.
pub fn hold(folder: &Path) -> Option<File> {
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
pub fn copy_file(source: &Path, target: &Path) -> Result<()> {
    let same = fs::canonicalize(target).ok().zip(fs::canonicalize(source).ok());
    if same.is_some_and(|(target, source)| target == source) {
        return Ok(());
    }
    let unreadable = |error| Error::Io { path: source.into(), source: error };
    let mut reader = files::reader(source).map_err(unreadable)?;
    let mut file = OutputFile::create(target)?;
    let copied = io::copy(&mut reader, &mut file);
    copied.map_err(|error| Error::Io { path: target.into(), source: error })?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_writers_that_live_no_more_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let alive = OutputFile::create(&path).unwrap();
        let complete = OutputFile::create(&path).unwrap().completed(Durability::Process).unwrap();
        let (dead, other) = (temporary_name(&path), folder.path().join("file.tempstate123"));
        fs::write(&dead, "left behind").unwrap();
        fs::write(&other, "of another program").unwrap();
        let mut unlocked = temporary_name(&path).into_os_string();
        unlocked.push(UNLOCKED);
        fs::write(&unlocked, "").unwrap();
        drop(OutputFile::create(folder.path().join("another")).unwrap());
        assert!(!dead.exists() && other.exists() && !Path::new(&unlocked).exists());
        assert!(alive.temporary.exists() && complete.temporary.exists());
        alive.commit().unwrap();
        complete.publish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_the_access_rights_of_the_one_before() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        for mode in [0o600, 0o640, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut file = OutputFile::create(&path).unwrap();
            file.write_all(b"new").unwrap();
            file.commit().unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        }
    }

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
