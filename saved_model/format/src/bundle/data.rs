//! The data files of a bundle: elements at the offsets its index names.

use super::table::take_varint;
use crate::checksum::mask;
use crate::{
    convert,
    error::{Error, Result},
    file::{InputFile, decode_message},
    proto,
};
use bytes::Bytes;
use ferroflow_ir::{DType, Handle, HostTensor, Limits, Shape, host_tensor::byte_len};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

/// Bytes are checksummed in pieces of this many, while they are still in the processor's cache.
pub(super) const PIECE: usize = 256 << 10;

/// Where the elements of a tensor, or of a slice of one, are.
#[derive(Debug, Clone)]
pub(super) struct Location {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    shard: u32,
    offset: u64,
    size: u64,
    checksum: u32,
}

impl Location {
    /// The location an index entry names.
    pub(super) fn from_proto(entry: &proto::BundleEntryProto) -> ferroflow_ir::Result<Location> {
        let unsigned = |what: &'static str, value: i64| {
            u64::try_from(value).map_err(|_| {
                ferroflow_ir::Error::argument("bundle entry", what, "not negative", value)
            })
        };
        Ok(Location {
            dtype: convert::value_dtype(entry.dtype)?,
            shape: convert::known_shape(entry.shape.as_ref())?,
            shard: unsigned("shard_id", entry.shard_id.into())? as u32,
            offset: unsigned("offset", entry.offset)?,
            size: unsigned("size", entry.size)?,
            checksum: entry.crc32c,
        })
    }
}

/// Data files that are opened with a checkpoint; processes may have few open files.
const MOST_HELD: usize = 64;

/// The data files of a bundle, opened when they are first read.
#[derive(Debug)]
pub(super) struct DataFiles {
    prefix: PathBuf,
    n_shards: u32,
    open: RwLock<HashMap<u32, Arc<InputFile>>>,
    limits: Limits,
}

impl DataFiles {
    pub(super) fn new(prefix: &Path, n_shards: u32, limits: &Limits) -> DataFiles {
        let open = RwLock::default();
        DataFiles { prefix: prefix.into(), n_shards, open, limits: limits.clone() }
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.n_shards).map(|shard| shard_path(&self.prefix, shard, self.n_shards))
    }

    /// Reads a tensor and checks it against its checksum.
    pub(super) fn read(&self, at: &Location) -> Result<HostTensor> {
        let file = self.shard(at.shard)?;
        match at.dtype {
            DType::String => self.read_strings(&file, at),
            DType::Variant => self.read_variants(&file, at),
            DType::Resource => Err(Error::Unsupported {
                path: file.path().into(),
                what: "a handle of a resource means nothing outside its process".into(),
            }),
            _ => self.read_plain(&file, at),
        }
    }

    /// Opens the files of these tensors, as far as they are there and not too many.
    pub(super) fn hold<'a>(&self, locations: impl Iterator<Item = &'a Location>) {
        let mut last = None;
        for location in locations.filter(|at| at.size > 0) {
            if last.replace(location.shard) != Some(location.shard) {
                if self.open.read().unwrap_or_else(PoisonError::into_inner).len() >= MOST_HELD {
                    return;
                }
                // A file that is missing is told of when it is read.
                let _ = self.shard(location.shard);
            }
        }
    }

    fn shard(&self, shard: u32) -> Result<Arc<InputFile>> {
        if shard >= self.n_shards {
            let high = i64::from(self.n_shards);
            let index = shard.into();
            return Err(ferroflow_ir::Error::Index { what: "shard".into(), index, low: 0, high })?;
        }
        if let Some(file) = self.open.read().unwrap_or_else(PoisonError::into_inner).get(&shard) {
            return Ok(file.clone());
        }
        let file = Arc::new(InputFile::open(shard_path(&self.prefix, shard, self.n_shards))?);
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        Ok(open.entry(shard).or_insert(file).clone())
    }

    fn read_plain(&self, file: &InputFile, at: &Location) -> Result<HostTensor> {
        let len = byte_len(at.dtype, &at.shape)?;
        if len as u64 != at.size {
            return Err(file.damaged(at.offset, "size does not fit dtype and shape"));
        }
        file.check_range(at.offset, at.size)?;
        check_limit(len, &self.limits)?;
        let mut tensor = HostTensor::recycled(at.dtype, at.shape.clone())?;
        let mut crc = 0;
        let mut offset = at.offset;
        for piece in tensor.bytes_mut().chunks_mut(PIECE) {
            file.read_at(piece, offset)?;
            crc = crc32c::crc32c_append(crc, piece);
            offset += piece.len() as u64;
        }
        check_checksum(file, at, mask(crc))?;
        at.dtype.normalize(tensor.bytes_mut());
        Ok(tensor)
    }

    /// Lengths as varints, a checksum of the lengths, then the bytes of all strings.
    fn read_strings(&self, file: &InputFile, at: &Location) -> Result<HostTensor> {
        let damaged = |what| file.damaged(at.offset, what);
        let bytes = self.read_elements(file, at)?;
        let mut rest = &bytes[..];
        let mut lengths = Vec::with_capacity(at.shape.num_elements());
        let mut crc = 0;
        for _ in 0..at.shape.num_elements() {
            let length = take_varint(&mut rest).ok_or_else(|| damaged("length of a string"))?;
            crc = crc32c::crc32c_append(crc, fixed_width(&length.to_le_bytes(), length));
            lengths.push(usize::try_from(length).map_err(|_| damaged("length of a string"))?);
        }
        let (stored, rest) =
            rest.split_first_chunk::<4>().ok_or_else(|| damaged("checksum of string lengths"))?;
        if u32::from_le_bytes(*stored) != mask(crc) {
            return Err(damaged("checksum of string lengths"));
        }
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(crc, stored), rest);
        check_checksum(file, at, mask(crc))?;
        let mut start = bytes.len() - rest.len();
        let mut strings = Vec::with_capacity(lengths.len());
        for length in lengths {
            let end = start.checked_add(length).filter(|&end| end <= bytes.len());
            let end = end.ok_or_else(|| damaged("strings longer than the entry"))?;
            strings.push(bytes.slice(start..end));
            start = end;
        }
        if start != bytes.len() {
            return Err(damaged("strings shorter than the entry"));
        }
        Ok(HostTensor::from_strings(at.shape.clone(), strings)?)
    }

    /// For each element its length as varint, its message, and a checksum of all so far.
    fn read_variants(&self, file: &InputFile, at: &Location) -> Result<HostTensor> {
        let damaged = |what| file.damaged(at.offset, what);
        let bytes = self.read_elements(file, at)?;
        let mut handles: Vec<Arc<dyn Handle>> = Vec::new();
        let mut rest = &bytes[..];
        let mut crc = 0;
        for _ in 0..at.shape.num_elements() {
            let length = take_varint(&mut rest).ok_or_else(|| damaged("length of a variant"))?;
            let message = usize::try_from(length).ok().and_then(|len| rest.split_at_checked(len));
            let (message, tail) = message.ok_or_else(|| damaged("length of a variant"))?;
            crc = crc32c::crc32c_append(crc, &length.to_le_bytes());
            crc = crc32c::crc32c_append(crc, message);
            let (stored, tail) =
                tail.split_first_chunk::<4>().ok_or_else(|| damaged("checksum of a variant"))?;
            if u32::from_le_bytes(*stored) != mask(crc) {
                return Err(damaged("checksum of a variant"));
            }
            crc = crc32c::crc32c_append(crc, stored);
            let value = decode_message(file.path(), bytes.slice_ref(message))?;
            handles.push(Arc::new(convert::StoredHandle::Variant(value)));
            rest = tail;
        }
        if !rest.is_empty() {
            return Err(damaged("variants shorter than the entry"));
        }
        check_checksum(file, at, mask(crc))?;
        Ok(HostTensor::from_handles(DType::Variant, at.shape.clone(), handles)?)
    }

    /// The bytes of a tensor whose elements take at least one byte each.
    fn read_elements(&self, file: &InputFile, at: &Location) -> Result<Bytes> {
        let n_elements = at.shape.num_elements();
        if n_elements as u64 > at.size {
            return Err(file.damaged(at.offset, "more elements than bytes"));
        }
        file.check_range(at.offset, at.size)?;
        check_limit(n_elements.saturating_mul(size_of::<Bytes>()), &self.limits)?;
        Ok(file.read(at.offset, at.size, &self.limits)?.into())
    }
}

/// The file of shard `shard` of the checkpoint `prefix`.
pub(super) fn shard_path(prefix: &Path, shard: u32, n_shards: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!(".data-{shard:05}-of-{n_shards:05}"));
    path.into()
}

/// Appends a little-endian base-128 number.
pub(super) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// String lengths are checksummed as 32-bit numbers, those that need more as 64-bit ones.
pub(super) fn fixed_width(bytes: &[u8; 8], length: u64) -> &[u8] {
    if length <= u64::from(u32::MAX) { &bytes[..4] } else { bytes }
}

fn check_checksum(file: &InputFile, at: &Location, found: u32) -> Result<()> {
    if found == at.checksum {
        return Ok(());
    }
    let (path, expected) = (file.path().into(), at.checksum);
    Err(Error::Checksum { path, offset: at.offset, len: at.size, expected, found })
}

/// Checks that a tensor may take this many bytes.
pub(crate) fn check_limit(bytes: usize, limits: &Limits) -> ferroflow_ir::Result<()> {
    if bytes <= limits.tensor_bytes {
        return Ok(());
    }
    let (needed, limit) = (format!("{bytes} bytes"), limits.tensor_bytes as u64);
    Err(ferroflow_ir::Error::Limit { what: "tensor".into(), needed, limit })
}
