//! Checkpoints of the first format: tables that hold the tensors themselves.

use super::{Entry, ordered_code::encode_slice_key, slice::TensorSlice, table::SortedTable};
use crate::{
    convert,
    error::{Error, Result},
    file::decode_message,
    proto,
};
use ferroflow_ir::files;
use ferroflow_ir::{HostTensor, Limits, Shape};
use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

/// The tables of a checkpoint, and which of them holds which slice.
#[derive(Debug)]
pub(super) struct SliceTables {
    tables: Vec<SortedTable>,
    holders: HashMap<Vec<u8>, usize>,
    limits: Limits,
}

impl SliceTables {
    /// The paths of the tables.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.tables.iter().map(SortedTable::path)
    }

    /// Opens the files of a checkpoint and lists its tensors.
    pub(super) fn open(
        files: &[PathBuf],
        limits: &Limits,
    ) -> Result<(SliceTables, BTreeMap<Box<str>, Entry>)> {
        let tables: Result<Vec<SortedTable>> =
            files.iter().map(|file| SortedTable::open(file, limits)).collect();
        let (tables, holders) = (tables?, HashMap::new());
        let mut slices = SliceTables { tables, holders, limits: limits.clone() };
        let mut entries = BTreeMap::new();
        for index in 0..slices.tables.len() {
            for tensor in read_meta(&slices.tables[index])? {
                slices
                    .add(index, &tensor, &mut entries)
                    .map_err(|error| error.at_tensor(&tensor.name))?;
            }
        }
        Ok((slices, entries))
    }

    fn add(
        &mut self,
        index: usize,
        tensor: &proto::SavedSliceMeta,
        entries: &mut BTreeMap<Box<str>, Entry>,
    ) -> Result<()> {
        let path = self.tables[index].path();
        let damaged = |what: &'static str| damaged(path, what);
        let dtype = convert::value_dtype(tensor.r#type)?;
        let shape = convert::known_shape(tensor.shape.as_ref())?;
        let name: Box<str> = tensor.name.as_str().into();
        let entry = entries.entry(name).or_insert_with(|| Entry {
            dtype,
            shape: shape.clone(),
            slices: Vec::new(),
        });
        if entry.dtype != dtype || entry.shape != shape {
            return Err(damaged("two files disagree on a tensor"));
        }
        for slice in &tensor.slice {
            let slice = TensorSlice::from_proto(slice).ok_or_else(|| damaged("a slice"))?;
            slice.region(&entry.shape)?;
            let key = encode_slice_key(&tensor.name, &slice);
            self.holders.insert(key, index);
            if !slice.is_full() {
                entry.slices.push(slice);
            }
        }
        Ok(())
    }

    /// The stored part `slice` of a tensor.
    pub(super) fn read(
        &self,
        name: &str,
        entry: &Entry,
        slice: &TensorSlice,
    ) -> Result<HostTensor> {
        let shape = slice.region(&entry.shape)?.shape;
        let key = encode_slice_key(name, slice);
        let index = self.holders.get(&key).copied().unwrap_or(0);
        let table = &self.tables[index];
        let value = table.get(&key)?.ok_or_else(|| damaged(table.path(), "a slice is missing"))?;
        let stored: proto::SavedTensorSlices = decode_message(table.path(), value)?;
        let data = stored.data.and_then(|slice| slice.data);
        let data = data.ok_or_else(|| damaged(table.path(), "a slice without data"))?;
        self.elements(data, entry, &shape)
    }

    /// Only the typed lists are stored; dtype and shape are those of the listing.
    fn elements(
        &self,
        data: proto::TensorProto,
        entry: &Entry,
        shape: &Shape,
    ) -> Result<HostTensor> {
        Ok(convert::tensor_elements(&data, entry.dtype, shape.clone(), &self.limits)?)
    }
}

/// The listing of a table: the tensors and slices in it.
fn read_meta(table: &SortedTable) -> Result<Vec<proto::SavedSliceMeta>> {
    let value = table.get(b"")?.ok_or_else(|| damaged(table.path(), "no list of tensors"))?;
    let listing: proto::SavedTensorSlices = decode_message(table.path(), value)?;
    let meta = listing.meta.ok_or_else(|| damaged(table.path(), "no list of tensors"))?;
    Ok(meta.tensor)
}

fn damaged(path: &Path, what: &'static str) -> Error {
    Error::Damaged { path: path.into(), offset: 0, what: what.into() }
}

/// The files of a checkpoint of the first format: the prefix itself, or its shards, which the
/// prefix may name with a pattern, such as `model-?????-of-00002`.
pub(super) fn find_files(prefix: &Path) -> Option<Vec<PathBuf>> {
    if files::is_file(prefix) {
        return Some(vec![prefix.into()]);
    }
    let name = prefix.file_name()?.to_str()?;
    let stem = name.split_once("-?????-of-").map_or(name, |(stem, _)| stem);
    let folder = prefix.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut shards: Vec<(u32, u32)> = Vec::new();
    for name in files::names_in(folder).ok()? {
        let numbers = name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_prefix('-'));
        let numbers = numbers.and_then(|numbers| numbers.split_once("-of-"));
        if let Some((Ok(shard), Ok(count))) = numbers.map(|(a, b)| (a.parse(), b.parse())) {
            shards.push((shard, count));
        }
    }
    shards.sort_unstable();
    let n_shards = u32::try_from(shards.len()).ok()?;
    let complete = shards.iter().zip(0..).all(|(&shard, index)| shard == (index, n_shards));
    let path = |index: u32| folder.join(format!("{stem}-{index:05}-of-{n_shards:05}"));
    (n_shards > 0 && complete).then(|| (0..n_shards).map(path).collect())
}
