//! Index arithmetic that all devices share.

pub mod broadcast;
pub(crate) mod sliding;
pub mod strided;
pub(crate) mod window;
