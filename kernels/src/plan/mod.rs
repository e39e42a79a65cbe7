//! Index arithmetic that all devices share.

pub(crate) mod attention;
pub(crate) mod blocks;
pub mod broadcast;
pub(crate) mod interpolation;
pub(crate) mod sliding;
pub mod strided;
pub(crate) mod window;
