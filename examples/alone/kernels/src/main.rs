//! An op on the CPU, by `ferroflow-kernels` alone.

use ferroflow_kernels::ir::{Attrs, DType, HostTensor, registry};
use ferroflow_kernels::{CpuDevice, Device, Io, OpCall, Operand, OperandSpec, Target, Threads};

fn main() -> ferroflow_kernels::Result<()> {
    let x = HostTensor::vector(&[1.0f32, 4.0, 9.0])?;
    let inputs = [OperandSpec::new(DType::F32, x.shape().clone())];
    let attrs = Attrs::new().with("T", DType::F32);
    let call = OpCall::new(registry::find("Sqrt").unwrap(), &attrs, &inputs, None)?;
    let mut y = HostTensor::zeros(DType::F32, call.output_shape(0)?)?;
    let (threads, target) = (Threads::single(), Target::Plain(y.bytes_mut()));
    let kernel = CpuDevice::new(0).kernel(&call)?.unwrap();
    kernel.run(&mut Io::new([Operand::Tensor(&x)], [target], &threads, usize::MAX))?;
    assert_eq!(y.as_slice::<f32>()?, [1.0, 2.0, 3.0]);
    Ok(())
}
