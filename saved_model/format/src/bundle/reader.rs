//! Reading checkpoints.

use super::{
    data::{DataFiles, Location},
    format1::{self, SliceTables},
    ordered_code::{decode_slice_key, encode_slice_key},
    partition,
    slice::{SliceRegion, SliceSpec, TensorSlice},
    table::SortedTable,
};
use crate::{
    error::{Error, Result},
    file::decode_message,
    proto::{self, bundle_header_proto::Endianness},
};
use bytes::Bytes;
use ferroflow_ir::files;
use ferroflow_ir::{DType, HostTensor, Limits, Shape};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

/// The version of the bundle format that this reader knows.
const VERSION: i32 = 1;

/// Entry of a checkpoint under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The element type.
    pub dtype: DType,
    /// The shape of the whole tensor.
    pub shape: Shape,
    /// For a partitioned tensor, the slices it is stored in; empty when it is in one piece.
    pub slices: Vec<TensorSlice>,
}

/// An open checkpoint.
///
/// **Invariant:** the data files are those that belong to the list of tensors, whatever writers put in
/// their place: they are opened with the list, and anew if it has been replaced by then.
///
/// The list of tensors is read when it is opened, elements when they are asked for. Many threads
/// may read from one reader at once.
#[derive(Debug)]
pub struct Reader {
    prefix: PathBuf,
    limits: Limits,
    entries: BTreeMap<Box<str>, Entry>,
    store: Store,
}

/// Number of attempts to open a checkpoint that writers replace while it is opened.
const ATTEMPTS: usize = 1000;

/// Where the elements are.
#[derive(Debug)]
enum Store {
    Bundle { files: DataFiles, tensors: Locations, slices: HashMap<Vec<u8>, Location> },
    Tables(SliceTables),
}

type Locations = HashMap<Box<str>, Location>;

impl Reader {
    /// Opens the checkpoint with this path, suffixes such as `.index` left out. Checkpoints of the
    /// first format are recognised by their files.
    ///
    /// # Errors
    ///
    /// [`Error::NoCheckpoint`], or what is wrong with its list of tensors.
    pub fn open(prefix: impl AsRef<Path>, limits: &Limits) -> Result<Reader> {
        let prefix = prefix.as_ref();
        let mut index = prefix.as_os_str().to_owned();
        index.push(".index");
        let index = PathBuf::from(index);
        for attempt in 1.. {
            if !files::exists(&index) {
                break;
            }
            let table = SortedTable::open(&index, limits)?;
            let reader = Reader::open_bundle(prefix, &table, limits);
            // Data files that a writer has replaced meanwhile belong to another index.
            if table.is_in_place() || attempt == ATTEMPTS {
                return reader;
            }
        }
        let files = format1::find_files(prefix)
            .ok_or_else(|| Error::NoCheckpoint { prefix: prefix.into() })?;
        let (tables, entries) = SliceTables::open(&files, limits)?;
        let (prefix, limits) = (prefix.into(), limits.clone());
        Ok(Reader { prefix, limits, entries, store: Store::Tables(tables) })
    }

    fn open_bundle(prefix: &Path, index: &SortedTable, limits: &Limits) -> Result<Reader> {
        let mut n_shards = None;
        let mut entries = BTreeMap::new();
        let (mut tensors, mut slices) = (HashMap::new(), HashMap::new());
        index.scan(|key, value| {
            if key.is_empty() {
                n_shards = Some(read_header(index.path(), value)?);
            } else if let Some((name, _)) = decode_slice_key(key) {
                let entry: proto::BundleEntryProto = decode_message(index.path(), value)?;
                let location = Location::from_proto(&entry)
                    .map_err(|error| Error::from(error).at_tensor(&name))?;
                slices.insert(key.to_vec(), location);
            } else {
                let name = read_name(index.path(), key)?;
                let (entry, location) =
                    read_entry(index.path(), value).map_err(|error| error.at_tensor(name))?;
                tensors.insert(name.into(), location);
                entries.insert(name.into(), entry);
            }
            Ok(())
        })?;
        let n_shards = n_shards.ok_or_else(|| damaged(index.path(), "the header is missing"))?;
        let files = DataFiles::new(prefix, n_shards, limits);
        files.hold(tensors.values().chain(slices.values()));
        let store = Store::Bundle { files, tensors, slices };
        Ok(Reader { prefix: prefix.into(), limits: limits.clone(), entries, store })
    }

    /// The checkpoint's path without suffixes.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The files that elements are in, whether they are there or not.
    pub fn data_files(&self) -> Vec<PathBuf> {
        match &self.store {
            Store::Bundle { files, .. } => files.paths().collect(),
            Store::Tables(tables) => tables.paths().map(Path::to_path_buf).collect(),
        }
    }

    /// The tensors, in the order of their names.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (&**name, entry))
    }

    /// Entry stored under a name, if there is one.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Reads a tensor. One that is stored in slices is put together.
    ///
    /// # Errors
    ///
    /// [`Error::NoTensor`], or what is wrong with the tensor or its file.
    pub fn read(&self, key: &str) -> Result<HostTensor> {
        let entry = self.find(key)?;
        self.read_region(key, entry, &SliceRegion::whole(&entry.shape))
            .map_err(|error| error.at_tensor(key))
    }

    /// Reads a part of a tensor, however it is stored.
    ///
    /// # Errors
    ///
    /// [`Error::NoTensor`], [`Error::Slice`] when the part does not fit the tensor, or what is
    /// wrong with the tensor or its file.
    pub fn read_slice(&self, key: &str, spec: &SliceSpec) -> Result<HostTensor> {
        let entry = self.find(key)?;
        let read = || {
            let region = spec.slice.region(&spec.shape)?;
            if spec.shape != entry.shape {
                let (slice, shape) = (spec.to_string(), entry.shape.clone());
                return Err(Error::Slice { slice, shape, rule: "is of another shape" });
            }
            self.read_region(key, entry, &region)
        };
        read().map_err(|error| error.at_tensor(key))
    }

    fn find(&self, key: &str) -> Result<&Entry> {
        self.entries
            .get(key)
            .ok_or_else(|| Error::NoTensor { prefix: self.prefix.clone(), key: key.into() })
    }

    fn read_region(&self, key: &str, entry: &Entry, region: &SliceRegion) -> Result<HostTensor> {
        if entry.slices.is_empty() {
            let whole = self.read_stored(key, entry, &TensorSlice::full(entry.shape.rank()))?;
            return partition::crop(whole, region);
        }
        let parts = partition::cover(entry, region)?;
        partition::assemble(entry.dtype, region, &parts, &self.limits, |slice| {
            self.read_stored(key, entry, slice)
        })
    }

    /// A tensor or a slice as it is stored.
    fn read_stored(&self, key: &str, entry: &Entry, slice: &TensorSlice) -> Result<HostTensor> {
        let (files, location) = match &self.store {
            Store::Tables(tables) => return tables.read(key, entry, slice),
            Store::Bundle { files, tensors, .. } if entry.slices.is_empty() => {
                (files, tensors.get(key))
            }
            Store::Bundle { files, slices, .. } => {
                (files, slices.get(&encode_slice_key(key, slice)))
            }
        };
        let shape = slice.region(&entry.shape)?.shape;
        match location {
            Some(at) if at.dtype == entry.dtype && at.shape == shape => files.read(at),
            Some(_) => Err(self.wrong_slice(entry, slice, "is stored with another dtype or shape")),
            None => Err(self.wrong_slice(entry, slice, "is not in the checkpoint")),
        }
    }

    fn wrong_slice(&self, entry: &Entry, slice: &TensorSlice, rule: &'static str) -> Error {
        Error::Slice { slice: slice.to_string(), shape: entry.shape.clone(), rule }
    }
}

/// The number of data files.
pub(super) fn read_header(path: &Path, value: Bytes) -> Result<u32> {
    let header: proto::BundleHeaderProto = decode_message(path, value)?;
    let unsupported =
        |what: &str| Error::Unsupported { path: path.into(), what: what.to_owned().into() };
    let version = header.version.unwrap_or_default();
    if version.min_consumer > VERSION || version.bad_consumers.contains(&VERSION) {
        return Err(unsupported("a newer version of the bundle format"));
    }
    if header.endianness != Endianness::Little as i32 {
        return Err(unsupported("big-endian data"));
    }
    let n_shards = u32::try_from(header.num_shards).ok().filter(|&n_shards| n_shards > 0);
    n_shards.ok_or_else(|| damaged(path, "the number of data files"))
}

fn read_name<'a>(path: &Path, key: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(key).map_err(|_| damaged(path, "a name that is not UTF-8"))
}

fn read_entry(path: &Path, value: Bytes) -> Result<(Entry, Location)> {
    let entry: proto::BundleEntryProto = decode_message(path, value)?;
    let location = Location::from_proto(&entry)?;
    let slices = entry.slices.iter().map(|slice| {
        let slice = TensorSlice::from_proto(slice).ok_or_else(|| damaged(path, "a slice"))?;
        slice.region(&location.shape).map(|_| slice)
    });
    let slices = slices.collect::<Result<_>>()?;
    let (dtype, shape) = (location.dtype, location.shape.clone());
    Ok((Entry { dtype, shape, slices }, location))
}

fn damaged(path: &Path, what: &'static str) -> Error {
    Error::Damaged { path: path.into(), offset: 0, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bundle::testing::{self, Compression},
        proto::{
            BundleEntryProto, BundleHeaderProto, TensorShapeProto, TensorSliceProto,
            tensor_shape_proto::Dim,
            tensor_slice_proto::{Extent, extent::HasLength},
        },
    };
    use proptest::prelude::*;
    use prost::Message;

    /// Opens a checkpoint with these entries and 64 bytes of data, and reads everything in it.
    fn read_all(entries: &[(Vec<u8>, BundleEntryProto)]) -> Result<Vec<HostTensor>> {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("m");
        let header = BundleHeaderProto { num_shards: 1, ..BundleHeaderProto::default() };
        let mut pairs = vec![(Vec::new(), header.encode_to_vec())];
        pairs.extend(entries.iter().map(|(key, entry)| (key.clone(), entry.encode_to_vec())));
        let blocks = [(b"\xff".to_vec(), testing::block(&pairs))];
        let table = testing::table(&blocks, Compression::None);
        std::fs::write(prefix.with_extension("index"), table).unwrap();
        let data: Vec<u8> = (0..64).collect();
        std::fs::write(prefix.with_extension("data-00000-of-00001"), data).unwrap();
        let reader = Reader::open(&prefix, &Limits::default())?;
        reader.entries().map(|(name, _)| reader.read(name)).collect()
    }

    fn shape(sizes: &[i64]) -> Option<TensorShapeProto> {
        let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
        Some(TensorShapeProto { dim, unknown_rank: false })
    }

    fn slice(extents: &[(i64, Option<i64>)]) -> TensorSliceProto {
        let extent = |&(start, length): &(i64, Option<i64>)| Extent {
            start,
            has_length: length.map(HasLength::Length),
        };
        TensorSliceProto { extent: extents.iter().map(extent).collect() }
    }

    fn partitioned(slices: Vec<TensorSliceProto>) -> BundleEntryProto {
        let dtype = DType::U8.number();
        BundleEntryProto { dtype, shape: shape(&[4]), slices, ..BundleEntryProto::default() }
    }

    #[test]
    fn slices_must_be_there_and_cover_everything_once() {
        let check = |slices: &[(i64, i64)], expected: &str| {
            let slices = slices.iter().map(|&(start, len)| slice(&[(start, Some(len))])).collect();
            let error = read_all(&[(b"w".to_vec(), partitioned(slices))]).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        };
        check(&[(0, 2), (2, 2)], "is not in the checkpoint");
        check(&[(0, 2)], "and the others leave out elements");
        check(&[(0, 3), (2, 2)], "overlaps another one");
        check(&[(0, 5)], "leaves the tensor");
        check(&[(0, 0)], "a slice");
        check(&[(-1, 2)], "a slice");
        check(&[(i64::MAX, i64::MAX)], "leaves the tensor");
    }

    fn number() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -1i64..5, 1 => any::<i64>()]
    }

    fn entry() -> impl Strategy<Value = BundleEntryProto> {
        let extents = prop::collection::vec((number(), prop::option::of(number())), 0..3);
        let slices = prop::collection::vec(extents.prop_map(|extents| slice(&extents)), 0..3);
        let shape = prop::collection::vec(number(), 0..3).prop_map(|sizes| shape(&sizes));
        (0i32..36, shape, -1i32..2, number(), number(), slices).prop_map(
            |(dtype, shape, shard_id, offset, size, slices)| {
                let offset = offset.saturating_mul(4);
                BundleEntryProto { dtype, shape, shard_id, offset, size, crc32c: 0, slices }
            },
        )
    }

    proptest! {
        #[test]
        fn any_entry_is_read_or_refused(
            whole in entry(), part in entry(), extents in prop::collection::vec((0usize..3, 0usize..4), 0..3)
        ) {
            let extents = extents.iter().map(|&(start, length)| match length {
                0 => crate::bundle::Extent::Full,
                _ => crate::bundle::Extent::Range { start, length },
            });
            let key = encode_slice_key("w", &TensorSlice::new(extents));
            let _ = read_all(&[(key, part), (b"w".to_vec(), whole)]);
        }
    }
}
