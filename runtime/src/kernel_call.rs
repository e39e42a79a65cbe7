//! Calls of kernels: compiled once, run any number of times.

use crate::{
    context::Context,
    eager_tensor::{EagerTensor, Results},
    error::Result,
};
use ferroflow_ir::{Attrs, DType, HostTensor, OpDef, PartialShape, Shape};
use ferroflow_kernels::{
    Error as KernelError, Io, Kernel, OpCall, Operand, OperandSpec, Target, check_size,
    missing_feature,
};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

/// The least size of a result that takes the memory of an input.
pub(crate) const DONATED_BYTES: usize = 4096;

/// Results of a call that nothing reads, of the first 64.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnreadOutputs(u64);

impl UnreadOutputs {
    fn contains(self, index: usize) -> bool {
        index < 64 && self.0 >> index & 1 == 1
    }
}

impl FromIterator<usize> for UnreadOutputs {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> UnreadOutputs {
        let few = indices.into_iter().filter(|index| *index < 64);
        UnreadOutputs(few.fold(0, |bits, index| bits | 1 << index))
    }
}

/// A call of a kernel on inputs of certain types.
pub(crate) struct KernelCall {
    op: &'static OpDef,
    kernel: Arc<dyn Kernel>,
    /// Dtype and shape of the outputs that are plain and of known shape.
    outputs: SmallVec<[Option<(DType, Shape)>; 1]>,
    unread: UnreadOutputs,
}

impl fmt::Debug for KernelCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelCall").field("op", &self.op.name).finish_non_exhaustive()
    }
}

impl KernelCall {
    /// Compiles a call on inputs like these.
    ///
    /// # Errors
    ///
    /// When the call does not fit the op, no device can run it, or its results go beyond the limits
    /// or have a size that no tensor can have.
    pub(crate) fn new(
        context: &Context,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
    ) -> Result<KernelCall> {
        let specs = operand_specs(op, attrs, inputs.iter().copied())?;
        let call = OpCall::new(op, attrs, &specs, None)?;
        KernelCall::of(context, &call.with_precision(context.precision()))
    }

    /// Compiles a call.
    ///
    /// # Errors
    ///
    /// As [`new`](KernelCall::new).
    pub(crate) fn of(context: &Context, call: &OpCall<'_>) -> Result<KernelCall> {
        let kernel = compile(context, call)?;
        let mut outputs = SmallVec::new();
        for ty in &call.outputs {
            let shape = ty.shape.known();
            if shape.is_none() && impossible(&ty.shape) {
                let size = ty.shape.to_string();
                return Err(ferroflow_ir::Error::Size { what: "result".into(), size }.into());
            }
            let plain = ty.dtype.size().is_some();
            outputs.push(shape.filter(|_| plain).map(|shape| (ty.dtype, shape)));
        }
        Ok(KernelCall { op: call.op, kernel, outputs, unread: UnreadOutputs::default() })
    }

    /// The call without these results, which nothing reads: those whose size is not known ahead are
    /// left empty.
    pub(crate) fn without(self, unread: UnreadOutputs) -> KernelCall {
        KernelCall { unread, ..self }
    }

    /// Whether no result of known size has more elements than this.
    pub(crate) fn is_small(&self, most: usize) -> bool {
        self.outputs.iter().flatten().all(|(_, shape)| shape.num_elements() <= most)
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// Those of the kernel, and when an input is not in host memory.
    pub(crate) fn run(&self, context: &Context, inputs: &[&EagerTensor]) -> Result<Results> {
        self.run_on(context, inputs.iter().map(|input| Ok(Operand::Tensor(input.host()?))))
    }

    /// Runs the call on inputs, over one of them that no other value shares, where the kernel can write so.
    ///
    /// # Errors
    ///
    /// As [`run`](KernelCall::run).
    pub(crate) fn run_owned(
        &self,
        context: &Context,
        mut inputs: SmallVec<[EagerTensor; 4]>,
    ) -> Result<Results> {
        let Some(index) = self.donated(&inputs) else {
            let inputs: SmallVec<[&EagerTensor; 4]> = inputs.iter().collect();
            return self.run(context, &inputs);
        };
        let mut made = inputs.remove(index).into_host()?;
        let mut io = Io::empty(context.threads(), context.limits().tensor_bytes);
        for (position, input) in inputs.iter().enumerate() {
            if position == index {
                io.read(Operand::InPlace);
            }
            io.read(Operand::Tensor(input.host()?));
        }
        if index == inputs.len() {
            io.read(Operand::InPlace);
        }
        io.write(Target::Plain(made.bytes_mut()));
        self.kernel.run(&mut io)?;
        drop(io);
        Ok(Results::from_buf([made.into()]))
    }

    /// The input whose memory the result takes: one that is held here alone, and so large that it matters.
    fn donated(&self, inputs: &[EagerTensor]) -> Option<usize> {
        let [Some((dtype, shape))] = &self.outputs[..] else { return None };
        if dtype.size()? * shape.num_elements() < DONATED_BYTES {
            return None;
        }
        let is_free = |tensor: &HostTensor| {
            tensor.dtype() == *dtype && tensor.shape() == shape && tensor.is_unique()
        };
        inputs.iter().enumerate().find_map(|(index, input)| {
            let fits = self.kernel.in_place(index) && input.host().is_ok_and(is_free);
            fits.then_some(index)
        })
    }

    /// Runs the call on these operands.
    ///
    /// # Errors
    ///
    /// Those of the kernel, and of the operands.
    pub(crate) fn run_on<'a>(
        &self,
        context: &Context,
        operands: impl Iterator<Item = Result<Operand<'a>>>,
    ) -> Result<Results> {
        let limit = context.limits().tensor_bytes;
        // What nearly every call is, without the lists below.
        if let [Some((dtype, shape))] = &self.outputs[..] {
            let mut made = HostTensor::recycled(*dtype, shape.clone())?;
            let mut io = Io::empty(context.threads(), limit);
            for operand in operands {
                io.read(operand?);
            }
            io.write(Target::Plain(made.bytes_mut()));
            self.kernel.run(&mut io)?;
            drop(io);
            return Ok(Results::from_buf([made.into()]));
        }
        let mut made: SmallVec<[Option<HostTensor>; 2]> = SmallVec::new();
        for output in &self.outputs {
            made.push(match output {
                Some((dtype, shape)) => Some(HostTensor::recycled(*dtype, shape.clone())?),
                None => None,
            });
        }
        let mut io = Io::empty(context.threads(), limit);
        for operand in operands {
            io.read(operand?);
        }
        for (index, made) in made.iter_mut().enumerate() {
            io.write(match made {
                Some(tensor) => Target::Plain(tensor.bytes_mut()),
                None if self.unread.contains(index) => Target::Unread,
                empty => Target::Empty(empty),
            });
        }
        self.kernel.run(&mut io)?;
        drop(io);
        let mut results = Results::new();
        for (index, made) in made.into_iter().enumerate() {
            results.push(match made {
                Some(made) => made.into(),
                None if self.unread.contains(index) => {
                    EagerTensor::from(HostTensor::vector::<u8>(&[])?)
                }
                None => return Err(self.left_empty().into()),
            });
        }
        Ok(results)
    }

    fn left_empty(&self) -> ferroflow_ir::Error {
        let what = "its kernel left a result empty".into();
        ferroflow_ir::Error::Unsupported { op: self.op.name.into(), what }
    }
}

/// Specifications of the operands of a call.
///
/// # Errors
///
/// As [`operand_spec`].
pub(crate) fn operand_specs<'a>(
    op: &OpDef,
    attrs: &Attrs,
    inputs: impl IntoIterator<Item = &'a EagerTensor>,
) -> Result<SmallVec<[OperandSpec; 4]>> {
    let host = op.host_inputs(attrs)?;
    let inputs = inputs.into_iter().enumerate();
    inputs.map(|(index, input)| operand_spec(input, host.get(index) == Some(&true))).collect()
}

/// Specification of an operand that a kernel is compiled for: the value of an shape operand of
/// shapes, else dtype and shape.
///
/// # Errors
///
/// When an input that steers shapes is not in host memory.
pub(crate) fn operand_spec(input: &EagerTensor, host: bool) -> Result<OperandSpec> {
    Ok(match host {
        true => OperandSpec::known(input.host()?.clone()),
        false => OperandSpec::new(input.dtype(), input.shape().clone()),
    })
}

/// The kernel of a call.
///
/// # Errors
///
/// When the call does not fit the op, or no device can run it, or its results go beyond the limits:
/// kernels may prepare tables as long as a result.
pub(crate) fn compile(context: &Context, call: &OpCall<'_>) -> Result<Arc<dyn Kernel>> {
    for ty in &call.outputs {
        if let Some(shape) = ty.shape.known() {
            check_size(ty.dtype, &shape, context.limits().tensor_bytes)?;
        }
    }
    let device = context.cpu();
    let kernel = match context.registered_kernels().find(call.op) {
        Some(make) => make(call)?,
        None => device.kernel(call)?,
    };
    kernel.ok_or_else(|| {
        let absent = match missing_feature(call.op) {
            Some(feature) => KernelError::FeatureOff { op: call.op.name, feature },
            None => KernelError::NoKernel {
                op: call.op.name,
                device: device.name().into(),
                dtypes: call.dtypes(),
            },
        };
        absent.into()
    })
}

/// A shape of which every size is known but which no tensor can have.
fn impossible(shape: &PartialShape) -> bool {
    shape.is_known()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eager_tensor::EagerTensor;

    /// `x + y`, and the address of the result.
    fn sum(context: &Context, x: EagerTensor, y: EagerTensor) -> (Vec<f32>, usize) {
        let op = context.registry().find("AddV2").unwrap();
        let attrs = Attrs::new().with("T", DType::F32);
        let call = KernelCall::new(context, op, &attrs, &[&x, &y]).unwrap();
        let results = call.run_owned(context, SmallVec::from_iter([x, y])).unwrap();
        let result = results[0].host().unwrap();
        (result.as_slice::<f32>().unwrap().to_vec(), address(result))
    }

    fn address(tensor: &HostTensor) -> usize {
        tensor.bytes().as_ptr() as usize
    }

    fn filled(value: f32) -> HostTensor {
        HostTensor::vector(&[value; 2048]).unwrap()
    }

    #[test]
    fn inputs_that_are_held_here_alone_are_written_over() {
        let context = Context::new();
        let (x, y) = (filled(1.0), filled(2.0));
        let first = address(&x);
        let (found, at) = sum(&context, x.into(), y.clone().into());
        assert_eq!((found, at), (vec![3.0; 2048], first));
        let x = filled(1.0);
        let second = address(&y);
        let (found, at) = sum(&context, x.clone().into(), y.into());
        assert_eq!((found, at), (vec![3.0; 2048], second));
        assert_eq!(x.as_slice::<f32>().unwrap(), [1.0; 2048], "x is held here");
        let (found, _) = sum(&context, x.clone().into(), x.into());
        assert_eq!(found, vec![2.0; 2048], "neither operand is alone");
    }
}
