//! Event files, and the ops that write them.

mod ops;

pub use ferroflow_format::events::{EventsWriter, read};
pub use ops::SummaryWriterResource;
pub(crate) use ops::add_ops;
