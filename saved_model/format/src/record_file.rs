//! Files of records: TensorFlow's TFRecord format.
//!
//! A record is its length in eight bytes, a checksum of those, its data, and a checksum of that
//! (`tensorflow/core/lib/io/record_writer.h`); all numbers are little-endian.

use crate::{
    checksum::mask,
    error::{Error, Result},
    file::InputFile,
};
use crc32c::crc32c;
use ferroflow_ir::Limits;
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Bytes before the data of a record.
const HEADER: u64 = 12;

/// Bytes behind it.
const FOOTER: u64 = 4;

/// The records of a file, in order. Nothing follows an error.
///
/// ```
/// use ferroflow_ir::Limits;
/// use ferroflow_format::{Result, record_file::{RecordReader, write_record}};
///
/// # fn main() -> Result<()> {
/// # let folder = std::env::temp_dir().join(format!("records-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("train.tfrecord");
/// let mut file = Vec::new();
/// for text in ["one", "two"] {
///     write_record(&mut file, text.as_bytes()).unwrap();
/// }
/// std::fs::write(&path, file).unwrap();
/// let records: Vec<Vec<u8>> = RecordReader::open(&path, &Limits::default())?.collect::<Result<_>>()?;
/// assert_eq!(records, [b"one", b"two"]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RecordReader {
    file: InputFile,
    limits: Limits,
    offset: u64,
}

impl RecordReader {
    /// Opens a file. A record may have as many bytes as `limits` allow a tensor.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn open(path: impl Into<PathBuf>, limits: &Limits) -> Result<RecordReader> {
        Ok(RecordReader { file: InputFile::open(path)?, limits: limits.clone(), offset: 0 })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where the next record begins, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn read(&mut self) -> Result<Vec<u8>> {
        let header = self.file.read(self.offset, HEADER, &self.limits)?;
        let (len, checksum) = header.split_at(8);
        self.check(self.offset, len, checksum)?;
        let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
        let start = self.offset + HEADER;
        let whole = len.checked_add(FOOTER).ok_or_else(|| {
            self.file.damaged(self.offset, "a record is longer than any file can be")
        })?;
        let mut data = self.file.read(start, whole, &self.limits)?;
        let checksum = data.split_off(data.len() - FOOTER as usize);
        self.check(start, &data, &checksum)?;
        self.offset = start + whole;
        Ok(data)
    }

    fn check(&self, offset: u64, bytes: &[u8], checksum: &[u8]) -> Result<()> {
        let expected = u32::from_le_bytes(checksum.try_into().expect("four bytes"));
        let found = mask(crc32c(bytes));
        if found == expected {
            return Ok(());
        }
        let (path, len) = (self.path().into(), bytes.len() as u64);
        Err(Error::Checksum { path, offset, len, expected, found })
    }
}

impl Iterator for RecordReader {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.offset >= self.file.size() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.offset = self.file.size();
        }
        Some(record)
    }
}

/// Writes a record.
///
/// # Errors
///
/// Those of `out`.
pub fn write_record(out: &mut impl Write, data: &[u8]) -> io::Result<()> {
    let len = (data.len() as u64).to_le_bytes();
    out.write_all(&len)?;
    out.write_all(&mask(crc32c(&len)).to_le_bytes())?;
    out.write_all(data)?;
    out.write_all(&mask(crc32c(data)).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        std::fs::write(&path, bytes).unwrap();
        RecordReader::open(path, &Limits::default())?.collect()
    }

    fn written(records: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        records.iter().for_each(|record| write_record(&mut file, record).unwrap());
        file
    }

    #[test]
    fn a_record_too_long_for_its_file_is_an_error() {
        let mut file = u64::MAX.to_le_bytes().to_vec();
        file.extend(mask(crc32c(&file)).to_le_bytes());
        assert!(matches!(read(&file), Err(Error::Damaged { offset: 0, .. })));
        let mut file = (1u64 << 40).to_le_bytes().to_vec();
        file.extend(mask(crc32c(&file)).to_le_bytes());
        assert!(matches!(read(&file), Err(Error::Truncated { .. })));
    }

    proptest! {
        #[test]
        fn records_come_back(records in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
            prop_assert_eq!(read(&written(&records)).unwrap(), records);
        }

        #[test]
        fn every_changed_byte_is_noticed(at in 0usize..39, bit in 0u8..8) {
            let mut file = written(&[b"first".to_vec(), b"second".to_vec()]);
            prop_assert_eq!(file.len(), 43);
            file[at] ^= 1 << bit;
            prop_assert!(read(&file).is_err());
        }

        #[test]
        fn a_file_that_ends_early_is_noticed(len in 1usize..21) {
            let file = written(&[b"first".to_vec()]);
            prop_assert!(read(&file[..len.min(file.len() - 1)]).is_err());
        }
    }
}
