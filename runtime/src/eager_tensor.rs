//! Tensors with values.

use crate::error::Result;
use ferroflow_ir::{DType, Element, HostTensor, Shape, TensorSpec};
use ferroflow_kernels::{Buffer, Error};

/// A tensor with a value, in the memory of some device. Cheap to clone; clones share memory.
#[derive(Clone, Debug)]
pub struct EagerTensor {
    buffer: Buffer,
}

impl EagerTensor {
    /// A scalar in host memory.
    pub fn scalar<T: Element>(value: T) -> EagerTensor {
        HostTensor::scalar(value).into()
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.buffer.dtype()
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        self.buffer.shape()
    }

    /// Dtype and shape.
    pub fn spec(&self) -> TensorSpec {
        TensorSpec::new(self.dtype(), self.shape())
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The tensor in host memory.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] when it is elsewhere.
    pub fn host(&self) -> Result<&HostTensor> {
        match &self.buffer {
            Buffer::Host(tensor) => Ok(tensor),
            Buffer::Device(buffer) => Err(elsewhere(&buffer.device)),
        }
    }

    /// The tensor in host memory, given up by its holder.
    ///
    /// # Errors
    ///
    /// [`Error::WrongDevice`] when it is elsewhere.
    pub fn into_host(self) -> Result<HostTensor> {
        match self.buffer {
            Buffer::Host(tensor) => Ok(tensor),
            Buffer::Device(buffer) => Err(elsewhere(&buffer.device)),
        }
    }
}

fn elsewhere(device: &str) -> crate::Error {
    Error::WrongDevice { expected: "the host".into(), found: device.into() }.into()
}

impl From<HostTensor> for EagerTensor {
    fn from(tensor: HostTensor) -> EagerTensor {
        EagerTensor { buffer: tensor.into() }
    }
}

impl From<Buffer> for EagerTensor {
    fn from(buffer: Buffer) -> EagerTensor {
        EagerTensor { buffer }
    }
}
