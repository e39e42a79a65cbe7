//! A file of a table: what it is, and its rows from one on.

use super::{
    Error, Result,
    arrow_file::ArrowBlocks,
    columns::{TableColumn, TableRows},
    guard::{ReadFault, guarded},
};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
};
use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file with the columns that are asked for.
#[derive(Debug)]
pub(super) struct TableSource {
    path: Arc<Path>,
    format: TableFormat,
    n_rows: usize,
    /// Columns of the file that are read, in its order.
    projection: Vec<usize>,
    /// Where each column that is asked for is among those.
    order: Vec<usize>,
    /// The columns as they are asked for, with their types in the file.
    schema: SchemaRef,
}

#[derive(Debug)]
enum TableFormat {
    Parquet(ArrowReaderMetadata),
    /// A file of Arrow with its parts.
    ArrowFile(ArrowBlocks),
    /// A stream of Arrow in a file, which is read from the beginning.
    ArrowStream,
}

impl TableSource {
    pub(super) fn open(path: PathBuf, columns: &[TableColumn]) -> Result<TableSource> {
        let path: Arc<Path> = path.into();
        let (format, whole) = guarded(&path, || recognized(&path))?;
        let indices: Vec<usize> =
            columns.iter().map(|column| column.index(&path, &whole)).collect::<Result<_>>()?;
        let mut projection = indices.clone();
        projection.sort_unstable();
        projection.dedup();
        let location = |index: &usize| projection.binary_search(index).unwrap_or(0);
        let order = indices.iter().map(location).collect();
        let field = |&index: &usize| {
            let field = whole.field(index);
            Field::new(field.name(), field.data_type().clone(), true)
        };
        let schema = Arc::new(Schema::new(indices.iter().map(field).collect::<Vec<_>>()));
        let mut source = TableSource { path, format, n_rows: 0, projection, order, schema };
        source.n_rows = source.count_rows()?;
        Ok(source)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Checks that the columns have the types of another file.
    pub(super) fn check_types(&self, first: &TableSource) -> Result<()> {
        let mut pairs = self.schema.fields().iter().zip(first.schema.fields());
        match pairs.find(|(here, there)| here.data_type() != there.data_type()) {
            None => Ok(()),
            Some((here, there)) => Err(self.wrong(format!(
                "column `{}` is {}, but {} in {}",
                here.name(),
                here.data_type(),
                there.data_type(),
                first.path.display()
            ))),
        }
    }

    fn wrong(&self, what: impl ToString) -> Error {
        Error::Format { path: self.path.to_path_buf(), what: what.to_string() }
    }

    fn count_rows(&self) -> Result<usize> {
        match &self.format {
            TableFormat::Parquet(metadata) => {
                let n_rows = metadata.metadata().file_metadata().num_rows();
                usize::try_from(n_rows).map_err(|_| self.wrong(format!("{n_rows} rows")))
            }
            TableFormat::ArrowFile(blocks) => Ok(blocks.n_rows()),
            TableFormat::ArrowStream => {
                self.rows_from(0, 1)?.map(|rows| Ok(rows?.batch.num_rows())).sum()
            }
        }
    }

    /// No rows.
    pub(super) fn no_rows(&self) -> TableRows {
        let batch = RecordBatch::new_empty(self.schema.clone());
        TableRows { batch, path: self.path.clone(), first_row: 0 }
    }

    /// The rows from one on, about `size` at a time where the file does not say how many.
    pub(super) fn rows_from(&self, first: usize, size: usize) -> Result<RowBatches> {
        let (batches, first_read) = guarded(&self.path, || self.batches_from(first, size))?;
        Ok(RowBatches {
            batches,
            path: self.path.clone(),
            order: self.order.clone(),
            schema: self.schema.clone(),
            next_row: first_read,
            first,
        })
    }

    /// Batches of rows, and the index of the first one in them.
    fn batches_from(&self, first: usize, size: usize) -> Result<(AnyBatches, usize), ReadFault> {
        let file = File::open(&self.path)?;
        let projection = self.projection.clone();
        Ok(match &self.format {
            TableFormat::Parquet(metadata) => {
                let mask = ProjectionMask::roots(metadata.parquet_schema(), projection);
                let builder =
                    ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
                let reader = builder
                    .with_projection(mask)
                    .with_batch_size(size.clamp(1, MOST_ROWS))
                    .with_offset(first)
                    .build()?;
                (Box::new(reader), first)
            }
            TableFormat::ArrowFile(blocks) => {
                let mut reader = FileReader::try_new(BufReader::new(file), Some(projection))?;
                let (block, first_read) = blocks.block_of(first);
                if block < reader.num_batches() {
                    reader.set_index(block)?;
                }
                (Box::new(reader), first_read)
            }
            TableFormat::ArrowStream => {
                (Box::new(StreamReader::try_new(BufReader::new(file), Some(projection))?), 0)
            }
        })
    }
}

/// The most rows of a batch of Parquet's reader.
const MOST_ROWS: usize = 65_536;

/// The format of a file and all columns of it.
fn recognized(path: &Path) -> Result<(TableFormat, SchemaRef), ReadFault> {
    let mut file = File::open(path)?;
    let mut magic = Vec::new();
    file.by_ref().take(6).read_to_end(&mut magic)?;
    file.rewind()?;
    if magic.starts_with(b"PAR1") {
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())?;
        let schema = metadata.schema().clone();
        return Ok((TableFormat::Parquet(metadata), schema));
    }
    if magic.starts_with(b"ARROW1") {
        let blocks = ArrowBlocks::read(&mut file)?;
        file.rewind()?;
        let schema = FileReader::try_new(BufReader::new(file), None)?.schema();
        return Ok((TableFormat::ArrowFile(blocks), schema));
    }
    if magic.starts_with(&[0xff; 4]) {
        let schema = StreamReader::try_new(BufReader::new(file), None)?.schema();
        return Ok((TableFormat::ArrowStream, schema));
    }
    Err("neither Parquet nor a file or stream of Arrow".into())
}

/// The reader of a format, as an iterator of batches.
type AnyBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The rows of a file from one on.
pub(super) struct RowBatches {
    batches: AnyBatches,
    path: Arc<Path>,
    order: Vec<usize>,
    schema: SchemaRef,
    /// The index of the first row of the next batch.
    next_row: usize,
    /// The first row that is asked for.
    first: usize,
}

impl Iterator for RowBatches {
    type Item = Result<TableRows>;

    fn next(&mut self) -> Option<Result<TableRows>> {
        loop {
            let batch = guarded(&self.path, || self.batches.next().transpose().map_err(Into::into));
            let rows = match batch {
                Ok(None) => return None,
                Ok(Some(batch)) => self.ordered(&batch),
                Err(error) => return Some(Err(error)),
            };
            match rows {
                Ok(rows) if rows.batch.num_rows() == 0 => {}
                rows => return Some(rows),
            }
        }
    }
}

impl RowBatches {
    /// The rows of a batch that are asked for, with the columns in their order.
    fn ordered(&mut self, batch: &RecordBatch) -> Result<TableRows> {
        let n_rows = batch.num_rows();
        let wrong = |error: ArrowError| Error::Format {
            path: self.path.to_path_buf(),
            what: error.to_string(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        // A file that has changed since it was opened has other columns.
        let ordered = batch.project(&self.order).and_then(|batch| {
            let columns = batch.columns().to_vec();
            RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
        });
        let rows = TableRows {
            batch: ordered.map_err(wrong)?,
            path: self.path.clone(),
            first_row: self.next_row,
        };
        self.next_row += n_rows;
        Ok(rows.slice(self.first.saturating_sub(rows.first_row).min(n_rows)..n_rows))
    }
}
