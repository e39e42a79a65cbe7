//! Hash functions whose values are part of TensorFlow's behaviour.

pub(crate) mod fingerprint;
pub(crate) mod murmur;
pub(crate) mod siphash;
