//! The columns that are asked for, as tensors of the dtypes that are asked for.

use super::{Error, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use ferroflow_arrow::{element_dtype, tensor_of_column};
use ferroflow_ir::{DType, HostTensor};
use ferroflow_tracer::Tensor;
use std::{ops::Range, path::Path, sync::Arc};

/// A column by name, with the dtype of its tensors.
#[derive(Debug)]
pub(super) struct TableColumn {
    name: String,
    dtype: DType,
}

impl TableColumn {
    pub(super) fn new(name: &str, dtype: DType) -> TableColumn {
        TableColumn { name: name.into(), dtype }
    }

    /// The index of the column in a schema, whose types its values may come from.
    pub(super) fn index(&self, path: &Path, schema: &Schema) -> Result<usize> {
        let wrong = |what| Error::Format { path: path.into(), what };
        let (name, dtype) = (&self.name, self.dtype);
        let mut fields = schema.fields().iter();
        let index = fields.position(|field| field.name() == name).ok_or_else(|| {
            let there: Vec<&String> = schema.fields().iter().map(|field| field.name()).collect();
            wrong(format!("there is no column `{name}`; there are {there:?}"))
        })?;
        let found = schema.field(index).data_type();
        match element_dtype(found) {
            Some(from) if becomes(from, dtype) => Ok(index),
            _ => Err(wrong(format!("column `{name}` is {found}, which does not become {dtype}"))),
        }
    }

    /// The tensor `[rows, …]` of some rows.
    fn tensor(&self, column: &ArrayRef, first_row: usize) -> Result<HostTensor, String> {
        let tensor =
            tensor_of_column(column, first_row as u64).map_err(|error| error.to_string())?;
        let from = tensor.dtype();
        if from == self.dtype {
            return Ok(tensor);
        }
        let converted = cast(&tensor, self.dtype)?;
        if from.is_integer() && self.dtype.is_integer() {
            let back = cast(&converted, from)?;
            let size = from.size().unwrap_or(1);
            let mut pairs = tensor.bytes().chunks(size).zip(back.bytes().chunks(size));
            if let Some(element) = pairs.position(|(before, after)| before != after) {
                let per_row = (tensor.len() / column.len().max(1)).max(1);
                let row = first_row + element / per_row;
                return Err(format!("row {row}: a value of {from} that is none of {}", self.dtype));
            }
        }
        Ok(converted)
    }
}

/// Whether values of a column become elements of a tensor of another dtype.
fn becomes(from: DType, to: DType) -> bool {
    let is_whole = |dtype: DType| dtype.is_integer() || dtype == DType::Bool;
    from == to
        || to.is_float() && (from.is_float() || is_whole(from))
        || to.is_integer() && is_whole(from)
}

fn cast(tensor: &HostTensor, to: DType) -> Result<HostTensor, String> {
    let converted = Tensor::from(tensor.clone()).cast(to).and_then(|tensor| tensor.host().cloned());
    converted.map_err(|error| error.to_string())
}

/// Some rows of a file, or of it and those after it.
#[derive(Debug)]
pub(super) struct TableRows {
    /// The columns in the order in which they were asked for.
    pub(super) batch: RecordBatch,
    /// The file that the first row is from, and its index there.
    pub(super) path: Arc<Path>,
    pub(super) first_row: usize,
}

impl TableRows {
    /// A tensor for each column.
    pub(super) fn tensors(&self, columns: &[TableColumn]) -> Result<Vec<HostTensor>> {
        let tensor = |(column, values): (&TableColumn, &ArrayRef)| {
            let tensor = column.tensor(values, self.first_row);
            tensor.map_err(|what| Error::Format {
                path: self.path.to_path_buf(),
                what: format!("column `{}`, {what}", column.name),
            })
        };
        columns.iter().zip(self.batch.columns()).map(tensor).collect()
    }

    /// Some of the rows.
    pub(super) fn slice(&self, rows: Range<usize>) -> TableRows {
        TableRows {
            batch: self.batch.slice(rows.start, rows.len()),
            path: self.path.clone(),
            first_row: self.first_row + rows.start,
        }
    }
}
