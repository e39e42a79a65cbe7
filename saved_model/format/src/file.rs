//! Files: read at a position, and whole messages.

use crate::{
    error::{Error, Result},
    output_file::OutputFile,
    text_format,
};
use bytes::Bytes;
use ferroflow_ir::Limits;
use ferroflow_ir::files::{self, OpenedFile};
use prost::{Message, Name};
use std::{
    any::type_name,
    io::Write,
    path::{Path, PathBuf},
};

/// The most bytes a message may take: the format's own limit.
const MAX_MESSAGE_BYTES: u64 = i32::MAX as u64;

/// An open file that many threads may read at once.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    file: OpenedFile,
    len: u64,
}

impl InputFile {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn open(path: impl Into<PathBuf>) -> Result<InputFile> {
        let path = path.into();
        match files::open(&path).and_then(|file| Ok((file.size()?, file))) {
            Ok((len, file)) => Ok(InputFile { path, file, len }),
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file still has its name.
    pub fn is_in_place(&self) -> bool {
        self.file.is_at(&self.path)
    }

    /// The number of bytes when the file was opened.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Checks that the file has `len` bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`].
    pub fn check_range(&self, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            end => Err(Error::Truncated {
                path: self.path.clone(),
                needed: end.unwrap_or(u64::MAX),
                found: self.len,
            }),
        }
    }

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// The `len` bytes at `offset`, which must be in the file and within the limits.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::Io`], and [`Error::Program`] for more than the limits allow.
    pub fn read(&self, offset: u64, len: u64, limits: &Limits) -> Result<Vec<u8>> {
        self.check_range(offset, len)?;
        let mut buffer = allocate(len, limits)?;
        self.read_at(&mut buffer, offset)?;
        Ok(buffer)
    }

    /// The error of bytes of this file that break the rule `what`.
    pub fn damaged(&self, offset: u64, what: &'static str) -> Error {
        Error::Damaged { path: self.path.clone(), offset, what: what.into() }
    }
}

/// Zeroed memory, unless that is more than one tensor may take.
fn allocate(len: u64, limits: &Limits) -> Result<Vec<u8>> {
    let too_much = || ferroflow_ir::Error::Limit {
        what: "block of a file".into(),
        needed: format!("{len} bytes"),
        limit: limits.tensor_bytes as u64,
    };
    let len = usize::try_from(len).ok().filter(|&len| len <= limits.tensor_bytes);
    let len = len.ok_or_else(too_much)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(len).map_err(|_| too_much())?;
    buffer.resize(len, 0);
    Ok(buffer)
}

/// Reads a file that holds one message: as text, if its name ends in `.pbtxt`.
///
/// Bytes fields of the message share the memory of the file.
///
/// # Errors
///
/// [`Error::Io`], [`Error::Message`] or [`Error::TextMessage`] when it is not such a message, and
/// [`Error::Program`] for a file of more than 2 GiB, which no message may have.
pub fn read_message<M: Message + Name + Default>(path: &Path) -> Result<M> {
    let file = InputFile::open(path)?;
    check_size(file.size())?;
    let bytes = file.read(0, file.size(), &Limits::default())?;
    if is_text(path) {
        return text_format::parse(path, &bytes);
    }
    decode_message(path, bytes.into())
}

/// Writes a file that holds one message: as text, if its name ends in `.pbtxt`. The file appears
/// when all of it is on the disk; folders are made where they are missing.
///
/// # Errors
///
/// [`Error::Io`], and [`Error::Program`] for a message of more than 2 GiB, which nobody could read.
pub fn write_message<M: Message + Name>(path: &Path, message: &M) -> Result<()> {
    check_size(message.encoded_len() as u64)?;
    let mut file = OutputFile::create(path)?;
    let content = match is_text(path) {
        true => text_format::encode(path, message)?,
        false => message.encode_to_vec(),
    };
    let written = file.write_all(&content);
    written.map_err(|source| Error::Io { path: path.into(), source })?;
    file.commit()
}

/// Whether a file of this name holds text.
fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pbtxt")
}

fn check_size(len: u64) -> Result<()> {
    if len <= MAX_MESSAGE_BYTES {
        return Ok(());
    }
    Err(Error::from(ferroflow_ir::Error::Limit {
        what: "message".into(),
        needed: format!("{len} bytes"),
        limit: MAX_MESSAGE_BYTES,
    }))
}

/// Decodes a message that came from the file `path`.
///
/// # Errors
///
/// [`Error::Message`].
pub fn decode_message<M: Message + Default>(path: &Path, bytes: Bytes) -> Result<M> {
    let message = type_name::<M>().rsplit("::").next().unwrap_or("message");
    M::decode(bytes).map_err(|source| Error::Message { path: path.into(), message, source })
}
