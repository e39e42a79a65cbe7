//! A compiled op call, and the memory it runs on.

use crate::{
    buffer::DeviceBuffer,
    device::OperandSpec,
    error::{Error, Result},
    threads::Threads,
};
use bytemuck::Pod;
use bytes::Bytes;
use ferroflow_ir::{DType, Handle, HostTensor, Shape, host_tensor::byte_len};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// An op call compiled for dtypes, shapes and attributes; it may run any number of times, from any
/// number of threads at once.
pub trait Kernel: Send + Sync {
    /// Runs the call once.
    ///
    /// # Errors
    ///
    /// Whatever the data makes impossible: an index out of range, a division by zero.
    fn run(&self, io: &mut Io<'_>) -> Result<()>;

    /// Whether output 0 may be in the memory of input `index`, of which every element is then
    /// read before the element of the same position is written.
    fn in_place(&self, index: usize) -> bool {
        let _ = index;
        false
    }
}

impl<F: Fn(&mut Io<'_>) -> Result<()> + Send + Sync> Kernel for F {
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self(io)
    }
}

/// An input of a running kernel.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    /// The bytes of plain elements.
    Plain(&'a [u8]),
    /// A whole tensor; the form of strings and handles.
    Tensor(&'a HostTensor),
    /// The memory of output 0, which already holds this input.
    InPlace,
    /// In the memory of the kernel's device.
    Device(&'a DeviceBuffer),
}

/// An output of a running kernel.
#[derive(Debug)]
pub enum Target<'a> {
    /// Memory of the right size, to be written.
    Plain(&'a mut [u8]),
    /// An empty position, to be filled with a tensor.
    Empty(&'a mut Option<HostTensor>),
    /// Memory of the kernel's device, to be written.
    Device(&'a DeviceBuffer),
    /// Nothing reads the output, whose size is not known ahead: the kernel may leave it out, and what it
    /// puts there is dropped.
    Unread,
}

/// The memory and the threads a kernel runs with.
#[derive(Debug)]
pub struct Io<'a> {
    inputs: SmallVec<[Operand<'a>; 4]>,
    outputs: SmallVec<[Option<Target<'a>>; 2]>,
    threads: &'a Threads,
    limit: usize,
    queue: usize,
}

impl<'a> Io<'a> {
    /// Memory to run a kernel on. No output may take more than `limit` bytes.
    #[inline]
    pub fn new<'b: 'a>(
        inputs: impl IntoIterator<Item = Operand<'b>>,
        outputs: impl IntoIterator<Item = Target<'a>>,
        threads: &'a Threads,
        limit: usize,
    ) -> Io<'a> {
        let mut io = Io::empty(threads, limit);
        // Collecting costs more than the loops.
        for input in inputs {
            io.read(input);
        }
        for output in outputs {
            io.write(output);
        }
        io
    }

    /// No memory yet to run a kernel on. No output may take more than `limit` bytes.
    #[inline]
    pub fn empty(threads: &'a Threads, limit: usize) -> Io<'a> {
        Io { inputs: SmallVec::new(), outputs: SmallVec::new(), threads, limit, queue: 0 }
    }

    /// Adds an input.
    #[inline]
    pub fn read(&mut self, input: Operand<'a>) {
        self.inputs.push(input);
    }

    /// Adds an output.
    #[inline]
    pub fn write(&mut self, output: Target<'a>) {
        self.outputs.push(Some(output));
    }

    /// Index of its device's queue that the kernel runs on; 0, the main one, unless told.
    pub fn queue(&self) -> usize {
        self.queue
    }

    /// Has the kernel run on another of its device's queues. Devices that have only one take no
    /// notice.
    pub fn set_queue(&mut self, queue: usize) {
        self.queue = queue;
    }

    /// The threads to share the work with.
    pub fn threads(&self) -> &'a Threads {
        self.threads
    }

    /// The number of inputs.
    #[inline]
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Whether input `index` is in the memory of output 0.
    #[inline]
    pub fn is_in_place(&self, index: usize) -> bool {
        matches!(self.inputs[index], Operand::InPlace)
    }

    /// The bytes of plain input `index`; none for an input that is in the output's memory.
    #[inline]
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        match self.inputs[index] {
            Operand::Plain(bytes) => bytes,
            Operand::Tensor(tensor) => tensor.bytes(),
            Operand::InPlace | Operand::Device(_) => &[],
        }
    }

    /// Has the kernel read these bytes of plain input `index` alone, which is not in the output's memory.
    pub(crate) fn narrow(&mut self, index: usize, bytes: Range<usize>) {
        self.inputs[index] = Operand::Plain(&self.bytes(index)[bytes]);
    }

    /// The elements of plain input `index`, whose size is that of `T`; none for an input that is in
    /// the output's memory.
    pub fn input<T: Pod>(&self, index: usize) -> &'a [T] {
        match self.bytes(index) {
            // No bytes have no alignment.
            [] => &[],
            bytes => bytemuck::cast_slice(bytes),
        }
    }

    /// The only element of plain input `index`.
    pub fn scalar<T: Pod>(&self, index: usize) -> T {
        self.input::<T>(index)[0]
    }

    /// The elements of string input `index`.
    ///
    /// # Errors
    ///
    /// [`ferroflow_ir::Error::DType`] when it is no string tensor.
    pub fn strings(&self, index: usize) -> Result<&'a [Bytes]> {
        match self.inputs[index] {
            Operand::Tensor(tensor) => Ok(tensor.strings()?),
            Operand::Plain(_) | Operand::InPlace | Operand::Device(_) => {
                let (expected, found) = (DType::String, DType::U8);
                Err(ferroflow_ir::Error::DType { expected, found }.into())
            }
        }
    }

    /// The elements of resource or variant input `index`.
    ///
    /// # Errors
    ///
    /// [`ferroflow_ir::Error::DType`] when it is no such tensor.
    pub fn handles(&self, index: usize) -> Result<&'a [Arc<dyn Handle>]> {
        match self.inputs[index] {
            Operand::Tensor(tensor) => Ok(tensor.handles()?),
            Operand::Plain(_) | Operand::InPlace | Operand::Device(_) => {
                let (expected, found) = (DType::Variant, DType::U8);
                Err(ferroflow_ir::Error::DType { expected, found }.into())
            }
        }
    }

    /// Input `index`, of dtype and shape as in `spec`, as a tensor.
    ///
    /// # Errors
    ///
    /// When its size does not fit the spec.
    pub fn to_host(&self, index: usize, spec: &OperandSpec) -> Result<HostTensor> {
        match self.inputs[index] {
            // A reshaped value is the value before, under another shape.
            Operand::Tensor(tensor) => Ok(tensor.reshaped(spec.shape.clone())?),
            Operand::Plain(_) | Operand::InPlace | Operand::Device(_) => {
                Ok(HostTensor::from_bytes(spec.dtype, spec.shape.clone(), self.bytes(index))?)
            }
        }
    }

    /// Input `index` as the tensor that it is; `None` for bytes that are not a whole one.
    pub fn tensor(&self, index: usize) -> Option<&'a HostTensor> {
        match self.inputs[index] {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Plain(_) | Operand::InPlace | Operand::Device(_) => None,
        }
    }

    /// Input `index` in the memory of the kernel's device; `None` if it is not there.
    pub fn device_input(&self, index: usize) -> Option<&'a DeviceBuffer> {
        match self.inputs[index] {
            Operand::Device(buffer) => Some(buffer),
            Operand::Plain(_) | Operand::Tensor(_) | Operand::InPlace => None,
        }
    }

    /// The memory of output `index` on the kernel's device; `None` if it is not there.
    pub fn device_output(&self, index: usize) -> Option<&'a DeviceBuffer> {
        match self.outputs[index] {
            Some(Target::Device(buffer)) => Some(buffer),
            Some(Target::Plain(_) | Target::Empty(_) | Target::Unread) | None => None,
        }
    }

    /// Whether the memory of output `index` is there already, as its shape was known beforehand.
    pub fn is_sized(&self, index: usize) -> bool {
        matches!(self.outputs[index], Some(Target::Plain(_)))
    }

    /// Whether something reads output `index`; a kernel need not make one that nothing reads.
    pub fn is_read(&self, index: usize) -> bool {
        !matches!(self.outputs[index], Some(Target::Unread))
    }

    /// Takes the bytes of plain output `index`, whose shape was known beforehand.
    ///
    /// # Panics
    ///
    /// When they were taken already, or the shape was not known.
    #[inline]
    pub fn output_bytes(&mut self, index: usize) -> &'a mut [u8] {
        match self.outputs[index].take() {
            Some(Target::Plain(bytes)) => bytes,
            Some(Target::Empty(_) | Target::Unread) => {
                panic!("the shape of output {index} was not known")
            }
            Some(Target::Device(_)) => panic!("output {index} is on another device"),
            None => panic!("output {index} was taken already"),
        }
    }

    /// Takes the elements of plain output `index`, whose size is that of `T` and whose shape was
    /// known beforehand.
    ///
    /// # Panics
    ///
    /// When they were taken already, or the shape was not known.
    pub fn output<T: Pod>(&mut self, index: usize) -> &'a mut [T] {
        bytemuck::cast_slice_mut(self.output_bytes(index))
    }

    /// Memory for an output whose shape follows from the data; [`put`](Io::put) it when written.
    ///
    /// # Errors
    ///
    /// [`Error::TensorTooLarge`] when it would pass the limit.
    pub fn allocate(&self, dtype: DType, shape: Shape) -> Result<HostTensor> {
        self.check_size(dtype, &shape)?;
        Ok(HostTensor::recycled(dtype, shape)?)
    }

    /// Checks that a plain tensor may be allocated.
    ///
    /// # Errors
    ///
    /// [`Error::TensorTooLarge`] when it would pass the limit.
    pub fn check_size(&self, dtype: DType, shape: &Shape) -> Result<()> {
        check_size(dtype, shape, self.limit)
    }

    /// The most bytes an output may take.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets output `index` to a tensor. If memory was there already, the tensor is copied into it.
    ///
    /// # Errors
    ///
    /// [`ferroflow_ir::Error::ElementCount`] when its size is not what was announced.
    pub fn put(&mut self, index: usize, tensor: HostTensor) -> Result<()> {
        match self.outputs[index].take() {
            Some(Target::Plain(bytes)) if bytes.len() == tensor.bytes().len() => {
                bytes.copy_from_slice(tensor.bytes());
                Ok(())
            }
            Some(Target::Empty(place)) => {
                *place = Some(tensor);
                Ok(())
            }
            Some(Target::Unread) => Ok(()),
            Some(Target::Plain(_) | Target::Device(_)) | None => {
                Err(ferroflow_ir::Error::ElementCount {
                    dtype: tensor.dtype(),
                    shape: tensor.shape().clone(),
                    found: tensor.len(),
                }
                .into())
            }
        }
    }
}

/// Checks that a plain tensor takes no more than `limit` bytes.
///
/// # Errors
///
/// [`Error::TensorTooLarge`] when it does.
pub fn check_size(dtype: DType, shape: &Shape, limit: usize) -> Result<()> {
    let bytes = match dtype.size() {
        Some(_) => byte_len(dtype, shape)?,
        None => shape.num_elements().saturating_mul(size_of::<Bytes>()),
    };
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::TensorTooLarge { dtype, shape: shape.clone(), bytes, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::Shape;

    /// A reshape has no action: its consumers find the value before.
    #[test]
    fn operands_have_the_shape_that_kernels_were_compiled_for() {
        let before = HostTensor::vector(&[1, 2, 3, 4]).unwrap();
        let shape = Shape::new([2, 2]).unwrap();
        let spec = OperandSpec::new(before.dtype(), shape.clone());
        let threads = Threads::single();
        let io = Io::new([Operand::Tensor(&before)], [], &threads, usize::MAX);
        assert_eq!(io.to_host(0, &spec).unwrap().shape(), &shape);
        let other = OperandSpec::new(before.dtype(), Shape::new([3]).unwrap());
        assert!(io.to_host(0, &other).is_err());
    }
}
