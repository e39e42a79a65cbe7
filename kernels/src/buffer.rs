//! Tensors in the memory of some device.

use ferroflow_ir::{DType, HostTensor, Shape};
use std::{any::Any, fmt, sync::Arc};

/// A tensor in host memory or in the memory of a device. Cheap to clone; clones share memory.
#[derive(Clone, Debug)]
pub enum Buffer {
    /// In host memory, where the CPU device works on it in place.
    Host(HostTensor),
    /// In the memory of another device.
    Device(DeviceBuffer),
}

/// A tensor in the memory of a device other than the host.
#[derive(Clone, Debug)]
pub struct DeviceBuffer {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The device's name.
    pub device: Arc<str>,
    /// The memory, known to the device alone.
    pub memory: Arc<dyn DeviceMemory>,
}

/// Memory of a device.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    /// For downcasting to the device's own type.
    fn as_any(&self) -> &dyn Any;
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
