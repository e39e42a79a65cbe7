//! Kernels of elementwise calls on single elements.

use super::scalar::{Register, ScalarBytecode, Stop, copy, get, set};
use crate::{
    device::OpCall,
    kernel::{Io, Kernel},
};
use smallvec::SmallVec;
use std::sync::Arc;

/// The kernel of an elementwise call on single elements, if a program can do it.
pub(super) fn compile(call: &OpCall<'_>) -> Option<Arc<dyn Kernel>> {
    let mut program = ScalarBytecode::new();
    let inputs: SmallVec<[(Register, usize); 4]> = call
        .inputs
        .iter()
        .map(|input| Some((program.register(), input.dtype.size()?)))
        .collect::<Option<_>>()?;
    let registers: SmallVec<[Register; 4]> = inputs.iter().map(|(register, _)| *register).collect();
    let out = program.register();
    program.call(call, &registers, out)?;
    let width = call.outputs[0].dtype.size()?;
    Some(Arc::new(Single { program, inputs, out, width }))
}

/// A call on single elements.
#[derive(Debug)]
struct Single {
    program: ScalarBytecode,
    /// Where the program finds the inputs, and the bytes they take.
    inputs: SmallVec<[(Register, usize); 4]>,
    out: Register,
    /// The bytes of the output.
    width: usize,
}

impl Kernel for Single {
    fn run(&self, io: &mut Io<'_>) -> crate::Result<()> {
        let out = io.output_bytes(0);
        let mut registers: SmallVec<[u64; 16]> = SmallVec::from_slice(self.program.registers());
        for (index, (register, width)) in self.inputs.iter().enumerate() {
            let bytes = if io.is_in_place(index) { &*out } else { io.bytes(index) };
            set(&mut registers[register.index()], &bytes[..*width]);
        }
        self.program.run(&mut registers, u64::MAX).map_err(|stop| match stop {
            Stop::Fault(_, error) => error,
            Stop::Rounds(_) => unreachable!("an expression has no loops"),
        })?;
        copy(out, get(&registers[self.out.index()], self.width));
        Ok(())
    }

    fn in_place(&self, index: usize) -> bool {
        self.inputs[index].1 == self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        OperandSpec,
        kernel::{Operand, Target},
        threads::Threads,
    };
    use ferroflow_ir::{Attrs, DType, Error, Shape, registry};

    fn kernel(op: &str, dtype: DType) -> Arc<dyn Kernel> {
        let op = registry::find(op).unwrap();
        let attrs = op.complete_attrs(Attrs::new().with("T", dtype)).unwrap();
        let specs = vec![OperandSpec::new(dtype, Shape::scalar()); op.inputs.len()];
        compile(&OpCall::new(op, &attrs, &specs, None).unwrap()).unwrap()
    }

    fn run(kernel: &Arc<dyn Kernel>, inputs: &[Operand<'_>], out: &mut [u8]) -> crate::Result<()> {
        let threads = Threads::single();
        let inputs = inputs.iter().copied();
        kernel.run(&mut Io::new(inputs, [Target::Plain(out)], &threads, usize::MAX))
    }

    #[test]
    fn elements_are_read_where_they_lie() {
        let kernel = kernel("Sub", DType::I32);
        let (x, y) = (7i32.to_ne_bytes(), 9i32.to_ne_bytes());
        let mut out = [0; 4];
        run(&kernel, &[Operand::Plain(&x), Operand::Plain(&y)], &mut out).unwrap();
        assert_eq!(i32::from_ne_bytes(out), -2);
        run(&kernel, &[Operand::Plain(&x), Operand::InPlace], &mut out).unwrap();
        assert_eq!(i32::from_ne_bytes(out), 9);
    }

    #[test]
    fn results_of_another_width_are_not_made_in_place() {
        assert!(kernel("Sub", DType::I32).in_place(1));
        assert!(!kernel("Less", DType::I32).in_place(0));
        assert!(kernel("Square", DType::I32).in_place(0));
    }

    #[test]
    fn arithmetic_without_a_result_is_an_error() {
        let kernel = kernel("FloorDiv", DType::I64);
        let (x, zero) = (7i64.to_ne_bytes(), [0; 8]);
        let error = run(&kernel, &[Operand::Plain(&x), Operand::Plain(&zero)], &mut [0; 8]);
        assert!(matches!(error, Err(crate::Error::Ir(Error::DivisionByZero))), "{error:?}");
    }
}
