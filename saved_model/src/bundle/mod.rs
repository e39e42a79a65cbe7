//! Tensor bundles: checkpoints as an index and data files, and their single-file predecessors.

mod checksum;
mod data;
mod format1;
mod ordered_code;
mod partition;
mod reader;
mod slice;
mod table;
#[cfg(test)]
mod testing;

pub use ordered_code::{decode_slice_key, encode_slice_key};
pub use reader::{Entry, Reader};
pub use slice::{Extent, InvalidSlice, SliceSpec, TensorSlice};

pub(crate) use table::take_varint;
