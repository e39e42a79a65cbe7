//! Tensors with values.

use crate::error::{Error, Result};
use ferroflow_ir::{DType, Element, HostTensor, Shape, TensorSpec};
use ferroflow_kernels::{Buffer, Device, DeviceBuffer};
use smallvec::SmallVec;
use std::sync::Arc;

/// The results of an op call.
pub type Results = SmallVec<[EagerTensor; 1]>;

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

    /// The name of the device whose memory it is in, such as `/device:WGPU:0`; `None` in host
    /// memory.
    pub fn device(&self) -> Option<&str> {
        match &self.buffer {
            Buffer::Host(_) => None,
            Buffer::Device(buffer) => Some(&buffer.device),
        }
    }

    /// The tensor in host memory. One in the memory of a device is copied when this is first asked
    /// for.
    ///
    /// # Errors
    ///
    /// When the copy fails.
    pub fn host(&self) -> Result<&HostTensor> {
        match &self.buffer {
            Buffer::Host(tensor) => Ok(tensor),
            Buffer::Device(buffer) => Ok(buffer.host()?),
        }
    }

    /// The tensor in host memory, released by its holder.
    ///
    /// # Errors
    ///
    /// As [`host`](EagerTensor::host).
    pub fn into_host(self) -> Result<HostTensor> {
        match self.buffer {
            Buffer::Host(tensor) => Ok(tensor),
            Buffer::Device(buffer) => Ok(buffer.host()?.clone()),
        }
    }
}

impl From<DeviceBuffer> for EagerTensor {
    fn from(buffer: DeviceBuffer) -> EagerTensor {
        EagerTensor { buffer: Buffer::Device(buffer) }
    }
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

/// A tensor in the memory of a device, to which it is copied unless it is there.
///
/// # Errors
///
/// When the device cannot hold it, or the copy fails.
pub(crate) fn on_device(value: &EagerTensor, device: &Arc<dyn Device>) -> Result<DeviceBuffer> {
    device_buffer(device.upload(value.buffer())?)
}

/// The memory of a device, which it must be.
///
/// # Errors
///
/// When the device gave memory of the host.
pub(crate) fn device_buffer(buffer: Buffer) -> Result<DeviceBuffer> {
    match buffer {
        Buffer::Device(buffer) => Ok(buffer),
        Buffer::Host(_) => Err(Error::missing("device memory")),
    }
}
