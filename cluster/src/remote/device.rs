//! The device of another process: its memory holds tensors that the process holds, its kernels are calls.

use super::{
    messages::{RemoteInputKind, RemoteTensorHandle},
    task::RemoteTask,
};
use crate::{error::Error as ClusterError, messages::DeviceAttributes};
use ferroflow_format::{
    convert::attr_messages,
    proto::{AttrValue, attr_value::Value},
};
use ferroflow_ir::{DType, Effect, Error as IrError, HostTensor, Lowering, Shape, ops::names};
use ferroflow_kernels::{
    Buffer, Device, DeviceBuffer, DeviceMemory, Error, Io, Kernel, OpCall, OperandSpec, Result,
    Storage, Support,
};
use parking_lot::Mutex;
use std::{any::Any, collections::HashMap, sync::Arc};

/// A CPU of another process.
#[derive(Debug)]
pub(super) struct RemoteDevice(Arc<Side>);

/// The device as its kernels and memory know it.
#[derive(Debug)]
struct Side {
    task: Arc<RemoteTask>,
    name: Arc<str>,
}

impl Side {
    fn failed(&self, error: ClusterError) -> Error {
        let (device, code) = (self.name.to_string(), error.code());
        Error::Remote { device, code, reason: error.to_string() }
    }
}

/// A tensor that the process holds until this is dropped.
#[derive(Debug)]
struct RemoteValue {
    side: Arc<Side>,
    handle: RemoteTensorHandle,
    dtype: DType,
    shape: Shape,
}

impl Drop for RemoteValue {
    fn drop(&mut self) {
        self.side.task.release(std::mem::take(&mut self.handle));
    }
}

/// Memory for a tensor, which names none until something is written.
#[derive(Debug)]
struct RemoteMemory {
    side: Arc<Side>,
    value: Mutex<Option<Arc<RemoteValue>>>,
}

impl RemoteMemory {
    fn value(&self) -> Result<Arc<RemoteValue>> {
        let device = self.side.name.to_string();
        let nothing = || Error::Remote {
            device,
            code: ferroflow_ir::Code::Internal,
            reason: "memory that nothing was written to is read".into(),
        };
        self.value.lock().clone().ok_or_else(nothing)
    }
}

impl DeviceMemory for RemoteMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, dtype: DType, shape: &Shape) -> Result<HostTensor> {
        let value = self.value()?;
        let read = self.side.task.read(&value.handle);
        let tensor = read.map_err(|error| self.side.failed(error))?;
        // The other process may be of any make: what it sends is held to what the op returns.
        if tensor.dtype() != value.dtype || *tensor.shape() != value.shape {
            let expected = format!("{}{}", value.dtype, value.shape);
            let reason = format!("{}{} came for {expected}", tensor.dtype(), tensor.shape());
            let (device, code) = (self.side.name.to_string(), ferroflow_ir::Code::Internal);
            return Err(Error::Remote { device, code, reason });
        }
        let tensor = if value.dtype == dtype { tensor } else { tensor.reinterpreted(dtype)? };
        Ok(tensor.reshaped(shape.clone())?)
    }
}

impl RemoteDevice {
    pub(super) fn new(task: Arc<RemoteTask>, device: DeviceAttributes) -> RemoteDevice {
        RemoteDevice(Arc::new(Side { task, name: device.name.into() }))
    }

    fn memory(&self, dtype: DType, shape: &Shape, value: Option<Arc<RemoteValue>>) -> Buffer {
        let memory = RemoteMemory { side: self.0.clone(), value: Mutex::new(value) };
        let name = self.0.name.clone();
        Buffer::Device(DeviceBuffer::new(dtype, shape.clone(), name, Arc::new(memory)))
    }

    fn check(&self, dtype: DType) -> Result<()> {
        match dtype.size() {
            Some(_) => Ok(()),
            None => Err(Error::UnsupportedDType { device: self.0.name.to_string(), dtype }),
        }
    }

    /// Whether another process knows the op under its name: those that this one makes of several have none.
    fn is_sent(call: &OpCall<'_>) -> bool {
        let is_plain = |dtype: DType| dtype.size().is_some();
        !call.op.name.starts_with('_')
            && call.expr.is_none()
            && call.op.effect == Effect::Pure
            && matches!(
                call.op.lowering,
                Lowering::Kernel
                    | Lowering::HostKernel(_)
                    | Lowering::Elementwise(_)
                    | Lowering::Reduce(_)
                    | Lowering::View(_)
            )
            && call.inputs.iter().all(|input| is_plain(input.dtype))
            && call.outputs.iter().all(|output| is_plain(output.dtype))
    }
}

impl Device for RemoteDevice {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer> {
        self.check(dtype)?;
        Ok(self.memory(dtype, shape, None))
    }

    fn upload(&self, tensor: &Buffer) -> Result<Buffer> {
        if let Buffer::Device(buffer) = tensor
            && buffer.device == self.0.name
        {
            return Ok(tensor.clone());
        }
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        self.check(dtype)?;
        let sent = self.0.task.send(&self.0.name, tensor.host()?);
        let handle = sent.map_err(|error| self.0.failed(error))?;
        let value = RemoteValue { side: self.0.clone(), handle, dtype, shape: shape.clone() };
        Ok(self.memory(dtype, &shape, Some(Arc::new(value))))
    }

    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
        if !RemoteDevice::is_sent(call) {
            return Ok(None);
        }
        let outputs = call.outputs.iter().enumerate();
        let outputs = outputs.map(|(index, output)| Ok((output.dtype, call.output_shape(index)?)));
        let kernel = RemoteKernel {
            side: self.0.clone(),
            op: call.op.name,
            attrs: attr_messages(call.attrs)?.into_iter().collect(),
            inputs: call.inputs.to_vec(),
            outputs: outputs.collect::<Result<_>>()?,
        };
        Ok(Some(Arc::new(kernel)))
    }

    fn support(&self, call: &OpCall<'_>) -> Result<Support> {
        let is_known = (0..call.outputs.len()).all(|index| call.output_shape(index).is_ok());
        Ok(Support::of(RemoteDevice::is_sent(call) && is_known))
    }

    fn model(&self) -> Option<&str> {
        Some(self.0.task.name())
    }

    fn storage(&self, dtype: DType) -> Option<Storage> {
        dtype.size().map(Storage::Plain)
    }
}

/// A call of an op in the process.
struct RemoteKernel {
    side: Arc<Side>,
    op: &'static str,
    attrs: HashMap<String, AttrValue>,
    inputs: Vec<OperandSpec>,
    outputs: Vec<(DType, Shape)>,
}

/// An input of a call, and what must be held until it is sent.
struct Prepared {
    input: RemoteInputKind,
    held: Option<Arc<RemoteValue>>,
}

impl From<Arc<RemoteValue>> for Prepared {
    fn from(value: Arc<RemoteValue>) -> Prepared {
        Prepared { input: RemoteInputKind::Handle(value.handle.clone()), held: Some(value) }
    }
}

impl RemoteKernel {
    /// An input as the call takes it: what is known goes along.
    fn input(&self, io: &Io<'_>, index: usize) -> Result<Prepared> {
        let spec = &self.inputs[index];
        match (&spec.value, io.device_input(index)) {
            (Some(value), _) => self.inline(value),
            (None, Some(buffer)) => self.value(buffer, spec).map(Prepared::from),
            (None, None) => self.inline(&io.to_host(index, spec)?),
        }
    }

    fn inline(&self, value: &HostTensor) -> Result<Prepared> {
        let input = self.side.task.inline(value).map_err(|error| self.side.failed(error))?;
        Ok(Prepared { input, held: None })
    }

    fn memory<'a>(&self, buffer: &'a DeviceBuffer) -> Result<&'a RemoteMemory> {
        let memory = buffer.memory.as_any().downcast_ref::<RemoteMemory>();
        memory.filter(|memory| Arc::ptr_eq(&memory.side, &self.side)).ok_or_else(|| {
            let (expected, found) = (self.side.name.to_string(), buffer.device.to_string());
            Error::WrongDevice { expected, found }
        })
    }

    /// The value of a buffer as an operand of this type, which may be another view of what was written.
    fn value(&self, buffer: &DeviceBuffer, spec: &OperandSpec) -> Result<Arc<RemoteValue>> {
        let mut value = self.memory(buffer)?.value()?;
        if value.dtype != spec.dtype {
            let attrs = types(&[("T", value.dtype), ("type", spec.dtype)]);
            let shape = value.shape.clone();
            value = self.view(names::BITCAST, attrs, vec![value.into()], (spec.dtype, shape))?;
        }
        if value.shape != spec.shape {
            let dims: Vec<i64> = spec.shape.dims().iter().map(|&size| size as i64).collect();
            let inputs = vec![value.into(), self.inline(&HostTensor::vector(&dims)?)?];
            let attrs = types(&[("T", spec.dtype), ("Tshape", DType::I64)]);
            let output = (spec.dtype, spec.shape.clone());
            value = self.view(names::RESHAPE, attrs, inputs, output)?;
        }
        Ok(value)
    }

    fn view(
        &self,
        op: &str,
        attrs: HashMap<String, AttrValue>,
        inputs: Vec<Prepared>,
        output: (DType, Shape),
    ) -> Result<Arc<RemoteValue>> {
        let mut made = self.call(op, attrs, inputs, std::slice::from_ref(&output))?;
        let missing = || IrError::NotFound { kind: "output", name: op.into() };
        Ok(made.pop().ok_or_else(missing)?)
    }

    /// Runs an op in the process.
    fn call(
        &self,
        op: &str,
        attrs: HashMap<String, AttrValue>,
        inputs: Vec<Prepared>,
        outputs: &[(DType, Shape)],
    ) -> Result<Vec<Arc<RemoteValue>>> {
        let (inputs, held): (Vec<_>, Vec<_>) =
            inputs.into_iter().map(|prepared| (prepared.input, prepared.held)).unzip();
        let dtypes: Vec<DType> = outputs.iter().map(|(dtype, _)| *dtype).collect();
        let made = self.side.task.operation(&self.side.name, op, attrs, inputs, &dtypes);
        drop(held);
        let made = made.map_err(|error| self.side.failed(error))?;
        let value = |(handle, (dtype, shape)): (RemoteTensorHandle, &(DType, Shape))| {
            let (side, dtype, shape) = (self.side.clone(), *dtype, shape.clone());
            Arc::new(RemoteValue { side, handle, dtype, shape })
        };
        Ok(made.into_iter().zip(outputs).map(value).collect())
    }
}

/// Attributes that are dtypes.
fn types(values: &[(&str, DType)]) -> HashMap<String, AttrValue> {
    let attr = |&(name, dtype): &(&str, DType)| {
        (name.to_string(), AttrValue { value: Some(Value::Type(dtype.number())) })
    };
    values.iter().map(attr).collect()
}

impl Kernel for RemoteKernel {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let inputs = (0..self.inputs.len()).map(|index| self.input(io, index));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let made = self.call(self.op, self.attrs.clone(), inputs, &self.outputs)?;
        for (index, value) in made.into_iter().enumerate() {
            // An output that nobody reads is released at once.
            if let Some(buffer) = io.device_output(index) {
                *self.memory(buffer)?.value.lock() = Some(value);
            }
        }
        Ok(())
    }
}
