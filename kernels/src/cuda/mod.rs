//! NVIDIA's devices.

pub(crate) mod compile;
