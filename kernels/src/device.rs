//! Interface of a device to the layers above, and of a call to a device.

use crate::{
    buffer::Buffer,
    error::Result,
    kernel::Kernel,
    kernel_graph::{KernelGraphPlan, RecordedKernelGraph},
};
use ferroflow_ir::{
    Attrs, DType, Error, Expr, HostTensor, NameAttrList, OpDef, PartialShape, Shape, ValueType,
    infer::{InputFacts, OpContext},
    ops::{names, row_call::row_shape},
    registry,
};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

/// A device: memory for tensors, and kernels of ops on them.
pub trait Device: Send + Sync + fmt::Debug {
    /// The name, such as `/device:CPU:0`.
    fn name(&self) -> &str;

    /// Memory for a tensor; the contents are unspecified.
    ///
    /// # Errors
    ///
    /// When there is no room, or the device cannot hold the dtype.
    fn allocate(&self, dtype: DType, shape: &Shape) -> Result<Buffer>;

    /// A copy of a tensor in the device's memory, from the host or from another device; the tensor
    /// itself where it is in this memory already.
    ///
    /// # Errors
    ///
    /// When there is no room, the device cannot hold the dtype, or the transfer fails.
    fn upload(&self, tensor: &Buffer) -> Result<Buffer>;

    /// Compiles a call, or returns `None` when this device cannot run it.
    ///
    /// # Errors
    ///
    /// When the call does not fit its op.
    fn kernel(&self, call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>>;

    /// The support that the device has for a call, without compiling it.
    ///
    /// # Errors
    ///
    /// As [`kernel`](Device::kernel).
    fn support(&self, call: &OpCall<'_>) -> Result<Support> {
        Ok(Support::of(self.kernel(call)?.is_some()))
    }

    /// Calls made ready to be started together; `None` where that has no advantage.
    fn kernel_graph(&self, plan: KernelGraphPlan) -> Option<Arc<dyn RecordedKernelGraph>> {
        let _ = plan;
        None
    }

    /// Waits for all that the device has to do until now, without copying anything.
    ///
    /// # Errors
    ///
    /// What went wrong on the device since somebody looked.
    fn synchronize(&self) -> Result<()> {
        // Calls on the host have ended when they return.
        Ok(())
    }

    /// Name of the hardware, if it has one.
    fn model(&self) -> Option<&str> {
        None
    }

    /// The form that elements of a dtype have in the device's memory; `None` for dtypes that it
    /// cannot hold.
    fn storage(&self, dtype: DType) -> Option<Storage> {
        Some(dtype.size().map_or(Storage::Own(dtype), Storage::Plain))
    }
}

/// The support that a device has for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Support {
    /// It has no kernel.
    Missing,
    /// It has a kernel. A call that stands for several others is slower than these.
    Runs,
    /// It has a kernel. A call that stands for several others is no slower than these.
    Pays,
}

impl Support {
    /// The support for a call that pays if there is a kernel.
    pub fn of(has_kernel: bool) -> Support {
        if has_kernel { Support::Pays } else { Support::Missing }
    }
}

/// A form of elements in memory. Elements of dtypes with the same storage have the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// As in host memory, with so many bytes an element.
    Plain(usize),
    /// A form for one dtype alone.
    Own(DType),
}

/// Precision of matmuls and convolutions of `float32`.
///
/// Those of 16-bit floats are not concerned: their sums are always of 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Devices may round the factors to TensorFloat-32, as NVIDIA's do from compute capability 8.0
    /// on: the range of `float32` with 10 bits of fraction, so that each product is off by up to
    /// one part in a thousand; sums are of 32 bits. Products take a fraction of the time.
    #[default]
    TensorFloat32,
    /// All 24 bits of the factors count.
    Full,
    /// As [`TensorFloat32`](Precision::TensorFloat32) on GPUs; CPUs may round the factors to
    /// `bfloat16`, as those with tile registers (AMX) or dot products of `bfloat16` (AVX512-BF16) do, in
    /// matmuls, forward convolutions and attention that are large enough: the range of `float32` with 7 bits of
    /// fraction, so that each product is off by up to one part in 128; sums are of 32 bits. Packed weights take
    /// half of the memory. Factors that are not finite, or almost as large or as small as `float32` gets, are
    /// not rounded.
    BFloat16,
}

/// An input of a call.
#[derive(Debug, Clone)]
pub struct OperandSpec {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
    /// The value, of inputs that are known before the call runs. Inputs declared `host` always are.
    pub value: Option<HostTensor>,
}

impl OperandSpec {
    /// An input whose value is not known yet.
    pub fn new(dtype: DType, shape: Shape) -> OperandSpec {
        OperandSpec { dtype, shape, value: None }
    }

    /// An input whose value is known.
    pub fn known(value: HostTensor) -> OperandSpec {
        OperandSpec { dtype: value.dtype(), shape: value.shape().clone(), value: Some(value) }
    }
}

/// The epilogue of a region: an expression that every element of its anchor's only output is put
/// through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Then<'a> {
    /// Input 0 is the element that the anchor computes; the next ones are those of `others`.
    pub(crate) expr: &'a Expr,
    /// The other operands, broadcast to the shape of the anchor's output.
    pub(crate) others: &'a [OperandSpec],
}

/// An op call with known dtypes and shapes: what a device compiles.
#[derive(Debug)]
pub struct OpCall<'a> {
    /// The record.
    pub op: &'static OpDef,
    /// The attributes, complete.
    pub attrs: &'a Attrs,
    /// The inputs.
    pub inputs: &'a [OperandSpec],
    /// The types of the outputs; shapes that follow from the data are not known.
    pub outputs: SmallVec<[ValueType; 2]>,
    /// For fused nodes, the expression they compute, or apply to the scores of attention.
    pub expr: Option<&'a Expr>,
    /// Precision of matmuls of `float32`.
    pub precision: Precision,
}

impl<'a> OpCall<'a> {
    /// A call in full precision, checked by the op's shape function.
    ///
    /// # Errors
    ///
    /// When the inputs or attributes do not fit the op.
    pub fn new(
        op: &'static OpDef,
        attrs: &'a Attrs,
        inputs: &'a [OperandSpec],
        expr: Option<&'a Expr>,
    ) -> Result<OpCall<'a>> {
        let (outputs, precision) = (SmallVec::new(), Precision::Full);
        let mut call = OpCall { op, attrs, inputs, outputs, expr, precision };
        call.outputs = call.with_context(|context| Ok(context.outputs().into()))?;
        Ok(call)
    }

    /// A call that is a part of this one, in the same precision.
    ///
    /// # Errors
    ///
    /// As [`new`](OpCall::new).
    pub(crate) fn part<'b>(
        &self,
        op: &'static OpDef,
        attrs: &'b Attrs,
        inputs: &'b [OperandSpec],
        expr: Option<&'b Expr>,
    ) -> Result<OpCall<'b>> {
        Ok(OpCall::new(op, attrs, inputs, expr)?.with_precision(self.precision))
    }

    /// The call in another precision.
    #[must_use]
    pub fn with_precision(self, precision: Precision) -> OpCall<'a> {
        OpCall { precision, ..self }
    }

    /// The shape of input `index`.
    pub fn shape(&self, index: usize) -> &'a Shape {
        &self.inputs[index].shape
    }

    /// The dtype of input `index`.
    pub fn dtype(&self, index: usize) -> DType {
        self.inputs[index].dtype
    }

    /// The shape of output `index`, which must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it follows from the data.
    pub fn output_shape(&self, index: usize) -> Result<Shape> {
        let shape: &PartialShape = &self.outputs[index].shape;
        Ok(shape.known().ok_or_else(|| {
            let name = format!("output {index}");
            Error::argument(self.op.name, name, "of known shape", shape)
        })?)
    }

    /// The value of input `index`, which must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is not.
    pub fn value(&self, index: usize) -> Result<&'a HostTensor> {
        Ok(self.inputs[index].value.as_ref().ok_or_else(|| {
            let name = format!("input {index}");
            Error::argument(self.op.name, name, "known", "an unknown value")
        })?)
    }

    /// The elements of integer input `index`, whose value must be known.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is not, [`Error::DType`] when it is not an integer tensor.
    pub fn ints(&self, index: usize) -> Result<Vec<i64>> {
        Ok(self.value(index)?.to_i64s()?)
    }

    /// Runs `look` on the call as shape functions see it, after the op's own has run.
    ///
    /// # Errors
    ///
    /// Those of the shape function and of `look`.
    pub fn with_context<R>(
        &self,
        look: impl FnOnce(&OpContext<'_>) -> ferroflow_ir::Result<R>,
    ) -> Result<R> {
        let types: SmallVec<[ValueType; 4]> =
            self.inputs.iter().map(|input| ValueType::new(input.dtype, &input.shape)).collect();
        let inputs: SmallVec<[InputFacts<'_>; 4]> = types
            .iter()
            .zip(self.inputs)
            .map(|(ty, input)| InputFacts { ty, value: input.value.as_ref() })
            .collect();
        let mut context = OpContext::new(self.op, self.attrs, &inputs)?;
        context.infer()?;
        Ok(look(&context)?)
    }

    /// Runs `look` on the anchor of a region and its epilogue; `None` for other calls.
    ///
    /// # Errors
    ///
    /// When the call is malformed, and those of `look`.
    pub(crate) fn with_anchor<R>(
        &self,
        look: impl FnOnce(&OpCall<'_>, &Then<'_>) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let Some(expr) = self.expr.filter(|_| self.op.name == "_Region") else { return Ok(None) };
        let anchor = self.attrs.func("anchor")?;
        let Some(op) = registry::find(&anchor.name) else { return Ok(None) };
        let (own, others) = self.inputs.split_at(op.input_dtypes(&anchor.attrs)?.len());
        let call = self.part(op, &anchor.attrs, own, None)?;
        look(&call, &Then { expr, others })
    }

    /// Runs `look` on the call that a `_RowCall` makes, and the numbers of its inputs that are rows; `None` for other
    /// calls.
    ///
    /// # Errors
    ///
    /// When the call is malformed, and those of `look`.
    pub(crate) fn with_rows<R>(
        &self,
        look: impl FnOnce(&OpCall<'_>, &[usize]) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        if self.op.name != names::ROW_CALL {
            return Ok(None);
        }
        let call = self.attrs.func("call")?;
        let Some(op) = registry::find(&call.name) else { return Ok(None) };
        let (shape, rows) = self.with_context(row_shape)?;
        let mut own: SmallVec<[OperandSpec; 6]> = self.inputs.iter().cloned().collect();
        own.pop();
        for &row in &rows {
            own[row] = OperandSpec::new(own[row].dtype, shape.clone());
        }
        look(&self.part(op, &call.attrs, &own, self.expr)?, &rows)
    }

    /// Runs `look` on the members of `_FusedConvolutions` in order, each with the number of the first of this
    /// call's inputs that is its own; `None` where a name is no op's, or `look` returns that.
    ///
    /// # Errors
    ///
    /// When the call is malformed, and those of `look`.
    pub(crate) fn with_members(
        &self,
        mut look: impl FnMut(&OpCall<'_>, usize) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        let (mut before, mut taken): (Option<OperandSpec>, usize) = (None, 0);
        for NameAttrList { name, attrs, expr } in self.attrs.funcs("convolutions")? {
            let Some(op) = registry::find(name) else { return Ok(None) };
            let n_inputs = op.input_dtypes(attrs)?.len();
            let own = n_inputs.saturating_sub(usize::from(before.is_some()));
            let Some(others) = self.inputs.get(taken..taken + own) else { return Ok(None) };
            let inputs: SmallVec<[OperandSpec; 6]> =
                before.into_iter().chain(others.iter().cloned()).collect();
            let part = self.part(op, attrs, &inputs, expr.as_deref())?;
            if look(&part, taken)?.is_none() {
                return Ok(None);
            }
            before = Some(OperandSpec::new(part.outputs[0].dtype, part.output_shape(0)?));
            taken += own;
        }
        Ok(Some(()))
    }

    /// An error about an argument of this call.
    pub fn wrong(
        &self,
        argument: impl Into<std::borrow::Cow<'static, str>>,
        expected: impl Into<std::borrow::Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> crate::Error {
        Error::argument(self.op.name, argument, expected, found).into()
    }

    /// The dtypes of inputs and outputs, for messages.
    pub fn dtypes(&self) -> String {
        let inputs: Vec<&str> = self.inputs.iter().map(|input| input.dtype.name()).collect();
        let outputs: Vec<&str> = self.outputs.iter().map(|output| output.dtype.name()).collect();
        format!("({}) -> ({})", inputs.join(", "), outputs.join(", "))
    }
}
