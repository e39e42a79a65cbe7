//! The elements of tensors as bytes of a data file.

use super::data::{PIECE, fixed_width, put_varint};
use crate::{
    checksum::mask,
    convert::StoredHandle,
    error::{Error, Result},
};
use ferroflow_ir::{DType, HostTensor};
use prost::Message;
use std::{io::Write, path::Path};

/// Checksum and extent of written bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Written {
    /// The number of bytes.
    pub(super) size: u64,
    /// Their checksum, masked. Lengths of strings count in a form of fixed width.
    pub(super) checksum: u32,
}

/// Writes the elements of a tensor to the file `path`.
pub(super) fn write_elements(
    sink: &mut impl Write,
    path: &Path,
    tensor: &HostTensor,
) -> Result<Written> {
    let mut output = Output { sink, path, size: 0, crc: 0 };
    match tensor.dtype() {
        DType::String => output.strings(tensor)?,
        DType::Variant => output.variants(tensor)?,
        DType::Resource => return Err(output.unsupported("a handle of a resource")),
        _ => output.plain(tensor.bytes())?,
    }
    Ok(Written { size: output.size, checksum: mask(output.crc) })
}

struct Output<'a, W> {
    sink: &'a mut W,
    path: &'a Path,
    size: u64,
    crc: u32,
}

impl<W: Write> Output<'_, W> {
    /// Writes bytes that are checksummed as they are.
    fn plain(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.crc = crc32c::crc32c_append(self.crc, piece);
            self.write(piece)?;
        }
        Ok(())
    }

    /// Writes bytes that the caller checksums.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let failed = |source| Error::Io { path: self.path.into(), source };
        self.sink.write_all(bytes).map_err(failed)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Lengths as varints, a checksum of the lengths, then the bytes of all strings.
    fn strings(&mut self, tensor: &HostTensor) -> Result<()> {
        let strings = tensor.strings()?;
        let mut lengths = Vec::with_capacity(strings.len());
        for string in strings {
            let length = string.len() as u64;
            put_varint(&mut lengths, length);
            self.crc = crc32c::crc32c_append(self.crc, fixed_width(&length.to_le_bytes(), length));
        }
        self.write(&lengths)?;
        self.plain(&mask(self.crc).to_le_bytes())?;
        strings.iter().try_for_each(|string| self.plain(string))
    }

    /// For each element its length as varint, its message, and a checksum of all so far.
    fn variants(&mut self, tensor: &HostTensor) -> Result<()> {
        for handle in tensor.handles()? {
            let Some(StoredHandle::Variant(value)) = handle.as_any().downcast_ref() else {
                return Err(self.unsupported("a value of dtype variant"));
            };
            let message = value.encode_to_vec();
            let length = message.len() as u64;
            let mut varint = Vec::new();
            put_varint(&mut varint, length);
            self.write(&varint)?;
            self.crc = crc32c::crc32c_append(self.crc, &length.to_le_bytes());
            self.plain(&message)?;
            self.plain(&mask(self.crc).to_le_bytes())?;
        }
        Ok(())
    }

    fn unsupported(&self, what: &'static str) -> Error {
        let what = format!("{what} has no form in files").into();
        Error::Unsupported { path: self.path.into(), what }
    }
}
