//! Data in text and messages: `tf.Example`s, CSV, raw and compressed bytes, tensors.

pub(super) mod compressed;
pub(super) mod csv;
pub(super) mod example;
mod feature;
pub(super) mod raw;
pub(super) mod sequence;
pub(super) mod tensor;
