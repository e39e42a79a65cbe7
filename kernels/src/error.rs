//! The error type of this crate.

use ferroflow_ir::{Code, DType, Shape};
use std::borrow::Cow;

/// The result of a fallible operation on a device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Failures of a device.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The call does not fit its op, or its data is wrong.
    #[error(transparent)]
    Ir(#[from] ferroflow_ir::Error),
    /// The device has no kernel for a call.
    #[error("{device} has no kernel for {op} on {dtypes}")]
    NoKernel {
        /// The op type.
        op: &'static str,
        /// The device.
        device: String,
        /// The dtypes of the inputs and outputs.
        dtypes: String,
    },
    /// The kernel of an op was left out of this build.
    #[error("{op} needs the feature `{feature}` of ferroflow-kernels, which is off in this build")]
    FeatureOff {
        /// The op type.
        op: &'static str,
        /// The feature.
        feature: &'static str,
    },
    /// A tensor larger than the caller allows.
    #[error("a {dtype} tensor of shape {shape} takes {bytes} bytes, the limit is {limit}")]
    TensorTooLarge {
        /// The dtype.
        dtype: DType,
        /// The shape.
        shape: Shape,
        /// The bytes it would take.
        bytes: usize,
        /// The bytes allowed.
        limit: usize,
    },
    /// A buffer that lives on another device.
    #[error("expected a buffer on {expected}, found one on {found}")]
    WrongDevice {
        /// The device that was to use the buffer.
        expected: String,
        /// Where the buffer is.
        found: String,
    },
    /// A dtype that the device cannot hold.
    #[error("{device} cannot hold {dtype}")]
    UnsupportedDType {
        /// The device.
        device: String,
        /// The dtype.
        dtype: DType,
    },
    /// The device has no room.
    #[error("{device} has no room for {bytes} bytes")]
    OutOfMemory {
        /// The device.
        device: String,
        /// Amount asked for.
        bytes: usize,
    },
    /// The device refused a program: a defect of the kernel that wrote it.
    #[error("{device} cannot compile its program for {op}: {reason}")]
    Compile {
        /// The device.
        device: String,
        /// The op type.
        op: &'static str,
        /// Report of the compiler.
        reason: String,
    },
    /// The device is gone: unplugged, reset, or crashed. It stays so.
    #[error("{device} is lost: {reason}")]
    DeviceLost {
        /// The device.
        device: String,
        /// Report of the device.
        reason: String,
    },
    /// The device itself failed.
    #[error("{device} failed: {reason}")]
    Device {
        /// The device.
        device: String,
        /// Report of the driver.
        reason: Cow<'static, str>,
    },
    /// The process that the device belongs to did not do what it was asked for.
    #[error("{device}: {reason}")]
    Remote {
        /// The device.
        device: String,
        /// The status code of the process.
        code: Code,
        /// Report of the process, or of the connection to it.
        reason: String,
    },
}

impl Error {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Ir(error) => error.code(),
            Error::NoKernel { .. } | Error::FeatureOff { .. } => Code::Unimplemented,
            Error::TensorTooLarge { .. } => Code::ResourceExhausted,
            Error::WrongDevice { .. } => Code::InvalidArgument,
            Error::UnsupportedDType { .. } => Code::Unimplemented,
            Error::OutOfMemory { .. } => Code::ResourceExhausted,
            Error::DeviceLost { .. } => Code::Unavailable,
            Error::Compile { .. } | Error::Device { .. } => Code::Internal,
            Error::Remote { code, .. } => *code,
        }
    }
}
