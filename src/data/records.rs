//! Files of records, batch by batch.

use super::Result;
use ferroflow_ir::{HostTensor, Limits, Shape};
use ferroflow_saved_model::record_file::RecordReader;
use ferroflow_tracer::Tensor;
use std::{collections::VecDeque, path::PathBuf};

/// The records of some files in order, as string tensors of `size` each; of fewer at the end.
/// `ops::parse_example_v2` takes examples apart.
///
/// ```
/// use ferroflow::{data::record_batches, saved_model::record_file::write_record};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("train.tfrecord");
/// let mut file = Vec::new();
/// for text in ["a", "b", "c"] {
///     write_record(&mut file, text.as_bytes())?;
/// }
/// std::fs::write(&path, file)?;
/// let batches = record_batches([path], 2).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(batches[1].host()?.strings()?, ["c"]);
/// # Ok(())
/// # }
/// ```
pub fn record_batches<P: Into<PathBuf>>(
    paths: impl IntoIterator<Item = P>,
    size: usize,
) -> RecordBatches {
    let paths = paths.into_iter().map(Into::into).collect();
    RecordBatches { paths, open: None, size: size.max(1) }
}

/// Batches of records.
#[derive(Debug)]
pub struct RecordBatches {
    paths: VecDeque<PathBuf>,
    open: Option<RecordReader>,
    size: usize,
}

impl RecordBatches {
    fn record(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(record) = self.open.as_mut().and_then(Iterator::next) {
                return Ok(Some(record?));
            }
            let Some(path) = self.paths.pop_front() else { return Ok(None) };
            self.open = Some(RecordReader::open(path, &Limits::default())?);
        }
    }

    fn batch(&mut self) -> Result<Option<Tensor>> {
        let mut records = Vec::with_capacity(self.size);
        while records.len() < self.size
            && let Some(record) = self.record()?
        {
            records.push(record.into());
        }
        if records.is_empty() {
            return Ok(None);
        }
        let shape = Shape::new([records.len()])?;
        Ok(Some(HostTensor::from_strings(shape, records)?.into()))
    }
}

impl Iterator for RecordBatches {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Result<Tensor>> {
        self.batch().transpose()
    }
}
