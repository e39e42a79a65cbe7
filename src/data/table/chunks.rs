//! Rows of several files, so many at a time.

use super::{
    Error, Example, Result,
    columns::{TableColumn, TableRows},
    source::{RowBatches, TableSource},
};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_tracer::Tensor;
use std::{collections::VecDeque, sync::Arc};

/// Rows that are read at a time where single ones are asked for.
pub(super) const ROWS_AT_A_TIME: usize = 1024;

/// The rows of files from one on, in parts of the same size but for the last.
pub(super) struct Chunks {
    files: Arc<[TableSource]>,
    /// The file to be opened next, and the row in it to begin with.
    next_file: usize,
    next_row: usize,
    open: Option<RowBatches>,
    size: usize,
    /// Rows that were read and belong to the next parts.
    waiting: VecDeque<TableRows>,
    n_waiting: usize,
}

impl Chunks {
    pub(super) fn new(files: Arc<[TableSource]>, size: usize, first: usize) -> Chunks {
        let (mut next_file, mut next_row) = (0, first);
        while let Some(file) = files.get(next_file)
            && next_row >= file.n_rows()
        {
            next_row -= file.n_rows();
            next_file += 1;
        }
        Chunks {
            files,
            next_file,
            next_row,
            open: None,
            size,
            waiting: VecDeque::new(),
            n_waiting: 0,
        }
    }

    /// The first part; rows without any, if there are none.
    pub(super) fn next_or_empty(mut self) -> Result<TableRows> {
        let first = self.files.first().map(TableSource::no_rows);
        let none = || Error::Format { path: "".into(), what: "no file has rows".into() };
        self.next().unwrap_or_else(|| first.ok_or_else(none))
    }

    /// Reads until there are rows for a part, or no more.
    fn fill(&mut self) -> Result<()> {
        while self.n_waiting < self.size {
            let Some(open) = &mut self.open else {
                let Some(file) = self.files.get(self.next_file) else { break };
                self.open = Some(file.rows_from(self.next_row, self.size)?);
                (self.next_file, self.next_row) = (self.next_file + 1, 0);
                continue;
            };
            match open.next() {
                Some(rows) => {
                    let rows = rows?;
                    self.n_waiting += rows.batch.num_rows();
                    self.waiting.push_back(rows);
                }
                None => self.open = None,
            }
        }
        Ok(())
    }

    /// Takes the rows of a part from those that wait.
    fn part(&mut self) -> Result<Option<TableRows>> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        let mut origin = None;
        let mut n_left = self.size.min(self.n_waiting);
        self.n_waiting -= n_left;
        while n_left > 0
            && let Some(rows) = self.waiting.front_mut()
        {
            let n_rows = rows.batch.num_rows();
            let n = n_rows.min(n_left);
            origin.get_or_insert_with(|| (rows.path.clone(), rows.first_row));
            parts.push(rows.batch.slice(0, n));
            *rows = rows.slice(n..n_rows);
            n_left -= n;
            if n == n_rows {
                self.waiting.pop_front();
            }
        }
        let Some((path, first_row)) = origin else { return Ok(None) };
        let batch = match &parts[..] {
            [only] => only.clone(),
            [first, ..] => concat_batches(first.schema_ref(), &parts).map_err(|error| {
                Error::Format { path: path.to_path_buf(), what: error.to_string() }
            })?,
            [] => return Ok(None),
        };
        Ok(Some(TableRows { batch, path, first_row }))
    }
}

impl Iterator for Chunks {
    type Item = Result<TableRows>;

    fn next(&mut self) -> Option<Result<TableRows>> {
        match self.fill() {
            Ok(()) => self.part().transpose(),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The single rows of a part.
pub(super) enum RowsOf {
    /// Tensors of all rows, and the next one.
    Whole {
        tensors: Vec<HostTensor>,
        next: usize,
        n_rows: usize,
    },
    /// Rows that make no tensor together, such as lists of different lengths.
    Each {
        rows: TableRows,
        columns: Arc<[TableColumn]>,
        next: usize,
    },
    Failed(Option<Error>),
}

impl RowsOf {
    pub(super) fn new(rows: Result<TableRows>, columns: &Arc<[TableColumn]>) -> RowsOf {
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => return RowsOf::Failed(Some(error)),
        };
        match rows.tensors(columns) {
            Ok(tensors) => RowsOf::Whole { tensors, next: 0, n_rows: rows.batch.num_rows() },
            // Rows alone are examples up to the one that is wrong, if any is.
            Err(_) => RowsOf::Each { rows, columns: columns.clone(), next: 0 },
        }
    }
}

impl Iterator for RowsOf {
    type Item = Result<Example>;

    fn next(&mut self) -> Option<Result<Example>> {
        match self {
            RowsOf::Whole { tensors, next, n_rows } => {
                let row = *next;
                *next += 1;
                (row < *n_rows).then(|| tensors.iter().map(|tensor| element(tensor, row)).collect())
            }
            RowsOf::Each { rows, columns, next } => {
                let row = *next;
                *next += 1;
                (row < rows.batch.num_rows()).then(|| {
                    let tensors = rows.slice(row..row + 1).tensors(columns)?;
                    tensors.iter().map(|tensor| element(tensor, 0)).collect()
                })
            }
            RowsOf::Failed(error) => error.take().map(Err),
        }
    }
}

/// The tensor of one row.
fn element(tensor: &HostTensor, row: usize) -> Result<Tensor> {
    let shape = Shape::new(tensor.shape().iter().skip(1).copied())?;
    let n = shape.num_elements();
    Ok(tensor.window(row * n..(row + 1) * n, shape)?.into())
}
