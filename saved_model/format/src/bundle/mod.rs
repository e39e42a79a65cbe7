//! Tensor bundles: checkpoints as an index and data files, and their single-file predecessors.

mod data;
mod encode;
mod files;
mod format1;
mod format1_writer;
mod merge;
mod ordered_code;
mod partition;
mod publish;
mod reader;
mod slice;
mod table;
mod table_writer;
#[cfg(test)]
mod testing;
mod writer;

pub use crate::output_file::folder_of;
pub use files::files_of;
pub use format1_writer::SliceTableWriter;
pub use merge::merge;
pub use ordered_code::{decode_slice_key, encode_slice_key};
pub use reader::{Entry, Reader};
pub use slice::{Extent, InvalidSlice, SliceSpec, TensorSlice};
pub use writer::Writer;

pub use table::take_varint;
