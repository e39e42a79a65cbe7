//! Files in records: lines, whole files, records of a length, and TFRecords.
//!
//! Sources: `text_line_reader_op.cc`, `fixed_length_record_reader_op.cc` and
//! `tf_record_reader_op.cc` of TensorFlow.

use bytes::Bytes;
use crc32c::crc32c;
use ferroflow_format::checksum::mask;
use ferroflow_ir::{Code, Error as IrError};
use ferroflow_runtime::{Error, Result};

/// The parts of a file that are records.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RecordFormat {
    /// Lines, without the first ones.
    Lines { skipped: u64, compression: Compression },
    /// The file.
    Whole,
    /// The name itself; no file is read.
    Name,
    /// TFRecords.
    Records { compression: Compression },
    /// Records of one length between a header and a footer, each so many bytes after the one
    /// before.
    Fixed { header: usize, record: usize, footer: usize, hop: usize, compression: Compression },
}

/// The compression of a file.
pub(super) type Compression = String;

impl RecordFormat {
    /// The compression of files.
    pub(super) fn compression(&self) -> &str {
        match self {
            RecordFormat::Whole | RecordFormat::Name => "",
            RecordFormat::Lines { compression, .. }
            | RecordFormat::Records { compression }
            | RecordFormat::Fixed { compression, .. } => compression,
        }
    }
}

/// A file that is being read.
#[derive(Debug)]
pub(super) struct RecordSource {
    name: Bytes,
    contents: Bytes,
    offset: usize,
    number: u64,
}

/// The name of a record, and the record.
pub(super) type Record = (Bytes, Bytes);

impl RecordSource {
    /// The beginning of a file of this name.
    pub(super) fn new(name: Bytes, contents: Bytes) -> RecordSource {
        RecordSource { name, contents, offset: 0, number: 0 }
    }

    /// The next record, if there is one.
    ///
    /// # Errors
    ///
    /// When the file is damaged.
    pub(super) fn next(&mut self, format: &RecordFormat) -> Result<Option<Record>> {
        match format {
            RecordFormat::Lines { skipped, .. } => Ok(self.line(*skipped)),
            RecordFormat::Whole => Ok(self.once().map(|name| (name, self.contents.clone()))),
            RecordFormat::Name => Ok(self.once().map(|name| (name.clone(), name))),
            RecordFormat::Records { .. } => self.record(),
            RecordFormat::Fixed { header, record, footer, hop, .. } => {
                Ok(self.fixed([*header, *record, *footer, *hop]))
            }
        }
    }

    /// Whether nothing comes after a record that was just read.
    pub(super) fn is_single(format: &RecordFormat) -> bool {
        matches!(format, RecordFormat::Whole | RecordFormat::Name)
    }

    fn once(&mut self) -> Option<Bytes> {
        self.number += 1;
        (self.number == 1).then(|| self.name.clone())
    }

    fn key(&self, number: u64) -> Bytes {
        [&self.name[..], b":", number.to_string().as_bytes()].concat().into()
    }

    fn line(&mut self, skipped: u64) -> Option<Record> {
        loop {
            let rest = &self.contents[self.offset..];
            if rest.is_empty() {
                return None;
            }
            let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            let line = self.contents.slice(self.offset..self.offset + length);
            self.offset = (self.offset + length + 1).min(self.contents.len());
            self.number += 1;
            if self.number > skipped {
                let line = line.strip_suffix(b"\r").map_or(line.clone(), |cut| line.slice_ref(cut));
                return Some((self.key(self.number), line));
            }
        }
    }

    fn fixed(&mut self, [header, record, footer, hop]: [usize; 4]) -> Option<Record> {
        let hop = if hop == 0 { record } else { hop };
        let number = usize::try_from(self.number).ok()?;
        let start = number.checked_mul(hop)?.checked_add(header)?;
        let end = start.checked_add(record)?;
        if end > self.contents.len().checked_sub(footer)? {
            return None;
        }
        let key = self.key(self.number);
        self.number += 1;
        Some((key, self.contents.slice(start..end)))
    }

    fn record(&mut self) -> Result<Option<Record>> {
        const HEADER: usize = 12;
        let Some(header) = self.contents.get(self.offset..self.offset + HEADER) else {
            return Ok(None);
        };
        let (length, checksum) = header.split_at(8);
        self.check(length, checksum)?;
        let length = length.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        let start = self.offset + HEADER;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        let (Some(data), Some(checksum)) = (
            end.and_then(|end| self.contents.get(start..end)),
            end.and_then(|end| self.contents.get(end..end.checked_add(4)?)),
        ) else {
            return Err(self.damaged("a record is cut off"));
        };
        self.check(data, checksum)?;
        let found = (self.key(self.offset as u64), self.contents.slice_ref(data));
        self.offset = start + data.len() + checksum.len();
        Ok(Some(found))
    }

    fn check(&self, bytes: &[u8], checksum: &[u8]) -> Result<()> {
        match mask(crc32c(bytes)).to_le_bytes() == *checksum {
            true => Ok(()),
            false => Err(self.damaged("a checksum is wrong")),
        }
    }

    fn damaged(&self, what: &str) -> Error {
        let name = String::from_utf8_lossy(&self.name);
        let detail = format!("{name}, byte {}: {what}", self.offset);
        IrError::Status { code: Code::DataLoss, op: "reader".into(), detail }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_file::write_record;

    fn all(format: &RecordFormat, contents: &[u8]) -> Result<Vec<(String, String)>> {
        let mut source = RecordSource::new("f".into(), contents.to_vec().into());
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        let mut found = Vec::new();
        while let Some((key, value)) = source.next(format)? {
            found.push((text(key), text(value)));
        }
        Ok(found)
    }

    fn check(format: &RecordFormat, contents: &[u8], expected: &[(&str, &str)]) {
        let owned = expected.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(all(format, contents).unwrap(), owned.collect::<Vec<_>>());
    }

    #[test]
    fn records_have_names() {
        let lines = RecordFormat::Lines { skipped: 0, compression: String::new() };
        check(&lines, b"a\nb\r\n\nc", &[("f:1", "a"), ("f:2", "b"), ("f:3", ""), ("f:4", "c")]);
        check(
            &RecordFormat::Lines { skipped: 1, compression: String::new() },
            b"a\nb\n",
            &[("f:2", "b")],
        );
        check(&lines, b"", &[]);
        check(&RecordFormat::Whole, b"a\nb", &[("f", "a\nb")]);
        check(&RecordFormat::Name, b"", &[("f", "f")]);
        let compression = String::new();
        let fixed = RecordFormat::Fixed { header: 2, record: 3, footer: 1, hop: 0, compression };
        check(&fixed, b"HHabcdefghF", &[("f:0", "abc"), ("f:1", "def")]);
        check(&fixed, b"HH", &[]);
    }

    #[test]
    fn damage_is_found() {
        let format = RecordFormat::Records { compression: String::new() };
        let mut file = Vec::new();
        write_record(&mut file, b"one").unwrap();
        write_record(&mut file, b"three").unwrap();
        check(&format, &file, &[("f:0", "one"), ("f:19", "three")]);
        assert!(all(&format, &file[..file.len() - 1]).is_err());
        file[30] ^= 1;
        assert!(all(&format, &file).is_err());
    }
}
