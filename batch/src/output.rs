//! Output of a run: parts in a folder, and the file that they are joined to.

use crate::{
    error::{Error, Result},
    job::ParquetCompression,
    manifest::{MANIFEST, Manifest, publish, temporary},
};
use datafusion::{
    arrow::{
        array::RecordBatch,
        datatypes::{Schema, SchemaRef},
    },
    parquet::{
        arrow::{ArrowSchemaConverter, ArrowWriter},
        basic::{Compression, Type as PhysicalType, ZstdLevel},
        column::writer::ColumnCloseResult,
        file::{
            metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
            properties::WriterProperties,
            writer::{SerializedFileWriter, SerializedRowGroupWriter},
        },
    },
};
use std::{
    fs::{self, File, TryLockError},
    io::BufWriter,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Bytes of a row group that is being written, at most.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// Name of the file that the writing process holds a lock of.
const LOCK: &str = "_ferroflow.lock";

/// The folder of the parts of a run, locked for this process.
#[derive(Debug)]
pub(crate) struct PartsFolder {
    folder: PathBuf,
    /// The file that parts are joined to, if it is asked for.
    file: Option<PathBuf>,
    _lock: File,
}

impl PartsFolder {
    /// The folder for an output: itself, or one beside the file.
    pub(crate) fn open(output: &Path, overwrite: bool) -> Result<PartsFolder> {
        let is_file = output.extension().is_some_and(|extension| extension == "parquet");
        let (folder, file) = match is_file && !output.is_dir() {
            true => (parts_of(output), Some(output.to_path_buf())),
            false => (output.to_path_buf(), None),
        };
        if is_foreign(&folder)? {
            return Err(Error::Exists { path: folder });
        }
        if let Some(file) = &file
            && file.exists()
            && !folder.join(MANIFEST).exists()
            && !overwrite
        {
            return Err(Error::Exists { path: file.clone() });
        }
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let lock = lock(&folder)?;
        Ok(PartsFolder { folder, file, _lock: lock })
    }

    /// The run to go on with: the one that was left here, if it is the same; otherwise this one.
    pub(crate) fn resume(&self, manifest: Manifest, overwrite: bool) -> Result<Manifest> {
        if !overwrite && let Some(found) = Manifest::read(&self.folder)? {
            found.check_same(&manifest, &self.folder)?;
            return Ok(found);
        }
        self.clear()?;
        manifest.write(&self.folder)?;
        Ok(manifest)
    }

    /// Removes the parts that another run has left.
    fn clear(&self) -> Result<()> {
        for entry in fs::read_dir(&self.folder).map_err(Error::io(&self.folder))? {
            let path = entry.map_err(Error::io(&self.folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.trim_start_matches('_').starts_with("part-") {
                fs::remove_file(&path).map_err(Error::io(&path))?;
            }
        }
        Ok(())
    }

    /// The file of a part.
    pub(crate) fn part(&self, index: usize) -> PathBuf {
        self.folder.join(format!("part-{index:05}.parquet"))
    }

    /// Ends a run all of whose parts are written. Returns the number of rows.
    pub(crate) fn finish(&self, mut manifest: Manifest) -> Result<u64> {
        let parts: Vec<PathBuf> = (0..manifest.parts.len()).map(|index| self.part(index)).collect();
        let rows = match &self.file {
            Some(file) => join(&parts, file)?,
            None => {
                let rows =
                    |path: &PathBuf| Ok(metadata(&open(path)?, path)?.file_metadata().num_rows());
                parts.iter().map(rows).sum::<Result<i64>>()? as u64
            }
        };
        match &self.file {
            Some(_) => fs::remove_dir_all(&self.folder).map_err(Error::io(&self.folder))?,
            None => {
                manifest.complete = true;
                manifest.write(&self.folder)?;
            }
        }
        Ok(rows)
    }
}

fn parts_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}.parts"))
}

/// Whether a folder holds files that no run has written.
fn is_foreign(folder: &Path) -> Result<bool> {
    if !folder.exists() || folder.join(MANIFEST).exists() {
        return Ok(false);
    }
    let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
    let names: std::io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    Ok(names
        .map_err(Error::io(folder))?
        .iter()
        .any(|name| !name.to_string_lossy().starts_with('_')))
}

/// The lock of a folder, held until the file is closed.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let file = File::create(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Busy { folder: folder.into() }),
        Err(TryLockError::Error(source)) => Err(Error::Io { path, source }),
    }
}

/// A part that is being written.
pub(crate) struct PartWriter {
    path: PathBuf,
    writer: ArrowWriter<BufWriter<File>>,
}

impl PartWriter {
    pub(crate) fn create(
        path: PathBuf,
        schema: SchemaRef,
        compression: ParquetCompression,
    ) -> Result<PartWriter> {
        let temporary = temporary(&path);
        let file = File::create(&temporary).map_err(Error::io(&temporary))?;
        let properties = properties(compression, &schema).map_err(Error::parquet(&path))?;
        let writer = ArrowWriter::try_new(BufWriter::new(file), schema, Some(properties));
        Ok(PartWriter { writer: writer.map_err(Error::parquet(&path))?, path })
    }

    /// Adds rows. What is held in memory stays below the size of a row group.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(Error::parquet(&self.path))?;
        if self.writer.in_progress_size() >= ROW_GROUP_BYTES {
            self.writer.flush().map_err(Error::parquet(&self.path))?;
        }
        Ok(())
    }

    /// Renames the part to its final name.
    pub(crate) fn finish(self) -> Result<()> {
        let temporary = temporary(&self.path);
        let buffered = self.writer.into_inner().map_err(Error::parquet(&self.path))?;
        let file =
            buffered.into_inner().map_err(|error| Error::io(&temporary)(error.into_error()))?;
        publish(&file, &temporary, &self.path)
    }
}

/// Properties of files with these columns. What a model computes seldom repeats itself, so a dictionary of
/// floating-point numbers is work for nothing.
fn properties(compression: ParquetCompression, schema: &Schema) -> ParquetResult<WriterProperties> {
    let compression = match compression {
        ParquetCompression::None => Compression::UNCOMPRESSED,
        ParquetCompression::Snappy => Compression::SNAPPY,
        ParquetCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
    };
    let mut properties = WriterProperties::builder().set_compression(compression);
    for column in ArrowSchemaConverter::new().convert(schema)?.columns() {
        if matches!(column.physical_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE) {
            properties = properties.set_column_dictionary_enabled(column.path().clone(), false);
        }
    }
    Ok(properties.build())
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::io(path))
}

fn metadata(file: &File, path: &Path) -> Result<ParquetMetaData> {
    ParquetMetaDataReader::new()
        .with_page_index_policy(PageIndexPolicy::Optional)
        .parse_and_finish(file)
        .map_err(Error::parquet(path))
}

/// Joins parts to a file without decoding them: row groups one after the other.
fn join(parts: &[PathBuf], path: &Path) -> Result<u64> {
    let temporary = temporary(path);
    let output = File::create(&temporary).map_err(Error::io(&temporary))?;
    let mut writer: Option<SerializedFileWriter<&File>> = None;
    let mut rows = 0;
    for part in parts {
        let input = open(part)?;
        let metadata = metadata(&input, part)?;
        rows += metadata.file_metadata().num_rows();
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(joined(&output, &metadata).map_err(Error::parquet(path))?),
        };
        for index in 0..metadata.num_row_groups() {
            let group = writer.next_row_group().map_err(Error::parquet(path))?;
            append(group, &input, &metadata, index).map_err(Error::parquet(part))?;
        }
    }
    if let Some(writer) = writer {
        writer.close().map_err(Error::parquet(path))?;
    }
    publish(&output, &temporary, path)?;
    Ok(rows as u64)
}

type ParquetResult<T> = Result<T, datafusion::parquet::errors::ParquetError>;

/// A writer of files like this.
fn joined<'a>(
    output: &'a File,
    like: &ParquetMetaData,
) -> ParquetResult<SerializedFileWriter<&'a File>> {
    let metadata = like.file_metadata();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(metadata.key_value_metadata().cloned())
        .build();
    let schema = metadata.schema_descr().root_schema_ptr();
    SerializedFileWriter::new(output, schema, Arc::new(properties))
}

fn append(
    mut group: SerializedRowGroupWriter<'_, &File>,
    input: &File,
    metadata: &ParquetMetaData,
    index: usize,
) -> ParquetResult<()> {
    let found: &RowGroupMetaData = metadata.row_group(index);
    let column_indexes = metadata.column_index().and_then(|indexes| indexes.get(index));
    let offset_indexes = metadata.offset_index().and_then(|indexes| indexes.get(index));
    for (column, chunk) in found.columns().iter().enumerate() {
        let result = ColumnCloseResult {
            bytes_written: chunk.compressed_size() as u64,
            rows_written: found.num_rows() as u64,
            metadata: chunk.clone(),
            bloom_filter: None,
            column_index: column_indexes.and_then(|indexes| indexes.get(column)).cloned(),
            offset_index: offset_indexes.and_then(|indexes| indexes.get(column)).cloned(),
        };
        group.append_column(input, result)?;
    }
    group.close()?;
    Ok(())
}
