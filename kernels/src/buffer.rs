//! Tensors in the memory of some device.

use crate::error::Result;
use ferroflow_ir::{DType, HostTensor, Shape};
use std::{
    any::Any,
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

/// A tensor in host memory or in the memory of a device. Cheap to clone; clones share memory.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// In host memory, where the CPU device works on it in place.
    Host(HostTensor),
    /// In the memory of another device.
    Device(DeviceBuffer),
}

/// A tensor in the memory of a device other than the host. Clones are the same tensor.
#[derive(Clone, Debug)]
pub struct DeviceBuffer(Arc<DeviceTensor>);

impl Deref for DeviceBuffer {
    type Target = DeviceTensor;

    fn deref(&self) -> &DeviceTensor {
        &self.0
    }
}

/// Metadata of a [`DeviceBuffer`].
#[derive(Debug)]
pub struct DeviceTensor {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The device's name.
    pub device: Arc<str>,
    /// The memory, known to the device alone.
    pub memory: Arc<dyn DeviceMemory>,
    /// The copy in host memory, once it was asked for.
    host: OnceLock<HostTensor>,
}

impl DeviceBuffer {
    /// A tensor in `memory` of a device.
    pub fn new(
        dtype: DType,
        shape: Shape,
        device: Arc<str>,
        memory: Arc<dyn DeviceMemory>,
    ) -> DeviceBuffer {
        let host = OnceLock::new();
        DeviceBuffer(Arc::new(DeviceTensor { dtype, shape, device, memory, host }))
    }

    /// The same memory under another dtype, with the same layout, and another shape of
    /// as many elements.
    #[must_use]
    pub fn relabelled(&self, dtype: DType, shape: Shape) -> DeviceBuffer {
        DeviceBuffer::new(dtype, shape, self.device.clone(), self.memory.clone())
    }

    /// A copy in host memory, which is made once. Waits for what the device has still to do.
    ///
    /// # Errors
    ///
    /// When the transfer fails.
    pub fn host(&self) -> Result<&HostTensor> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let host = self.memory.read(self.dtype, &self.shape)?;
        Ok(self.host.get_or_init(|| host))
    }
}

/// Memory of a device.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    /// For downcasting to the device's own type.
    fn as_any(&self) -> &dyn Any;

    /// A copy of a tensor of this type in host memory.
    ///
    /// # Errors
    ///
    /// When the transfer fails.
    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor>;
}

impl Buffer {
    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Buffer::Host(tensor) => tensor.dtype(),
            Buffer::Device(buffer) => buffer.dtype,
        }
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        match self {
            Buffer::Host(tensor) => tensor.shape(),
            Buffer::Device(buffer) => &buffer.shape,
        }
    }

    /// The tensor in host memory. One in the memory of a device is copied when this is first asked
    /// for.
    ///
    /// # Errors
    ///
    /// When the transfer fails.
    pub fn host(&self) -> Result<&HostTensor> {
        match self {
            Buffer::Host(tensor) => Ok(tensor),
            Buffer::Device(buffer) => buffer.host(),
        }
    }

    /// The tensor, if it is in host memory.
    pub fn as_host(&self) -> Option<&HostTensor> {
        match self {
            Buffer::Host(tensor) => Some(tensor),
            Buffer::Device(_) => None,
        }
    }
}

impl From<HostTensor> for Buffer {
    fn from(tensor: HostTensor) -> Buffer {
        Buffer::Host(tensor)
    }
}
