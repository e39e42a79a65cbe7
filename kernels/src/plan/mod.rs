//! Index arithmetic that all devices share.

pub mod broadcast;
pub mod strided;
pub(crate) mod window;
