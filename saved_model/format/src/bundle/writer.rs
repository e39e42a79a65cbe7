//! Writing checkpoints.

use super::{
    data::shard_path,
    encode::write_elements,
    ordered_code::encode_slice_key,
    publish::{self, NewCheckpoint, Replacing, n_shards_in_place},
    slice::{SliceSpec, TensorSlice},
    table_writer::TableWriter,
};
use crate::{
    convert,
    error::{Error, Result},
    output_file::{CompleteFile, Durability, OutputFile, folder_of, hold, temporary_name},
    proto::{BundleEntryProto, BundleHeaderProto, VersionDef, bundle_header_proto::Endianness},
};
use ferroflow_ir::{DType, HostTensor, Shape};
use prost::Message;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The version of the bundle format that is written.
const VERSION: i32 = 1;

/// Entries of an index by key, which is in order.
pub(super) type IndexEntries = BTreeMap<Vec<u8>, BundleEntryProto>;

/// A checkpoint being written: an index and one data file.
///
/// Elements go to the data file as they are added, so that no tensor is held twice. Nothing appears
/// under the checkpoint's name before [`finish`](Writer::finish).
///
/// ```
/// use ferroflow_ir::{HostTensor, Limits};
/// use ferroflow_format::bundle::{Reader, Writer};
/// # fn main() -> ferroflow_format::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let prefix = folder.path().join("weights");
/// let mut writer = Writer::create(&prefix)?;
/// writer.add("w", &HostTensor::vector(&[1.0f32, 2.0])?)?;
/// writer.finish()?;
/// let w = Reader::open(&prefix, &Limits::default())?.read("w")?;
/// assert_eq!(w.as_slice::<f32>()?, [1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    prefix: PathBuf,
    data: OutputFile,
    offset: u64,
    entries: IndexEntries,
}

impl Writer {
    /// Begins the checkpoint with this path, suffixes such as `.index` left out. Folders are made
    /// where they are missing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when its data file cannot be written.
    pub fn create(prefix: impl Into<PathBuf>) -> Result<Writer> {
        let prefix = prefix.into();
        let data = OutputFile::create(shard_path(&prefix, 0, 1))?;
        Ok(Writer { prefix, data, offset: 0, entries: IndexEntries::new() })
    }

    /// Adds a tensor.
    ///
    /// # Errors
    ///
    /// When there is one of this name already, it cannot be stored, or the file cannot be written.
    pub fn add(&mut self, key: &str, tensor: &HostTensor) -> Result<()> {
        self.check_new(key, key.as_bytes())?;
        self.store(key.as_bytes().to_vec(), tensor).map_err(|error| error.at_tensor(key))
    }

    /// Adds a part of a tensor.
    ///
    /// # Errors
    ///
    /// When the part does not fit the tensor or its other parts, is there already, cannot be
    /// stored, or the file cannot be written.
    pub fn add_slice(&mut self, key: &str, spec: &SliceSpec, part: &HostTensor) -> Result<()> {
        let SliceSpec { shape, slice } = spec;
        let region = slice.region(shape).map_err(|error| error.at_tensor(key))?;
        if region.shape != *part.shape() {
            return Err(wrong_part(spec, "has another shape than the part").at_tensor(key));
        }
        if region.shape == *shape {
            return self.add(key, part);
        }
        let slice_key = encode_slice_key(key, slice);
        self.check_new(key, &slice_key)?;
        let whole = self
            .entries
            .entry(key.as_bytes().to_vec())
            .or_insert_with(|| entry(part.dtype(), shape));
        let is_new = whole.slices.is_empty() && whole.size == 0;
        let fits = whole.dtype == part.dtype().number()
            && whole.shape.as_ref() == Some(&convert::shape_message(shape))
            && (is_new || !whole.slices.is_empty());
        if !fits {
            return Err(wrong_part(spec, "does not go with what is there already").at_tensor(key));
        }
        whole.slices.push(slice.to_proto());
        self.store(slice_key, part).map_err(|error| error.at_tensor(key))
    }

    fn check_new(&self, key: &str, full_key: &[u8]) -> Result<()> {
        // The empty key is that of the header.
        if key.is_empty() || self.entries.contains_key(full_key) {
            let (kind, name) = ("tensor of a checkpoint", key.to_owned());
            return Err(ferroflow_ir::Error::argument(kind, "name", "new", name).into());
        }
        Ok(())
    }

    fn store(&mut self, key: Vec<u8>, tensor: &HostTensor) -> Result<()> {
        let path = self.data.path().to_owned();
        let written = write_elements(&mut self.data, &path, tensor)?;
        let stored = BundleEntryProto {
            offset: self.offset as i64,
            size: written.size as i64,
            crc32c: written.checksum,
            ..entry(tensor.dtype(), tensor.shape())
        };
        self.offset += written.size;
        self.entries.insert(key, stored);
        Ok(())
    }

    /// Completes the checkpoint: first the data, then the index appear under their names.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when the files cannot be written.
    pub fn finish(self) -> Result<()> {
        self.finish_with(Durability::Disk)
    }

    /// As [`finish`](Writer::finish), as safe as is asked for.
    ///
    /// # Errors
    ///
    /// As [`finish`](Writer::finish).
    pub fn finish_with(self, durability: Durability) -> Result<()> {
        self.finish_up_to(durability, usize::MAX).map(|_| ())
    }

    /// Completes the checkpoint but for the steps of its publication after so many; whether those
    /// were all.
    pub(super) fn finish_up_to(self, durability: Durability, n_steps: usize) -> Result<bool> {
        let Writer { prefix, data, entries, .. } = self;
        let data = data.completed(durability)?;
        let index = OutputFile::create(index_path(&prefix))?;
        let index = write_index(index, 1, &entries, durability)?;
        // An index belongs to the data it was written with.
        let _held = hold(folder_of(&prefix));
        let before = n_shards_in_place(&prefix);
        let second = match before {
            Some(1) => Some((
                OutputFile::create(shard_path(&prefix, 1, 2))?.completed(durability)?,
                write_index(OutputFile::create(index_path(&prefix))?, 2, &entries, durability)?,
            )),
            _ => None,
        };
        let link = temporary_name(&shard_path(&prefix, 0, 1));
        let replacing = second.as_ref().map(|(empty, index)| Replacing {
            empty: empty.temporary(),
            index: index.temporary(),
            link: &link,
        });
        let new = NewCheckpoint { data: data.temporary(), index: index.temporary(), replacing };
        let steps = publish::steps(&prefix, folder_of(&prefix), &new, before);
        publish::run(&steps[..n_steps.min(steps.len())], durability)?;
        if n_steps >= steps.len()
            && let Some(n_shards) = n_shards_in_place(&prefix)
        {
            publish::remove_strays(&prefix, n_shards);
        }
        Ok(n_steps >= steps.len())
    }
}

fn entry(dtype: DType, shape: &Shape) -> BundleEntryProto {
    BundleEntryProto {
        dtype: dtype.number(),
        shape: Some(convert::shape_message(shape)),
        ..BundleEntryProto::default()
    }
}

fn wrong_part(spec: &SliceSpec, rule: &'static str) -> Error {
    Error::Slice { slice: spec.slice.to_string(), shape: spec.shape.clone(), rule }
}

/// Writes the index of a checkpoint, which has its name yet to come.
pub(super) fn write_index(
    file: OutputFile,
    n_shards: usize,
    entries: &IndexEntries,
    durability: Durability,
) -> Result<CompleteFile> {
    let path = file.path().to_owned();
    let failed = |source| Error::Io { path: path.clone(), source };
    let header = BundleHeaderProto {
        num_shards: n_shards as i32,
        endianness: Endianness::Little as i32,
        version: Some(VersionDef { producer: VERSION, ..VersionDef::default() }),
    };
    let mut table = TableWriter::new(file);
    table.add(b"", &header.encode_to_vec()).map_err(failed)?;
    for (key, entry) in entries {
        table.add(key, &entry.encode_to_vec()).map_err(failed)?;
    }
    table.finish().map_err(failed)?.completed(durability)
}

/// The index file of the checkpoint `prefix`.
pub(super) fn index_path(prefix: &Path) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(".index");
    path.into()
}

impl TensorSlice {
    /// The slice as a message.
    pub(super) fn to_proto(&self) -> crate::proto::TensorSliceProto {
        use super::slice::Extent;
        use crate::proto::tensor_slice_proto::{self, extent::HasLength};
        let extent = |extent: &Extent| match *extent {
            Extent::Full => tensor_slice_proto::Extent::default(),
            Extent::Range { start, length } => tensor_slice_proto::Extent {
                start: start as i64,
                has_length: Some(HasLength::Length(length as i64)),
            },
        };
        crate::proto::TensorSliceProto { extent: self.extents().iter().map(extent).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Reader;
    use ferroflow_ir::{Code, Limits};

    fn open(prefix: &Path) -> Reader {
        Reader::open(prefix, &Limits::default()).unwrap()
    }

    #[test]
    fn tensors_of_every_kind_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("new.folder/model.ckpt-1");
        let strings = vec!["".into(), "x".repeat(300).into(), vec![0xff, 0x00].into()];
        let tensors = [
            ("b", HostTensor::from_strings(Shape::new([3]).unwrap(), strings).unwrap()),
            ("a", HostTensor::scalar(2.5f64)),
            ("empty", HostTensor::zeros(DType::I32, Shape::new([0, 4]).unwrap()).unwrap()),
            ("large", HostTensor::vector(&vec![7u8; 600_000]).unwrap()),
            ("truth", HostTensor::scalar_bool(true)),
        ];
        let mut writer = Writer::create(&prefix).unwrap();
        tensors.iter().for_each(|(key, tensor)| writer.add(key, tensor).unwrap());
        assert_eq!(writer.add("a", &tensors[0].1).unwrap_err().code(), Code::InvalidArgument);
        writer.finish().unwrap();
        let reader = open(&prefix);
        assert_eq!(reader.entries().len(), tensors.len());
        tensors.iter().for_each(|(key, tensor)| assert_eq!(reader.read(key).unwrap(), *tensor));
        assert_eq!(std::fs::read_dir(prefix.parent().unwrap()).unwrap().count(), 2);
    }

    #[test]
    fn slices_make_up_a_tensor() {
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("m");
        let row =
            |from: f32| HostTensor::from_slice(Shape::new([1, 2]).unwrap(), &[from, from + 1.0]);
        let spec = |text: &str| text.parse::<SliceSpec>().unwrap();
        let mut writer = Writer::create(&prefix).unwrap();
        writer.add_slice("w", &spec("2 2 1,1:-"), &row(3.0).unwrap()).unwrap();
        writer.add_slice("w", &spec("2 2 0,1:-"), &row(1.0).unwrap()).unwrap();
        assert!(writer.add_slice("w", &spec("2 2 0,1:-"), &row(1.0).unwrap()).is_err());
        assert!(writer.add_slice("w", &spec("3 2 2,1:-"), &row(1.0).unwrap()).is_err());
        assert!(writer.add_slice("v", &spec("2 2 0,2:-"), &row(1.0).unwrap()).is_err());
        writer.finish().unwrap();
        let whole = open(&prefix).read("w").unwrap();
        assert_eq!(whole.as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn nothing_appears_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path().join("m")).unwrap();
        writer.add("a", &HostTensor::scalar(1.0f32)).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
