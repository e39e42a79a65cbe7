//! Event files: what a training tells TensorBoard.
//!
//! An event file is a file of records ([`record_file`](crate::record_file)), each an `Event`; the
//! first one names the version of the format. [`read`] reads one, an [`EventsWriter`] writes one.

mod writer;

use crate::{error::Result, file::decode_message, proto::Event, record_file::RecordReader};
use ferroflow_ir::Limits;
use std::path::Path;

pub use writer::EventsWriter;

/// The events of a file, in order.
///
/// ```no_run
/// use ferroflow_ir::Limits;
/// use ferroflow_format::{Result, events, proto::event::What};
///
/// # fn main() -> Result<()> {
/// let path = "logs/events.out.tfevents.1795233139.host.7.0.v2".as_ref();
/// for event in events::read(path, &Limits::default())? {
///     let event = event?;
///     if let Some(What::Summary(summary)) = event.what {
///         println!("step {}: {:?}", event.step, summary.value);
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) when the file cannot be opened. An event is an error when its
/// record is damaged or is no `Event`; nothing follows a damaged one.
pub fn read(path: &Path, limits: &Limits) -> Result<impl Iterator<Item = Result<Event>> + use<>> {
    let records = RecordReader::open(path, limits)?;
    let path = records.path().to_path_buf();
    Ok(records.map(move |record| decode_message(&path, record?.into())))
}
