//! Rows of tables in files: Parquet, and Arrow's files and streams (Feather, the data sets of Hugging
//! Face).

mod arrow_file;
mod chunks;
mod columns;
mod guard;
mod source;
#[cfg(test)]
mod tests;

use super::{DataPipeline, Error, Example, Result, pipeline::PipelineItems};
use chunks::{Chunks, RowsOf};
use columns::TableColumn;
use ferroflow_ir::{DType, HostTensor};
use source::TableSource;
use std::{path::PathBuf, sync::Arc};

/// Columns of files with the same ones, whose rows are the examples of a training. Rows are read as
/// they are needed: files need not fit into memory. Cheap to clone.
///
/// ```
/// use ferroflow::{data::TableFiles, ir::DType};
/// # use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
/// # use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("flowers.parquet");
/// # let length: ArrayRef = Arc::new(Float64Array::from(vec![5.1, 7.0, 6.3]));
/// # let kind: ArrayRef = Arc::new(Int64Array::from(vec![0, 1, 2]));
/// # let rows = RecordBatch::try_from_iter([("length", length), ("kind", kind)])?;
/// # let file = std::fs::File::create(&path)?;
/// # let mut writer = parquet::arrow::ArrowWriter::try_new(file, rows.schema(), None)?;
/// # writer.write(&rows)?;
/// # writer.close()?;
/// let table = TableFiles::open([path], &[("length", DType::F32), ("kind", DType::I32)])?;
/// assert_eq!(table.n_rows(), 3);
/// let batches = table.rows().shuffle(100, 7).batch(2, false);
/// for batch in batches.epoch(0) {
///     let [length, kind] = &batch?[..] else { unreachable!("two columns") };
///     assert_eq!(length.shape(), kind.shape());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TableFiles {
    files: Arc<[TableSource]>,
    columns: Arc<[TableColumn]>,
    n_rows: usize,
}

impl TableFiles {
    /// Opens files; they are told apart by what they hold. A column becomes tensors of the dtype that is
    /// asked for. Numbers become floats, rounded to the nearest; integers become integers they fit. A
    /// column of lists has tensors of their shape.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when a file cannot be read, [`Error::Format`] when it is no table, when a column is
    /// missing, is of another type than in the first file, or does not become the dtype.
    pub fn open<P: Into<PathBuf>>(
        paths: impl IntoIterator<Item = P>,
        columns: &[(&str, DType)],
    ) -> Result<TableFiles> {
        let columns: Arc<[TableColumn]> =
            columns.iter().map(|&(name, dtype)| TableColumn::new(name, dtype)).collect();
        let open = |path: P| TableSource::open(path.into(), &columns);
        let files: Arc<[TableSource]> = paths.into_iter().map(open).collect::<Result<_>>()?;
        for file in files.iter().skip(1) {
            file.check_types(&files[0])?;
        }
        let n_rows = files.iter().map(TableSource::n_rows).fold(0, usize::saturating_add);
        Ok(TableFiles { files, columns, n_rows })
    }

    /// The number of rows of all files.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// All rows in memory, a tensor for each column: for [`Arrays`](super::Arrays).
    ///
    /// # Errors
    ///
    /// [`Error::Format`], with file, row and column, for a value that is missing (null), an integer that
    /// does not fit, or lists of different lengths.
    pub fn read(&self) -> Result<Vec<HostTensor>> {
        self.chunks(self.n_rows.max(1), 0).next_or_empty()?.tensors(&self.columns)
    }

    /// Batches of `size` rows, a tensor `[size, …]` for each column, in the order of files and rows; the
    /// last batch may have fewer. Errors are those of [`read`](TableFiles::read), with the batch.
    pub fn batches(&self, size: usize) -> DataPipeline<Example> {
        let (table, size) = (self.clone(), size.max(1));
        let len = self.n_rows.div_ceil(size);
        DataPipeline::from_position(Some(len), move |_, n_done| {
            let columns = table.columns.clone();
            let batches = table.chunks(size, n_done.saturating_mul(size));
            Box::new(batches.map(move |rows| {
                Ok(rows?.tensors(&columns)?.into_iter().map(Into::into).collect())
            }))
        })
    }

    /// The rows, a tensor for each column: a scalar, or a list of a length of its own, which
    /// [`padded_batch`](DataPipeline::padded_batch) puts together with longer ones. A position in an epoch
    /// is found without reading what comes before. Errors are those of [`read`](TableFiles::read).
    pub fn rows(&self) -> DataPipeline<Example> {
        let table = self.clone();
        DataPipeline::from_position(Some(self.n_rows), move |_, n_done| -> PipelineItems<Example> {
            let columns = table.columns.clone();
            let chunks = table.chunks(chunks::ROWS_AT_A_TIME, n_done);
            Box::new(chunks.flat_map(move |rows| RowsOf::new(rows, &columns)))
        })
    }

    /// The rows from `first` on, so many at a time.
    fn chunks(&self, size: usize, first: usize) -> Chunks {
        Chunks::new(self.files.clone(), size, first)
    }
}
